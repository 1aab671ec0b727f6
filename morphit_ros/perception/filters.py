"""Points that are not the scene's: outside the workspace, or the robot's own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import CropConfig


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


@njit(cache=True, nogil=True)
def _mark_inside(points, centers, squared_radii, inside):  # type: ignore[no-untyped-def]
    for row in range(points.shape[0]):
        for sphere in range(centers.shape[0]):
            dx = points[row, 0] - centers[sphere, 0]
            dy = points[row, 1] - centers[sphere, 1]
            dz = points[row, 2] - centers[sphere, 2]
            if dx * dx + dy * dy + dz * dz <= squared_radii[sphere]:
                inside[row] = True
                break
