"""Rooms offer their names without loading what stands behind them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "morphit_ros"
ROOMS = sorted(
    "morphit_ros." + ".".join(path.parent.relative_to(ROOT).parts)
    for path in ROOT.rglob("__init__.py")
    if "lazy_exports(" in path.read_text(encoding="utf-8")
)


def exports(room: str) -> tuple[dict[str, str], dict[str, str]]:
    """Name → module, as type checkers see it and as `lazy_exports` is told."""
    tree = ast.parse((ROOT.joinpath(*room.split(".")[1:]) / "__init__.py").read_text(encoding="utf-8"))
    (switch,) = (node for node in tree.body if isinstance(node, ast.If))
    checked = {
        alias.name: node.module.removeprefix(f"{room}.")
        for node in switch.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    (assignment,) = switch.orelse
    assert isinstance(assignment, ast.Assign) and isinstance(assignment.value, ast.Call)
    modules = ast.literal_eval(assignment.value.args[1])
    return checked, {name: module for module, names in modules.items() for name in names}


def test_the_rooms_are_found() -> None:
    assert {"morphit_ros.grasping", "morphit_ros.spheres", "morphit_ros.superovoid"} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_is_there(room: str) -> None:
    module = importlib.import_module(room)
    for name in module.__all__:
        assert getattr(module, name) is vars(module)[name]
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_see_the_same_names(room: str) -> None:
    checked, loaded = exports(room)
    assert checked == loaded
    assert sorted(checked) == sorted(importlib.import_module(room).__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_unknown_names_are_refused(room: str) -> None:
    with pytest.raises(AttributeError, match="no attribute 'speheres'"):
        importlib.import_module(room).speheres  # noqa: B018


def test_importing_all_rooms_loads_neither_kernels_nor_solvers() -> None:
    code = (
        f"import sys, {', '.join(ROOMS)}; print([m for m in ('numpy', 'numba', 'scipy', 'torch') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
