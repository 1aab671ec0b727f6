"""Where a search for covering spheres starts, and how it changes their arrangement: clusters merged and split.

As in adaptive medial axis sphere trees, many small clusters of points are merged pair by pair, always the pair
whose enclosing sphere adds least volume outside the shape.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit

_ENCLOSING_STEPS = 40
# Pairs of spheres farther apart than this share of their radii are not merged unless nothing else is left.
_REACH = 1.1


@njit(cache=True, nogil=True)
def merge_clusters(points, labels, clusters, count, ball, cells, corner, size):  # type: ignore[no-untyped-def]
    """Merge the clusters of points (P, 3) with labels (P,) down to `count`; spheres (count, 4) that enclose them.

    `ball` (Q, 3): points spread evenly over the unit ball. `cells` (X, Y, Z), `corner`, `size`: where the shape is.
    """
    spheres, costs = np.empty((clusters, 4)), np.zeros(clusters)
    alive = np.zeros(clusters, dtype=np.bool_)
    members = np.empty(2 * len(points), dtype=np.int64)
    trial = np.empty(4)
    merges = np.full((clusters, clusters), np.inf)
    left = 0
    for a in range(clusters):
        used = _members(labels, a, members)
        if used > 0:
            alive[a] = True
            left += 1
            _enclose(points, members, used, spheres[a])
            costs[a] = _outside(spheres[a], ball, cells, corner, size)
    for a in range(clusters):
        for b in range(a):
            if alive[a] and alive[b] and _touch(spheres[a], spheres[b]):
                cost = _merged(points, labels, a, b, members, trial, ball, cells, corner, size)
                merges[a, b] = cost - costs[a] - costs[b]
    while left > count:
        best, first, second = np.inf, -1, -1
        for a in range(clusters):
            for b in range(a):
                if merges[a, b] < best:
                    best, first, second = merges[a, b], a, b
        if first < 0:
            for a in range(clusters):
                for b in range(a):
                    if alive[a] and alive[b]:
                        squared = 0.0
                        for axis in range(3):
                            squared += (spheres[a, axis] - spheres[b, axis]) ** 2
                        if squared < best:
                            best, first, second = squared, a, b
        for i in range(len(labels)):
            if labels[i] == second:
                labels[i] = first
        alive[second] = False
        left -= 1
        for a in range(clusters):
            merges[max(a, second), min(a, second)] = np.inf
            merges[max(a, first), min(a, first)] = np.inf
        _enclose(points, members, _members(labels, first, members), spheres[first])
        costs[first] = _outside(spheres[first], ball, cells, corner, size)
        for a in range(clusters):
            if a != first and alive[a] and _touch(spheres[a], spheres[first]):
                cost = _merged(points, labels, first, a, members, trial, ball, cells, corner, size)
                merges[max(a, first), min(a, first)] = cost - costs[first] - costs[a]
    return spheres[alive]


@njit(cache=True, nogil=True)
def rate_spheres(points, centers, radii, ball, cells, corner, size):  # type: ignore[no-untyped-def]
    """What each sphere is worth and what it costs.

    Returns:
        worth (N,): sum of how far outside the others the points are that it alone covers; costs (N,): volume that
        only it holds and that is outside the shape; labels (P,): the sphere in which each point is deepest.
    """
    count = len(radii)
    worth, costs = np.zeros(count), np.zeros(count)
    labels = np.empty(len(points), dtype=np.int64)
    for i in range(len(points)):
        first, second = np.inf, np.inf
        for k in range(count):
            squared = 0.0
            for axis in range(3):
                squared += (points[i, axis] - centers[k, axis]) ** 2
            gap = math.sqrt(squared) - radii[k]
            if gap < first:
                first, second = gap, first
                labels[i] = k
            else:
                second = min(second, gap)
        if second > 0.0 and count > 1:
            worth[labels[i]] += second - max(first, 0.0)
    for k in range(count):
        own = 0
        for i in range(len(ball)):
            x, y, z = (
                centers[k, 0] + radii[k] * ball[i, 0],
                centers[k, 1] + radii[k] * ball[i, 1],
                centers[k, 2] + radii[k] * ball[i, 2],
            )
            if _in_shape(x, y, z, cells, corner, size):
                continue
            alone = True
            for j in range(count):
                if (
                    j != k
                    and (x - centers[j, 0]) ** 2 + (y - centers[j, 1]) ** 2 + (z - centers[j, 2]) ** 2 < radii[j] ** 2
                ):
                    alone = False
                    break
            own += alone
        costs[k] = own / len(ball) * radii[k] ** 3
    return worth, costs, labels


@njit(cache=True, nogil=True)
def _merged(points, labels, a, b, members, sphere, ball, cells, corner, size):  # type: ignore[no-untyped-def]
    used = _members(labels, a, members)
    used += _members(labels, b, members[used:])
    _enclose(points, members, used, sphere)
    return _outside(sphere, ball, cells, corner, size)


@njit(cache=True, nogil=True)
def _members(labels, k, members):  # type: ignore[no-untyped-def]
    used = 0
    for i in range(len(labels)):
        if labels[i] == k:
            members[used] = i
            used += 1
    return used


@njit(cache=True, nogil=True)
def _enclose(points, members, used, sphere):  # type: ignore[no-untyped-def]
    """A sphere around points, nearly the smallest (Badoiu and Clarkson 2003)."""
    center = np.zeros(3)
    for i in range(used):
        center += points[members[i]] / used
    best = np.inf
    for step in range(_ENCLOSING_STEPS):
        farthest, index = -1.0, 0
        for i in range(used):
            squared = 0.0
            for axis in range(3):
                squared += (points[members[i], axis] - center[axis]) ** 2
            if squared > farthest:
                farthest, index = squared, members[i]
        if farthest < best:
            best = farthest
            sphere[:3] = center
        center += (points[index] - center) / (step + 2.0)
    sphere[3] = math.sqrt(best) + 1e-3


@njit(cache=True, nogil=True)
def _touch(a, b):  # type: ignore[no-untyped-def]
    squared = (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2
    return squared <= (_REACH * (a[3] + b[3])) ** 2


@njit(cache=True, nogil=True)
def _outside(sphere, ball, cells, corner, size):  # type: ignore[no-untyped-def]
    """Volume of a sphere outside the shape, in units of 4π/3."""
    outside = 0
    for i in range(len(ball)):
        x, y, z = (
            sphere[0] + sphere[3] * ball[i, 0],
            sphere[1] + sphere[3] * ball[i, 1],
            sphere[2] + sphere[3] * ball[i, 2],
        )
        outside += not _in_shape(x, y, z, cells, corner, size)
    return outside / len(ball) * sphere[3] ** 3


@njit(cache=True, nogil=True)
def _in_shape(x, y, z, cells, corner, size):  # type: ignore[no-untyped-def]
    i, j, k = math.floor((x - corner[0]) / size), math.floor((y - corner[1]) / size), math.floor((z - corner[2]) / size)
    if i < 0 or j < 0 or k < 0 or i >= cells.shape[0] or j >= cells.shape[1] or k >= cells.shape[2]:
        return False
    return cells[int(i), int(j), int(k)]
