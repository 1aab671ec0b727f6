"""The published correspondences, found once at the start pose.

1. Crop the object to the box between the pads.
2. Nearest cropped point of each pad point of both fingers.
3. Each object point keeps its closest pad point, over both fingers together.
4. Finger 1 keeps object normals at least 135° away from its pad's normal, finger 2 those at least 135° away from the
   mean of the object normals that finger 1 kept. Where finger 1 kept none, finger 2 keeps none either.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.correspondences import Correspondences, Index
from morphit_ros.jit import njit

MIN_OPPOSING_ANGLE = 135.0


@njit(cache=True, nogil=True)
def _crop(points: Array, rotation: Array, translation: Array, half_size: Array) -> tuple[Array, Index]:
    """The points inside a box about the gripper, in its frame, and their rows in the cloud."""
    index = np.empty(points.shape[0], np.int64)
    local = np.empty((points.shape[0], 3))
    count = 0
    for i in range(points.shape[0]):
        inside = True
        for axis in range(3):
            value = 0.0
            for k in range(3):
                value += rotation[k, axis] * (points[i, k] - translation[k])
            if abs(value) > half_size[axis]:
                inside = False
                break
            local[count, axis] = value
        if inside:
            index[count] = i
            count += 1
    return local[:count], index[:count]


@njit(cache=True, nogil=True)
def _nearest(points: Array, order: Index, pad: Array, pad_y: float) -> tuple[Index, Array]:
    """Nearest of the points (sorted along y) of each pad point, and the squared distances."""
    found = np.empty(pad.shape[0], np.int64)
    squared = np.empty(pad.shape[0])
    above = int(np.searchsorted(points[:, 1], pad_y))
    best = min(above, points.shape[0] - 1)
    for k in range(pad.shape[0]):
        # The last pad point's partner is a good first guess, and the gap along y alone ends the search.
        distance = (
            (points[best, 0] - pad[k, 0]) ** 2 + (points[best, 1] - pad_y) ** 2 + (points[best, 2] - pad[k, 2]) ** 2
        )
        for step in (1, -1):
            i = above if step == 1 else above - 1
            while 0 <= i < points.shape[0] and (points[i, 1] - pad_y) ** 2 <= distance:
                other = (points[i, 0] - pad[k, 0]) ** 2 + (points[i, 1] - pad_y) ** 2 + (points[i, 2] - pad[k, 2]) ** 2
                if other < distance or (other == distance and order[i] < order[best]):
                    distance, best = other, i
                i += step
        found[k] = best
        squared[k] = distance
    return found, squared


@njit(cache=True, nogil=True)
def _match(
    points: Array, normals: Array, rotation: Array, translation: Array, aperture: float, pad: Array, half_size: Array,
    cosine_limit: float, object_index: Index, pad_index: Index,
) -> tuple[int, int]:  # fmt: skip
    """Pairs of finger 1, then of finger 2, written in the order of the pad points; their numbers."""
    local, index = _crop(points, rotation, translation, half_size)
    count = len(index)
    if count == 0:
        return 0, 0
    order = np.argsort(local[:, 1])
    cropped = local[order]
    nearest = np.empty((2, pad.shape[0]), np.int64)
    squared = np.empty((2, pad.shape[0]))
    for finger in range(2):
        nearest[finger], squared[finger] = _nearest(cropped, order, pad, (0.5 - finger) * aperture)
    claim = np.full(count, -1, np.int64)
    for finger in range(2):
        for k in range(pad.shape[0]):
            held = claim[nearest[finger, k]]
            if held < 0 or squared[finger, k] < squared[held // pad.shape[0], held % pad.shape[0]]:
                claim[nearest[finger, k]] = finger * pad.shape[0] + k
    # The pad of finger 1 lies at +y and faces −y.
    reference = -rotation[:, 1].copy()
    written, first = 0, 0
    for finger in range(2):
        kept = np.zeros(3)
        for k in range(pad.shape[0]):
            if claim[nearest[finger, k]] != finger * pad.shape[0] + k:
                continue
            i = index[order[nearest[finger, k]]]
            cosine = normals[i, 0] * reference[0] + normals[i, 1] * reference[1] + normals[i, 2] * reference[2]
            if cosine <= cosine_limit:
                object_index[written] = i
                pad_index[written] = k
                written += 1
                kept += normals[i]
        if finger == 0:
            first = written
            length = math.sqrt(kept[0] ** 2 + kept[1] ** 2 + kept[2] ** 2)
            if first == 0 or length < 1e-12:
                return first, 0
            reference = kept / length
    return first, written - first


def match_once(
    points: Array, normals: Array, pad: Array, pad_size: tuple[float, float], T_world_gripper: Array, aperture: float
) -> Correspondences:
    """The correspondences of a start pose.

    Args:
        points, normals: (N, 3) object surface.
        pad: (K, 3) canonical pad points, `surface.published_pads`.
        pad_size: width and height of a pad [m].
        T_world_gripper: (4, 4) start pose.
        aperture: opening of the start, which is also the width of the crop [m].
    """
    object_index, pad_index = np.empty(2 * len(pad), np.int64), np.empty(2 * len(pad), np.int64)
    first, second = _match(
        points, normals, np.ascontiguousarray(T_world_gripper[:3, :3]), np.ascontiguousarray(T_world_gripper[:3, 3]),
        aperture, pad, 0.5 * np.array([pad_size[0], aperture, pad_size[1]]),
        math.cos(math.radians(MIN_OPPOSING_ANGLE)), object_index, pad_index,
    )  # fmt: skip
    total = first + second
    return Correspondences(
        object_index[:total].copy(), pad_index[:total].copy(), np.where(np.arange(total) < first, 1, 2)
    )
