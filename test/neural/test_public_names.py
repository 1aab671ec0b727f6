"""The names that people import from `morphit_ros.neural`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import morphit_ros.neural


@pytest.mark.parametrize("name", morphit_ros.neural.__all__)
def test_every_public_name_is_there(name: str) -> None:
    value = getattr(morphit_ros.neural, name)
    assert value.__name__ == name and value.__module__.startswith("morphit_ros.neural")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="attribute 'densitiy'"):
        morphit_ros.neural.densitiy  # noqa: B018


def test_importing_it_loads_neither_torch_nor_kernels() -> None:
    code = "import sys, morphit_ros.neural; print([m for m in ('torch', 'numba') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
