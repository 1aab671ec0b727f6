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


class CroppedVoxels(NamedTuple):
    """What `crop_to_voxels` keeps, and how many points each of its conditions left.

    Attributes:
        points: (M, 3) mean of the points in each occupied voxel, in the target frame [m].
        rows: (M,) row of the first point of each voxel, to look up its colour.
        finite, in_range, in_box: number of points left after each condition.
    """

    points: Array
    rows: NDArray[np.int64]
    finite: int
    in_range: int
    in_box: int


def crop_to_voxels(
    points: ArrayLike,
    T_target_source: Array,
    depth_range: tuple[float, float],
    box: tuple[ArrayLike, ArrayLike],
    voxel_size: float,
) -> CroppedVoxels:
    """Drop NaN, clip depth, move, crop to a box and thin to voxels, in one pass over the points.

    Args:
        points: (N, 3) in a camera's optical frame, NaN allowed [m].
        T_target_source: motion into the frame of the box and of the voxels.
        depth_range: smallest and largest z in the optical frame [m].
        box: lower and upper corner (3,) in the target frame [m].
        voxel_size: edge of a voxel [m].

    Raises:
        InvalidInputError: the voxel size is not positive or the box reaches over a million voxels from the origin.
    """
    lower, upper = (np.asarray(corner, dtype=np.float64) for corner in box)
    if not voxel_size > 0.0:
        raise InvalidInputError("voxel_size", voxel_size, "above 0")
    reach = 2.0**20 * voxel_size
    if max(np.abs(lower).max(), np.abs(upper).max()) >= reach:
        raise InvalidInputError("box", f"{lower.tolist()} to {upper.tolist()}", f"within {reach:g} m of the origin")
    array = np.ascontiguousarray(points, dtype=np.float64)
    thinned, rows, finite, in_range, in_box = _crop(
        array, np.ascontiguousarray(T_target_source), depth_range[0], depth_range[1], lower, upper, voxel_size
    )
    return CroppedVoxels(thinned, rows, finite, in_range, in_box)


@njit(cache=True)
def _crop(points, transform, nearest, farthest, lower, upper, voxel):  # type: ignore[no-untyped-def]
    keys = np.full(1 << 14, EMPTY, np.int64)
    voxels = np.empty(1 << 14, np.int64)
    sums = np.empty(points.shape)
    numbers = np.empty(points.shape[0], np.int64)
    rows = np.empty(points.shape[0], np.int64)
    finite = in_range = in_box = found = 0
    inverse = 1.0 / voxel
    last_key = EMPTY
    last_voxel = -1
    for row in range(points.shape[0]):
        a, b, c = points[row, 0], points[row, 1], points[row, 2]
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
            continue
        finite += 1
        if c < nearest or c > farthest:
            continue
        in_range += 1
        x = transform[0, 0] * a + transform[0, 1] * b + transform[0, 2] * c + transform[0, 3]
        y = transform[1, 0] * a + transform[1, 1] * b + transform[1, 2] * c + transform[1, 3]
        z = transform[2, 0] * a + transform[2, 1] * b + transform[2, 2] * c + transform[2, 3]
        if x < lower[0] or y < lower[1] or z < lower[2] or x > upper[0] or y > upper[1] or z > upper[2]:
            continue
        in_box += 1
        key = pack(np.int64(np.floor(x * inverse)), np.int64(np.floor(y * inverse)), np.int64(np.floor(z * inverse)))
        # Neighbouring pixels often share a voxel.
        if key == last_key:
            place = last_voxel
        else:
            slot = find_slot(keys, key)
            if keys[slot] == EMPTY:
                if 2 * found >= keys.size:
                    keys, voxels = grow(keys, voxels)
                    slot = find_slot(keys, key)
                keys[slot] = key
                voxels[slot] = found
                sums[found, 0] = sums[found, 1] = sums[found, 2] = 0.0
                numbers[found] = 0
                rows[found] = row
                found += 1
            place = voxels[slot]
            last_key = key
            last_voxel = place
        sums[place, 0] += x
        sums[place, 1] += y
        sums[place, 2] += z
        numbers[place] += 1
    means = np.empty((found, 3))
    for place in range(found):
        for axis in range(3):
            means[place, axis] = sums[place, axis] / numbers[place]
    return means, rows[:found].copy(), finite, in_range, in_box


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
