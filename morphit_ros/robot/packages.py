"""Where the files that a robot description names are: package://, file://, relative and absolute."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

_REMEDY = "Give the folder that holds the package in package_paths or in $MORPHIT_PACKAGE_PATH."


def resolve_uri(uri: str, package_paths: Sequence[str | Path] = (), base_directory: str | Path | None = None) -> Path:
    """The existing file that a URI of a robot description means.

    Args:
        uri: ``package://name/path``, ``file:///path``, an absolute path, or a path relative to `base_directory`.
            ``package:///name/path``, as some descriptions write it, is understood as well.
        package_paths: folders that hold packages, or packages themselves; looked at first.
        base_directory: folder of the description that names the URI.

    Raises:
        ResourceNotFoundError: there is no such file; names the package and the places looked at.
        InvalidInputError: the URI is empty or has a scheme that is not understood.
    """
    text = uri.strip()
    if not text:
        raise InvalidInputError("uri", "an empty string", "package://, file:// or a path")
    if text.startswith("package://"):
        return _resolve_package(text, package_paths, base_directory)
    scheme = urlsplit(text).scheme
    if scheme == "file":
        path = Path(unquote(urlsplit(text).path))
    elif "://" in text:
        raise InvalidInputError("uri", text, "package://, file:// or a path", f"'{scheme}' is not understood.")
    else:
        path = Path(text).expanduser()
        if not path.is_absolute() and base_directory is not None:
            path = Path(base_directory) / path
    if not path.is_file():
        raise ResourceNotFoundError(text, [str(path.parent)], "Check the path.")
    return path.resolve()


def _resolve_package(uri: str, package_paths: Sequence[str | Path], base_directory: str | Path | None) -> Path:
    name, _, relative = uri.removeprefix("package://").lstrip("/").partition("/")
    if not name or not relative:
        raise InvalidInputError("uri", uri, "package://name/path")
    searched: list[str] = []
    found_package = False
    for folder in package_folders(name, package_paths, base_directory):
        if str(folder) in searched:
            continue
        searched.append(str(folder))
        found_package = found_package or folder.is_dir()
        if (folder / relative).is_file():
            return (folder / relative).resolve()
    remedy = f"Package '{name}' was found, but not this file in it." if found_package else _REMEDY
    raise ResourceNotFoundError(uri, searched, f"Package '{name}': {remedy}")


def package_folders(
    name: str, package_paths: Sequence[str | Path] = (), base_directory: str | Path | None = None
) -> Iterator[Path]:
    """Folders where a package may be, best first; they need not exist.

    Order: `package_paths`, the ament index, ``$ROS_PACKAGE_PATH``, ``$MORPHIT_PACKAGE_PATH``, the folders above
    the description, and the share folder of the robot models installed with pip (cmeel).
    """
    roots = [Path(path).expanduser() for path in package_paths]
    yield from _in_roots(name, roots)
    share = _ament_share(name)
    if share is not None:
        yield share
    for variable in ("ROS_PACKAGE_PATH", "MORPHIT_PACKAGE_PATH"):
        yield from _in_roots(name, [Path(path) for path in os.environ.get(variable, "").split(os.pathsep) if path])
    if base_directory is not None:
        # A description usually lies in the package that its own meshes are in.
        start = Path(base_directory).resolve()
        yield from (folder for folder in (start, *start.parents) if folder.name == name)
    yield from _in_roots(name, _cmeel_shares())


def _in_roots(name: str, roots: Sequence[Path]) -> Iterator[Path]:
    for root in roots:
        yield root / name
        if root.name == name:
            yield root


def _ament_share(name: str) -> Path | None:
    if importlib.util.find_spec("ament_index_python") is None:
        return None
    from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

    try:
        return Path(get_package_share_directory(name))
    # The index raises OSError without AMENT_PREFIX_PATH and ValueError for a name that cannot be a package's.
    except (PackageNotFoundError, OSError, ValueError):
        return None


def _cmeel_shares() -> list[Path]:
    """Share folders of packages that pip installed through cmeel, such as example-robot-data."""
    prefixes = []
    for entry in sys.path:
        folder = Path(entry)
        if folder.name == "site-packages":
            prefixes.append(folder / "cmeel.prefix" / "share")
        # cmeel itself appends cmeel.prefix/lib/python3.x/site-packages to sys.path.
        prefixes += [parent / "share" for parent in folder.parents if parent.name == "cmeel.prefix"]
    return [prefix for prefix in prefixes if prefix.is_dir()]
