"""Objects as connected sets of points, and the concave seams at which they may touch."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import adjacent_ranges, cells_around, connected_components, count_neighbors
from morphit_ros.geometry.transforms import Array
from morphit_ros.perception.configuration import ObjectConfig

Rows = NDArray[np.int64]

# A part between seams counts as a possible object from this share of its cluster on.
_LEAST_SHARE = 0.2


def find_clusters(points: Array, config: ObjectConfig) -> list[Rows]:
    """Rows of each cluster, largest first; sparse points and small clusters are dropped.

    Args:
        points: (N, 3) above the table [m].
        config: link distance, least density and size.
    """
    if len(points) == 0:
        return []
    grid = cells_around(points, config.link_distance)
    dense = np.flatnonzero(count_neighbors(grid, config.denoise_neighbors) >= config.denoise_neighbors)
    if len(dense) == 0:
        return []
    groups = _groups(connected_components(cells_around(points[dense], config.link_distance)))
    return [dense[group] for group in groups if len(group) >= config.min_points]


def _groups(labels: Rows) -> list[Rows]:
    """Rows of each label, largest group first; equal ones by first row."""
    order = np.argsort(labels, kind="stable")
    borders = np.flatnonzero(np.diff(labels[order])) + 1
    return sorted(np.split(order, borders), key=lambda rows: (-len(rows), rows[0]))


def split_at_seams(points: Array, normals: Array, config: ObjectConfig) -> list[Rows]:
    """Rows of the large parts that concave seams separate; one part where there is no such seam.

    Where two convex bodies touch, the surface is concave (as in Stein et al. 2014, "Convexity based
    object partitioning"). Points on a concave crease are taken away; what stays connected without
    them is a part. Small parts and the crease itself go to the nearest large part. Bodies that
    share a smooth face, such as two boxes of equal height side by side, have no seam around them
    and stay one part.

    Args:
        points: (N, 3) one cluster [m].
        normals: (N, 3) outward unit normals.
        config: link distance, seam angle, least size.
    """
    from scipy.spatial import cKDTree

    whole = [np.arange(len(points))]
    grid = cells_around(points, config.link_distance)
    # Across a crease whose normals turn by θ within the neighbourhood, the mean over all directions is about θ / 4.
    smooth = np.flatnonzero(_mean_concavity(grid, normals[grid.order]) < 0.25 * config.seam_angle)
    if len(smooth) == 0:
        return whole
    # Tighter links than between objects, so that they do not reach across the crease.
    groups = _groups(connected_components(cells_around(points[smooth], 0.6 * config.link_distance)))
    least = max(config.min_points, _LEAST_SHARE * len(points))
    large = [smooth[group] for group in groups if len(group) >= least]
    if len(large) < 2:
        return whole
    owner = np.full(len(points), -1)
    for number, rows in enumerate(large):
        owner[rows] = number
    loose = np.flatnonzero(owner < 0)
    if len(loose):
        owned = np.flatnonzero(owner >= 0)
        owner[loose] = owner[owned[cKDTree(points[owned]).query(points[loose])[1]]]
    return _groups(owner)


@njit(cache=True)
def _mean_concavity(grid, normals):  # type: ignore[no-untyped-def]
    """Mean of (n_i − n_j)·(p_j − p_i)/|p_j − p_i| over the outer half of each neighbourhood (N,), original order."""
    concavity = np.zeros(grid.order.size)
    ranges = np.empty((27, 2), np.int64)
    squared = grid.size * grid.size
    for cell in range(grid.packed.size):
        used = adjacent_ranges(grid, grid.packed[cell], ranges)
        for row in range(grid.starts[cell], grid.starts[cell + 1]):
            total = 0.0
            near = 0
            for part in range(used):
                for other in range(ranges[part, 0], ranges[part, 1]):
                    dx = grid.points[other, 0] - grid.points[row, 0]
                    dy = grid.points[other, 1] - grid.points[row, 1]
                    dz = grid.points[other, 2] - grid.points[row, 2]
                    distance = dx * dx + dy * dy + dz * dz
                    # Close pairs say nothing: their direction is noise.
                    if distance > squared or distance < 0.25 * squared:
                        continue
                    total += (
                        (normals[row, 0] - normals[other, 0]) * dx
                        + (normals[row, 1] - normals[other, 1]) * dy
                        + (normals[row, 2] - normals[other, 2]) * dz
                    ) / np.sqrt(distance)
                    near += 1
            if near > 0:
                concavity[grid.order[row]] = total / near
    return concavity
