"""Arrays in NPZ files, read without trust: what a member claims is held against what it has before memory is taken."""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.budgets import MOST_ARRAY_BYTES, MOST_SHRINKING
from morphit_ros.errors import InvalidInputError

# What a damaged zip file raises, besides its own error: of decompression (bz2: an OSError without a number), of unknown
# methods and of passwords (RuntimeError), of places and names that are none. And what the file system raises.
UNREADABLE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, LookupError, struct.error,
    OSError,
)  # fmt: skip
# What NumPy's reader of .npy headers raises on nonsense.
MALFORMED = (
    ValueError, LookupError, SyntaxError, TypeError, OverflowError, RecursionError, MemoryError, struct.error,
    tokenize.TokenError,
)  # fmt: skip
_NPY = b"\x93NUMPY"
# Numbers and booleans. Nothing that would have to be unpickled is read.
_PLAIN_KINDS = "biuf"
# A name of a member that an error shows; a message shows so much of it.
_SHOWN = 120
# Members have a header of NumPy and what zip adds.
_OVERHEAD = 1 << 16


def read_arrays(path: str | Path, wanted: Collection[str] = (), kinds: str = _PLAIN_KINDS) -> dict[str, NDArray[Any]]:
    """The arrays of an NPZ file by name.

    Args:
        path: of the file.
        wanted: names of those to read; all if empty.
        kinds: NumPy's letters of the types that may be in it.

    Raises:
        InvalidInputError: no NPZ file, a damaged or encrypted one, arrays of other types, or ones that claim more than
            there is or than `MOST_ARRAY_BYTES`.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            if stream.read(len(_NPY)) == _NPY:
                stream.seek(0)
                shape = _header(stream)[0]
                found = f"one array of shape {shape} without a name"
                raise InvalidInputError(str(file), found, "an NPZ file of named arrays")
        with zipfile.ZipFile(file) as archive:
            members = array_members(archive, str(file))
            names = [name for name in members if not wanted or name in wanted]
            return {name: read_member(archive, members[name], str(file), kinds) for name in names}
    except InvalidInputError:
        raise
    except (*UNREADABLE, *MALFORMED) as error:
        raise InvalidInputError(str(file), f"unreadable ({error})"[:300], "an NPZ file") from error


def array_names(path: str | Path) -> list[str]:
    """Names of the arrays of a file, in order; none if it is no zip file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return sorted(name.removesuffix(".npy") for name in archive.namelist())
    except UNREADABLE:
        return []


def array_members(archive: zipfile.ZipFile, path: str, most: int = MOST_ARRAY_BYTES) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive by the names of their arrays.

    Raises:
        InvalidInputError: more bytes, once they are unpacked, than may be; or than such a file can hold.
    """
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    if total > most:
        raise InvalidInputError(path, f"{total} bytes when unpacked", f"at most {most}")
    packed = sum(member.compress_size for member in members)
    if total > MOST_SHRINKING * packed + _OVERHEAD:
        raise InvalidInputError(path, f"{total} bytes of {packed}", "a file that holds what it claims")
    return {member.filename.removesuffix(".npy"): member for member in members}


def read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str, kinds: str = _PLAIN_KINDS
) -> NDArray[Any]:
    """One array, after comparing the size that it claims with the size that it has.

    Raises:
        InvalidInputError: another type, or a shape that does not fit; `path` names the file.
        ValueError, LookupError, ...: it is no array, is damaged or encrypted (`UNREADABLE`).
    """
    name = member.filename[:_SHOWN]
    with archive.open(member) as stream:
        shape, fortran_order, dtype = _header(stream)
        if dtype.kind not in kinds or dtype.hasobject:
            raise InvalidInputError(path, f"unreadable ('{name}' of type {dtype})"[:300], "numbers or booleans")
        # Python's integers do not overflow, whatever shape is claimed.
        size = dtype.itemsize * math.prod(shape)
        if min(shape, default=0) < 0 or size > member.file_size:
            raise InvalidInputError(path, f"'{name}' of shape {shape}", "a shape that fits its data")
        data = stream.read(size)
        # Reads on to the end: only then is the checksum compared.
        rest = stream.read(1)
    if len(data) != size or rest:
        raise InvalidInputError(path, f"'{name}' of {len(data)} bytes and shape {shape}", "a shape that fits its data")
    array = np.frombuffer(bytearray(data), dtype)
    return array.reshape(shape[::-1]).T if fortran_order else array.reshape(shape)


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether it lies column by column, and type of the array that a stream begins with."""
    major, _ = np.lib.format.read_magic(stream)
    if major not in (1, 2):
        raise ValueError(f"version {major} of the format of arrays")
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(stream)
    return tuple(shape), bool(fortran_order), dtype
