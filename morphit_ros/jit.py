"""numba's `njit` with a cache of compiled kernels that all processes of all checkouts share.

numba's own cache lies beside the source and knows of a kernel only the file that it stands in: where a kernel that it
calls changes in another file, it goes on with the old one, and each installation compiles for itself. Here an entry is
named after what the kernel is compiled from: its file and every file of this project which that one imports, in turn.
numba itself adds its version, the processor, and the types of the arguments.

    from morphit_ros.jit import njit
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching

from morphit_ros.resources import cache_directory

__all__ = ["njit"]

# Kernels of this project only: what another package caches is its own matter.
_PACKAGES = ("morphit_ros", "morphit_bench")
# Imported nearly everywhere, and nothing that a kernel is compiled from.
_NO_KERNELS = {f"{name}.py" for name in ("errors", "configuration", "resources", "compilation", "jit")}
_IMPORT = re.compile(r"^from ((?:morphit_ros|morphit_bench)[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this project that a module imports when it is imported itself: kernels call no others."""
    root = _root(path)
    found: set[Path] = set()
    for package, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        base = root.joinpath(*package.split("."))
        found.add(base.with_suffix(".py"))
        # A module may stand among the names: `from morphit_ros.superovoid.fits import kernels`.
        found.update(base / f"{name}.py" for name in re.findall(r"\w+", names))
    left_out = {root / _PACKAGES[0] / name for name in _NO_KERNELS}
    return frozenset(file for file in found - left_out if file.is_file())


def _root(path: Path) -> Path:
    """The folder that the package of a file lies in."""
    depth = next(k for k in range(len(path.parts) - 1, -1, -1) if path.parts[k] in _PACKAGES)
    return Path(*path.parts[:depth])


@cache
def _stamp(path: Path) -> str:
    """What a kernel in a file is compiled from, as a hash."""
    waiting, known = [path], {path}
    while waiting:
        new = _imports(waiting.pop()) - known
        known |= new
        waiting += new
    digest = hashlib.sha256()
    for file in sorted(known):
        digest.update(str(file.relative_to(_root(file))).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _folder() -> Path:
    """Where all kernels are: ``$MORPHIT_KERNELS``, else in the cache."""
    chosen = os.environ.get("MORPHIT_KERNELS")
    return Path(chosen) if chosen else cache_directory("kernels")


@cache
def _make_writable(folder: str) -> None:
    """Make a folder; `OSError` where nothing can be written there."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


class KernelCacheLocator(caching._CacheLocator):
    """Where numba keeps a compiled kernel of this project."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        path = Path(file)
        module = ".".join(path.relative_to(_root(path)).with_suffix("").parts[1:])
        self._stamp = _stamp(path)
        self._path = _folder() / f"{module}-{self._stamp[:16]}"

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> KernelCacheLocator | None:
        parts = Path(file).parts
        if not any(package in parts for package in _PACKAGES) or not Path(file).is_file():
            return None
        try:
            locator = cls(function, file)
            _make_writable(locator.get_cache_path())
        except OSError:
            # A cache that cannot be written: numba's own places are tried next.
            return None
        return locator


caching.CacheImpl._locator_classes.insert(0, KernelCacheLocator)
