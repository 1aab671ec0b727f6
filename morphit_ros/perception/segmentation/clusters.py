"""Objects as connected sets of points, and the concave seams at which they may touch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.spatial_hash import adjacent_ranges, cells_around, connected_components
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import ObjectConfig

Rows = NDArray[np.int64]

# A part between seams counts as a possible object from this share of its cluster on.
_LEAST_SHARE = 0.2
# Seams are looked for among points this far apart, linked over this distance; parts of the link distance.
_SEAM_VOXEL, _SEAM_LINK = 0.4, 0.7


def find_clusters(points: Array, config: ObjectConfig) -> list[Rows]:
    """Rows of each set of points that links of at most the link distance connect, largest first.

    Args:
        points: (N, 3) above the table [m].
        config: link distance.
    """
    if len(points) == 0:
        return []
    return _groups(connected_components(points, config.link_distance))


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

    # Creases are wider than the voxels of the cloud: a thinner copy shows them as well.
    thin, directions, _, _ = merge_views(points, normals, _SEAM_VOXEL * config.link_distance)
    grid = cells_around(thin, config.link_distance)
    # Across a crease whose normals turn by θ within the neighbourhood, the mean over all directions is about θ / 4.
    smooth = thin[_mean_concavity(grid, directions[grid.order]) < 0.25 * config.seam_angle]
    if len(smooth) == 0:
        return [np.arange(len(points))]
    # Tighter links than between objects, so that they do not reach across the crease.
    groups = _groups(connected_components(smooth, _SEAM_LINK * config.link_distance))
    scale = len(thin) / len(points)
    least = max(config.min_points * scale, _LEAST_SHARE * len(thin))
    large = [group for group in groups if len(group) >= least]
    if len(large) < 2:
        return [np.arange(len(points))]
    owner = np.concatenate([np.full(len(group), number) for number, group in enumerate(large)])
    return _groups(owner[cKDTree(smooth[np.concatenate(large)]).query(points)[1]])


@njit(cache=True, nogil=True)
def _mean_concavity(grid, normals):  # type: ignore[no-untyped-def]
    """Mean of (n_i − n_j)·(p_j − p_i)/|p_j − p_i| over the outer half of each neighbourhood (N,), original order."""
    concavity = np.zeros(grid.order.size)
    ranges = np.empty((27, 2), np.int64)
    around = np.empty((6, 1 << 9))
    for cell in range(grid.packed.size):
        used = adjacent_ranges(grid, grid.packed[cell], ranges)
        size = 0
        for part in range(used):
            size += ranges[part, 1] - ranges[part, 0]
        if size > around.shape[1]:
            around = np.empty((6, 2 * size))
        size = 0
        for part in range(used):
            for other in range(ranges[part, 0], ranges[part, 1]):
                for axis in range(3):
                    around[axis, size] = grid.points[other, axis]
                    around[3 + axis, size] = normals[other, axis]
                size += 1
        for row in range(grid.starts[cell], grid.starts[cell + 1]):
            total, near = _turns(around, size, grid.points[row], normals[row], grid.size * grid.size)
            if near > 0.0:
                concavity[grid.order[row]] = total / near
    return concavity


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _turns(around, size, point, normal, squared):  # type: ignore[no-untyped-def]
    """Sum over the outer half of a neighbourhood, and number of its points; branch-free, for vector instructions."""
    px, py, pz = point[0], point[1], point[2]
    nx, ny, nz = normal[0], normal[1], normal[2]
    total = near = 0.0
    for other in range(size):
        dx, dy, dz = around[0, other] - px, around[1, other] - py, around[2, other] - pz
        distance = dx * dx + dy * dy + dz * dz
        # Close pairs say nothing: their direction is noise.
        outer = (distance <= squared) & (distance >= 0.25 * squared)
        turn = (nx - around[3, other]) * dx + (ny - around[4, other]) * dy + (nz - around[5, other]) * dz
        turn = turn if outer else 0.0
        distance = distance if outer else 1.0
        total += turn / np.sqrt(distance)
        near += 1.0 if outer else 0.0
    return total, near
