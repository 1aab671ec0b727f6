"""STL files, binary and text."""

from __future__ import annotations

import re
from array import array

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

_HEADER, _RECORD = 84, 50
_FACE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_VERTEX = re.compile(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", re.IGNORECASE)
# Where to look for what tells text from binary.
_BLOCK = 1 << 12


def read_stl(data: bytes) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (3F, 3) and faces (F, 3) of the bytes of an STL file, in its own unit.

    Raises:
        InvalidInputError: neither kind of STL, or cut off.
    """
    claimed = int.from_bytes(data[80:_HEADER], "little") if len(data) >= _HEADER else 0
    held = max(len(data) - _HEADER, 0) // _RECORD
    # Some exporters begin binary files with "solid" as well: the size tells, and text has no zero bytes.
    is_text = b"facet" in data[:_BLOCK].lower() and b"\0" not in data[:_BLOCK]
    if is_text and len(data) != _HEADER + claimed * _RECORD:
        vertices = _text_vertices(data)
    elif held >= claimed > 0:
        vertices = np.frombuffer(data, _FACE, claimed, _HEADER)["corners"].reshape(-1, 3).astype(np.float64)
    else:
        raise InvalidInputError("STL", f"{claimed} faces in the header, {held} in the file", "a whole STL file")
    return vertices, np.arange(len(vertices)).reshape(-1, 3)


def stl_bytes(triangles: Array) -> bytes:
    """The bytes of a binary STL file of triangles (F, 3, 3), in the file's unit."""
    records = np.zeros(len(triangles), dtype=_FACE)
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    records["normal"] = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0.0)
    records["corners"] = triangles
    return b"\0" * 80 + len(triangles).to_bytes(4, "little") + records.tobytes()


def _text_vertices(data: bytes) -> Array:
    coordinates = array("d")
    try:
        for match in _VERTEX.finditer(data):
            coordinates.extend(map(float, match.groups()))
    except ValueError as error:
        raise InvalidInputError("STL", f"a vertex that is not one ({error})", "three numbers") from error
    if len(coordinates) % 9:
        raise InvalidInputError("STL", f"{len(coordinates) // 3} vertices", "three for each facet")
    return np.array(coordinates).reshape(-1, 3)
