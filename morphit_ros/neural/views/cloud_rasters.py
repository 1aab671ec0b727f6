"""Clouds drawn as depth pictures, as if by the camera that took them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.evaluation import checked_points

_FEWEST_POINTS = 50
_SMALLEST_SIZE = 16
# Pixels along a side for a cloud with one point a pixel of a filled circle, less some for the gaps.
_POINTS_A_PIXEL = 2.0


def rasterize_clouds(
    clouds: Sequence[CloudLike], size: int, outlines: Sequence[ArrayLike] | None = None
) -> tuple[NDArray[np.float32], Array]:
    """Depth pictures (V, S, S) and intrinsics (V, 4) that just hold each cloud.

    Args:
        clouds: in the optical frame of each camera [m], of any kind that `geometry.inputs` knows.
        size: largest width and height [px].
        outlines: (M, 3) points that belong to the object but that this camera need not have measured, same frames. They
            widen the silhouette; where only they are, depth is that of the nearest measurement, or theirs if less.

    Raises:
        InvalidInputError: no clouds, fewer than 50 points in one, or points behind a camera.
    """
    if not _SMALLEST_SIZE <= size <= 1024:
        raise InvalidInputError("size", size, f"in [{_SMALLEST_SIZE}, 1024] px")
    points = [checked_points(as_cloud(cloud, f"clouds[{number}]").points) for number, cloud in enumerate(clouds)]
    beside = [checked_points(cloud) for cloud in outlines or [np.zeros((0, 3))] * len(points)]
    if not points or len(beside) != len(points):
        raise InvalidInputError("clouds", f"{len(points)}, {len(beside)} outlines", "one for each camera")
    for number, cloud in enumerate(points):
        if len(cloud) < _FEWEST_POINTS:
            raise InvalidInputError(f"clouds[{number}]", f"{len(cloud)} points", f"{_FEWEST_POINTS} points or more")
        if not (np.concatenate([cloud, beside[number]])[:, 2] > 1e-3).all():
            remedy = "Clouds are in the optical frames: x right, y down, z forward."
            raise InvalidInputError(f"clouds[{number}]", "points behind the camera", "z > 0.001 m", remedy)
    fewest = min(len(cloud) for cloud in points)
    side = int(np.clip(np.sqrt(_POINTS_A_PIXEL * fewest), _SMALLEST_SIZE, size))
    pictures = [_rasterize(cloud, outline, side) for cloud, outline in zip(points, beside, strict=True)]
    return np.stack([depth for depth, _ in pictures]), np.stack([intrinsics for _, intrinsics in pictures])


def _rasterize(cloud: Array, outline: Array, side: int) -> tuple[NDArray[np.float32], Array]:
    from scipy.ndimage import binary_closing, distance_transform_edt

    everything = np.concatenate([cloud, outline])
    plane = everything[:, :2] / everything[:, 2:]
    low, high = plane.min(axis=0), plane.max(axis=0)
    # Two pixels of frame: the closing must not touch the picture's border.
    focal = (side - 5) / max(float((high - low).max()), 1e-9)
    center = 0.5 * (side - 1) - focal * 0.5 * (low + high)
    u, v = np.rint(plane * focal + center).astype(np.int64).T
    measured, nearest = np.full((side, side), np.inf), np.full((side, side), np.inf)
    count = len(cloud)
    np.minimum.at(measured, (v[:count], u[:count]), cloud[:, 2])
    np.minimum.at(nearest, (v, u), everything[:, 2])
    seen = np.isfinite(nearest)
    filled = binary_closing(seen, np.ones((3, 3)), iterations=2, border_value=0) | seen
    source = distance_transform_edt(~np.isfinite(measured), return_distances=False, return_indices=True)
    # A point of the object is not free: nothing is seen behind it.
    depth = np.where(filled, np.minimum(measured[tuple(source)], nearest), np.nan)
    return depth.astype(np.float32), np.array([focal, focal, *center])
