"""Clouds made ready to be drawn: fewer points, and how far apart they are."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array


def thinned(cloud: PointCloud, count: int) -> PointCloud:
    """The finite points of a cloud, at most so many: for clouds of one size always the same rows."""
    finite = cloud.finite()
    if len(finite) <= count:
        return finite
    # Not every n-th point, which would draw stripes into the rows of a depth picture.
    return finite.select(np.random.default_rng(0).choice(len(finite), count, replace=False, shuffle=False))


def typical_spacing(points: Array, neighbours: int = 4) -> float:
    """Median distance [m] from the last of so many neighbours, a point itself among them, over a sample of points."""
    from scipy.spatial import KDTree

    if len(points) < 2:
        return 1e-3
    sample = points[:: max(len(points) // 500, 1)]
    distances, _ = KDTree(points).query(sample, k=min(neighbours, len(points)))
    return max(float(np.median(distances[:, -1])), 1e-5)
