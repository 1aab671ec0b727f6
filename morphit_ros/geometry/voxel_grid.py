"""Thinning of point clouds to one point a voxel."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.spatial_hash import EMPTY, find_slot, grow, pack
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# A voxel lower than this many tolerances is noise of the plane if it holds less than this share of the
# points that lie on the plane beneath it.
_LOW, _NOISE_SHARE = 3.0, 0.2


class PlaneCells(NamedTuple):
    """A plane whose points go into square cells of their own, coarser than voxels.

    Attributes:
        frame: (3, 4) two axes along the plane and its normal, each with what is added to reach the cells' corner, and
            height zero on the plane.
        cells: number of cells along both axes.
        size: edge of a cell [m].
        tolerance: half the thickness of the plane [m]; what lies lower is dropped.
    """

    frame: Array
    cells: tuple[int, int]
    size: float
    tolerance: float


class CroppedVoxels(NamedTuple):
    """What `crop_to_voxels` keeps, and how many points each of its conditions left.

    Attributes:
        points: (M, 3) mean of the points in each occupied voxel, in the target frame [m].
        rows: (M,) row of the first point of each voxel, to look up its colour.
        layer, layer_rows: (L, 3), (L,) the same of the cells on the plane.
        finite, in_range, in_box: number of points left after each condition.
        on_plane, below: of those in the box.
    """

    points: Array
    rows: NDArray[np.int64]
    layer: Array
    layer_rows: NDArray[np.int64]
    finite: int
    in_range: int
    in_box: int
    on_plane: int
    below: int


def crop_to_voxels(
    points: ArrayLike,
    T_target_source: Array,
    depth_range: tuple[float, float],
    box: tuple[ArrayLike, ArrayLike],
    voxel_size: float,
    plane: PlaneCells | None = None,
) -> CroppedVoxels:
    """Drop NaN, clip depth, move, crop to a box and thin to voxels, in one pass over the points.

    Args:
        points: (N, 3) in a camera's optical frame, NaN allowed [m].
        T_target_source: motion into the frame of the box and of the voxels.
        depth_range: smallest and largest z in the optical frame [m].
        box: lower and upper corner (3,) in the target frame [m].
        voxel_size: edge of a voxel [m].
        plane: what lies on it is kept in its cells instead, and what lies below it is dropped.

    Raises:
        InvalidInputError: the voxel size is not positive or the box reaches over a million voxels from the origin.
    """
    lower, upper = (np.asarray(corner, dtype=np.float64) for corner in box)
    if not voxel_size > 0.0:
        raise InvalidInputError("voxel_size", voxel_size, "above 0")
    reach = 2.0**20 * voxel_size
    if max(np.abs(lower).max(), np.abs(upper).max()) >= reach:
        raise InvalidInputError("box", f"{lower.tolist()} to {upper.tolist()}", f"within {reach:g} m of the origin")
    flat = PlaneCells(np.zeros((3, 4)), (0, 0), 1.0, -1.0) if plane is None else plane
    found = _crop(
        np.ascontiguousarray(points, dtype=np.float64),
        tuple(T_target_source[:3].ravel().tolist()),
        (*depth_range, *lower.tolist(), *upper.tolist()),
        voxel_size,
        tuple(flat.frame.ravel().tolist()),
        flat.cells,
        flat.size,
        flat.tolerance,
    )
    return CroppedVoxels(*found)


@njit(cache=True, nogil=True)
def _crop(points, transform, bounds, voxel, frame, cells, cell, tolerance):  # type: ignore[no-untyped-def]
    # Transform (12), bounds (8) and frame (12) are tuples: arrays would be read again after every store.
    keys = np.full(1 << 15, EMPTY, np.int64)
    places = np.empty(1 << 15, np.int64)
    sums = np.empty((points.shape[0], 4))
    rows = np.empty(points.shape[0], np.int64)
    layer = np.zeros((cells[0] * cells[1], 4))
    layer_rows = np.empty(cells[0] * cells[1], np.int64)
    finite = in_range = in_box = on_plane = below = found = occupied = 0
    inverse, per_cell = 1.0 / voxel, 1.0 / cell
    last_key, last_place = EMPTY, -1
    for row in range(points.shape[0]):
        a, b, c = points[row, 0], points[row, 1], points[row, 2]
        # NaN and infinity fail the first of these comparisons.
        if not (abs(a) < np.inf and abs(b) < np.inf and abs(c) < np.inf):
            continue
        finite += 1
        if c < bounds[0] or c > bounds[1]:
            continue
        in_range += 1
        x = transform[0] * a + transform[1] * b + transform[2] * c + transform[3]
        y = transform[4] * a + transform[5] * b + transform[6] * c + transform[7]
        z = transform[8] * a + transform[9] * b + transform[10] * c + transform[11]
        if x < bounds[2] or y < bounds[3] or z < bounds[4] or x > bounds[5] or y > bounds[6] or z > bounds[7]:
            continue
        in_box += 1
        if tolerance > 0.0:
            height = frame[8] * x + frame[9] * y + frame[10] * z + frame[11]
            if height <= tolerance:
                if height < -tolerance:
                    below += 1
                    continue
                on_plane += 1
                u = int(np.floor((frame[0] * x + frame[1] * y + frame[2] * z + frame[3]) * per_cell))
                v = int(np.floor((frame[4] * x + frame[5] * y + frame[6] * z + frame[7]) * per_cell))
                if 0 <= u < cells[0] and 0 <= v < cells[1]:
                    place = u * cells[1] + v
                    if layer[place, 3] == 0.0:
                        layer_rows[place] = row
                        occupied += 1
                    layer[place, 0] += x
                    layer[place, 1] += y
                    layer[place, 2] += z
                    layer[place, 3] += 1.0
                continue
        key = pack(np.int64(np.floor(x * inverse)), np.int64(np.floor(y * inverse)), np.int64(np.floor(z * inverse)))
        # Neighbouring pixels often share a voxel.
        if key == last_key:
            place = last_place
        else:
            slot = find_slot(keys, key)
            if keys[slot] == EMPTY:
                if 2 * found >= keys.size:
                    keys, places = grow(keys, places)
                    slot = find_slot(keys, key)
                keys[slot] = key
                places[slot] = found
                sums[found, 0] = sums[found, 1] = sums[found, 2] = sums[found, 3] = 0.0
                rows[found] = row
                found += 1
            place = places[slot]
            last_key, last_place = key, place
        sums[place, 0] += x
        sums[place, 1] += y
        sums[place, 2] += z
        sums[place, 3] += 1.0
    means = np.empty((found, 3))
    kept = 0
    for place in range(found):
        number = sums[place, 3]
        x, y, z = sums[place, 0] / number, sums[place, 1] / number, sums[place, 2] / number
        height = frame[8] * x + frame[9] * y + frame[10] * z + frame[11]
        if height < _LOW * tolerance:
            u = int(np.floor((frame[0] * x + frame[1] * y + frame[2] * z + frame[3]) * per_cell))
            v = int(np.floor((frame[4] * x + frame[5] * y + frame[6] * z + frame[7]) * per_cell))
            if 0 <= u < cells[0] and 0 <= v < cells[1] and number < _NOISE_SHARE * layer[u * cells[1] + v, 3]:
                continue
        means[kept, 0], means[kept, 1], means[kept, 2] = x, y, z
        rows[kept] = rows[place]
        kept += 1
    layer_means = np.empty((occupied, 3))
    first_rows = np.empty(occupied, np.int64)
    filled = 0
    for place in range(layer.shape[0]):
        if layer[place, 3] > 0.0:
            for axis in range(3):
                layer_means[filled, axis] = layer[place, axis] / layer[place, 3]
            first_rows[filled] = layer_rows[place]
            filled += 1
    return means[:kept], rows[:kept].copy(), layer_means, first_rows, finite, in_range, in_box, on_plane, below


class MergedViews(NamedTuple):
    """What `merge_views` makes of the points of several views.

    Attributes:
        points: (M, 3) means [m].
        normals: (M, 3) unit vectors.
        rows: (M,) row of the first point of each.
        places: (N,) which of them each point went into.
    """

    points: Array
    normals: Array
    rows: NDArray[np.int64]
    places: NDArray[np.int64]


def merge_views(points: ArrayLike, normals: ArrayLike, voxel_size: float) -> MergedViews:
    """One point a voxel and side: points of a voxel whose normals agree become their mean.

    A thin wall seen from both sides keeps a point on each of them.

    Args:
        points: (N, 3) finite [m].
        normals: (N, 3) unit vectors.
        voxel_size: edge of a voxel [m].
    """
    return MergedViews(*_merge(np.ascontiguousarray(points), np.ascontiguousarray(normals), voxel_size))


@njit(cache=True)
def _merge(points, normals, voxel):  # type: ignore[no-untyped-def]
    capacity = 1 << 12
    while capacity < 2 * points.shape[0]:
        capacity *= 2
    keys = np.full(capacity, EMPTY, np.int64)
    voxels = np.empty(capacity, np.int64)
    sums = np.empty(points.shape)
    directions = np.empty(points.shape)
    numbers = np.empty(points.shape[0], np.int64)
    rows = np.empty(points.shape[0], np.int64)
    places = np.empty(points.shape[0], np.int64)
    found = 0
    inverse = 1.0 / voxel
    for row in range(points.shape[0]):
        key = pack(
            np.int64(np.floor(points[row, 0] * inverse)),
            np.int64(np.floor(points[row, 1] * inverse)),
            np.int64(np.floor(points[row, 2] * inverse)),
        )
        slot = find_slot(keys, key)
        while keys[slot] != EMPTY:
            place = voxels[slot]
            if (
                keys[slot] == key
                and normals[row, 0] * directions[place, 0]
                + normals[row, 1] * directions[place, 1]
                + normals[row, 2] * directions[place, 2]
                > 0.0
            ):
                break
            slot = (slot + 1) & (capacity - 1)
        if keys[slot] == EMPTY:
            keys[slot] = key
            voxels[slot] = found
            for axis in range(3):
                sums[found, axis] = points[row, axis]
                directions[found, axis] = normals[row, axis]
            numbers[found] = 1
            rows[found] = row
            found += 1
        else:
            place = voxels[slot]
            for axis in range(3):
                sums[place, axis] += points[row, axis]
                directions[place, axis] += normals[row, axis]
            numbers[place] += 1
        places[row] = voxels[slot]
    for place in range(found):
        squared = directions[place, 0] ** 2 + directions[place, 1] ** 2 + directions[place, 2] ** 2
        length = math.sqrt(squared) if squared > 0.0 else 1.0
        for axis in range(3):
            sums[place, axis] /= numbers[place]
            directions[place, axis] /= length
    return sums[:found].copy(), directions[:found].copy(), rows[:found].copy(), places
