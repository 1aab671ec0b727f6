"""Objects that touch, taken apart where the surface between them is concave.

Source: Stein et al. 2014, "Convexity based object partitioning for robot applications": where two bodies touch, the
surface of both together turns inwards. Patches of surface take the place of their supervoxels, and the normals on both
sides of a pair are means over a window that reaches beyond a rounded crease, for normals of a cloud are smoothed over
one. What is concave itself, such as the inside of a bowl or the joint of a handle, may be taken apart as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Rows = NDArray[np.int64]

# Edge of a patch, and centres of patches this near are neighbours [m].
_CELL, _NEAR = 0.006, 0.011
# Normals of a side are averaged over this far from the middle of a pair, and not nearer to it than the second [m].
_WINDOW, _SKIP = 0.016, 0.004
# Parts are joined again along borders that turn by less than this share of the angle at which they were cut.
_JOINED = 0.6


class _Patches(NamedTuple):
    """Points of one cell whose normals point to the same side: centres (M, 3), normals, counts, and points' patch."""

    centers: Array
    normals: Array
    counts: Array
    of_point: Rows


def split_convex(points: Array, normals: Array, angle: float, least: int) -> list[Rows]:
    """Rows of each part of a cluster between concave creases, largest first; all rows are in one of them.

    Args:
        points: (N, 3) one cluster, a few millimetres apart [m].
        normals: (N, 3) outward unit normals.
        angle: by which the surface has to turn inwards at a crease [rad].
        least: smallest number of points of a part; what is smaller goes to the neighbour that it joins most smoothly.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    if len(points) < 2 * least:
        return [np.arange(len(points))]
    patches = _patches(points, normals)
    count = len(patches.centers)
    around = cKDTree(patches.centers).query_pairs(_WINDOW + 0.5 * _NEAR, output_type="ndarray")
    lengths = np.linalg.norm(patches.centers[around[:, 0]] - patches.centers[around[:, 1]], axis=1)
    pairs = around[lengths <= _NEAR]
    both = np.concatenate([around, around[:, ::-1], np.repeat(np.arange(count), 2).reshape(-1, 2)])
    both = both[np.argsort(both[:, 0], kind="stable")]
    starts = np.searchsorted(both[:, 0], np.arange(count + 1))
    turns = _turns(pairs, starts, both[:, 1].copy(), patches.centers, patches.normals, patches.counts)
    # A turn by θ is 2 sin θ/2 as the difference of two normals along the line between them.
    concave = turns > 2.0 * np.sin(0.5 * angle)
    crease = np.zeros(count, dtype=np.bool_)
    crease[pairs[concave].ravel()] = True
    smooth = pairs[~crease[pairs].any(axis=1)]
    links = coo_array((np.ones(len(smooth)), (smooth[:, 0], smooth[:, 1])), shape=(count, count))
    labels = connected_components(links, directed=False)[1]
    sizes = np.bincount(labels, patches.counts)
    owner = np.where((sizes[labels] >= least) & ~crease, labels, -1)
    if not (owner >= 0).any():
        return [np.arange(len(points))]
    owner = _joined(_grown(owner, pairs, turns), pairs, turns, 2.0 * np.sin(0.5 * _JOINED * angle))
    # Islands without any link go to what is nearest.
    owned = np.flatnonzero(owner >= 0)
    lost = np.flatnonzero(owner < 0)
    owner[lost] = owner[owned[cKDTree(patches.centers[owned]).query(patches.centers[lost])[1]]]
    found = owner[patches.of_point]
    groups = [np.flatnonzero(found == label) for label in np.unique(found)]
    return sorted(groups, key=lambda rows: (-len(rows), rows[0]))


def _patches(points: Array, normals: Array) -> _Patches:
    axis = np.abs(normals).argmax(axis=1)
    side = 2 * axis + (normals[np.arange(len(normals)), axis] > 0.0)
    cells = np.column_stack([np.floor(points / _CELL).astype(np.int64), side])
    _, of_point, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    of_point = of_point.reshape(-1)
    centers, sums = (
        np.stack([np.bincount(of_point, rows[:, k]) for k in range(3)], axis=1) for rows in (points, normals)
    )
    lengths = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    return _Patches(centers / counts[:, None], sums / lengths, counts.astype(np.float64), of_point)


def _grown(owner: Rows, pairs: Rows, turns: Array) -> Rows:
    """Owners of patches, with those without one given to a neighbour's, over the least concave link first."""
    owner = owner.copy()
    while True:
        rows = np.flatnonzero((owner[pairs[:, 0]] < 0) != (owner[pairs[:, 1]] < 0))
        if not len(rows):
            return owner
        # Of several that reach one patch the last counts.
        ends = pairs[rows[np.argsort(-turns[rows], kind="stable")]]
        free = owner[ends[:, 0]] < 0
        owner[np.where(free, ends[:, 0], ends[:, 1])] = owner[np.where(free, ends[:, 1], ends[:, 0])]


def _joined(owner: Rows, pairs: Rows, turns: Array, least: float) -> Rows:
    """Owners of patches, without borders that turn inwards by less than a bound in the mean."""
    owner = owner.copy()
    while True:
        ends = owner[pairs]
        rows = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (ends >= 0).all(axis=1))
        if not len(rows):
            return owner
        borders, number = np.unique(np.sort(ends[rows], axis=1), axis=0, return_inverse=True)
        number = number.reshape(-1)
        means = np.bincount(number, turns[rows]) / np.bincount(number)
        flattest = int(means.argmin())
        if means[flattest] >= least:
            return owner
        owner[owner == borders[flattest, 1]] = borders[flattest, 0]


@njit(cache=True, nogil=True)
def _turns(pairs, starts, around, centers, normals, counts):  # type: ignore[no-untyped-def]
    """(n_a − n_b)·(p_b − p_a)/|p_b − p_a| of each pair (K,): positive where the surface turns inwards."""
    found = np.zeros(len(pairs))
    middle, line, offset = np.empty(3), np.empty(3), np.empty(3)
    sums = np.empty((2, 3))
    for row in range(len(pairs)):
        first, second = pairs[row, 0], pairs[row, 1]
        length = 0.0
        for axis in range(3):
            line[axis] = centers[second, axis] - centers[first, axis]
            middle[axis] = 0.5 * (centers[second, axis] + centers[first, axis])
            length += line[axis] * line[axis]
        length = max(np.sqrt(length), 1e-9)
        sums[:] = 0.0
        for side in range(2):
            center = first if side == 0 else second
            for other in range(starts[center], starts[center + 1]):
                patch = around[other]
                along, square = 0.0, 0.0
                for axis in range(3):
                    offset[axis] = centers[patch, axis] - middle[axis]
                    along += offset[axis] * line[axis] / length
                    square += offset[axis] * offset[axis]
                beside = np.sqrt(max(square - along * along, 0.0))
                beyond = -along if side == 0 else along
                if square > _WINDOW * _WINDOW or beside > 0.6 * _WINDOW or beyond <= _SKIP:
                    continue
                for axis in range(3):
                    sums[side, axis] += counts[patch] * normals[patch, axis]
        total = 0.0
        for side in range(2):
            center = first if side == 0 else second
            size = np.sqrt(sums[side, 0] ** 2 + sums[side, 1] ** 2 + sums[side, 2] ** 2)
            for axis in range(3):
                # Where there is nothing beyond, as at an outline, the patch stands for its side.
                normal = sums[side, axis] / size if size > 1e-9 else normals[center, axis]
                total += (normal if side == 0 else -normal) * line[axis] / length
        found[row] = total
    return found
