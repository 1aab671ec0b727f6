"""Names of a package that are imported when they are first used, as its stub lists them.

The stub (`__init__.pyi`) is the one list: type checkers read it, and so does this.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from morphit_ros.dependencies import needed_for


def exports_of_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Args:
        package: its ``__name__``.
        file: its ``__file__``; the stub, of lines ``from .module import Name as Name``, lies beside it;
            two dots are the package around.

    A name of a module that needs what is not installed raises MissingDependencyError.
    """
    stub = Path(file).with_suffix(".pyi")
    modules = {
        alias.asname or alias.name: (resolve_name("." * node.level + node.module, package), alias.name)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.level >= 1 and node.module
        for alias in node.names
    }

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module, original = modules[name]
        with needed_for(f"{package}.{name}"):
            value = getattr(importlib.import_module(module), original)
        # Asked once only.
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(modules), sorted(modules)
