"""Which points of one camera are kept: range, workspace, voxels, the robot itself, outliers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.spatial_hash import cells_around, count_neighbors
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.voxel_grid import crop_to_voxels
from morphit_ros.perception.configuration import CropConfig, SurfaceConfig

# The box of a cloud whose place in the world is not known yet: everything within the largest range.
_ANYWHERE = 100.0


class ViewPoints(NamedTuple):
    """Points of one camera.

    Attributes:
        points: (M, 3) [m].
        rows: (M,) rows of the camera's cloud that they stand for.
    """

    points: Array
    rows: NDArray[np.int64]


def crop_view(
    cloud: PointCloud, T_target_camera: Array, side: str, config: CropConfig, workspace: bool
) -> tuple[ViewPoints, dict[str, int]]:
    """The cloud without NaN, clipped in depth, in the target frame, within the workspace, one point a voxel.

    Args:
        cloud: in the camera's optical frame.
        T_target_camera: pose of the camera in the target frame.
        side: "left" or "right", chooses the depth range.
        config: ranges, box and voxel size.
        workspace: whether the target frame is the world, so that the workspace box applies.

    Returns:
        the points, and how many were left after each step.
    """
    depth_range = (getattr(config, f"{side}_min_range"), getattr(config, f"{side}_max_range"))
    box: tuple[Sequence[float], Sequence[float]] = (config.workspace_min, config.workspace_max)
    if not workspace:
        box = ((-_ANYWHERE,) * 3, (_ANYWHERE,) * 3)
    kept = crop_to_voxels(cloud.points, T_target_camera, depth_range, box, config.voxel_size)
    counts = {"received": len(cloud), "finite": kept.finite, "in range": kept.in_range}
    if workspace:
        counts["in workspace"] = kept.in_box
    counts["voxels"] = len(kept.points)
    return ViewPoints(kept.points, kept.rows), counts


def outside_workspace(points: Array, config: CropConfig) -> NDArray[np.bool_]:
    """(N,) mask of the points (N, 3) in the world frame that lie outside the workspace."""
    lower, upper = np.array(config.workspace_min), np.array(config.workspace_max)
    return np.asarray(((points < lower) | (points > upper)).any(axis=1), dtype=np.bool_)


def check_spheres(robot_spheres: tuple[ArrayLike, ArrayLike]) -> tuple[Array, Array]:
    """Centres (K, 3) and radii (K,) as arrays.

    Raises:
        InvalidInputError: the shapes do not match, or values are negative or not finite.
    """
    centers = np.asarray(robot_spheres[0], dtype=np.float64)
    radii = np.asarray(robot_spheres[1], dtype=np.float64)
    if centers.ndim != 2 or centers.shape[1] != 3 or radii.shape != centers.shape[:1]:
        found = f"centres of shape {centers.shape} and radii of shape {radii.shape}"
        raise InvalidInputError("robot_spheres", found, "shapes (K, 3) and (K,)")
    if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii >= 0.0).all()):
        raise InvalidInputError("robot_spheres", "values that are negative or not finite", "finite spheres [m]")
    return centers, radii


def within_spheres(points: Array, centers: Array, radii: Array, padding: float) -> NDArray[np.bool_]:
    """(N,) mask of the points (N, 3) inside any sphere grown by the padding [m]."""
    inside = np.zeros(len(points), dtype=np.bool_)
    if len(points) == 0:
        return inside
    reach = radii + padding
    low, high = points.min(axis=0), points.max(axis=0)
    near = ((centers + reach[:, None] >= low) & (centers - reach[:, None] <= high)).all(axis=1)
    _mark_inside(points, np.ascontiguousarray(centers[near]), reach[near] ** 2, inside)
    return inside


@njit(cache=True)
def _mark_inside(points, centers, squared_radii, inside):  # type: ignore[no-untyped-def]
    for row in range(points.shape[0]):
        for sphere in range(centers.shape[0]):
            dx = points[row, 0] - centers[sphere, 0]
            dy = points[row, 1] - centers[sphere, 1]
            dz = points[row, 2] - centers[sphere, 2]
            if dx * dx + dy * dy + dz * dz <= squared_radii[sphere]:
                inside[row] = True
                break


def supported_points(points: Array, config: SurfaceConfig) -> NDArray[np.bool_]:
    """(N,) mask of the points with enough others around them; the rest are outliers."""
    if len(points) == 0:
        return np.zeros(0, dtype=np.bool_)
    counts: NDArray[np.int64] = count_neighbors(cells_around(points, config.radius), config.min_neighbors)
    return counts >= config.min_neighbors
