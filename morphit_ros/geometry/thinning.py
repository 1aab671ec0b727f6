"""Even thinning of a cloud: no two kept points of one side closer than a distance that gives the wanted number.

A uniform draw leaves gaps and, of a stem or a rim, sometimes nothing. Here points are visited in a seeded random
order and kept unless a kept one lies nearer than the disk radius (Poisson-disk sampling by dart throwing). Only
distances decide, so the result moves with the object; points whose normals differ by more than a hundred degrees
don't push each other out, so a thin wall keeps both its sides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import EMPTY, find_slot, pack
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Index = NDArray[np.int64]

# A cloud is first drawn down to this many points for each one wanted; more cannot be told apart afterwards.
OVERSAMPLING = 8
# Points per area that dart throwing keeps at most: 0.547 of the area in disks of half the distance (Feder 1980).
_JAMMING = 0.547 * 4.0 / math.pi


def finite_rows(points: Array) -> tuple[Index, Array]:
    """Rows of the finite points of (N, 3), and their lower and upper corner (2, 3); one pass."""
    return _finite_rows(np.ascontiguousarray(points))


def thin_evenly(points: Array, normals: Array | None, count: int, rng: np.random.Generator) -> Index:
    """Sorted rows of at most `count` evenly spread points.

    Args:
        points: (N, 3) finite points [m].
        normals: (N, 3), or None: then distance alone decides.
        count: wanted number; between about 0.85 and 1 of it is returned, all rows if N is not larger.
        rng: source of the order in which points are visited.
    """
    if len(points) <= count:
        return np.arange(len(points))
    rows = np.arange(len(points))
    if len(points) > OVERSAMPLING * count:
        # With repetition is as good here and takes no permutation of a million rows.
        rows = np.unique(rng.integers(len(points), size=OVERSAMPLING * count))
    order = rows[rng.permutation(len(rows))]
    visited = np.ascontiguousarray(points[order])
    facing = np.zeros((len(order), 3)) if normals is None else np.ascontiguousarray(normals[order])
    # Of points that lie close together (every third one) the area is about that of the disks they can keep apart.
    radius = _first_radius(visited, count)
    kept = np.empty(len(order), np.int64)
    for _ in range(8):
        number = _throw_darts(visited, facing, radius, kept)
        if 0.85 * count <= number <= count or number == 0:
            break
        radius *= math.sqrt(number / (0.93 * count))
    return np.sort(order[kept[: min(number, count)]])


def _first_radius(points: Array, count: int) -> float:
    """A disk radius [m] that leaves about `count` points, from the area that a sample of the points covers."""
    sample = points[: min(len(points), 2 * count)]
    probe = sample[: min(100, len(sample))]
    distances = _nearest_distances(sample, probe, 6)
    density = 5.0 / (math.pi * max(float(np.median(distances)) ** 2, 1e-14))
    return math.sqrt(_JAMMING * len(sample) / (0.93 * count) / density)


@njit(cache=True, nogil=True)
def _finite_rows(points: Array) -> tuple[Index, Array]:
    rows = np.empty(points.shape[0], np.int64)
    corners = np.empty((2, 3))
    corners[0] = np.inf
    corners[1] = -np.inf
    found = 0
    for row in range(points.shape[0]):
        x, y, z = points[row, 0], points[row, 1], points[row, 2]
        if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
            continue
        rows[found] = row
        found += 1
        for axis in range(3):
            value = points[row, axis]
            if value < corners[0, axis]:
                corners[0, axis] = value
            if value > corners[1, axis]:
                corners[1, axis] = value
    return rows[:found].copy(), corners


@njit(cache=True, nogil=True)
def _nearest_distances(points: Array, probe: Array, neighbor: int) -> Array:
    """Distance (P,) of each probe point to its `neighbor`-th nearest point, itself included."""
    result = np.empty(probe.shape[0])
    best = np.empty(neighbor)
    for p in range(probe.shape[0]):
        best[:] = np.inf
        for i in range(points.shape[0]):
            dx, dy, dz = points[i, 0] - probe[p, 0], points[i, 1] - probe[p, 1], points[i, 2] - probe[p, 2]
            squared = dx * dx + dy * dy + dz * dz
            if squared < best[neighbor - 1]:
                place = neighbor - 1
                while place > 0 and best[place - 1] > squared:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = squared
        last = neighbor - 1
        while last > 0 and not np.isfinite(best[last]):
            last -= 1
        result[p] = math.sqrt(best[last])
    return result


@njit(cache=True, nogil=True)
def _throw_darts(points: Array, normals: Array, radius: float, kept: Index) -> int:
    """Rows of the points that are kept, in the order given, into `kept`; returns their number."""
    count = points.shape[0]
    capacity = 1 << 10
    while capacity < 2 * count:
        capacity *= 2
    keys = np.full(capacity, EMPTY, np.int64)
    heads = np.empty(capacity, np.int64)
    follower = np.empty(count, np.int64)
    inverse = 1.0 / max(radius, 1e-7)
    squared = radius * radius
    number = 0
    for row in range(count):
        ix = np.int64(np.floor(points[row, 0] * inverse))
        iy = np.int64(np.floor(points[row, 1] * inverse))
        iz = np.int64(np.floor(points[row, 2] * inverse))
        free = True
        # The own cell first: it mostly decides.
        for turn in range(28):
            dx, dy, dz = 0, 0, 0
            if turn > 0:
                dx, dy, dz = (turn - 1) // 9 - 1, ((turn - 1) // 3) % 3 - 1, (turn - 1) % 3 - 1
                if dx == 0 and dy == 0 and dz == 0:
                    continue
            slot = find_slot(keys, pack(ix + dx, iy + dy, iz + dz))
            if keys[slot] == EMPTY:
                continue
            other = heads[slot]
            while other >= 0:
                gap = 0.0
                agreement = 0.0
                for axis in range(3):
                    gap += (points[row, axis] - points[other, axis]) ** 2
                    agreement += normals[row, axis] * normals[other, axis]
                if gap < squared and agreement > -0.2:
                    free = False
                    break
                other = follower[other]
            if not free:
                break
        if free:
            slot = find_slot(keys, pack(ix, iy, iz))
            if keys[slot] == EMPTY:
                keys[slot] = pack(ix, iy, iz)
                heads[slot] = -1
            follower[row] = heads[slot]
            heads[slot] = row
            kept[number] = row
            number += 1
    return number


def point_spacing(points: Array, low: float = 0.002, high: float = 0.006) -> float:
    """Radius [m] that a point stands for: 1.5 times the usual distance to the fourth neighbour, within bounds."""
    # Every so manyth point: no draw, so that the spacing doesn't depend on the seed.
    probe = points[:: max(1, len(points) // 100)]
    distances = _nearest_distances(np.ascontiguousarray(points), np.ascontiguousarray(probe), min(5, len(points)))
    return float(np.clip(1.5 * np.median(distances), low, high))


def surface_noise(points: Array, normals: Array, neighbors: int = 6) -> float:
    """Usual deviation [m] of points from the tangent planes of their neighbours, along the normal."""
    from scipy.spatial import cKDTree

    probe = np.arange(0, len(points), max(1, len(points) // 200))
    _, rows = cKDTree(points).query(points[probe], k=min(neighbors, len(points)))
    offsets = np.einsum("pnk,pk->pn", points[rows] - points[probe, None], normals[probe])
    return float(np.median(offsets.std(axis=1)))
