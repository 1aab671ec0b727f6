"""VSSA: spheres that bound a shape with the least volume outside of it, by Lloyd iterations.

Wang et al. 2006, "Variational sphere set approximation for solid objects". The error of a sphere is its outside
volume (SOV), that of a set the sum over its spheres. Three steps alternate:

1. assignment: each point of the solid goes to the sphere that has least outside volume once it reaches there;
2. refit: each sphere moves to where it encloses its points with the least outside volume;
3. teleportation, once the first two bring nothing: the sphere that overlaps most with others is taken away, and
   the one with the greatest outside volume is split in two.

Deviations: outside volumes come from a voxel grid rather than from integrals over triangles, so that meshes need
not be watertight; the refit is a pattern search rather than Powell's method, since the radius, a maximum over
points, has ridges.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_bench.spheres.baselines.solid import VoxelSolid, checked_count, make_solid, outside_volume
from morphit_ros.geometry.inputs import MeshesLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.spheres.clustering import cluster_points

# Points of the surface and of the inside that the iterations see; the last step sees all.
_SURFACE_POINTS, _INSIDE_POINTS = 4000, 2000
# Lloyd iterations at most: of the start, after a teleportation, and at the end with all points.
_FIRST_ITERATIONS, _LATER_ITERATIONS, _LAST_ITERATIONS = 20, 6, 4
# Teleportations without success that end the search, and teleportations in all per sphere.
_FAILURES, _TELEPORTATIONS = 12, 5
# Times that the pattern search of a refit tries all its directions, at most.
_REFIT_SWEEPS = 60
# An improvement of the error below this share is none.
_TOLERANCE = 1e-3

Indices = NDArray[np.int64]


def fit_vssa(mesh: MeshesLike, count: int, seed: int = 0) -> tuple[Array, Array]:
    """Exactly `count` spheres that bound a shape with little outside volume (VSSA).

    Every vertex (of up to 2000), every one of 20000 surface samples and the centre of every voxel inside are
    covered; between the samples the surface may show by a small fraction of a per cent of the shape's size.

    Args:
        mesh: the shape; several meshes in one frame mean their union.
        count: number of spheres.
        seed: of the samples and of the initial centres.

    Returns:
        centers (count, 3) and radii (count,) [m].

    Raises:
        InvalidInputError: a count below one, no mesh or no area.
    """
    rng = np.random.default_rng(seed)
    wanted = checked_count(count)
    solid = make_solid(mesh, rng)
    inside = _at_most(solid.interior, max(_INSIDE_POINTS, wanted), rng)
    points = np.concatenate([solid.corners, solid.surface[:_SURFACE_POINTS], inside])
    start = _at_most(inside if len(inside) else points, max(20 * wanted, 500), rng)
    centers = _search(solid, points, cluster_points(start, wanted)[0])
    everything = np.concatenate([solid.corners, solid.surface, solid.interior])
    centers, radii, _, _ = _lloyd(everything, solid.interior, *solid.grid, centers, _LAST_ITERATIONS, _TOLERANCE)
    return solid.in_mesh_frame(centers, radii)


def _at_most(points: Array, count: int, rng: np.random.Generator) -> Array:
    return points if len(points) <= count else points[rng.choice(len(points), count, replace=False)]


def _search(solid: VoxelSolid, points: Array, centers: Array) -> Array:
    """Centres after Lloyd iterations and teleportations until the sum of the outside volumes falls no more."""
    centers, radii, labels, errors = _lloyd(points, solid.interior, *solid.grid, centers, _FIRST_ITERATIONS, _TOLERANCE)
    failures = 0
    for _ in range(_TELEPORTATIONS * len(centers)):
        if failures == _FAILURES or len(centers) == 1:
            break
        # A failure is answered by the next pair: the next but one most overlapped, the next greatest error.
        start = _teleported(points, centers, radii, labels, errors, failures // 2, (failures + 1) // 2)
        if start is None:
            break
        moved = _lloyd(points, solid.interior, *solid.grid, start, _LATER_ITERATIONS, _TOLERANCE)
        if moved[3].sum() < (1.0 - _TOLERANCE) * errors.sum():
            centers, radii, labels, errors = moved
            failures = 0
        else:
            failures += 1
    return centers


def _teleported(
    points: Array, centers: Array, radii: Array, labels: Indices, errors: Array, overlap_rank: int, error_rank: int
) -> Array | None:
    """Centres with an overlapped sphere gone and a bad one split; None if none is left to choose from."""
    split_order = np.argsort(-errors, kind="stable")
    removal_order = np.argsort(-_overlap(points, centers, radii), kind="stable")
    if max(overlap_rank, error_rank) >= len(centers) - 1:
        return None
    split = int(split_order[error_rank])
    removed = int(removal_order[removal_order != split][overlap_rank])
    own = points[labels == split]
    if len(own) < 2:
        return None
    first = own[np.linalg.norm(own - own.mean(axis=0), axis=1).argmax()]
    second = own[np.linalg.norm(own - first, axis=1).argmax()]
    result = centers.copy()
    result[split] += 0.25 * (first - second)
    result[removed] = centers[split] - 0.25 * (first - second)
    return result


@njit(cache=True, nogil=True)
def _overlap(points, centers, radii):  # type: ignore[no-untyped-def]
    """(N,) share of the points in each sphere that other spheres contain as well; 1 for a sphere without points."""
    own, shared = np.zeros(len(radii)), np.zeros(len(radii))
    within = np.empty(len(radii), dtype=np.bool_)
    for i in range(len(points)):
        found = 0
        for k in range(len(radii)):
            within[k] = _squared_distance(points[i], centers[k]) <= (radii[k] * (1.0 + 1e-9)) ** 2
            found += within[k]
        for k in range(len(radii)):
            if within[k]:
                own[k] += 1.0
                shared[k] += found > 1
    result = np.ones(len(radii))
    for k in range(len(radii)):
        if own[k] > 0.0:
            result[k] = shared[k] / own[k]
    return result


@njit(cache=True, nogil=True)
def _lloyd(points, interior, filled, low, spacing, centers, iterations, tolerance):  # type: ignore[no-untyped-def]
    """Assignment and refit in turn; the best centres, radii, labels (P,) and outside volumes (N,) on the way."""
    count = len(centers)
    centers = centers.copy()
    best, stalled = np.inf, 0
    best_centers, best_radii = centers.copy(), np.zeros(count)
    best_labels, best_errors = np.zeros(len(points), dtype=np.int64), np.full(count, np.inf)
    radii, errors = np.zeros(count), np.zeros(count)
    for _ in range(iterations):
        labels = _assign(points, interior, spacing, centers)
        order = np.argsort(labels, kind="mergesort")
        ends = np.searchsorted(labels[order], np.arange(count), side="right")
        first = 0
        for k in range(count):
            own = points[order[first : ends[k]]]
            first = ends[k]
            radii[k], errors[k] = _refit(own, filled, low, spacing, centers[k])
        total = errors.sum()
        stalled = 0 if total < (1.0 - tolerance) * best else stalled + 1
        if total < best:
            best = total
            best_centers[:], best_radii[:], best_errors[:] = centers, radii, errors
            best_labels[:] = labels
        # The assignment doesn't know the new radii: it may err on one occasion and go on well.
        if stalled == 2:
            break
    return best_centers, best_radii, best_labels, best_errors


@njit(cache=True, nogil=True)
def _assign(points, interior, spacing, centers):  # type: ignore[no-untyped-def]
    """Sphere (P,) of each point: the one that has least volume outside when it reaches from its centre to the point.

    Among spheres that take a point in for nothing, and against the noise of the voxels, a small share of the whole
    sphere's volume decides for the near one.
    """
    count = len(centers)
    step = 0.5 * spacing
    bins = int(1.8 / step) + 2
    tables = np.zeros((count, bins))
    for k in range(count):
        for i in range(len(interior)):
            tables[k, min(int(math.sqrt(_squared_distance(interior[i], centers[k])) / step) + 1, bins - 1)] += 1.0
        inside, reached = 0.0, 0.0
        for b in range(bins):
            inside += tables[k, b] * spacing**3
            ball = 4.0 / 3.0 * math.pi * (b * step) ** 3
            reached = max(reached, ball - inside)
            tables[k, b] = reached + 1e-3 * ball
    labels = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        least = np.inf
        for k in range(count):
            position = math.sqrt(_squared_distance(points[i], centers[k])) / step
            below = min(int(position), bins - 2)
            error = tables[k, below] + (position - below) * (tables[k, below + 1] - tables[k, below])
            if error < least:
                least, labels[i] = error, k
    return labels


@njit(cache=True, nogil=True)
def _refit(own, filled, low, spacing, center):  # type: ignore[no-untyped-def]
    """Move `center` to where the sphere around these points has least outside volume; radius and that volume."""
    if len(own) == 0:
        return 0.0, 0.0
    radius = _reach(own, center)
    error = outside_volume(filled, low, spacing, center[0], center[1], center[2], radius)
    # The middle of the points' box is often a better place to start than the last centre.
    middle = np.empty(3)
    for axis in range(3):
        middle[axis] = 0.5 * (own[:, axis].min() + own[:, axis].max())
    other = _reach(own, middle)
    other_error = outside_volume(filled, low, spacing, middle[0], middle[1], middle[2], other)
    if other_error < error:
        center[:], radius, error = middle, other, other_error
    step = 0.25 * radius
    trial = np.empty(3)
    for _ in range(_REFIT_SWEEPS):
        if step < 0.02 * radius or step < 0.02 * spacing:
            break
        moved = False
        for direction in range(27):
            dx, dy, dz = direction // 9 - 1, (direction // 3) % 3 - 1, direction % 3 - 1
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            # The six axes and the eight diagonals of a cube.
            if length == 0.0 or 1.1 < length < 1.6:
                continue
            trial[0] = center[0] + step * dx / length
            trial[1] = center[1] + step * dy / length
            trial[2] = center[2] + step * dz / length
            reach = _reach(own, trial)
            if reach > 1.3 * radius:
                continue
            outside = outside_volume(filled, low, spacing, trial[0], trial[1], trial[2], reach)
            # Where nothing is outside, a smaller sphere is the better one.
            if outside < error - 1e-6 * abs(error) or (outside <= error and reach < radius * (1.0 - 1e-6)):
                center[:], radius, error = trial, reach, outside
                moved = True
        if not moved:
            step *= 0.5
    return radius, error


@njit(cache=True, nogil=True)
def _reach(points, center):  # type: ignore[no-untyped-def]
    farthest = 0.0
    for i in range(len(points)):
        farthest = max(farthest, _squared_distance(points[i], center))
    return math.sqrt(farthest)


@njit(cache=True, nogil=True)
def _squared_distance(a, b):  # type: ignore[no-untyped-def]
    dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return dx * dx + dy * dy + dz * dz
