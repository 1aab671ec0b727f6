"""Fewer spheres over the same points: merging and bursting (Bradshaw and O'Sullivan 2004).

Each point has one sphere, which reaches at least that far. A sphere's error is how far it reaches out of the solid:
its radius less the depth of its centre below the surface.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit

# Neighbours that a sphere may be merged with.
_NEIGHBORS = 8
# Bursts are considered once no more than so many times the spheres asked for are left: they cost more than merges.
_BURST_FROM = 4
# Times that the pattern search for a centre tries all its directions, at most.
_SWEEPS = 30


@njit(cache=True, nogil=True)
def reduce_spheres(points, centers, radii, depth, low, spacing, wanted):  # type: ignore[no-untyped-def]
    """Centres (K, 3), K at most `wanted`, of spheres made of the given ones (M,) by merging and bursting.

    Args: points (P, 3) that stay covered; depth (X, Y, Z), low (3,) and spacing of the grid of the distance to the
    surface, negative outside.
    """
    grid = (depth, low, spacing)
    centers = centers.copy()
    count = len(centers)
    # The points of each sphere as a linked list: the first one's index, and after each point the next one's.
    heads, following = np.full(count, -1), np.full(len(points), -1)
    reach, depths = np.zeros(count), np.zeros(count)
    for i in range(len(points)):
        owner, least = 0, np.inf
        for k in range(count):
            gap = _distance(points[i], centers[k]) - radii[k]
            if gap < least:
                owner, least = k, gap
        following[i] = heads[owner]
        heads[owner] = i
        reach[owner] = max(reach[owner], least + radii[owner])
    left = 0
    for k in range(count):
        depths[k] = _depth_at(grid, centers[k])
        left += heads[k] >= 0
    partners, costs = np.full(count, -1), np.full(count, np.inf)
    for k in range(count):
        if heads[k] >= 0:
            partners[k], costs[k] = _best_partner(k, points, heads, following, centers, reach, grid)
    changed = np.zeros(count, dtype=np.bool_)
    while left > wanted:
        changed[:] = False
        merged = np.argmin(costs)
        burst, burst_cost = -1, np.inf
        if left <= _BURST_FROM * wanted and left > 1:
            burst, burst_cost = _cheapest_burst(points, heads, following, centers, reach, depths)
        bursting = burst_cost < costs[merged]
        gone = burst if bursting else partners[merged]
        point = heads[gone]
        heads[gone] = -1
        while point >= 0:
            after = following[point]
            taker = merged
            if bursting:
                taker, _ = _cheapest_other(points[point], gone, heads, centers, reach, depths)
            following[point] = heads[taker]
            heads[taker] = point
            changed[taker] = True
            point = after
        costs[gone] = np.inf
        changed[gone] = True
        left -= 1
        for k in range(count):
            if changed[k] and heads[k] >= 0:
                own = _gathered(points, heads, following, k, -1)
                start = centers[k]
                if not bursting:
                    start = _better_start(own, centers[k], centers[gone], grid)
                reach[k] = _centered(own, start, grid, centers[k])
                depths[k] = _depth_at(grid, centers[k])
        for k in range(count):
            if heads[k] >= 0 and (changed[k] or changed[partners[k]]):
                partners[k], costs[k] = _best_partner(k, points, heads, following, centers, reach, grid)
    return centers[heads >= 0]


@njit(cache=True, nogil=True)
def cover_all(points, centers, depth, low, spacing, rounds):  # type: ignore[no-untyped-def]
    """Centres and radii (N,) of spheres that cover all points (P, 3).

    Each point is left to the sphere that has the least error with it, and each sphere moves to where it has the
    least error with its points, so many times; the state with the least sum of errors is kept.
    """
    grid = (depth, low, spacing)
    centers = centers.copy()
    radii, depths = np.zeros(len(centers)), np.zeros(len(centers))
    best, best_centers, best_radii = np.inf, centers.copy(), radii.copy()
    following = np.empty(len(points), dtype=np.int64)
    for turn in range(rounds + 1):
        heads = np.full(len(centers), -1)
        radii[:] = 0.0
        for k in range(len(centers)):
            depths[k] = _depth_at(grid, centers[k])
        for i in range(len(points)):
            chosen, least = 0, np.inf
            for k in range(len(centers)):
                error = _distance(points[i], centers[k]) - depths[k]
                if error < least:
                    chosen, least = k, error
            radii[chosen] = max(radii[chosen], (least + depths[chosen]) * (1.0 + 1e-9))
            following[i] = heads[chosen]
            heads[chosen] = i
        total = 0.0
        for k in range(len(centers)):
            if heads[k] >= 0:
                total += radii[k] - depths[k]
        if total < best:
            best = total
            best_centers[:], best_radii[:] = centers, radii
        if turn == rounds:
            break
        for k in range(len(centers)):
            if heads[k] >= 0:
                _centered(_gathered(points, heads, following, k, -1), centers[k].copy(), grid, centers[k])
    return best_centers, best_radii


@njit(cache=True, nogil=True)
def _best_partner(k, points, heads, following, centers, reach, grid):  # type: ignore[no-untyped-def]
    """The neighbour with which sphere k makes the sphere of least error, and that error; (k, inf) if it is alone."""
    gaps = np.full(len(centers), np.inf)
    for other in range(len(centers)):
        if other != k and heads[other] >= 0:
            gaps[other] = _distance(centers[k], centers[other]) - reach[other]
    trial = np.empty(3)
    best, cost = k, np.inf
    for _ in range(_NEIGHBORS):
        other = int(np.argmin(gaps))
        if gaps[other] == np.inf:
            break
        gaps[other] = np.inf
        own = _gathered(points, heads, following, k, other)
        radius = _centered(own, _better_start(own, centers[k], centers[other], grid), grid, trial)
        error = radius - _depth_at(grid, trial)
        if error < cost:
            best, cost = other, error
    return best, cost


@njit(cache=True, nogil=True)
def _cheapest_burst(points, heads, following, centers, reach, depths):  # type: ignore[no-untyped-def]
    """The sphere whose points the others take at the least greatest error, and that error."""
    best, cost = -1, np.inf
    for k in range(len(centers)):
        worst = 0.0
        i = heads[k]
        while i >= 0 and worst < cost:
            _, error = _cheapest_other(points[i], k, heads, centers, reach, depths)
            worst = max(worst, error)
            i = following[i]
        if heads[k] >= 0 and worst < cost:
            best, cost = k, worst
    return best, cost


@njit(cache=True, nogil=True)
def _cheapest_other(point, gone, heads, centers, reach, depths):  # type: ignore[no-untyped-def]
    """The sphere other than `gone` that has the least error once it reaches a point, and that error."""
    chosen, least = -1, np.inf
    for k in range(len(centers)):
        if k == gone or heads[k] < 0:
            continue
        error = max(reach[k], _distance(point, centers[k])) - depths[k]
        if error < least:
            chosen, least = k, error
    return chosen, least


@njit(cache=True, nogil=True)
def _better_start(own, first, second, grid):  # type: ignore[no-untyped-def]
    """Of two centres and their middle the one with the least error over these points."""
    best, least = first, np.inf
    for center in (first, second, 0.5 * (first + second)):
        error = _reach(own, center) - _depth_at(grid, center)
        if error < least:
            best, least = center, error
    return best


@njit(cache=True, nogil=True)
def _centered(own, start, grid, center):  # type: ignore[no-untyped-def]
    """Write into `center` where a sphere around these points has the least error, and return its radius."""
    center[:] = start
    radius = _reach(own, center)
    error = radius - _depth_at(grid, center)
    step = 0.3 * radius
    trial = np.empty(3)
    for _ in range(_SWEEPS):
        if step < 0.02 * radius:
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
            other = reach - _depth_at(grid, trial)
            if other < error - 1e-3 * step:
                center[:], radius, error = trial, reach, other
                moved = True
        if not moved:
            step *= 0.5
    return radius


@njit(cache=True, nogil=True)
def _gathered(points, heads, following, first, second):  # type: ignore[no-untyped-def]
    """The points (K, 3) of one or two spheres; -1 for none."""
    size = 0
    for k in (first, second):
        i = heads[k] if k >= 0 else -1
        while i >= 0:
            size += 1
            i = following[i]
    own = np.empty((size, 3))
    size = 0
    for k in (first, second):
        i = heads[k] if k >= 0 else -1
        while i >= 0:
            own[size] = points[i]
            size += 1
            i = following[i]
    return own


@njit(cache=True, nogil=True)
def _depth_at(grid, point):  # type: ignore[no-untyped-def]
    """Distance of a point to the surface, negative outside, between the centres of eight voxels."""
    depth, low, spacing = grid
    ix, iy, iz = depth.shape
    x = min(max((point[0] - low[0]) / spacing - 0.5, 0.0), ix - 1.0)
    y = min(max((point[1] - low[1]) / spacing - 0.5, 0.0), iy - 1.0)
    z = min(max((point[2] - low[2]) / spacing - 0.5, 0.0), iz - 1.0)
    x0, y0, z0 = int(x), int(y), int(z)
    x1, y1, z1 = min(x0 + 1, ix - 1), min(y0 + 1, iy - 1), min(z0 + 1, iz - 1)
    x, y, z = x - x0, y - y0, z - z0
    near = (1.0 - y) * ((1.0 - z) * depth[x0, y0, z0] + z * depth[x0, y0, z1])
    near += y * ((1.0 - z) * depth[x0, y1, z0] + z * depth[x0, y1, z1])
    far = (1.0 - y) * ((1.0 - z) * depth[x1, y0, z0] + z * depth[x1, y0, z1])
    far += y * ((1.0 - z) * depth[x1, y1, z0] + z * depth[x1, y1, z1])
    return (1.0 - x) * near + x * far


@njit(cache=True, nogil=True)
def _reach(points, center):  # type: ignore[no-untyped-def]
    farthest = 0.0
    for i in range(len(points)):
        dx, dy, dz = points[i, 0] - center[0], points[i, 1] - center[1], points[i, 2] - center[2]
        farthest = max(farthest, dx * dx + dy * dy + dz * dz)
    return math.sqrt(farthest)


@njit(cache=True, nogil=True)
def _distance(a, b):  # type: ignore[no-untyped-def]
    dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    return math.sqrt(dx * dx + dy * dy + dz * dz)
