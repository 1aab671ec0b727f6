"""Subpackages offer their names without loading what stands behind them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "morphit_ros"
PACKAGES = sorted(
    ".".join(("morphit_ros", *path.parent.relative_to(ROOT).parts)) for path in ROOT.rglob("__init__.pyi")
)


def test_the_packages_are_found() -> None:
    assert {"morphit_ros.grasping", "morphit_ros.spheres", "morphit_ros.superovoid"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_the_stub_is_there(package: str) -> None:
    module = importlib.import_module(package)
    stub = ROOT.joinpath(*package.split(".")[1:]) / "__init__.pyi"
    statements = ast.parse(stub.read_text(encoding="utf-8")).body
    names = [alias.name for node in statements if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert names and sorted(names) == sorted(module.__all__)
    for name in names:
        assert getattr(module, name) is not None
    assert set(names) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_unknown_names_are_refused(package: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'speheres'"):
        importlib.import_module(package).speheres  # noqa: B018


def test_importing_all_packages_loads_neither_kernels_nor_solvers() -> None:
    heavy = ("numpy", "numba", "scipy", "torch")
    code = f"import sys, {', '.join(PACKAGES)}; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
