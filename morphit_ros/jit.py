"""numba's `njit` with a cache of compiled kernels that all processes of all checkouts share.

numba's own cache lies beside the source and knows of a kernel only the file that it stands in: where a kernel that it
calls changes in another file, it goes on with the old one, and each installation compiles for itself. Here an entry is
named after what the kernel is compiled from: its file and every file of this project which that one imports, in turn.
numba itself adds its version, the processor and the types of the arguments. What no process has used for a month is
removed.

    from morphit_ros.jit import njit

`morphit compile` fills the cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from numba.np import arrayobj

from morphit_ros.resources import cache_directory

__all__ = ["kernel_directory", "lean_njit", "njit"]

# Kernels of this project only: what another package caches is its own matter.
_PACKAGES = ("morphit_ros", "morphit_bench")
# Imported nearly everywhere, and nothing that a kernel is compiled from.
_NO_KERNELS = {
    f"{name}.py" for name in ("errors", "configuration", "dependencies", "exports", "resources", "compilation", "jit")
}
_IMPORT = re.compile(r"^from ((?:morphit_ros|morphit_bench)[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
# A folder of the cache counts as used from its time of change, which is set once a day, and goes after a month [s].
_DAY, _MONTH = 86_400.0, 30 * 86_400.0


# Every kernel that assigns to a slice carries numba's code that writes the two shapes into the message of a mismatch:
# strings, joined and converted, a fifth of all compilation. numba's own shorter message (of targets without strings)
# says as much to who calls a kernel. (Ubuntu 24.04's numba, 0.58, has neither.)
if hasattr(arrayobj, "ol_raise_with_shape_context_generic"):
    arrayobj.ol_raise_with_shape_context_cpu.__code__ = arrayobj.ol_raise_with_shape_context_generic.__code__


def njit(function: Any = None, **options: Any) -> Any:
    """`numba.njit` without what nothing here uses: the wrapper of each kernel for C, a twentieth of its compilation."""
    # A kernel that is first compiled for a lean one would inherit its not counting references.
    options = {"no_cfunc_wrapper": True, "_nrt": True, **options}
    return numba.njit(**options) if function is None else numba.njit(**options)(function)


def lean_njit(function: Any = None, **options: Any) -> Any:
    """`njit` for small kernels that allocate nothing: without counts of references, and without the interpreter's lock.

    numba counts who refers to an array whenever one is read from a tuple or sliced, atomically. In kernels of a few
    hundred operations that takes most of the time. What allocates is refused when it is compiled.
    """
    return njit(function, **{"cache": True, "nogil": True, "_nrt": False, **options})


@cache
def _imports(path: Path) -> frozenset[Path]:
    """Files of this project that a module imports when it is imported itself: kernels call no others."""
    root = _root(path)
    found: set[Path] = set()
    for package, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        base = root.joinpath(*package.split("."))
        found.add(base.with_suffix(".py"))
        # A module may stand among the names: `from morphit_ros.superovoid.fits import gauge`.
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


def kernel_directory() -> Path:
    """Where all kernels are: ``$MORPHIT_KERNELS``, as who has a cache of his own may share them, else in the cache."""
    chosen = os.environ.get("MORPHIT_KERNELS")
    return Path(chosen) if chosen else cache_directory("kernels")


@cache
def _make_writable(folder: Path) -> None:
    """Make a folder, or say that it is in use; `OSError` where nothing can be written there."""
    if not folder.is_dir():
        # Only who adds pays for looking what is no longer of use.
        _remove_unused(folder.parent)
        folder.mkdir(parents=True, exist_ok=True)
    elif folder.stat().st_mtime < time.time() - _DAY:
        os.utime(folder)
    tempfile.TemporaryFile(dir=folder).close()


@cache
def _remove_unused(cache_folder: Path) -> None:
    """Remove what no process has used for a month, once a process."""
    oldest = time.time() - _MONTH
    for entry in cache_folder.glob("*/"):
        # Another process may be removing the same.
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime < oldest:
                shutil.rmtree(entry, ignore_errors=True)


class KernelCacheLocator(caching._CacheLocator):
    """Where numba keeps a compiled kernel of this project."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        path = Path(file)
        module = ".".join(path.relative_to(_root(path)).with_suffix("").parts[1:])
        self._stamp = _stamp(path)
        self.folder = kernel_directory() / f"{module}-{self._stamp[:16]}"

    def get_cache_path(self) -> str:
        return str(self.folder)

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
            _make_writable(locator.folder)
        except OSError:
            # A cache that cannot be written: numba's own places are tried next.
            return None
        return locator


caching.CacheImpl._locator_classes.insert(0, KernelCacheLocator)
