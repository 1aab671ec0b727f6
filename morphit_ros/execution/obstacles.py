"""What was seen, as obstacles for motion planning."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle

# Smallest sphere of a scattered point [m].
_LEAST_RADIUS = 0.004
# Of what stands close together: one sphere for each cell of this edge that it takes up [m], and how many at least and
# at most. With 80 a plate would bulge by up to 20 mm, and keep hands away that have room.
_FINE_CELL, _FEWEST, _MOST = 0.008, 40, 400


def object_obstacle(
    name: str, cloud: CloudLike, T_base_cloud: Array, spheres: int = 40, smallest_radius: float = 0.004
) -> ObjectObstacle:
    """An object cloud as spheres that contain every point.

    Args:
        name: of the obstacle.
        cloud: of any kind that `geometry.inputs` knows: points on the object's surface; points that are not finite are
            left out.
        T_base_cloud: (4, 4), frame of the cloud in the base frame.
        spheres: how many at most; fewer are faster to check and reach further beyond the surface.
        smallest_radius: [m]; about the distance of neighbouring points closes the gaps between them.

    Raises:
        InvalidInputError: the cloud has no finite point, or a number is out of range.
    """
    from morphit_ros.spheres import spherize_cloud

    if not name:
        raise InvalidInputError("name", "an empty string", "a name for the object")
    moved = as_cloud(cloud).finite().transformed(check_transform(T_base_cloud, "T_base_cloud"))
    centers, radii = spherize_cloud(moved.points, spheres, smallest_radius)
    return ObjectObstacle(name, centers, radii)


def fine_obstacle(name: str, cloud: CloudLike, T_base_cloud: Array) -> ObjectObstacle:
    """What is grasped, or stands beside it: as `object_obstacle`, with as many spheres as its size asks for.

    Large things get more, so that all bulge beyond their surface by some millimetres only, whatever their size.

    Args:
        name, cloud, T_base_cloud: as of `object_obstacle`.

    Raises:
        InvalidInputError: as of `object_obstacle`.
    """
    points = as_cloud(cloud).finite().points
    cells = np.unique(np.floor(points / _FINE_CELL).astype(np.int64), axis=0) if len(points) else points
    return object_obstacle(name, cloud, T_base_cloud, int(np.clip(len(cells), _FEWEST, _MOST)))


def loose_obstacle(name: str, cloud: CloudLike, T_base_cloud: Array, cell: float = 0.02) -> ObjectObstacle:
    """Scattered points as spheres, one for each occupied cell: nothing between them is taken to be solid.

    Args:
        name: of the obstacle.
        cloud: of any kind that `geometry.inputs` knows: points; those that are not finite are left out.
        T_base_cloud: (4, 4), frame of the cloud in the base frame.
        cell: edge of a cell [m].

    Raises:
        InvalidInputError: the cloud has no finite point.
    """
    points = as_cloud(cloud).finite().transformed(check_transform(T_base_cloud, "T_base_cloud")).points
    if not len(points):
        raise InvalidInputError("cloud", "no finite point", "at least one finite point")
    _, rows, counts = np.unique(
        np.floor(points / cell).astype(np.int64), axis=0, return_inverse=True, return_counts=True
    )
    rows = rows.reshape(-1)
    centers = np.stack([np.bincount(rows, points[:, axis]) for axis in range(3)], axis=1) / counts[:, None]
    radii = np.zeros(len(counts))
    np.maximum.at(radii, rows, np.linalg.norm(points - centers[rows], axis=1))
    return ObjectObstacle(name, centers, np.maximum(radii, _LEAST_RADIUS))


def table_obstacle(T_base_table: Array, size: ArrayLike, margin: float = 0.1, thickness: float = 0.05) -> TableObstacle:
    """A support plane as a slab.

    Args:
        T_base_table: (4, 4), centre of the visible part of the upper face, z up.
        size: (2,) extent of the visible part along x and y [m].
        margin: the slab reaches this far beyond it on each side, since a table goes on where no camera sees it [m].
        thickness: [m].

    Raises:
        InvalidInputError: a size, margin or thickness out of range.
    """
    extent = np.asarray(size, dtype=np.float64)
    if extent.shape != (2,) or not np.isfinite(extent).all() or (extent <= 0.0).any():
        raise InvalidInputError("size", extent.tolist(), "two positive numbers [m]")
    if not (np.isfinite(margin) and margin >= 0.0 and np.isfinite(thickness) and thickness > 0.0):
        raise InvalidInputError("margin, thickness", [margin, thickness], "margin >= 0, thickness > 0 [m]")
    return TableObstacle(check_transform(T_base_table, "T_base_table"), extent + 2.0 * margin, thickness)
