"""Closing the fingers on a cloud: where each pad touches first, and the patch that it then presses.

Seen along the closing direction the object is a height map over each pad. A finger stops at the map's highest places,
and what lies within the compliance of pad and data below them is its contact patch. The aperture at contact, the
patches and their mean normals come from there, not from DISF's correspondences, which are filtered by their normals
and so cannot tell that half of a pad meets an edge. Pads that are tilted against the approach meet with the map that is
seen from their own planes: flat sides are then touched by the pads' edges, which leaves little patch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.blocks import gather_box, group_points
from morphit_ros.grasping.checking.pad_contacts import (
    AREA,
    HEIGHT,
    MEAN_X,
    MEAN_Z,
    NORMAL_X,
    SEEN,
    SPREAD_X,
    SPREAD_Z,
    PadContacts,
)
from morphit_ros.grasping.checking.pad_grid import PadGrid, pad_grid
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit

# Pressure falls by a factor e over this depth below the highest places of a surface without noise [m].
SOFTNESS = 6e-4


class SeenCloud(NamedTuple):
    """Points and normals (N, 3), and (N,) 1 for a seen point, 0 for a virtual one, or between."""

    points: Array
    normals: Array
    observed: Array


class Pressing(NamedTuple):
    """How pads press: their grid, the radius that a point stands for [m], the depth over which pressure falls [m]."""

    grid: PadGrid
    radius: float
    softness: float


class HeightMaps(NamedTuple):
    """Maps over the C cells of each pad.

    Attributes:
        heights: (2, C) highest place along the closing direction [m], negative infinity for none.
        holders: (2, C) the point that is this high.
        weights: (2, C) pressure.
    """

    heights: Array
    holders: Index
    weights: Array


@njit(cache=True, nogil=True)
def _empty_maps(grid: PadGrid) -> HeightMaps:
    count = grid.columns * grid.rows
    return HeightMaps(np.empty((2, count)), np.empty((2, count), np.int64), np.empty((2, count)))


@njit(cache=True, nogil=True)
def _fill_heights(
    cloud: SeenCloud, rotation: Array, translation: Array, half_opening: float, slope: float, pressing: Pressing,
    maps: HeightMaps,
) -> None:  # fmt: skip
    """Heights and holders of one pose; above pads whose tips lean inwards by a slope."""
    points, normals, grid, radius = cloud.points, cloud.normals, pressing.grid, pressing.radius
    heights, holders = maps.heights, maps.holders
    heights[:] = -np.inf
    reach_x, reach_z = grid.half_width + radius, grid.half_height + radius
    span_x, span_z = int(radius / grid.step_x), int(radius / grid.step_z)
    for i in range(points.shape[0]):
        dx, dy, dz = points[i, 0] - translation[0], points[i, 1] - translation[1], points[i, 2] - translation[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        if abs(x) > reach_x:
            continue
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        if abs(z) > reach_z:
            continue
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        if abs(y) > half_opening:
            continue
        ny = rotation[0, 1] * normals[i, 0] + rotation[1, 1] * normals[i, 1] + rotation[2, 1] * normals[i, 2]
        # A surface stands before the finger that it faces; what it shows its side to is in the way of both.
        column = int((x + grid.half_width) / grid.step_x + 0.5)
        row = int((z + grid.half_height) / grid.step_z + 0.5)
        for c in range(max(column - span_x, 0), min(column + span_x, grid.columns - 1) + 1):
            cx = x + grid.half_width - c * grid.step_x
            for r in range(max(row - span_z, 0), min(row + span_z, grid.rows - 1) + 1):
                cz = z + grid.half_height - r * grid.step_z
                if cx * cx + cz * cz > radius * radius:
                    continue
                cell = c * grid.rows + r
                if ny > -0.3 and y > heights[0, cell]:
                    heights[0, cell] = y
                    holders[0, cell] = i
                if ny < 0.3 and -y > heights[1, cell]:
                    heights[1, cell] = -y
                    holders[1, cell] = i
    if slope != 0.0:
        for cell in range(heights.shape[1]):
            leaning = slope * ((cell % grid.rows) * grid.step_z - grid.half_height)
            heights[0, cell] += leaning
            heights[1, cell] += leaning


@njit(cache=True, nogil=True)
def _third_highest(heights: Array) -> float:
    """The third highest cell: one or two stray points do not stop a finger."""
    first, second, third = -np.inf, -np.inf, -np.inf
    for h in heights:
        if h > first:
            first, second, third = h, first, second
        elif h > second:
            second, third = h, second
        elif h > third:
            third = h
    return third


@njit(cache=True, nogil=True)
def _press(
    cloud: SeenCloud, rotation: Array, pressing: Pressing, compliance: float, maps: HeightMaps, finger: int, out: Array
) -> int:
    """Patch of one finger into its row (10,) of `PadContacts.fingers`; the number of cells."""
    grid, normals, heights, weights = pressing.grid, cloud.normals, maps.heights, maps.weights
    out[:] = 0.0
    third = _third_highest(heights[finger])
    if third == -np.inf:
        out[HEIGHT] = np.nan
        return 0
    count, total, seen = 0, 0.0, 0.0
    sx, sz, sxx, szz, sn0, sn1, sn2, sh = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for cell in range(heights.shape[1]):
        depth = third - heights[finger, cell]
        if depth > compliance:
            weights[finger, cell] = 0.0
            continue
        # Pads are stiff: what lies lower is pressed less, and a bent surface in its middle only.
        weight = np.exp(-max(depth, 0.0) / pressing.softness)
        weights[finger, cell] = weight
        i = maps.holders[finger, cell]
        cx = (cell // grid.rows) * grid.step_x - grid.half_width
        cz = (cell % grid.rows) * grid.step_z - grid.half_height
        count += 1
        total += weight
        sh += min(heights[finger, cell], third)
        sx += weight * cx
        sz += weight * cz
        sxx += weight * cx * cx
        szz += weight * cz * cz
        seen += cloud.observed[i]
        sn0 += normals[i, 0]
        sn1 += normals[i, 1]
        sn2 += normals[i, 2]
    length = max(np.sqrt(sn0 * sn0 + sn1 * sn1 + sn2 * sn2), 1e-12)
    out[HEIGHT] = sh / count
    out[AREA] = total * (4.0 * grid.half_width * grid.half_height / heights.shape[1])
    out[MEAN_X] = sx / total
    out[MEAN_Z] = sz / total
    out[SPREAD_X] = np.sqrt(max(sxx / total - (sx / total) ** 2, 0.0))
    out[SPREAD_Z] = np.sqrt(max(szz / total - (sz / total) ** 2, 0.0))
    for axis in range(3):
        out[NORMAL_X + axis] = (rotation[0, axis] * sn0 + rotation[1, axis] * sn1 + rotation[2, axis] * sn2) / length
    out[SEEN] = seen / count
    return count


@njit(cache=True, nogil=True)
def _close(
    cloud: SeenCloud,
    rotation: Array,
    translation: Array,
    half_opening: float,
    slope: float,
    pressing: Pressing,
    compliance: float,
    maps: HeightMaps,
    fingers: Array,
) -> tuple[float, int]:
    """Contacts of one pose into `fingers` (2, 10); the overlap [m²] and the smaller number of cells."""
    _fill_heights(cloud, rotation, translation, half_opening, slope, pressing, maps)
    least = min(
        _press(cloud, rotation, pressing, compliance, maps, 0, fingers[0]),
        _press(cloud, rotation, pressing, compliance, maps, 1, fingers[1]),
    )
    shared, grid, weights = 0.0, pressing.grid, maps.weights
    if least > 0:
        for finger in range(2):
            _bridge(weights[finger], grid.columns, grid.rows)
        for cell in range(weights.shape[1]):
            shared += min(weights[0, cell], weights[1, cell])
    return shared * (4.0 * grid.half_width * grid.half_height / weights.shape[1]), least


@njit(cache=True, nogil=True)
def _bridge(weights: Array, columns: int, rows: int) -> None:
    """Give cells (columns · rows,) between pressed ones, along x or along z, the lesser weight of both sides.

    A stiff pad that bears on both rims of a hollow takes a force anywhere between them: inside a cup's wall it touches
    with its edges, while the other one touches the outside in its middle.
    """
    pressed, before = weights.copy(), np.empty(max(columns, rows))
    for along_x in range(2):
        lines, length, stride, step = (rows, columns, 1, rows) if along_x == 1 else (columns, rows, rows, 1)
        for line in range(lines):
            highest = 0.0
            for k in range(length):
                highest = max(highest, pressed[line * stride + k * step])
                before[k] = highest
            behind = 0.0
            for k in range(length - 1, -1, -1):
                cell = line * stride + k * step
                behind = max(behind, pressed[cell])
                weights[cell] = max(weights[cell], min(before[k], behind))


@njit(cache=True, nogil=True)
def _close_batch(
    cloud: SeenCloud,
    rotations: Array,
    translations: Array,
    openings: Array,
    slopes: Array,
    pressing: Pressing,
    compliance: float,
    fingers: Array,
    overlap: Array,
    cells: Index,
) -> None:
    points, grid, radius = cloud.points, pressing.grid, pressing.radius
    maps = _empty_maps(grid)
    blocks = group_points(points)
    rows = np.empty(points.shape[0], np.int64)
    near, facing, seen = np.empty(points.shape), np.empty(points.shape), np.empty(points.shape[0])
    for s in range(rotations.shape[0]):
        reach = np.array([grid.half_width + radius, 0.5 * openings[s], grid.half_height + radius])
        count = gather_box(blocks, rotations[s], translations[s], reach, rows)
        for m in range(count):
            i = blocks.order[rows[m]]
            seen[m] = cloud.observed[i]
            for axis in range(3):
                near[m, axis] = points[i, axis]
                facing[m, axis] = cloud.normals[i, axis]
        overlap[s], cells[s] = _close(
            SeenCloud(near[:count], facing[:count], seen[:count]), rotations[s], translations[s], 0.5 * openings[s],
            slopes[s], pressing, compliance, maps, fingers[s],
        )  # fmt: skip


class PoseErrors(NamedTuple):
    """K copies of a pose.

    Attributes:
        turns, shifts: (K, 3, 3), (K, 3) in the gripper's own frame [m].
        depths: (K,) compliance of each copy [m].
        margin: by which no point of a copy's box lies further outside the pose's own one [m].
    """

    turns: Array
    shifts: Array
    depths: Array
    margin: float


@njit(cache=True, nogil=True)
def _cloud_near(
    cloud: SeenCloud, rotation: Array, translation: Array, opening: float, pressing: Pressing, margin: float
) -> SeenCloud:
    """What may be near a pad, in the gripper's frame."""
    points, grid, radius = cloud.points, pressing.grid, pressing.radius
    rows = np.empty(points.shape[0], np.int64)
    count = 0
    reach_x, reach_z = grid.half_width + radius + margin, grid.half_height + radius + margin
    for i in range(points.shape[0]):
        dx, dy, dz = points[i, 0] - translation[0], points[i, 1] - translation[1], points[i, 2] - translation[2]
        if abs(rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz) > reach_x:
            continue
        if abs(rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz) > reach_z:
            continue
        if abs(rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz) > 0.5 * opening + margin:
            continue
        rows[count] = i
        count += 1
    near, facing, seen = np.empty((count, 3)), np.empty((count, 3)), np.empty(count)
    for m in range(count):
        i = rows[m]
        seen[m] = cloud.observed[i]
        for axis in range(3):
            near[m, axis] = 0.0
            facing[m, axis] = 0.0
            for k in range(3):
                near[m, axis] += rotation[k, axis] * (points[i, k] - translation[k])
                facing[m, axis] += rotation[k, axis] * cloud.normals[i, k]
    return SeenCloud(near, facing, seen)


@njit(cache=True, nogil=True)
def _copies_batch(
    cloud: SeenCloud,
    rotations: Array,
    translations: Array,
    openings: Array,
    slopes: Array,
    errors: PoseErrors,
    pressing: Pressing,
    fingers: Array,
    overlap: Array,
    cells: Index,
) -> None:
    maps, copies = _empty_maps(pressing.grid), len(errors.turns)
    for s in range(rotations.shape[0]):
        near = _cloud_near(cloud, rotations[s], translations[s], openings[s], pressing, errors.margin)
        for k in range(copies):
            row = s * copies + k
            overlap[row], cells[row] = _close(
                near, errors.turns[k], errors.shifts[k], 0.5 * openings[s], slopes[s], pressing, errors.depths[k],
                maps, fingers[row],
            )  # fmt: skip


def close_copies(
    points: Array,
    normals: Array,
    observed: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    turns: Array,
    shifts: Array,
    depths: Array,
    gripper: Gripper,
    spacing: float,
    noise: float = 0.0,
    max_cells: int = 100,
    tilts: Array | None = None,
) -> PadContacts:
    """Close the fingers at K copies of each of S poses, which `turns` and `shifts` move in the gripper's own frame.

    Args:
        points, normals, observed, rotations, translations, openings, gripper, spacing, noise, max_cells,
            tilts: as `close_fingers`.
        turns, shifts: (K, 3, 3), (K, 3) [m].
        depths: (K,) compliance of each copy [m].

    Returns:
        Contacts of S K poses, the copies of the first pose first.
    """
    count, grid = len(rotations) * len(turns), pad_grid(gripper, max_cells)
    contacts = PadContacts.empty(count)
    size = np.linalg.norm([grid.half_width + spacing, 0.5 * gripper.aperture_max, grid.half_height + spacing])
    angles = np.linalg.norm(turns - np.eye(3), axis=(1, 2)) / np.sqrt(2.0)
    margin = float((angles * size + np.linalg.norm(shifts, axis=1)).max(initial=0.0))
    _copies_batch(
        SeenCloud(points, normals, observed), np.ascontiguousarray(rotations), np.ascontiguousarray(translations),
        openings, _slopes(tilts, openings), PoseErrors(turns, shifts, depths, margin),
        Pressing(grid, spacing, SOFTNESS + noise), contacts.fingers, contacts.overlap, contacts.cells,
    )  # fmt: skip
    return contacts


def close_fingers(
    points: Array,
    normals: Array,
    observed: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    gripper: Gripper,
    spacing: float,
    compliance: float,
    noise: float = 0.0,
    max_cells: int = 200,
    tilts: Array | None = None,
) -> PadContacts:
    """Close the fingers at S poses.

    Args:
        points, normals: (N, 3) cloud, normals outwards.
        observed: (N,) 1 for a seen point, 0 for a virtual one, or between.
        rotations, translations: (S, 3, 3), (S, 3) poses in the frame of the cloud.
        openings: (S,) where the fingers begin to close [m].
        gripper: whose pads.
        spacing: radius that a point stands for [m].
        compliance: depth of the patch below its highest places [m].
        noise: of the points along their normals; pressure is told apart no finer [m].
        max_cells: of a pad; long pads are looked at more coarsely.
        tilts: (S,) of the pads at contact [rad], see `PadMotion`; none if None.
    """
    contacts = PadContacts.empty(len(rotations))
    _close_batch(
        SeenCloud(points, normals, observed), np.ascontiguousarray(rotations), np.ascontiguousarray(translations),
        openings, _slopes(tilts, openings), Pressing(pad_grid(gripper, max_cells), spacing, SOFTNESS + noise),
        compliance, contacts.fingers, contacts.overlap, contacts.cells,
    )  # fmt: skip
    return contacts


def _slopes(tilts: Array | None, openings: Array) -> Array:
    return np.zeros(len(openings)) if tilts is None else np.tan(tilts)
