"""OBJ files: vertices and faces of all groups; materials, normals and curves are passed over."""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


def read_obj(data: bytes) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (V, 3) and faces (F, 3), polygons cut into fans, of the bytes of an OBJ file, in its own unit.

    Raises:
        InvalidInputError: a vertex without three numbers, or a face without three indices; names the line.
    """
    coordinates, indices = array("d"), array("q")
    lines = data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines()
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words:
            continue
        try:
            if words[0] == b"v":
                x, y, z = words[1:4]
                coordinates.extend((float(x), float(y), float(z)))
            elif words[0] == b"f":
                count = len(coordinates) // 3
                corners = [int(word.partition(b"/")[0]) for word in words[1:]]
                if len(corners) < 3 or 0 in corners:
                    raise ValueError("three indices other than 0 are needed")
                # Counted from one, or backwards from the last vertex so far.
                first, *others = [corner - 1 if corner > 0 else count + corner for corner in corners]
                for second, third in pairwise(others):
                    indices.extend((first, second, third))
        except (ValueError, OverflowError) as error:
            shown = line[:60].decode("ascii", "replace")
            raise InvalidInputError(f"OBJ line {number}", repr(shown), "'v x y z' or 'f a b c …'") from error
    vertices = np.frombuffer(coordinates, np.float64).reshape(-1, 3) if coordinates else np.empty((0, 3))
    faces = np.frombuffer(indices, np.int64).reshape(-1, 3) if indices else np.empty((0, 3), dtype=np.int64)
    return vertices, faces
