"""How often rays from points cross a closed surface outwards: exact winding numbers at a few triangles a point."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, matrix_from_rpy
from morphit_ros.jit import njit

# Rays along an axis would graze the edges of machined parts and hit points of regular grids again and again.
_GENERIC_ROTATION = matrix_from_rpy((0.734212, 0.359871, 1.138423))
# Columns for each triangle, and list entries for each triangle at most (long triangles lie in many columns).
_COLUMNS_PER_FACE = 0.25
_MAX_ENTRIES_PER_FACE, _SMALL_ENTRIES = 12, 4_000_000
_MAX_COLUMNS = 1 << 22


# Questions that are answered by one pass over all faces; from then on their list by columns, as long to make as a few
# passes take, pays off.
_PASSES = 2


class RayCrossings:
    """Signed crossings of parallel rays with triangles without boundary, in columns of space along the rays."""

    def __init__(self, vertices: Array, faces: NDArray[np.int64]) -> None:
        """Args: vertices (V, 3) of a mesh about as large as 1, and faces (F, 3) that leave no `boundary_edges`."""
        used = np.zeros(len(vertices), dtype=np.bool_)
        used[faces.ravel()] = True
        self._origin = vertices[used].mean(axis=0)
        self._vertices = (vertices - self._origin) @ _GENERIC_ROTATION.T
        self._faces = np.ascontiguousarray(faces)
        corners = self._vertices[used]
        self._low, self._high = corners.min(axis=0), corners.max(axis=0)
        self._questions = 0

    @cached_property
    def _columns(self) -> tuple[float, tuple[int, int], NDArray[np.int64], NDArray[np.int32]]:
        """Side length of a column, columns along x and y, and the faces of each in one list."""
        sides = self._high[:2] - self._low[:2]
        sides = np.maximum(sides, max(1e-3 * float(sides.max()), 1e-9))
        wanted = min(max(_COLUMNS_PER_FACE * len(self._faces), 1.0), _MAX_COLUMNS)
        size = math.sqrt(sides[0] * sides[1] / wanted)
        while True:
            counts = int(sides[0] / size) + 1, int(sides[1] / size) + 1
            corner = self._low[:2]
            starts = np.zeros(counts[0] * counts[1] + 1, dtype=np.int64)
            _list_faces(self._vertices, self._faces, corner, size, counts, starts, np.empty(0, dtype=np.int32))
            total = int(starts.sum())
            if total <= max(_MAX_ENTRIES_PER_FACE * len(self._faces), _SMALL_ENTRIES):
                break
            size *= 2.0
        starts = np.cumsum(starts)
        entries = np.empty(total, dtype=np.int32)
        _list_faces(self._vertices, self._faces, corner, size, counts, starts, entries)
        return size, counts, starts, entries

    def winding_numbers(self, points: Array) -> Array:
        """Winding number (P,) of points (P, 3), a whole number each."""
        self._questions += 1
        if self._questions <= _PASSES:
            turned = (points - self._origin) @ _GENERIC_ROTATION.T
            return _crossings_in_one_pass(np.ascontiguousarray(turned), self._vertices, self._faces)
        box = self._low, self._high
        return _crossings(points, self._origin, _GENERIC_ROTATION, self._vertices, self._faces, *box, *self._columns)


@njit(cache=True, nogil=True)
def _list_faces(vertices, faces, corner, size, counts, starts, entries):  # type: ignore[no-untyped-def]
    """Count the faces of each column into starts[column + 1], or, where `starts` are given, list them in `entries`.

    A face is listed in a column wherever its projection meets it: row by row, the stretch between the leftmost and the
    rightmost point in the row; of the face as a whole where it lies in two rows or less.
    """
    listing = len(entries) > 0
    cursor = starts[:-1].copy()
    margin = 1e-9 * size
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        leftmost = min(vertices[a, 0], vertices[b, 0], vertices[c, 0])
        rightmost = max(vertices[a, 0], vertices[b, 0], vertices[c, 0])
        first_row = _cell(min(vertices[a, 1], vertices[b, 1], vertices[c, 1]) - margin - corner[1], size, counts[1])
        last_row = _cell(max(vertices[a, 1], vertices[b, 1], vertices[c, 1]) + margin - corner[1], size, counts[1])
        for row in range(first_row, last_row + 1):
            left, right = leftmost, rightmost
            if last_row - first_row > 1:
                bottom, top = corner[1] + row * size - margin, corner[1] + (row + 1) * size + margin
                left, right = _stretch(vertices, faces[f], bottom, top)
                if left > right:
                    continue
            first = _cell(left - margin - corner[0], size, counts[0])
            last = _cell(right + margin - corner[0], size, counts[0])
            for column in range(row * counts[0] + first, row * counts[0] + last + 1):
                if listing:
                    entries[cursor[column]] = f
                    cursor[column] += 1
                else:
                    starts[column + 1] += 1


@njit(cache=True, nogil=True)
def _cell(distance, size, count):  # type: ignore[no-untyped-def]
    return min(max(int(distance / size), 0), count - 1)


@njit(cache=True, nogil=True)
def _stretch(vertices, face, bottom, top):  # type: ignore[no-untyped-def]
    """Leftmost and rightmost x of the part of a face between two heights."""
    left, right = np.inf, -np.inf
    for c in range(3):
        xa, ya = vertices[face[c], 0], vertices[face[c], 1]
        xb, yb = vertices[face[(c + 1) % 3], 0], vertices[face[(c + 1) % 3], 1]
        if bottom <= ya <= top:
            left, right = min(left, xa), max(right, xa)
        for level in (bottom, top):
            if (ya - level) * (yb - level) < 0.0:
                x = xa + (xb - xa) * (level - ya) / (yb - ya)
                left, right = min(left, x), max(right, x)
    return left, right


@njit(cache=True, nogil=True)
def _crossings(  # type: ignore[no-untyped-def]
    points, origin, rotation, vertices, faces, low, high, size, counts, starts, entries
):
    result = np.zeros(len(points))
    for p in range(len(points)):
        x, y, z = points[p, 0] - origin[0], points[p, 1] - origin[1], points[p, 2] - origin[2]
        qx = rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z
        qy = rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z
        qz = rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z
        if not (low[0] <= qx <= high[0] and low[1] <= qy <= high[1] and low[2] <= qz <= high[2]):
            continue
        i, j = _cell(qx - low[0], size, counts[0]), _cell(qy - low[1], size, counts[1])
        column = j * counts[0] + i
        total = 0
        for entry in range(starts[column], starts[column + 1]):
            total += _crossing(vertices, faces[entries[entry]], qx, qy, qz)
        result[p] = total
    return result


@njit(cache=True, nogil=True, inline="always")
def _crossing(vertices, face, qx, qy, qz):  # type: ignore[no-untyped-def]
    """1, -1 or 0: whether the ray upwards from a point crosses a face outwards, inwards or not."""
    a, b, c = face[0], face[1], face[2]
    az, bz, cz = vertices[a, 2], vertices[b, 2], vertices[c, 2]
    if az < qz and bz < qz and cz < qz:
        return 0
    ax, ay = vertices[a, 0] - qx, vertices[a, 1] - qy
    bx, by = vertices[b, 0] - qx, vertices[b, 1] - qy
    cx, cy = vertices[c, 0] - qx, vertices[c, 1] - qy
    # Exactly opposite for the two faces of an edge, so that no ray slips between them.
    ab, bc, ca = ax * by - ay * bx, bx * cy - by * cx, cx * ay - cy * ax
    if ab > 0.0 and bc > 0.0 and ca > 0.0:
        turn = 1
    elif ab < 0.0 and bc < 0.0 and ca < 0.0:
        turn = -1
    else:
        return 0
    return turn if (bc * (az - qz) + ca * (bz - qz) + ab * (cz - qz)) * turn > 0.0 else 0


@njit(cache=True, nogil=True)
def _crossings_in_one_pass(points, vertices, faces):  # type: ignore[no-untyped-def]
    """As `_crossings`, with the points in columns instead of the faces: nothing is prepared for the next time."""
    result = np.zeros(len(points))
    if len(points) == 0:
        return result
    corner = np.array([points[:, 0].min(), points[:, 1].min()])
    sides = max(points[:, 0].max() - corner[0], 1e-9), max(points[:, 1].max() - corner[1], 1e-9)
    # One point a column.
    size = max(math.sqrt(sides[0] * sides[1] / len(points)), 1e-3 * max(sides))
    counts = int(sides[0] / size) + 1, int(sides[1] / size) + 1
    columns = np.empty(len(points), dtype=np.int64)
    starts = np.zeros(counts[0] * counts[1] + 1, dtype=np.int64)
    for p in range(len(points)):
        i, j = _cell(points[p, 0] - corner[0], size, counts[0]), _cell(points[p, 1] - corner[1], size, counts[1])
        columns[p] = j * counts[0] + i
        starts[columns[p] + 1] += 1
    starts = np.cumsum(starts)
    order = np.argsort(columns, kind="mergesort")
    # In the order of the columns, so that a row of them is one stretch of memory.
    x, y, z = points[order, 0], points[order, 1], points[order, 2]
    totals = np.zeros(len(points), dtype=np.int64)
    margin = 1e-9 * size
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        left = min(vertices[a, 0], vertices[b, 0], vertices[c, 0]) - margin - corner[0]
        right = max(vertices[a, 0], vertices[b, 0], vertices[c, 0]) + margin - corner[0]
        low = min(vertices[a, 1], vertices[b, 1], vertices[c, 1]) - margin - corner[1]
        high = max(vertices[a, 1], vertices[b, 1], vertices[c, 1]) + margin - corner[1]
        if right < 0.0 or high < 0.0 or left > sides[0] or low > sides[1]:
            continue
        first_row, last_row = _cell(low, size, counts[1]), _cell(high, size, counts[1])
        for row in range(first_row, last_row + 1):
            from_x, to_x = left, right
            if last_row - first_row > 1:
                bottom, top = corner[1] + row * size - margin, corner[1] + (row + 1) * size + margin
                from_x, to_x = _stretch(vertices, faces[f], bottom, top)
                if from_x > to_x:
                    continue
                from_x, to_x = from_x - margin - corner[0], to_x + margin - corner[0]
            first, last = _cell(from_x, size, counts[0]), _cell(to_x, size, counts[0])
            for p in range(starts[row * counts[0] + first], starts[row * counts[0] + last + 1]):
                totals[p] += _crossing(vertices, faces[f], x[p], y[p], z[p])
    for p in range(len(points)):
        result[order[p]] = totals[p]
    return result
