"""Points in small groups that lie together, so that a kernel passes over a group that is out of reach as a whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import build_cells
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Edge of the cells whose points make up a group [m]: some ten points of a planner's cloud.
_CELL = 0.01


class PointBlocks(NamedTuple):
    """N points in B groups.

    Attributes:
        points: (N, 3) group after group [m].
        order: (N,) row of each in the cloud.
        starts: (B + 1,) group b has the rows starts[b] to starts[b + 1].
        centers, radii: (3, B), (B,) balls around the groups [m].
    """

    points: Array
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    centers: Array
    radii: Array


@njit(cache=True, nogil=True)
def group_points(points: Array) -> PointBlocks:
    """Group finite points (N, 3) [m]."""
    cells = build_cells(points, _CELL)
    count = cells.packed.size
    centers, radii = np.empty((3, count)), np.empty(count)
    for block in range(count):
        first, end = cells.starts[block], cells.starts[block + 1]
        for axis in range(3):
            low = high = cells.points[first, axis]
            for row in range(first + 1, end):
                low, high = min(low, cells.points[row, axis]), max(high, cells.points[row, axis])
            centers[axis, block] = 0.5 * (low + high)
        largest = 0.0
        for row in range(first, end):
            squared = 0.0
            for axis in range(3):
                squared += (cells.points[row, axis] - centers[axis, block]) ** 2
            largest = max(largest, squared)
        # Rounding must not leave a point outside of its ball.
        radii[block] = np.sqrt(largest) + 1e-12
    return PointBlocks(cells.points, cells.order, cells.starts, centers, radii)


def one_block(points: Array) -> PointBlocks:
    """All points (N, 3) as one group, looked through as a whole: cheaper than grouping for a single question."""
    rows = np.arange(len(points))
    return PointBlocks(points, rows, np.array([0, len(points)]), np.zeros((3, 1)), np.array([np.inf]))


@njit(cache=True, nogil=True)
def gather_box(blocks: PointBlocks, rotation: Array, translation: Array, reach: Array, rows: NDArray[np.int64]) -> int:
    """Rows in `blocks.points` that may lie within a box about a pose, into `rows` (≥ N,), and how many.

    Whole groups are taken, so that some points outside of the box are among them.

    Args:
        blocks: of the cloud.
        rotation, translation: (3, 3), (3,) pose of the box.
        reach: (3,) half its sides [m].
        rows: out, group after group.
    """
    near = np.empty(blocks.radii.size, np.bool_)
    within_box(blocks.centers, rotation, translation, reach, blocks.radii, near)
    count = 0
    for block in range(blocks.radii.size):
        if near[block]:
            for row in range(blocks.starts[block], blocks.starts[block + 1]):
                rows[count] = row
                count += 1
    return count


@njit(cache=True, nogil=True)
def within_box(
    places: Array, rotation: Array, translation: Array, reach: Array, slack: Array, inside: NDArray[np.bool_]
) -> None:
    """Whether each of the places (3, M) lies within a box that is larger by its slack (M,) on each side.

    Without a branch, so that it becomes vector instructions. Arguments as in `gather_box`; `inside` (M,) out.
    """
    x0, x1, x2 = rotation[0, 0], rotation[1, 0], rotation[2, 0]
    y0, y1, y2 = rotation[0, 1], rotation[1, 1], rotation[2, 1]
    z0, z1, z2 = rotation[0, 2], rotation[1, 2], rotation[2, 2]
    t0, t1, t2 = translation[0], translation[1], translation[2]
    r0, r1, r2 = reach[0], reach[1], reach[2]
    for m in range(inside.size):
        dx, dy, dz = places[0, m] - t0, places[1, m] - t1, places[2, m] - t2
        x, y, z = x0 * dx + x1 * dy + x2 * dz, y0 * dx + y1 * dy + y2 * dz, z0 * dx + z1 * dy + z2 * dz
        inside[m] = (abs(x) <= r0 + slack[m]) & (abs(y) <= r1 + slack[m]) & (abs(z) <= r2 + slack[m])
