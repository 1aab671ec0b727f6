"""Where the files that a robot description names are: package://, file://, relative and absolute."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from morphit_ros.dependencies import how_to_install, is_listed
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

_REMEDY = "Give the folder that holds the package in package_paths or in $MORPHIT_PACKAGE_PATH."


def resolve_uri(uri: str, package_paths: Sequence[str | Path] = (), base_directory: str | Path | None = None) -> Path:
    """The existing file that a URI of a robot description means.

    Args:
        uri: ``package://name/path``, ``file:///path``, an absolute path, or a path relative to `base_directory`.
            ``package:///name/path``, ``file://relative/path``, ``%20`` for a space and backslashes, as some
            descriptions write them, are understood as well.
        package_paths: folders that hold packages, or packages themselves; looked at first.
        base_directory: folder of the description that names the URI.

    Raises:
        ResourceNotFoundError: there is no such file; names the package and the places looked at.
        InvalidInputError: the URI is empty or has a scheme that is not understood.
    """
    text = uri.strip()
    if not text:
        raise InvalidInputError("uri", "an empty string", "package://, file:// or a path")
    scheme, separator, rest = text.partition("://")
    if separator and scheme == "package":
        return _resolve_package(text, package_paths, base_directory)
    if separator and scheme != "file":
        raise InvalidInputError("uri", text, "package://, file:// or a path", f"'{scheme}' is not understood.")
    # file:/path is a URI as well, and so is file://localhost/path.
    written = rest.removeprefix("localhost/") if separator else text.removeprefix("file:")
    if separator and rest.startswith("localhost/"):
        written = f"/{written}"
    places = []
    for spelling in _spellings(written):
        path = _expanded(Path(spelling))
        if not path.is_absolute() and base_directory is not None:
            path = Path(base_directory) / path
        if _is_file(path):
            return path.resolve()
        places.append(str(path.parent))
        installed = _installed_elsewhere(path, package_paths)
        if installed is not None:
            return installed
    raise ResourceNotFoundError(text, places[:1], "Check the path.")


def _spellings(path: str) -> list[str]:
    """The path as it is written, and as a URI or a Windows program would mean it."""
    return list(dict.fromkeys([path, unquote(path), path.replace("\\", "/"), unquote(path).replace("\\", "/")]))


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    # There is no such user: then it is a name that begins with ~.
    except RuntimeError:
        return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    # Names that are too long, folders that may not be read.
    except OSError:
        return False


def _resolve_package(uri: str, package_paths: Sequence[str | Path], base_directory: str | Path | None) -> Path:
    searched: list[str] = []
    package, found_package = "", False
    for spelling in _spellings(uri.removeprefix("package://").lstrip("/")):
        name, _, relative = spelling.partition("/")
        if not name or not relative:
            continue
        package = package or name
        for folder in package_folders(name, package_paths, base_directory):
            if _is_file(folder / relative):
                return (folder / relative).resolve()
            if str(folder) not in searched:
                searched.append(str(folder))
                found_package = found_package or _is_folder(folder)
    if not package:
        raise InvalidInputError("uri", uri, "package://name/path")
    remedy = f"Package '{package}' was found, but not this file in it." if found_package else _REMEDY
    if not found_package and is_listed(package):
        remedy = how_to_install(package)
    raise ResourceNotFoundError(uri, searched, f"Package '{package}': {remedy}")


def _installed_elsewhere(path: Path, package_paths: Sequence[str | Path]) -> Path | None:
    """PREFIX/share/PACKAGE/FILE of another machine, whose robot description this one reads, where it lies here."""
    for index, part in enumerate(path.parts[:-2]):
        if part == "share":
            name, relative = path.parts[index + 1], Path(*path.parts[index + 2 :])
            for folder in package_folders(name, package_paths):
                if _is_file(folder / relative):
                    return (folder / relative).resolve()
    return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def package_folders(
    name: str, package_paths: Sequence[str | Path] = (), base_directory: str | Path | None = None
) -> Iterator[Path]:
    """Folders where a package may be, best first; they need not exist.

    Order: `package_paths`, the ament index, ``$ROS_PACKAGE_PATH``, ``$MORPHIT_PACKAGE_PATH``, the folders above
    the description, and the share folder of the robot models installed with pip (cmeel).
    """
    roots = [_expanded(Path(path)) for path in package_paths]
    yield from _in_roots(name, roots)
    share = ament_share(name)
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


def ament_share(name: str) -> Path | None:
    """Share folder of a package of the ament index; None where it has none."""
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
