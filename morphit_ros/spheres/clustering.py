"""Even clusters of points and the spheres that enclose them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


def cluster_points(points: Array, count: int, iterations: int = 10) -> tuple[Array, NDArray[np.int64]]:
    """k-means from farthest-point seeds: centres (count, 3) and the cluster (P,) of each point; deterministic.

    With fewer distinct points than clusters some centres coincide.
    """
    return _cluster(np.ascontiguousarray(points), count, iterations)


def spherize_cloud(points: ArrayLike, count: int = 40, minimum_radius: float = 0.001) -> tuple[Array, Array]:
    """Spheres that together contain every point of a cloud: a grasped or observed object for planning.

    Args:
        points: (P, 3) [m], surface points; rows that are not finite are left out.
        count: number of spheres; fewer are returned where there are fewer points.
        minimum_radius: smallest radius [m].

    Returns:
        centers (K, 3) and radii (K,) [m], in the frame of the points.

    Raises:
        InvalidInputError: no finite point, a count below one or a radius that is not positive.
    """
    cloud = np.asarray(points, dtype=np.float64)
    if cloud.ndim != 2 or cloud.shape[1] != 3:
        raise InvalidInputError("points", f"shape {cloud.shape}", "shape (P, 3)")
    cloud = cloud[np.isfinite(cloud).all(axis=1)]
    if len(cloud) == 0:
        raise InvalidInputError("points", "no finite point", "at least one finite point")
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if not (np.isfinite(minimum_radius) and minimum_radius > 0.0):
        raise InvalidInputError("minimum_radius", minimum_radius, "a positive number [m]")
    _, labels = cluster_points(cloud, min(count, len(cloud)))
    order = np.argsort(labels, kind="stable")
    groups = np.split(cloud[order], np.flatnonzero(np.diff(labels[order])) + 1)
    spheres = [_enclosing_sphere(np.ascontiguousarray(group)) for group in groups]
    centers = np.array([center for center, _ in spheres])
    # The factor covers rounding, so that the outermost point is inside and not on the edge.
    radii = np.maximum(np.array([radius for _, radius in spheres]) * (1.0 + 1e-9), minimum_radius)
    return centers, radii


@njit(cache=True)
def _cluster(points, count, iterations):  # type: ignore[no-untyped-def]
    size = len(points)
    centers = np.empty((count, 3))
    distance = np.full(size, np.inf)
    mean = np.zeros(3)
    for i in range(size):
        for axis in range(3):
            mean[axis] += points[i, axis] / size
    # Start at the point farthest from the mean, then always at the one farthest from all chosen.
    chosen, best = 0, -1.0
    for i in range(size):
        d = (points[i, 0] - mean[0]) ** 2 + (points[i, 1] - mean[1]) ** 2 + (points[i, 2] - mean[2]) ** 2
        if d > best:
            chosen, best = i, d
    for k in range(count):
        for axis in range(3):
            centers[k, axis] = points[chosen, axis]
        best = -1.0
        for i in range(size):
            d = 0.0
            for axis in range(3):
                d += (points[i, axis] - centers[k, axis]) ** 2
            distance[i] = min(distance[i], d)
            if distance[i] > best:
                chosen, best = i, distance[i]
    labels = np.zeros(size, dtype=np.int64)
    for iteration in range(iterations + 1):
        changed = False
        for i in range(size):
            nearest, best = 0, np.inf
            for k in range(count):
                d = 0.0
                for axis in range(3):
                    d += (points[i, axis] - centers[k, axis]) ** 2
                if d < best:
                    nearest, best = k, d
            changed = changed or labels[i] != nearest
            labels[i] = nearest
        if iteration == iterations or (iteration > 0 and not changed):
            break
        sums = np.zeros((count, 4))
        for i in range(size):
            for axis in range(3):
                sums[labels[i], axis] += points[i, axis]
            sums[labels[i], 3] += 1.0
        for k in range(count):
            if sums[k, 3] > 0.0:
                for axis in range(3):
                    centers[k, axis] = sums[k, axis] / sums[k, 3]
    return centers, labels


@njit(cache=True)
def _enclosing_sphere(points):  # type: ignore[no-untyped-def]
    """Nearly the smallest sphere around points (Bădoiu and Clarkson 2003): within a few per cent, always enclosing."""
    center = np.zeros(3)
    for i in range(len(points)):
        for axis in range(3):
            center[axis] += points[i, axis] / len(points)
    radius = 0.0
    for iteration in range(101):
        farthest, best = 0, -1.0
        for i in range(len(points)):
            d = 0.0
            for axis in range(3):
                d += (points[i, axis] - center[axis]) ** 2
            if d > best:
                farthest, best = i, d
        radius = np.sqrt(best)
        if iteration == 100:
            break
        for axis in range(3):
            center[axis] += (points[farthest, axis] - center[axis]) / (iteration + 2.0)
    return center, radius
