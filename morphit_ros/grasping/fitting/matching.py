"""Matching by projection: a cell of a pad meets the outermost object point before it whose normal faces the pad."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.blocks import PointBlocks, gather_box, one_block, within_box
from morphit_ros.grasping.checking.pad_grid import PadGrid, pad_grid
from morphit_ros.grasping.fitting.correspondences import Correspondences, Index
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit


@njit(cache=True, nogil=True)
def gather(
    blocks: PointBlocks, normals: Array, rotation: Array, translation: Array, reach: Array, index: Index
) -> Array:
    """Points and normals within a box about the gripper and some more, (6, M) in the frame of the cloud.

    Args:
        blocks, normals: the cloud in groups, and the normals (N, 3) of `blocks.points`.
        rotation, translation: (3, 3), (3,) pose of the gripper.
        reach: (3,) half the sides of the box [m].
        index: (N,) out, rows of the cloud that were found.
    """
    count = gather_box(blocks, rotation, translation, reach, index)
    if blocks.radii.size == 1:
        count = _within(blocks.points, rotation, translation, reach, index)
    # As small as it can be: for large blocks, fresh pages cost more than the whole fit.
    near = np.empty((6, count))
    for m in range(count):
        row = index[m]
        index[m] = blocks.order[row]
        for axis in range(3):
            near[axis, m] = blocks.points[row, axis]
            near[3 + axis, m] = normals[row, axis]
    return near


@njit(cache=True, nogil=True)
def project(
    near: Array,
    rotation: Array,
    translation: Array,
    half_crop: float,
    grid: PadGrid,
    cosine_limit: float,
    cells: Index,
) -> tuple[int, int]:
    """The point that each cell of each pad meets.

    Args:
        near: (6, M) points and normals around the gripper.
        rotation, translation: (3, 3), (3,) pose of the gripper.
        half_crop: points further than this from the middle along the closing direction do not count [m].
        grid: cells of a pad.
        cosine_limit: least cosine between an object normal and the closing direction towards its pad.
        cells: (2, C) out, column of `near` for each cell of each pad, −1 for none.

    Returns:
        Number of matches of finger 1 and 2.
    """
    count = near.shape[1]
    chosen = np.empty(count, np.int64)
    found = _before_pads(near, rotation, translation, half_crop, grid, cosine_limit, chosen)
    cells[:] = -1
    heights = np.empty(cells.shape)
    first, second = 0, 0
    for k in range(found):
        m = chosen[k]
        dx, dy, dz = near[0, m] - translation[0], near[1, m] - translation[1], near[2, m] - translation[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        facing = rotation[0, 1] * near[3, m] + rotation[1, 1] * near[4, m] + rotation[2, 1] * near[5, m]
        column = int((x + grid.half_width) / grid.step_x + 0.5)
        row = int((z + grid.half_height) / grid.step_z + 0.5)
        cell = column * grid.rows + row
        finger, height = (0, y) if facing > 0.0 else (1, -y)
        if cells[finger, cell] < 0:
            first, second = first + 1 - finger, second + finger
        elif height <= heights[finger, cell]:
            continue
        cells[finger, cell] = m
        heights[finger, cell] = height
    return first, second


@njit(cache=True, nogil=True)
def _before_pads(
    near: Array, rotation: Array, translation: Array, half_crop: float, grid: PadGrid, cosine_limit: float,
    chosen: Index,
) -> int:  # fmt: skip
    """Columns of `near` (6, M) before a pad that they face, into `chosen` (M,), and how many; else as `project`."""
    count = near.shape[1]
    before = np.empty(count, np.bool_)
    reach = np.array([grid.half_width, half_crop, grid.half_height])
    within_box(near, rotation, translation, reach, np.zeros(count), before)
    y0, y1, y2 = rotation[0, 1], rotation[1, 1], rotation[2, 1]
    for m in range(count):
        before[m] &= abs(y0 * near[3, m] + y1 * near[4, m] + y2 * near[5, m]) >= cosine_limit
    return _listed(before, chosen)


@njit(cache=True, nogil=True)
def _within(points: Array, rotation: Array, translation: Array, reach: Array, rows: Index) -> int:
    """Rows of the points (N, 3) within a box, into `rows` (N,), and how many; arguments as `gather`."""
    inside = np.empty(points.shape[0], np.bool_)
    within_box(points.T, rotation, translation, reach, np.zeros(inside.size), inside)
    return _listed(inside, rows)


@njit(cache=True, nogil=True)
def _listed(mask: NDArray[np.bool_], rows: Index) -> int:
    """Where the mask (M,) is set, into `rows` (M,), and how often; a branch would often be mispredicted."""
    count = 0
    for m in range(mask.size):
        rows[count] = m
        count += mask[m]
    return count


@njit(cache=True, nogil=True)
def met_points(near: Array, rotation: Array, translation: Array, cells: Index, met: Array) -> None:
    """Points and normals that the cells meet in the gripper's frame, into `met` (≥ M, 6), those of finger 1 first."""
    total = 0
    for finger in range(2):
        for cell in range(cells.shape[1]):
            m = cells[finger, cell]
            if m < 0:
                continue
            dx, dy, dz = near[0, m] - translation[0], near[1, m] - translation[1], near[2, m] - translation[2]
            for axis in range(3):
                a, b, c = rotation[0, axis], rotation[1, axis], rotation[2, axis]
                met[total, axis] = a * dx + b * dy + c * dz
                met[total, 3 + axis] = a * near[3, m] + b * near[4, m] + c * near[5, m]
            total += 1


def facing_pairs(
    points: Array, normals: Array, gripper: Gripper, T_world_gripper: Array, opening: float, cosine_limit: float
) -> Correspondences:
    """The object points that the pads meet when they close from an opening [m] at a pose, as the fit matches them."""
    grid = pad_grid(gripper)
    index, cells = np.empty(len(points), np.int64), np.empty((2, grid.columns * grid.rows), np.int64)
    reach = np.array([grid.half_width, 0.5 * opening, grid.half_height])
    rotation, translation = (np.ascontiguousarray(part) for part in (T_world_gripper[:3, :3], T_world_gripper[:3, 3]))
    near = gather(one_block(points), normals, rotation, translation, reach, index)
    project(near, rotation, translation, 0.5 * opening, grid, cosine_limit, cells)
    return matched_pairs(index, cells)


def matched_pairs(index: Index, cells: Index) -> Correspondences:
    """The pairs of a matching: `index` (≥ M,) rows of the cloud gathered, `cells` (2, C) as `project` fills them."""
    fingers, pad_index = np.nonzero(cells >= 0)
    return Correspondences(index[cells[fingers, pad_index]], pad_index, fingers + 1)
