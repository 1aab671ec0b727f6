"""Support values and points of one superovoid in many directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.support import support_point


def support_points(parameters: Array, directions: ArrayLike) -> tuple[Array, Array]:
    """Support values (N,) per unit direction and support points (N, 3) [m] in directions (N, 3) of any length.

    Raises:
        InvalidInputError: directions of another shape, zero or not finite.
    """
    ways = np.array(directions, dtype=np.float64, order="C")
    if ways.ndim != 2 or ways.shape[1] != 3:
        raise InvalidInputError("directions", f"shape {ways.shape}", "shape (N, 3)")
    # Scaled first, so that no direction's square vanishes or overflows.
    largest = np.abs(ways).max(axis=1, keepdims=True, initial=0.0)
    if not np.isfinite(largest).all() or (largest == 0.0).any():
        raise InvalidInputError("directions", "a direction that is zero or not finite", "finite vectors of some length")
    ways /= largest
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    values, points = np.empty(len(ways)), np.empty_like(ways)
    _support_all(parameters, ways, values, points)
    return values, points


@njit(cache=True, nogil=True)
def _support_all(parameters, directions, values, points):  # type: ignore[no-untyped-def]
    for i in range(len(directions)):
        value, x, y, z = support_point(parameters, directions[i, 0], directions[i, 1], directions[i, 2])
        values[i], points[i, 0], points[i, 1], points[i, 2] = value, x, y, z
