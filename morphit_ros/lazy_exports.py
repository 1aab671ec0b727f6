"""Names that a room offers but imports only when they are first used.

Whoever imports one module of a room runs the room's `__init__` first. If that imported all that it offers, a node that
needs one message type would load solvers, SciPy and compiled kernels, and take a second longer to start.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported when they are first used (PEP 562).

    Args:
        package: full name of the package, its `__name__`.
        modules: module of the package → names that it defines. The same imports belong under `TYPE_CHECKING` for
            mypy, and the names in `__all__`.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        # From now on it is found without coming here.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
