"""The nearest seen point of any place near the surface, looked up in a dense grid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Cells along the longest side, at most.
_LARGEST = 80


class NearestGrid(NamedTuple):
    """For each cell the point nearest to its centre, if one lies in or beside the cell.

    Attributes:
        origin: (3,) corner of the first cell [m].
        cell: edge of a cell [m].
        nearest: (W, H, D) row of a point, −1 where none is near.
    """

    origin: Array
    cell: float
    nearest: NDArray[np.int32]


def nearest_grid(points: Array, cell: float) -> NearestGrid:
    """The grid of points (N, 3), with cells of `cell` [m] or larger ones if there were too many."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(cell, float((high - low).max()) / _LARGEST)
    origin = low - 1.5 * size
    shape = ((high - origin) / size).astype(np.int64) + 3
    return NearestGrid(origin, size, _fill(np.ascontiguousarray(points), origin, size, shape))


def partners(points: Array, normals: Array, facing: Array, grid: NearestGrid) -> NDArray[np.int64]:
    """`partner_of` each of the points (Q, 3) with normals (Q, 3)."""
    return _partners(np.ascontiguousarray(points), np.ascontiguousarray(normals), facing, grid)


@njit(cache=True, nogil=True)
def _fill(points: Array, origin: Array, size: float, shape: NDArray[np.int64]) -> NDArray[np.int32]:
    nearest = np.full((shape[0], shape[1], shape[2]), -1, np.int32)
    gaps = np.full((shape[0], shape[1], shape[2]), np.inf, np.float32)
    for i in range(points.shape[0]):
        x, y, z = (points[i] - origin) / size
        a, b, c = int(x), int(y), int(z)
        for da in range(max(a - 1, 0), min(a + 2, shape[0])):
            for db in range(max(b - 1, 0), min(b + 2, shape[1])):
                for dc in range(max(c - 1, 0), min(c + 2, shape[2])):
                    gap = (da + 0.5 - x) ** 2 + (db + 0.5 - y) ** 2 + (dc + 0.5 - z) ** 2
                    if gap < gaps[da, db, dc]:
                        gaps[da, db, dc] = gap
                        nearest[da, db, dc] = i
    return nearest


@njit(cache=True, nogil=True)
def partner_of(x: float, y: float, z: float, nx: float, ny: float, nz: float, facing: Array, grid: NearestGrid) -> int:
    """The seen point near a place if its normal is within 45° of the given one, else −1."""
    a = int(np.floor((x - grid.origin[0]) / grid.cell))
    b = int(np.floor((y - grid.origin[1]) / grid.cell))
    c = int(np.floor((z - grid.origin[2]) / grid.cell))
    shape = grid.nearest.shape
    if not (0 <= a < shape[0] and 0 <= b < shape[1] and 0 <= c < shape[2]):
        return -1
    row = grid.nearest[a, b, c]
    if row < 0 or facing[row, 0] * nx + facing[row, 1] * ny + facing[row, 2] * nz < 0.7:
        return -1
    return row


@njit(cache=True, nogil=True)
def _partners(points: Array, normals: Array, facing: Array, grid: NearestGrid) -> NDArray[np.int64]:
    result = np.empty(points.shape[0], np.int64)
    for i in range(points.shape[0]):
        result[i] = partner_of(
            points[i, 0], points[i, 1], points[i, 2], normals[i, 0], normals[i, 1], normals[i, 2], facing, grid
        )
    return result
