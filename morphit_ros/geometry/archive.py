"""Files of arrays with a JSON header: read without running anything, checked before memory is taken.

One .npz (a zip of .npy) whose member ``header`` is UTF-8 JSON with kind, version and a hash of the arrays. Nothing is
unpickled, sizes are compared with what the zip says before anything is allocated, and a changed array is noticed.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.array_files import MALFORMED, UNREADABLE, array_members, read_member
from morphit_ros.resources import atomic_write

_HEADER = "header"
_LARGEST_HEADER = 1 << 20
# A message shows so much of what a file holds.
_SHOWN = 120


def write_archive(
    path: str | Path, kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a file that appears complete or not at all; equal content gives equal bytes.

    Args:
        path: of the file, whatever its suffix.
        kind: what the file holds, "density field".
        version: of the format.
        header: whatever JSON can say.
        arrays: numbers or booleans by name.
    """
    content = dict(header) | {
        "kind": kind,
        "version": version,
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "sha256": _digest(arrays),
    }
    text = json.dumps(content, allow_nan=False).encode()
    with atomic_write(path, "wb") as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in ((_HEADER, np.frombuffer(text, dtype=np.uint8)), *arrays.items()):
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as target:
                np.lib.format.write_array(target, np.ascontiguousarray(array), allow_pickle=False)


def read_archive(
    path: str | Path, kind: str, version: int, oldest: int | None = None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file written by `write_archive`.

    Args:
        path: of the file.
        kind: what it must hold.
        version: of the format.
        oldest: version that is read as well, with those between; None for that one alone. The header says which it is.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not such a file, another kind or version, truncated, changed, or larger than allowed.
    """
    file = Path(path)
    if not file.is_file():
        raise ResourceNotFoundError(str(path), [], f"Give a file that holds a {kind}.")
    try:
        with zipfile.ZipFile(file) as archive:
            return _read(archive, str(path), kind, range(version if oldest is None else oldest, version + 1))
    except InvalidInputError:
        raise
    except UNREADABLE as error:
        raise _refused(path, f"a file that cannot be read ({shown(str(error))})", kind) from error


def is_archive(path: str | Path) -> bool:
    """Whether a file looks like one of `write_archive`, whatever its kind: a zip with a header among its arrays."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{_HEADER}.npy" in archive.namelist()
    except UNREADABLE:
        return False


def shown(text: str) -> str:
    """What a message says of something in a file, however long that is."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _read(
    archive: zipfile.ZipFile, path: str, kind: str, versions: range
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    members = array_members(archive, path)
    if _HEADER not in members:
        names = shown(", ".join(f"'{name}'" for name in sorted(members))) or "nothing in it"
        raise _refused(path, f"a zip file without a readable header, but with {names}", kind)
    if members[_HEADER].file_size > _LARGEST_HEADER:
        raise _refused(path, f"a header of {members[_HEADER].file_size} bytes", kind)
    text = _array(archive, members.pop(_HEADER), path, kind)
    try:
        header = json.loads(text.astype(np.uint8).tobytes().decode())
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"a header that is no JSON ({shown(str(error))})", kind) from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise _refused(path, f"a file of kind {shown(repr(found))}", kind)
    found = header.get("version")
    if type(found) is not int or found not in versions:
        remedy = "Write it again with this version of the package."
        raise InvalidInputError(
            path, f"version {shown(repr(found))}", f"version {' or '.join(map(str, versions))}", remedy
        )
    arrays = {name: _array(archive, member, path, kind) for name, member in members.items()}
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if header.get("shapes") != shapes or header.get("sha256") != _digest(arrays):
        raise InvalidInputError(path, "arrays that do not match the header", "an unchanged file")
    return header, arrays


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str, kind: str) -> NDArray[Any]:
    try:
        return read_member(archive, member, path)
    except MALFORMED as error:
        if isinstance(error, InvalidInputError):
            raise
        raise _refused(path, f"'{shown(member.filename)}', which is no array ({shown(str(error))})", kind) from error


def _digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Hash of names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _refused(path: str | Path, found: str, kind: str) -> InvalidInputError:
    return InvalidInputError(str(path), found, f"a complete file that holds a {kind}")
