"""Which object points the two pads face: DISF's correspondences.

1. Crop the object to the box between the pads, open to `crop_aperture`.
2. Nearest cropped point of each pad point, the pads standing at `aperture`.
3. Each object point keeps its closest pad point only.
4. Normal filter: finger 1 keeps object normals that oppose its pad's normal by at least
   `min_opposing_angle`; finger 2 does so with its own pad ("pad") or with the mean of the normals
   that finger 1 kept ("paper").

The paper finds them once, at the start pose. Here they are cheap enough to be found again
whenever the pose has moved; the crop stays as wide as the opening of the start, since a box as
narrow as the object would cut off the half of its surface that noise moved outwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.gripper import Gripper

Index = NDArray[np.int64]


@dataclass(frozen=True)
class CorrespondenceConfig(Config):
    """How object points are matched with pad points."""

    min_opposing_angle: float = parameter(
        135.0, "Smallest angle between an object normal and the pad normal it meets [deg]", minimum=90.0, maximum=180.0
    )
    normal_filter: str = parameter(
        "pad",
        "What finger 2 compares object normals with: its own pad, or the normals kept by finger 1 as in the paper",
        choices=("pad", "paper"),
    )
    min_contacts: int = parameter(3, "Correspondences that each finger must have", minimum=1, maximum=1000)

    @property
    def cosine_limit(self) -> float:
        """Largest accepted cosine between an object normal and the normal it opposes."""
        return math.cos(math.radians(self.min_opposing_angle))


@dataclass(frozen=True)
class Correspondences:
    """Matched pairs of object and pad points.

    Attributes:
        object_index: (M,) into the object cloud.
        pad_index: (M,) into `Gripper.pad_points`.
        finger: (M,) 1 or 2.
    """

    object_index: Index
    pad_index: Index
    finger: Index

    def count(self, finger: int) -> int:
        """Number of pairs of finger 1 or 2."""
        return int(np.count_nonzero(self.finger == finger))


@numba.njit(cache=True)
def crop_between_pads(
    points: Array, rotation: Array, translation: Array, half_size: Array, local: Array, index: Index
) -> int:
    """Object points inside a box about the gripper frame.

    Args:
        points: (N, 3) object points.
        rotation, translation: pose of the gripper.
        half_size: (3,) of the box [m].
        local: (N, 3) out: the cropped points in the gripper frame.
        index: (N,) out: their indices.

    Returns:
        Number of points in the box.
    """
    count = 0
    for i in range(points.shape[0]):
        dx = points[i, 0] - translation[0]
        dy = points[i, 1] - translation[1]
        dz = points[i, 2] - translation[2]
        x = rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz
        if abs(x) > half_size[0]:
            continue
        z = rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz
        if abs(z) > half_size[2]:
            continue
        y = rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz
        if abs(y) > half_size[1]:
            continue
        local[count, 0] = x
        local[count, 1] = y
        local[count, 2] = z
        index[count] = i
        count += 1
    return count


@numba.njit(cache=True)
def match_pads(
    points: Array,
    normals: Array,
    rotation: Array,
    translation: Array,
    aperture: float,
    crop_aperture: float,
    pad: Array,
    half_size: Array,
    cosine_limit: float,
    paper_filter: bool,
    local: Array,
    index: Index,
    object_index: Index,
    pad_index: Index,
) -> tuple[int, int]:
    """Correspondences of both fingers; see the module's description.

    Args:
        points, normals: (N, 3) object cloud.
        rotation, translation: pose of the gripper.
        aperture, crop_aperture: opening at which the pads stand, and of the crop box [m].
        pad: (K, 3) canonical pad points.
        half_size: (2,) half width and half height of the pad [m].
        cosine_limit: largest cosine between a kept normal and the one it opposes.
        paper_filter: whether finger 2 compares with finger 1's kept normals.
        local, index: (N, 3) and (N,) work space.
        object_index, pad_index: (2 N,) out, finger 1 first.

    Returns:
        Numbers of pairs of finger 1 and of finger 2.
    """
    box = np.array([half_size[0], 0.5 * crop_aperture, half_size[1]])
    cropped = crop_between_pads(points, rotation, translation, box, local, index)
    if cropped == 0:
        return 0, 0
    # Sorted along the closing direction, the search from a pad ends as soon as the gap along y alone is too long.
    order = np.argsort(local[:cropped, 1])
    ordered = np.empty((cropped, 3))
    for position in range(cropped):
        for axis in range(3):
            ordered[position, axis] = local[order[position], axis]
    best_distance = np.empty(cropped)
    best_pad = np.empty(cropped, np.int64)
    reference = np.zeros(3)
    counts = np.zeros(2, np.int64)
    written = 0
    for finger in range(2):
        side = 1.0 if finger == 0 else -1.0
        pad_y = side * 0.5 * aperture
        best_distance[:] = np.inf
        best_pad[:] = -1
        above = int(np.searchsorted(ordered[:, 1], pad_y))
        nearest_position = min(above, cropped - 1)
        for k in range(pad.shape[0]):
            # The last pad point's partner is a good guess: pad points come in rows.
            dx = ordered[nearest_position, 0] - pad[k, 0]
            dy = ordered[nearest_position, 1] - pad_y
            dz = ordered[nearest_position, 2] - pad[k, 2]
            nearest_distance = (dx * dx + dy * dy) + dz * dz
            nearest = order[nearest_position]
            for step in (1, -1):
                position = above if step == 1 else above - 1
                while 0 <= position < cropped:
                    dy = ordered[position, 1] - pad_y
                    if dy * dy > nearest_distance:
                        break
                    dx = ordered[position, 0] - pad[k, 0]
                    dz = ordered[position, 2] - pad[k, 2]
                    distance = (dx * dx + dy * dy) + dz * dz
                    if distance < nearest_distance or (distance == nearest_distance and order[position] < nearest):
                        nearest_distance = distance
                        nearest = order[position]
                        nearest_position = position
                    position += step
            if nearest_distance < best_distance[nearest]:
                best_distance[nearest] = nearest_distance
                best_pad[nearest] = k
        if finger == 0 or not paper_filter:
            for axis in range(3):
                reference[axis] = -side * rotation[axis, 1]
        else:
            length = math.sqrt(reference[0] ** 2 + reference[1] ** 2 + reference[2] ** 2)
            if counts[0] == 0 or length < 1e-12:
                return counts[0], 0
            reference /= length
        kept_sum = np.zeros(3)
        for j in range(cropped):
            if best_pad[j] < 0:
                continue
            i = index[j]
            cosine = normals[i, 0] * reference[0] + normals[i, 1] * reference[1] + normals[i, 2] * reference[2]
            if cosine <= cosine_limit:
                object_index[written] = i
                pad_index[written] = best_pad[j]
                written += 1
                counts[finger] += 1
                for axis in range(3):
                    kept_sum[axis] += normals[i, axis]
        reference[:] = kept_sum
    return counts[0], counts[1]


def find_correspondences(
    points: Array,
    normals: Array,
    gripper: Gripper,
    T_world_gripper: Array,
    aperture: float,
    crop_aperture: float | None = None,
    config: CorrespondenceConfig | None = None,
) -> Correspondences:
    """Correspondences of both pads at one pose.

    Args:
        points, normals: (N, 3) object cloud, normals outwards.
        gripper: whose pads.
        T_world_gripper: (4, 4) pose in the frame of the cloud.
        aperture: opening at which the pads stand [m].
        crop_aperture: opening of the crop box [m]; the same if None.
        config: angles and filter.

    Raises:
        InvalidInputError: the aperture is negative or not finite.
    """
    if not (math.isfinite(aperture) and aperture >= 0.0):
        raise InvalidInputError("aperture", aperture, "a finite number, at least 0 [m]")
    settings = config or CorrespondenceConfig()
    count = len(points)
    object_index, pad_index = np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    first, second = match_pads(
        np.ascontiguousarray(points, dtype=np.float64),
        np.ascontiguousarray(normals, dtype=np.float64),
        np.ascontiguousarray(T_world_gripper[:3, :3]),
        np.ascontiguousarray(T_world_gripper[:3, 3]),
        aperture,
        aperture if crop_aperture is None else crop_aperture,
        gripper.pad_points,
        pad_half_size(gripper),
        settings.cosine_limit,
        settings.normal_filter == "paper",
        np.empty((count, 3)),
        np.empty(count, np.int64),
        object_index,
        pad_index,
    )
    total = first + second
    finger = np.where(np.arange(total) < first, 1, 2)
    return Correspondences(object_index[:total].copy(), pad_index[:total].copy(), finger)


def pad_half_size(gripper: Gripper) -> Array:
    """(2,) half width and half height of a pad [m]."""
    return np.array([0.5 * gripper.pad_width, 0.5 * gripper.pad_height])
