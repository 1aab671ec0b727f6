"""K-means centres of a cloud, which the paper takes start positions from."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from morphit_ros.geometry.transforms import Array


def cluster_centers(points: Array, count: int, rng: np.random.Generator, iterations: int = 100) -> Array:
    """(count, 3) centres by Lloyd's iteration from random points, until none moves by more than 0.1 mm.

    Args:
        points: (N, 3) [m].
        count: number of clusters, at most N are made.
        rng: source of randomness.
        iterations: at most.
    """
    centers: Array = points[rng.choice(len(points), size=min(count, len(points)), replace=False)]
    for _ in range(iterations):
        nearest = cdist(points, centers).argmin(axis=1)
        moved = centers.copy()
        for k in range(len(centers)):
            members = nearest == k
            moved[k] = points[members].mean(axis=0) if members.any() else points[rng.integers(len(points))]
        step = float(np.linalg.norm(moved - centers, axis=1).max())
        centers = moved
        if step < 1e-4:
            break
    return centers
