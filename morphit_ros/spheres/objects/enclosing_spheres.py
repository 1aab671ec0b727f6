"""Few spheres that together contain many small pieces, tightly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Times that every sphere is shrunk to what no other contains.
_SWEEPS = 4
# Covers rounding, so that the outermost corner is inside and not on the edge.
_SLACK = 1.0 + 1e-9
_BALL_STEPS = 60


def enclosing_spheres(pieces: Array, labels: NDArray[np.int64], count: int) -> tuple[Array, Array]:
    """Spheres such that every piece lies in at least one of them as a whole; deterministic.

    A piece is the convex hull of its corners: a point, a triangle. A sphere that contains the corners contains it.

    Begins with a sphere around each cluster. Then every sphere is shrunk, the largest first, to what no other
    contains; one that is left with nothing takes over half of the largest.

    Args:
        pieces: (M, C, 3), corners [m].
        labels: (M,), the cluster of each piece, in [0, count).
        count: number of clusters.

    Returns:
        centers (K, 3) and radii (K,) [m], one for each cluster that has a piece.
    """
    corners = np.ascontiguousarray(pieces)
    centers, radii = _cluster_balls(corners, labels, count)
    used = radii >= 0.0
    centers, radii = np.ascontiguousarray(centers[used]), radii[used] * _SLACK
    _shrink(corners, centers, radii, _SWEEPS)
    return centers, radii


def grow_to_contain(pieces: Array, centers: Array, radii: Array) -> Array:
    """The radii (K,), enlarged where a piece (M, C, 3) is in no sphere: the one that it is nearest to grows."""
    grown = radii.copy()
    _grow(np.ascontiguousarray(pieces), np.ascontiguousarray(centers), grown)
    return grown


@njit(cache=True, nogil=True)
def _ball(points, size):  # type: ignore[no-untyped-def]
    """Nearly the smallest sphere around points[:size] (Bădoiu and Clarkson 2003): always enclosing, best step kept."""
    center, best_center = np.zeros(3), np.zeros(3)
    for i in range(size):
        for axis in range(3):
            center[axis] += points[i, axis] / size
    best_radius = np.inf
    for iteration in range(_BALL_STEPS):
        farthest, greatest = 0, -1.0
        for i in range(size):
            d = 0.0
            for axis in range(3):
                d += (points[i, axis] - center[axis]) ** 2
            if d > greatest:
                farthest, greatest = i, d
        if greatest < best_radius:
            best_radius = greatest
            best_center[:] = center
        for axis in range(3):
            center[axis] += (points[farthest, axis] - center[axis]) / (iteration + 2.0)
    return best_center, np.sqrt(best_radius)


@njit(cache=True, nogil=True)
def _reach(piece, center):  # type: ignore[no-untyped-def]
    """Distance of the farthest corner."""
    greatest = 0.0
    for corner in range(len(piece)):
        d = 0.0
        for axis in range(3):
            d += (piece[corner, axis] - center[axis]) ** 2
        greatest = max(greatest, d)
    return np.sqrt(greatest)


@njit(cache=True, nogil=True)
def _gather(pieces, chosen, buffer):  # type: ignore[no-untyped-def]
    """Corners of the chosen pieces into the buffer; their number."""
    size = 0
    for m in range(len(pieces)):
        if chosen[m]:
            for corner in range(pieces.shape[1]):
                buffer[size] = pieces[m, corner]
                size += 1
    return size


@njit(cache=True, nogil=True)
def _cluster_balls(pieces, labels, count):  # type: ignore[no-untyped-def]
    """A sphere around each cluster; radius -1 for an empty one."""
    centers, radii = np.zeros((count, 3)), np.full(count, -1.0)
    buffer = np.empty((len(pieces) * pieces.shape[1], 3))
    for k in range(count):
        size = _gather(pieces, labels == k, buffer)
        if size > 0:
            centers[k], radii[k] = _ball(buffer, size)
    return centers, radii


@njit(cache=True, nogil=True)
def _count_covers(pieces, center, radius, covered, covers, k):  # type: ignore[no-untyped-def]
    """Note which pieces sphere k contains now."""
    for m in range(len(pieces)):
        inside = _reach(pieces[m], center) <= radius
        covers[m] += np.int64(inside) - np.int64(covered[k, m])
        covered[k, m] = inside


@njit(cache=True, nogil=True)
def _shrink(pieces, centers, radii, sweeps):  # type: ignore[no-untyped-def]
    count, size = len(radii), len(pieces)
    covered = np.zeros((count, size), dtype=np.bool_)
    covers = np.zeros(size, dtype=np.int64)
    for k in range(count):
        _count_covers(pieces, centers[k], radii[k], covered, covers, k)
    buffer = np.empty((size * pieces.shape[1], 3))
    for _ in range(sweeps):
        changed = False
        for k in np.argsort(-radii):
            own = covered[k] & (covers == 1)
            taken = _gather(pieces, own, buffer)
            if taken == 0:
                changed = _halve_largest(pieces, centers, radii, covered, covers, k, buffer) or changed
                continue
            center, radius = _ball(buffer, taken)
            radius *= _SLACK
            if radius < 0.999 * radii[k]:
                centers[k], radii[k] = center, radius
                _count_covers(pieces, center, radius, covered, covers, k)
                changed = True
        if not changed:
            break


@njit(cache=True, nogil=True)
def _halve_largest(pieces, centers, radii, covered, covers, idle, buffer):  # type: ignore[no-untyped-def]
    """Give sphere `idle`, which nothing needs, the farther half of what the largest sphere alone contains."""
    largest = np.argmax(radii)
    if largest == idle:
        return False
    own = np.flatnonzero(covered[largest] & (covers == 1))
    if len(own) < 2:
        return False
    # Two seeds far apart, then a few steps of 2-means.
    middle = np.zeros((len(own), 3))
    for i in range(len(own)):
        for corner in range(pieces.shape[1]):
            middle[i] += pieces[own[i], corner] / pieces.shape[1]
    first = middle[np.argmax(((middle - centers[largest]) ** 2).sum(axis=1))].copy()
    second = middle[np.argmax(((middle - first) ** 2).sum(axis=1))].copy()
    half = np.zeros(len(own), dtype=np.bool_)
    for _ in range(5):
        half = ((middle - first) ** 2).sum(axis=1) < ((middle - second) ** 2).sum(axis=1)
        if half.all() or not half.any():
            return False
        for axis in range(3):
            first[axis] = middle[half, axis].mean()
            second[axis] = middle[~half, axis].mean()
    for k, side in ((idle, half), (largest, ~half)):
        chosen = np.zeros(len(pieces), dtype=np.bool_)
        chosen[own[side]] = True
        center, radius = _ball(buffer, _gather(pieces, chosen, buffer))
        centers[k], radii[k] = center, radius * _SLACK
        _count_covers(pieces, centers[k], radii[k], covered, covers, k)
    return True


@njit(cache=True, nogil=True)
def _grow(pieces, centers, radii):  # type: ignore[no-untyped-def]
    for m in range(len(pieces)):
        nearest, least = 0, np.inf
        for k in range(len(radii)):
            gap = _reach(pieces[m], centers[k]) - radii[k]
            if gap < least:
                nearest, least = k, gap
                if gap <= 0.0:
                    break
        if least > 0.0:
            radii[nearest] = (radii[nearest] + least) * _SLACK
