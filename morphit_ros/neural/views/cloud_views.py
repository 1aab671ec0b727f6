"""A segmented cloud and the places of its cameras as depth views, which fields are learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, look_at, transform_points
from morphit_ros.neural.views.cloud_rasters import rasterize_clouds
from morphit_ros.neural.views.posed_views import PosedDepths

# A surface seen flatter than this gives no depth: cosine to the ray.
_LEAST_FACING = 0.1
# Fewer points are no view of it.
_LEAST_POINTS = 50


def views_of_cloud(points: ArrayLike, normals: ArrayLike, viewpoints: ArrayLike, size: int = 128) -> PosedDepths:
    """The views that each camera has of a segmented object.

    Which camera a point of a fused cloud is from is not kept: as depth it is given to all that its normal faces. Of two
    points on one ray the nearer one counts. The silhouette holds the whole cloud: a side that a camera sees too flat to
    measure it is no free space.

    Args:
        points: (N, 3) of the object alone, in the world [m].
        normals: (N, 3) outward.
        viewpoints: (V, 3) positions of the cameras, in the world [m].
        size: largest width and height of the pictures [px].

    Raises:
        InvalidInputError: no normals, a viewpoint within the object, fewer than two cameras that see it.
    """
    cloud, outward = np.asarray(points, dtype=np.float64), np.asarray(normals, dtype=np.float64)
    eyes = np.asarray(viewpoints, dtype=np.float64).reshape(-1, 3)
    if cloud.ndim != 2 or cloud.shape[1:] != (3,) or outward.shape != cloud.shape:
        raise InvalidInputError("cloud", f"points {cloud.shape}, normals {outward.shape}", "(N, 3) each")
    if len(cloud) < _LEAST_POINTS:
        raise InvalidInputError("cloud", f"{len(cloud)} points", f"at least {_LEAST_POINTS}", "Check the segmentation.")
    if not (np.isfinite(cloud).all() and np.isfinite(outward).all() and np.isfinite(eyes).all()):
        raise InvalidInputError("cloud and viewpoints", "values that are not finite", "finite numbers")
    clouds, outlines, poses = [], [], []
    for eye in eyes:
        T_world_camera = _pose(eye, 0.5 * (cloud.min(axis=0) + cloud.max(axis=0)))
        rays = eye - cloud
        lengths = np.linalg.norm(rays, axis=1)
        facing = (rays * outward).sum(axis=1) > _LEAST_FACING * lengths
        local = transform_points(invert_transform(T_world_camera), cloud)
        if (local[:, 2] <= 0.0).any():
            raise InvalidInputError(
                "viewpoints", eye.tolist(), "places outside of the object", "Same frame as the cloud?"
            )
        if facing.sum() >= _LEAST_POINTS:
            clouds.append(local[facing])
            outlines.append(local[~facing])
            poses.append(T_world_camera)
    if len(clouds) < 2:
        raise InvalidInputError(
            "viewpoints", f"{len(eyes)}, of which {len(clouds)} see the object", "two cameras or more that see it",
            "One view says nothing of its other side: move a camera, or turn the object.",
        )  # fmt: skip
    depth, intrinsics = rasterize_clouds(clouds, size, outlines)
    return PosedDepths(depth, intrinsics, np.array(poses), ~np.isnan(depth))


def _pose(eye: Array, target: Array) -> Array:
    """(4, 4) optical frame at a place, towards a target."""
    if np.linalg.norm(target - eye) < 1e-6:
        raise InvalidInputError("viewpoints", eye.tolist(), "places outside of the object")
    straight = np.linalg.norm((target - eye)[:2]) < 1e-3 * np.linalg.norm(target - eye)
    return look_at(eye, target, (0.0, 1.0, 0.0) if straight else (0.0, 0.0, 1.0))
