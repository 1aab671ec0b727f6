"""How far an object has moved between two looks at it, of which each may have missed parts."""

from __future__ import annotations

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Faces that slide along themselves stay where they were: a moved box shows in the leading faces only.
_SHARE = 0.85


def object_displacement(before: Array, after: Array) -> float:
    """A distance that is small unless the object moved [m].

    The distance within which 85 % of the points of one look have a neighbour in the other, taken in both directions;
    the smaller one counts. An arm in the view hides points, so that the earlier look has some without a neighbour, or
    adds some; a moved object has points without a neighbour in both.

    Args:
        before, after: (N, 3) and (M, 3) points, same frame.

    Raises:
        InvalidInputError: no points, or points that are not finite.
    """
    from scipy.spatial import cKDTree

    clouds = []
    for name, points in (("before", before), ("after", after)):
        cloud = np.asarray(points, dtype=np.float64)
        if cloud.ndim != 2 or cloud.shape[1] != 3 or len(cloud) == 0 or not np.isfinite(cloud).all():
            raise InvalidInputError(name, f"shape {cloud.shape}", "finite numbers of shape (N, 3), N at least 1")
        clouds.append(cloud)
    there = cKDTree(clouds[0]).query(clouds[1])[0]
    back = cKDTree(clouds[1]).query(clouds[0])[0]
    return float(min(np.quantile(there, _SHARE), np.quantile(back, _SHARE)))
