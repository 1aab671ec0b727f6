"""The nearest known point of any place near a surface, looked up in a dense grid instead of searched for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit


class NearestGrid(NamedTuple):
    """A block of space cut into cells, each with the row of the point nearest to its middle.

    Attributes:
        rows: (X, Y, Z) row of a point, −1 where none is near.
        low: (3,) corner of the block [m].
        size: edge of a cell [m].
    """

    rows: NDArray[np.int32]
    low: Array
    size: float


def nearest_grid(
    points: Array, low: Array, shape: NDArray[np.int64], size: float, steps: int, reach: float = np.inf
) -> NearestGrid:
    """The grid of points (N, 3).

    Args:
        points: all of them in the block [m].
        low: (3,) corner of the block [m].
        shape: (3,) number of cells along its sides.
        size: edge of a cell [m].
        steps: a cell knows points that lie up to so many cells away along each axis.
        reach: and no farther from its middle than this [m].
    """
    rows = np.full(tuple(shape), -1, np.int32)
    fill_nearest(rows, low, size, np.ascontiguousarray(points), steps, reach)
    return NearestGrid(rows, low, size)


@njit(cache=True, nogil=True)
def fill_nearest(rows, low, size, points, steps, reach):  # type: ignore[no-untyped-def]
    """Write the rows of the points (N, 3) into the cells (X, Y, Z) near them; other cells stay as they are."""
    nearest = np.full(rows.shape, reach * reach, np.float32)
    for row in range(points.shape[0]):
        ci = int((points[row, 0] - low[0]) / size)
        cj = int((points[row, 1] - low[1]) / size)
        ck = int((points[row, 2] - low[2]) / size)
        for i in range(max(0, ci - steps), min(rows.shape[0], ci + steps + 1)):
            dx = points[row, 0] - low[0] - (i + 0.5) * size
            for j in range(max(0, cj - steps), min(rows.shape[1], cj + steps + 1)):
                dy = points[row, 1] - low[1] - (j + 0.5) * size
                for k in range(max(0, ck - steps), min(rows.shape[2], ck + steps + 1)):
                    dz = points[row, 2] - low[2] - (k + 0.5) * size
                    squared = dx * dx + dy * dy + dz * dz
                    if squared < nearest[i, j, k]:
                        nearest[i, j, k] = squared
                        rows[i, j, k] = row


@njit(cache=True, nogil=True)
def row_at(grid, x, y, z):  # type: ignore[no-untyped-def]
    """The point that the cell of a place knows, −1 for none."""
    i = int(np.floor((x - grid.low[0]) / grid.size))
    j = int(np.floor((y - grid.low[1]) / grid.size))
    k = int(np.floor((z - grid.low[2]) / grid.size))
    if not (0 <= i < grid.rows.shape[0] and 0 <= j < grid.rows.shape[1] and 0 <= k < grid.rows.shape[2]):
        return -1
    return grid.rows[i, j, k]
