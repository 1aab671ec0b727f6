"""Even clusters of points, and objects as spheres around such clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, MeshLike, as_cloud, as_mesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.spheres.objects.body import body_of_cloud, body_of_mesh, small_triangles
from morphit_ros.spheres.objects.enclosing_spheres import enclosing_spheres, grow_to_contain

# Of more pieces of a surface than this, so many show where the spheres belong.
_MOST_PIECES = 6000


def cluster_points(points: Array, count: int, iterations: int = 10) -> tuple[Array, NDArray[np.int64]]:
    """k-means from farthest-point seeds: centres (count, 3) and the cluster (P,) of each point; deterministic.

    With fewer distinct points than clusters some centres coincide.
    """
    return _cluster(np.ascontiguousarray(points), count, iterations)


def spherize_cloud(points: CloudLike, count: int = 40, minimum_radius: float = 0.001) -> tuple[Array, Array]:
    """Spheres that together contain every point of a cloud: a grasped or observed object for planning.

    They also fill the body between the points: the object is taken to be solid wherever it was seen from both sides
    (`body_of_cloud`). What no camera saw is not guessed.

    Args:
        points: a cloud of any kind that `geometry.inputs` knows, such as (P, 3) [m]: points on a surface; rows that are
            not finite are left out.
        count: number of spheres; fewer are returned where there are fewer points.
        minimum_radius: smallest radius [m].

    Returns:
        centers (K, 3) and radii (K,) [m], in the frame of the points.

    Raises:
        InvalidInputError: no finite point, a count below one or a radius that is not positive.
    """
    cloud = as_cloud(points, "points").finite().points
    if len(cloud) == 0:
        raise InvalidInputError("points", "no finite point", "at least one finite point")
    return _enclose(cloud[:, None], body_of_cloud(cloud), count, minimum_radius)


def spherize_mesh(mesh: MeshLike, count: int = 40, minimum_radius: float = 0.001) -> tuple[Array, Array]:
    """Spheres that together contain every point of a mesh's surface, and fill its inside: an object to be carried.

    The surface is contained by construction: it is cut into small triangles, each of which lies in one sphere. For
    links of a robot `fit_spheres` is tighter, and slower.

    Args:
        mesh: the object, of any kind that `geometry.inputs` knows; it need not be closed.
        count: number of spheres; fewer are returned for a very small mesh.
        minimum_radius: smallest radius [m].

    Returns:
        centers (K, 3) and radii (K,) [m], in the frame of the mesh.

    Raises:
        InvalidInputError: the mesh has no area, a count below one or a radius that is not positive.
    """
    surface = as_mesh(mesh)
    if surface.area <= 0.0:
        raise InvalidInputError("mesh", "zero area", "a mesh with area")
    return _enclose(small_triangles(surface), body_of_mesh(surface), count, minimum_radius)


def _enclose(pieces: Array, body: Array, count: int, minimum_radius: float) -> tuple[Array, Array]:
    """Spheres around pieces (M, C, 3) of a surface and points (B, 3) of the body."""
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    if not (np.isfinite(minimum_radius) and minimum_radius > 0.0):
        raise InvalidInputError("minimum_radius", minimum_radius, "a positive number [m]")
    corners = pieces.shape[1]
    inner = np.repeat(body[:, None], corners, axis=1)
    # In the end every piece is looked at.
    chosen = np.concatenate([pieces[:: -(-len(pieces) // _MOST_PIECES)], inner])
    few = min(count, len(chosen))
    _, labels = cluster_points(chosen.mean(axis=1), few)
    centers, radii = enclosing_spheres(chosen, labels, few)
    return centers, np.maximum(grow_to_contain(pieces, centers, radii), minimum_radius)


@njit(cache=True, nogil=True)
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
