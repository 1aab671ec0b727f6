"""The support plane and the rectangle that bounds it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry import plane_fit
from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import Array, make_transform, plane_axes
from morphit_ros.perception.configuration import TableConfig
from morphit_ros.perception.scene import Table

# Cells that the plane is divided into to measure its area and to tell connected parts apart.
_CELL = 0.01


def find_plane(
    points: Array, viewpoint: ArrayLike, config: TableConfig, rng: np.random.Generator, up: ArrayLike | None
) -> PlaneFit | None:
    """`geometry.plane_fit.find_plane` with the tolerance, number of trials and tilt of a configuration."""
    return plane_fit.find_plane(points, viewpoint, config.tolerance, config.iterations, rng, up, config.max_tilt)


def refine_plane(
    points: Array, normal: Array, offset: float, viewpoint: ArrayLike, config: TableConfig, up: ArrayLike | None
) -> PlaneFit | None:
    """`geometry.plane_fit.refine_plane` with the tolerance and tilt of a configuration."""
    return plane_fit.refine_plane(points, normal, offset, viewpoint, config.tolerance, up, config.max_tilt)


def bound_table(plane: PlaneFit, config: TableConfig) -> Table | None:
    """The rectangle of least area around the largest connected part of the plane; None if that part is too small.

    Args:
        plane: with points at most a few millimetres apart.
        config: smallest area.
    """
    from scipy.ndimage import binary_erosion, binary_opening

    axes = plane_axes(plane.normal)
    flat = axes @ plane.points.T
    cells, part, area = _largest_part(flat, _CELL)
    if area < config.min_area:
        return None
    # The foot of an object that juts out over the edge is at the table's height too, but only a strip.
    opened = binary_opening(part, np.ones((3, 3)))
    part = opened if opened.any() else part
    # Only cells at its edge can hold corners of the hull.
    edge = part & ~binary_erosion(part)
    center, direction, size = _least_rectangle(flat[:, edge[cells[0], cells[1]]].T)
    origin = plane.normal * plane.offset + center @ axes
    return _table_along(plane, origin, direction @ axes, size)


def may_be_table(plane: PlaneFit, config: TableConfig) -> bool:
    """Whether a plane known by a sparse sample, points up to 20 mm apart, can be of the least area."""
    return _largest_part(plane_axes(plane.normal) @ plane.points.T, 2.0 * _CELL)[2] >= config.min_area


def _largest_part(flat: Array, cell: float) -> tuple[NDArray[np.int64], NDArray[np.bool_], float]:
    """Cells (2, N) of points (2, N), mask of the largest connected group of cells, and its area [m²]."""
    from scipy.ndimage import label

    # One row an axis: NumPy is many times slower along the short one.
    cells = ((flat - flat.min(axis=1)[:, None]) / cell).astype(np.int64)
    occupied = np.zeros(cells.max(axis=1) + 1, dtype=np.bool_)
    occupied[cells[0], cells[1]] = True
    # Objects cast shadows that may cut the table in two for one camera: bridge gaps of a few cells diagonally too.
    labels, count = label(occupied, structure=np.ones((3, 3)))
    areas = np.bincount(labels.ravel(), minlength=count + 1)[1:]
    largest = int(np.argmax(areas)) + 1
    return cells, labels == largest, float(areas[largest - 1]) * cell**2


def _table_along(plane: PlaneFit, origin: Array, side: Array, size: Array) -> Table:
    """The table whose x axis is the side of the rectangle nearest to world x."""
    other = np.cross(plane.normal, side)
    candidates = [(side, size), (other, size[::-1]), (-side, size), (-other, size[::-1])]
    axis_x, extent = max(candidates, key=lambda candidate: candidate[0][0])
    rotation = np.column_stack([axis_x, np.cross(plane.normal, axis_x), plane.normal])
    return Table(make_transform(rotation, origin), np.array(extent), plane.residual)


def _least_rectangle(flat: Array) -> tuple[Array, Array, Array]:
    """Centre (2,), direction (2,) of the first side and size (2,) of the least-area rectangle around (N, 2)."""
    from scipy.spatial import ConvexHull

    corners = flat[ConvexHull(flat).vertices]
    edges = np.roll(corners, -1, axis=0) - corners
    angles = np.unique(np.arctan2(edges[:, 1], edges[:, 0]) % (math.pi / 2))
    # One side of the least rectangle lies on an edge of the hull (Freeman and Shapira 1975).
    first = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    second = np.stack([-first[:, 1], first[:, 0]], axis=1)
    along, across = corners @ first.T, corners @ second.T
    sizes = np.stack([np.ptp(along, axis=0), np.ptp(across, axis=0)], axis=1)
    best = int(np.argmin(np.prod(sizes, axis=1)))
    middle_along = 0.5 * (along[:, best].min() + along[:, best].max())
    middle_across = 0.5 * (across[:, best].min() + across[:, best].max())
    return middle_along * first[best] + middle_across * second[best], first[best], sizes[best]
