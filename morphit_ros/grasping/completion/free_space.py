"""Where the object is known not to be: in front of what a camera saw, and beside it.

A point that a camera would have seen had it been there isn't there. From the object's own points and the positions of
the cameras this is one small depth image a camera; without positions, a camera far above, whose word is only taken
for what rises above the seen tops.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from morphit_ros.geometry.transforms import Array, plane_axes, transform_points
from morphit_ros.jit import njit

# Pixels along a depth image's side, at most.
_LARGEST = 160
# A point so far in front of the surface is still part of it [m].
_TOLERANCE = 0.004


class DepthImages(NamedTuple):
    """Small perspective depth images about the object, one a camera (K of them).

    Attributes:
        eyes: (K, 3) positions of the cameras [m].
        frames: (K, 3, 3) rows: right, down, forward.
        corners: (K, 2) tangent of the first pixel's corner.
        steps: (K,) tangent of a pixel's size.
        nearest: (K, W, H) smallest depth of a seen point in or beside the pixel, inf where there is none [m].
        tolerance: points this far in front of the surface are still part of it [m].
        empty_is_free: whether nothing is where the camera saw nothing of the object.
    """

    eyes: Array
    frames: Array
    corners: Array
    steps: Array
    nearest: Array
    tolerance: float
    empty_is_free: bool


def depth_images(points: Array, viewpoints: ArrayLike, spacing: float) -> DepthImages:
    """The images of a cloud (N, 3), `spacing` apart, for cameras at `viewpoints` (K, 3); K may be 0."""
    eyes = np.asarray(viewpoints, dtype=np.float64).reshape(-1, 3)
    return _depth_images(points, eyes, spacing, empty_is_free=True)


def images_of_scene(
    points: Array, obstacles: Array | None, viewpoints: ArrayLike, T_frame_world: Array, spacing: float
) -> DepthImages:
    """The images of an object (N, 3) and of other things (M, 3) around it, all moved into a frame."""
    seen = points if obstacles is None else np.concatenate([points, obstacles])
    return depth_images(transform_points(T_frame_world, seen), transform_points(T_frame_world, viewpoints), spacing)


def view_from_above(points: Array, spacing: float) -> DepthImages:
    """The image of a camera far above the cloud (z up), where the real ones are not known: they look down as a rule.

    Its pixels are coarse, since a side that bulges out below the seen top isn't seen through.
    """
    center = points.mean(axis=0)
    extent = float(np.linalg.norm(points - center, axis=1).max())
    above = center + np.array([0.0, 0.0, 20.0 * extent])
    return _depth_images(points, above[None], max(2.0 * spacing, 0.08 * extent), empty_is_free=True)


def _depth_images(points: Array, eyes: Array, spacing: float, empty_is_free: bool) -> DepthImages:
    center = points.mean(axis=0)
    frames, corners, steps = np.empty((len(eyes), 3, 3)), np.empty((len(eyes), 2)), np.empty(len(eyes))
    nearest = np.full((len(eyes), _LARGEST + 6, _LARGEST + 6), np.inf)
    for k, eye in enumerate(eyes):
        forward = (center - eye) / np.linalg.norm(center - eye)
        frames[k] = np.stack([*plane_axes(forward), forward])
        seen = (points - eye) @ frames[k].T
        # A point behind or in the camera is none that it saw.
        seen = seen[seen[:, 2] > 1e-3]
        tangents = seen[:, :2] / seen[:, 2:]
        extent = float((tangents.max(axis=0) - tangents.min(axis=0)).max()) if len(seen) else 1.0
        steps[k] = max(spacing / float(seen[:, 2].mean()), extent / _LARGEST) if len(seen) else 1.0
        corners[k] = tangents.min(axis=0) - 2.5 * steps[k] if len(seen) else 0.0
        cells = ((tangents - corners[k]) / steps[k]).astype(np.int64)
        np.minimum.at(nearest[k], (cells[:, 0], cells[:, 1]), seen[:, 2])
        # The nearest of the pixels around, since edges are blurred by half a pixel of sampling.
        nearest[k] = ndimage.minimum_filter(nearest[k], size=3, mode="constant", cval=np.inf)
    return DepthImages(eyes, frames, corners, steps, nearest, _TOLERANCE, empty_is_free)


def in_free_space(queries: Array, images: DepthImages) -> NDArray[np.bool_]:
    """(Q,) whether a camera looked through each point."""
    return _in_free_space(np.ascontiguousarray(queries), images)


@njit(cache=True, nogil=True)
def _in_free_space(queries: Array, images: DepthImages) -> NDArray[np.bool_]:
    free = np.zeros(queries.shape[0], np.bool_)
    for q in range(queries.shape[0]):
        free[q] = is_free(queries[q, 0], queries[q, 1], queries[q, 2], images)
    return free


@njit(cache=True, nogil=True)
def is_free(x: float, y: float, z: float, images: DepthImages) -> bool:
    """Whether a camera looked through a point."""
    for k in range(images.eyes.shape[0]):
        dx, dy, dz = x - images.eyes[k, 0], y - images.eyes[k, 1], z - images.eyes[k, 2]
        frame = images.frames[k]
        depth = frame[2, 0] * dx + frame[2, 1] * dy + frame[2, 2] * dz
        if depth <= 0.0:
            continue
        u = (frame[0, 0] * dx + frame[0, 1] * dy + frame[0, 2] * dz) / depth
        v = (frame[1, 0] * dx + frame[1, 1] * dy + frame[1, 2] * dz) / depth
        a = int(np.floor((u - images.corners[k, 0]) / images.steps[k]))
        b = int(np.floor((v - images.corners[k, 1]) / images.steps[k]))
        if not (0 <= a < images.nearest.shape[1] and 0 <= b < images.nearest.shape[2]):
            if images.empty_is_free:
                return True
            continue
        surface = images.nearest[k, a, b]
        if depth < surface - images.tolerance and (images.empty_is_free or np.isfinite(surface)):
            return True
    return False
