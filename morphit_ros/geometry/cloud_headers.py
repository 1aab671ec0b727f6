"""Headers of PLY and PCD files: whether the file has room for as many points and faces as it claims.

Libraries that read these formats take memory for what the header says.
"""

from __future__ import annotations

import re
from pathlib import Path

from morphit_ros.budgets import MOST_FACES, MOST_POINTS, check_count
from morphit_ros.errors import InvalidInputError

_LARGEST_HEADER = 1 << 16
_REMEDY = "Write it again, or open it in a point cloud viewer to see what is wrong."
# Bytes of the types of a PLY file.
_PLY_TYPES = {
    "char": 1, "uchar": 1, "int8": 1, "uint8": 1, "short": 2, "ushort": 2, "int16": 2, "uint16": 2, "int": 4, "uint": 4,
    "int32": 4, "uint32": 4, "float": 4, "float32": 4, "double": 8, "float64": 8,
}  # fmt: skip
# A number of a text takes a digit and what stands between it and the next.
_TEXT_NUMBER = 2
# Of the compression of PCD files (LZF): three bytes are 264 at most.
_LZF_SHRINKING = 100
_PCD_ENTRIES = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS")
_PCD_KINDS = {("F", 4), ("F", 8), *((sign, width) for sign in "IU" for width in (1, 2, 4, 8))}
_PCD_VECTORS = ("x", "y", "z"), ("normal_x", "normal_y", "normal_z")
# Of one field of a point: descriptors have some hundred.
_MOST_VALUES = 4096


def check_cloud_header(path: str | Path) -> None:
    """Refuse a PLY or PCD file that claims more elements than it has bytes for; what has no header is left to readers.

    Raises:
        InvalidInputError: it claims more, or more than may be; names the file.
    """
    file = Path(path)
    check = check_ply_header if file.suffix.lower() == ".ply" else _check_pcd
    try:
        with file.open("rb") as stream:
            check(stream.read(_LARGEST_HEADER), file.stat().st_size, str(file))
    except OSError as error:
        raise InvalidInputError(str(file), f"unreadable ({error})", "a file that can be read") from error


def check_ply_header(head: bytes, size: int, source: str) -> None:
    """As `check_cloud_header`, of the first bytes of a PLY file.

    Args:
        head: the first 64 KiB, or all.
        size: of the file in bytes.
        source: names it in errors.
    """
    if not head.startswith(b"ply"):
        return
    lines, end, _ = head.partition(b"end_header")
    if not end:
        raise InvalidInputError(source, "unreadable (a PLY file without end_header)", "a whole PLY file", _REMEDY)
    is_text = re.search(rb"format\s+ascii", lines) is not None
    room = size - len(lines) - len(end)
    needed = count = 0
    for line in lines.decode("latin-1").splitlines():
        words = line.split()
        if words[:1] == ["element"]:
            count = _whole(words[-1], source)
            kind = "faces" if words[1] == "face" else "points"
            check_count(f"{source}: {kind}", count, MOST_FACES if kind == "faces" else MOST_POINTS, _REMEDY)
        elif words[:1] == ["property"] and len(words) > 2:
            # Of a list, at least its length is there.
            kind = words[2] if words[1] == "list" else words[1]
            needed += count * (_TEXT_NUMBER if is_text else _PLY_TYPES.get(kind, 1))
    _check_room(needed, room, source)


def _check_pcd(head: bytes, size: int, source: str) -> None:
    """Open3D's reader ends the process at headers that contradict themselves: everything it relies on is checked."""
    entry = re.search(rb"^DATA[ \t]+(ascii|binary|binary_compressed)[ \t]*\r?\n", head, re.MULTILINE)
    if entry is None:
        raise InvalidInputError(source, "unreadable (no line DATA)", "a PCD file", _REMEDY)
    fields: dict[str, list[str]] = {}
    for line in head[: entry.start()].decode("latin-1").splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            if words[0] not in _PCD_ENTRIES or words[0] in fields:
                found = f"unreadable (the header's line '{line[:40]}')"
                raise InvalidInputError(source, found, f"once each of {', '.join(_PCD_ENTRIES)}", _REMEDY)
            fields[words[0]] = words[1:]
    names, types = fields.get("FIELDS", []), fields.get("TYPE", [])
    widths = [_whole(word, source) for word in fields.get("SIZE", [])]
    counts = [_whole(word, source) for word in fields.get("COUNT", ["1"] * len(names))]
    kinds = list(zip(types, widths, strict=False))
    if (
        not len(names) == len(types) == len(widths) == len(counts) > 0
        or len(set(names)) < len(names)
        or not all(re.fullmatch(r"[\w.-]+", name, re.ASCII) for name in names)
        or not all(kind in _PCD_KINDS for kind in kinds)
        or not all(0 < count <= _MOST_VALUES for count in counts)
        or not all(len({*names} & {*group}) in (0, 3) for group in _PCD_VECTORS)
        or not {*_PCD_VECTORS[0]} <= {*names}
    ):
        bound = "x, y, z, and all of normal_x, normal_y, normal_z or none; as many FIELDS as SIZE, TYPE and COUNT"
        raise InvalidInputError(source, "unreadable (fields that are missing or contradict each other)", bound, _REMEDY)
    width, height = (_whole(" ".join(fields.get(name, ["1"])), source) for name in ("WIDTH", "HEIGHT"))
    points = _whole(" ".join(fields.get("POINTS", [str(width * height)])), source)
    check_count(f"{source}: points", max(points, width, height, width * height), MOST_POINTS, _REMEDY)
    if points != width * height:
        found = f"unreadable ({points} points in {height} rows of {width})"
        raise InvalidInputError(source, found, "as many as rows and columns make", _REMEDY)
    row = sum(width * count for width, count in zip(widths, counts, strict=True))
    room = size - entry.end()
    kind = entry[1]
    if kind == b"ascii":
        _check_room(points * _TEXT_NUMBER * sum(counts), room, source)
    elif kind == b"binary_compressed":
        packed = int.from_bytes(head[entry.end() : entry.end() + 4], "little")
        unpacked = int.from_bytes(head[entry.end() + 4 : entry.end() + 8], "little")
        _check_room(packed + 8, room, source)
        if unpacked != points * row or unpacked > _LZF_SHRINKING * max(packed, 1):
            found = f"unreadable ({unpacked} bytes of {packed} for {points} points of {row})"
            raise InvalidInputError(source, found, "a file that holds what it claims", _REMEDY)
    else:
        _check_room(points * row, room, source)


def _whole(word: str, source: str) -> int:
    # Python reads long numbers in quadratic time, and refuses very long ones.
    if not (word.isascii() and word.isdigit()) or len(word) > 18:
        raise InvalidInputError(source, f"unreadable (the count '{word[:40]}')", "whole numbers", _REMEDY)
    return int(word)


def _check_room(needed: int, room: int, source: str) -> None:
    # Of the last number of a text nothing follows.
    if needed > room + 1:
        found = f"unreadable ({needed} bytes claimed, {max(room, 0)} there)"
        raise InvalidInputError(source, found, "a file that holds what it claims", _REMEDY)
