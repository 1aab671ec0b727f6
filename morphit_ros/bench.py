"""What only measures, by name: `morphit_bench`, which is installed apart."""

from __future__ import annotations

import importlib
from types import ModuleType

from morphit_ros.errors import MissingDependencyError


def bench_module(name: str, needed_for: str) -> ModuleType:
    """A module of `morphit_bench`.

    Args:
        name: below `morphit_bench`.
        needed_for: the feature that needs it.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        return importlib.import_module(f"morphit_bench.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "morphit_bench":
            raise
        remedy = "Install it from the repository: pip install ./morphit_bench"
        raise MissingDependencyError("morphit_bench", needed_for, remedy) from error
