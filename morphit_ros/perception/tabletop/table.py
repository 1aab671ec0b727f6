"""The support plane: RANSAC, least squares, and the rectangle that bounds it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.transforms import Array, make_transform, plane_axes
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import TableConfig
from morphit_ros.perception.scene import Table

_SAMPLE = 2000
_REFINEMENTS = 3
# Cells that the plane is divided into to measure its area and to tell connected parts apart.
_CELL = 0.01


class PlaneFit(NamedTuple):
    """n·x = offset, with its points.

    Attributes:
        normal: (3,) unit vector, upwards where up is known, else towards the cameras.
        offset: distance from the origin along the normal [m].
        points: (M, 3) the points within the tolerance [m].
        residual: their root mean square distance to the plane [m].
    """

    normal: Array
    offset: float
    points: Array
    residual: float


def find_plane(
    points: Array, viewpoint: ArrayLike, config: TableConfig, rng: np.random.Generator, up: ArrayLike | None
) -> PlaneFit | None:
    """The plane with the most points on it, horizontal where `up` is given; None where there is none.

    Args:
        points: (N, 3) finite [m].
        viewpoint: (3,) a point on the side that the plane was seen from [m].
        config: tolerance, tilt and number of trials.
        rng: source of randomness.
        up: (3,) unit vector against gravity, None where it is not known.
    """
    if len(points) < 3:
        return None
    sample = points[rng.choice(len(points), _SAMPLE, replace=False)] if len(points) > _SAMPLE else points
    corners = rng.integers(0, len(sample), (config.iterations, 3))
    upwards = np.zeros(3) if up is None else np.asarray(up, dtype=np.float64)
    least_cosine = -1.0 if up is None else math.cos(config.max_tilt)
    normal, offset, votes = _best_plane(np.ascontiguousarray(sample), corners, config.tolerance, upwards, least_cosine)
    if votes < 3:
        return None
    return refine_plane(points, normal, offset, viewpoint, config, up)


def refine_plane(
    points: Array, normal: Array, offset: float, viewpoint: ArrayLike, config: TableConfig, up: ArrayLike | None
) -> PlaneFit | None:
    """The least-squares plane through the points near a given one; arguments as in `find_plane`."""
    upwards = np.zeros(3) if up is None else np.asarray(up, dtype=np.float64)
    for _ in range(_REFINEMENTS):
        votes, center, scatter = _moments(points, normal, offset, config.tolerance)
        if votes < 3:
            return None
        normal = np.ascontiguousarray(np.linalg.eigh(scatter)[1][:, 0])
        towards = np.asarray(viewpoint) - center if up is None else upwards
        if normal @ towards < 0.0:
            normal = -normal
        offset = float(normal @ center)
    if up is not None and normal @ upwards < math.cos(config.max_tilt):
        return None
    distances = points @ normal - offset
    inliers = np.abs(distances) <= config.tolerance
    if not inliers.any():
        return None
    return PlaneFit(normal, offset, points[inliers], float(np.sqrt(np.mean(distances[inliers] ** 2))))


@njit(cache=True, nogil=True)
def _best_plane(points, corners, tolerance, up, least_cosine):  # type: ignore[no-untyped-def]
    best = 0
    best_normal = np.zeros(3)
    best_offset = 0.0
    for trial in range(corners.shape[0]):
        a, b, c = points[corners[trial, 0]], points[corners[trial, 1]], points[corners[trial, 2]]
        x = (b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1])
        y = (b[2] - a[2]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[2] - a[2])
        z = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        length = math.sqrt(x * x + y * y + z * z)
        if length < 1e-12:
            continue
        x, y, z = x / length, y / length, z / length
        if abs(x * up[0] + y * up[1] + z * up[2]) < least_cosine:
            continue
        offset = x * a[0] + y * a[1] + z * a[2]
        votes = 0
        for row in range(points.shape[0]):
            if abs(points[row, 0] * x + points[row, 1] * y + points[row, 2] * z - offset) <= tolerance:
                votes += 1
        if votes > best:
            best = votes
            best_normal[0], best_normal[1], best_normal[2] = x, y, z
            best_offset = offset
    return best_normal, best_offset, best


@njit(cache=True, nogil=True)
def _moments(points, normal, offset, tolerance):  # type: ignore[no-untyped-def]
    """Number, mean (3,) and scatter matrix (3, 3) of the points on a plane."""
    count = 0
    total = np.zeros(3)
    products = np.zeros((3, 3))
    # About one point of the plane, so that no digits are lost far from the origin.
    base = normal * offset
    for row in range(points.shape[0]):
        x, y, z = points[row, 0] - base[0], points[row, 1] - base[1], points[row, 2] - base[2]
        if abs(x * normal[0] + y * normal[1] + z * normal[2]) > tolerance:
            continue
        count += 1
        total[0] += x
        total[1] += y
        total[2] += z
        products[0, 0] += x * x
        products[0, 1] += x * y
        products[0, 2] += x * z
        products[1, 1] += y * y
        products[1, 2] += y * z
        products[2, 2] += z * z
    mean = total / max(count, 1)
    for i in range(3):
        for j in range(i, 3):
            products[i, j] -= count * mean[i] * mean[j]
            products[j, i] = products[i, j]
    return count, mean + base, products


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
