"""Outward normals of an object cloud: the check of given ones, and an estimate where they fail.

Normals that point away from the centroid are wrong on concave parts, normals of a merge of two
views are often of mixed sign. The estimate takes the line from the local plane and its sign from
visibility: a point is seen from outside, so its normal has a positive component towards the
directions from which hidden-point removal (Katz et al., 2007) finds it visible.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial import ConvexHull, QhullError, cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


def normals_point_outwards(points: Array, normals: Array, least_fraction: float = 0.6) -> bool:
    """Whether normals agree with the one place where the outside is certain: the convex hull.

    Args:
        points, normals: (N, 3).
        least_fraction: share of the hull's corners that must have outward normals. Rims of cups, where
            inner and outer wall meet in one point, fail it in good clouds; a merge of mixed signs has half.
    """
    try:
        corners = ConvexHull(points).vertices
    except QhullError:
        # A flat cloud has no inside: either side may be called outside.
        return True
    outwards = points[corners] - points.mean(axis=0)
    agreeing = np.einsum("ij,ij->i", outwards, normals[corners]) > 0.0
    return float(agreeing.mean()) >= least_fraction


def estimate_normals(points: Array, neighbors: int = 16, views: int = 20) -> Array:
    """Outward unit normals (N, 3) of the local planes.

    Args:
        points: (N, 3) [m].
        neighbors: points of a local plane.
        views: directions from which visibility is judged.

    Raises:
        InvalidInputError: fewer than four points.
    """
    if len(points) < 4:
        raise InvalidInputError("cloud", f"{len(points)} points", "at least 4 to estimate normals")
    _, neighborhood = cKDTree(points).query(points, k=min(neighbors, len(points)))
    offsets = points[neighborhood] - points[neighborhood].mean(axis=1, keepdims=True)
    normals: Array = np.linalg.eigh(np.einsum("nki,nkj->nij", offsets, offsets))[1][:, :, 0]
    sees = _visible_directions(points, views)
    votes = np.einsum("ij,ij->i", normals, sees)
    # A point seen from nowhere (or edge-on) takes the side of its neighbours, else that of the centroid.
    unsure = np.abs(votes) < 0.2
    signs = np.where(votes < 0.0, -1.0, 1.0)
    normals *= signs[:, None]
    agreement = np.einsum("nki,ni->nk", normals[neighborhood], normals)
    sure = ~unsure[neighborhood]
    flips = unsure & ((agreement * sure).sum(axis=1) < 0.0)
    normals[flips] *= -1.0
    return normals


def smooth_normals(points: Array, normals: Array, radius: float) -> Array:
    """Normals averaged over neighbours within a radius that face the same way (within 60°)."""
    pairs = cKDTree(points).query_pairs(radius, output_type="ndarray")
    first, second = pairs[:, 0], pairs[:, 1]
    same = np.einsum("ij,ij->i", normals[first], normals[second]) > 0.5
    first, second = first[same], second[same]
    total = normals.copy()
    for axis in range(3):
        total[:, axis] += np.bincount(first, weights=normals[second, axis], minlength=len(points))
        total[:, axis] += np.bincount(second, weights=normals[first, axis], minlength=len(points))
    smoothed: Array = total / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
    return smoothed


def _visible_directions(points: Array, views: int) -> Array:
    """(N, 3) mean direction from which each point is visible; short where it rarely is."""
    center = points.mean(axis=0)
    extent = float(np.linalg.norm(points - center, axis=1).max())
    sees = np.zeros_like(points)
    count = np.zeros(len(points))
    golden = math.pi * (3.0 - math.sqrt(5.0))
    for k in range(views):
        height = 1.0 - 2.0 * (k + 0.5) / views
        ring = math.sqrt(1.0 - height * height)
        direction = np.array([ring * math.cos(golden * k), ring * math.sin(golden * k), height])
        offsets = points - (center + 4.0 * extent * direction)
        lengths = np.linalg.norm(offsets, axis=1, keepdims=True)
        # Spherical flipping; the radius trades noise against shallow concavities.
        flipped = offsets + 2.0 * (60.0 * extent - lengths) * offsets / lengths
        try:
            hull = ConvexHull(np.vstack([flipped, np.zeros(3)]))
        except QhullError:
            continue
        visible = hull.vertices[hull.vertices < len(points)]
        sees[visible] += direction
        count[visible] += 1.0
    seen: Array = sees / np.maximum(count, 1.0)[:, None]
    return seen
