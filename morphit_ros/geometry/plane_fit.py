"""The plane with the most points on it: RANSAC, then least squares."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

_SAMPLE = 2000
_REFINEMENTS = 3


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
    points: Array,
    viewpoint: ArrayLike,
    tolerance: float,
    iterations: int,
    rng: np.random.Generator,
    up: ArrayLike | None = None,
    max_tilt: float = math.pi,
) -> PlaneFit | None:
    """The plane with the most points on it, across `up` where it is given; None where there is none.

    Args:
        points: (N, 3) finite [m].
        viewpoint: (3,) a point on the side that the normal points to, where up is not known [m].
        tolerance: of the distance of a plane's points from it [m].
        iterations: trials of three points.
        rng: source of randomness.
        up: (3,) unit vector, None where it is not known.
        max_tilt: largest angle between normal and up [rad].
    """
    if len(points) < 3:
        return None
    sample = points[rng.choice(len(points), _SAMPLE, replace=False)] if len(points) > _SAMPLE else points
    corners = rng.integers(0, len(sample), (iterations, 3))
    upwards = np.zeros(3) if up is None else np.asarray(up, dtype=np.float64)
    least_cosine = -1.0 if up is None else math.cos(max_tilt)
    normal, offset, votes = _best_plane(np.ascontiguousarray(sample), corners, tolerance, upwards, least_cosine)
    if votes < 3:
        return None
    return refine_plane(points, normal, offset, viewpoint, tolerance, up, max_tilt)


def refine_plane(
    points: Array,
    normal: Array,
    offset: float,
    viewpoint: ArrayLike,
    tolerance: float,
    up: ArrayLike | None = None,
    max_tilt: float = math.pi,
) -> PlaneFit | None:
    """The least-squares plane through the points near a given one; arguments as in `find_plane`."""
    upwards = np.zeros(3) if up is None else np.asarray(up, dtype=np.float64)
    for _ in range(_REFINEMENTS):
        votes, center, scatter = _moments(points, normal, offset, tolerance)
        if votes < 3:
            return None
        normal = np.ascontiguousarray(np.linalg.eigh(scatter)[1][:, 0])
        towards = np.asarray(viewpoint) - center if up is None else upwards
        if normal @ towards < 0.0:
            normal = -normal
        offset = float(normal @ center)
    if up is not None and normal @ upwards < math.cos(max_tilt):
        return None
    distances = points @ normal - offset
    inliers = np.abs(distances) <= tolerance
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
