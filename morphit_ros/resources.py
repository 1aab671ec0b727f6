"""Where the package's own data files and its cache are.

Data files (config/, urdf/, rviz/, launch/) lie beside the package in a source tree and under
share/morphit_ros after an installation by colcon or pip.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

# What there has to be room for before the work whose result is written.
_PROBE_BYTES = 1 << 20


@cache
def share_directory() -> Path:
    """The folder that holds config/, urdf/, rviz/ and launch/.

    Raises:
        ResourceNotFoundError: the package is neither installed nor run from its source tree.
    """
    source_tree = Path(__file__).resolve().parent.parent
    candidates = [source_tree]
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(":")
    candidates += [Path(prefix) / "share" / "morphit_ros" for prefix in prefixes if prefix]
    candidates.append(Path(sys.prefix) / "share" / "morphit_ros")
    for candidate in candidates:
        if (candidate / "package.xml").is_file() and (candidate / "config").is_dir():
            return candidate
    raise ResourceNotFoundError(
        "share/morphit_ros", [str(path) for path in candidates], "Install the package with colcon or pip."
    )


def resource(relative: str) -> Path:
    """A data file of the package, such as ``config/robots/panda.yaml``.

    Raises:
        ResourceNotFoundError: there is no such file; lists its siblings.
    """
    path = share_directory() / relative
    if not path.exists():
        siblings = sorted(p.stem for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        raise ResourceNotFoundError(relative, [str(path)], f"There are: {', '.join(siblings)}." if siblings else "")
    return path


def data_directory(given: str | Path | None = None) -> Path:
    """The folder with published data, which holds cover/, grasp/, neural/, planning/, robots/ and ycb/, if it is there.

    Args:
        given: as ``--data`` takes it; None for ``$MORPHIT_DATA``, else ``../shared/data`` beside the project.
    """
    if given is not None:
        return Path(given)
    return Path(os.environ.get("MORPHIT_DATA") or share_directory().parent / "shared" / "data")


def data_path(part: str, given: str | Path | None = None) -> Path:
    """A part of the published data, such as ``cover/8x8.json``.

    Raises:
        ResourceNotFoundError: it is not there; names what is missing and where it was looked for.
    """
    path = data_directory(given) / part
    if not path.exists():
        remedy = (
            "Name the folder that holds cover/, grasp/, neural/, planning/, robots/ and ycb/: --data, MORPHIT_DATA."
        )
        raise ResourceNotFoundError(part, [str(path.absolute())], remedy)
    return path


def cache_directory(name: str) -> Path:
    """A folder for results that can be computed again (``$MORPHIT_CACHE``, else the user's cache)."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "morphit_ros"
    path = Path(os.environ.get("MORPHIT_CACHE") or default) / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def state_directory(name: str) -> Path:
    """A folder for what must outlive a program (``$MORPHIT_STATE``, else the user's state)."""
    default = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "morphit_ros"
    path = Path(os.environ.get("MORPHIT_STATE") or default) / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def check_writable(name: str, path: str | Path, folder: bool = False) -> None:
    """Refuse a file or a folder that cannot be written; missing folders will be made.

    Args:
        name: of the option or argument, for the error.
        path: of the file or folder.
        folder: whether it is a folder.

    Raises:
        InvalidInputError: a folder where a file should be, or the other way round; or a folder around it that is a
            file, cannot be written or is full.
    """
    target = Path(path).absolute()
    if target.is_dir() and not folder:
        raise InvalidInputError(name, repr(str(path)), "the name of a file", "This is a folder.")
    around = target if folder else target.parent
    try:
        while not around.exists():
            around = around.parent
        with tempfile.TemporaryFile(dir=around) as probe:
            # A full disk takes new files, but nothing in them.
            os.posix_fallocate(probe.fileno(), 0, _PROBE_BYTES)
    except OSError as error:
        kind = "a folder" if folder else "a file in a folder"
        bound = f"{kind} that can be written, which {around} is not ({error.strerror})"
        raise InvalidInputError(name, repr(str(path)), bound, "Choose another place.") from None


@contextmanager
def hold_name(kind: str, name: str) -> Iterator[bool]:
    """Hold a name on this machine; tells whether it could be had. It is free again when its holder is gone, however.

    Args:
        kind: of what the name is.
        name: any text.
    """
    folder = Path(tempfile.gettempdir()) / f"morphit_ros_{os.getuid()}" / kind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The lock is what counts, and goes with the process; the empty file stays.
    descriptor = os.open(folder / urllib.parse.quote(name, safe=""), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:
    """Open a file that appears under its name only when it is complete.

    An error or an interrupt leaves the previous file untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, mode, encoding=None if "b" in mode else "utf-8") as stream:
            yield stream
        # mkstemp makes files private; give the result the permissions of an ordinary new file.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink()
        raise
