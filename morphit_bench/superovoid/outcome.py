"""What goes into and comes out of both published solvers."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform
from morphit_ros.superovoid.distances.min_distance import DistanceResult
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.queries import (
    COLUMNS,
    DISTANCE,
    FAILED,
    ITERATIONS,
    LOWER,
    NORMAL,
    POINTS,
    STATUS,
    UNCERTIFIED,
    UPPER,
)
from morphit_ros.superovoid.shapes.superovoid import Superovoid


def checked_pair(
    a: Shape, T_world_a: ArrayLike, b: Shape, T_world_b: ArrayLike, jacobian: str
) -> tuple[Array, Array, Array, Array, Array, bool]:
    """Parameters of both, T_world_a, rotation and translation of T_a_b, and whether the Jacobian is analytic."""
    for name, shape in (("a", a), ("b", b)):
        if not isinstance(shape, Superovoid):
            raise InvalidInputError(name, type(shape).__name__, "a Superovoid", "Use method='certified' for others.")
    assert isinstance(a, Superovoid) and isinstance(b, Superovoid)
    if jacobian not in ("difference", "analytic"):
        raise InvalidInputError("jacobian", repr(jacobian), "'difference' or 'analytic'")
    T1, T2 = check_transform(T_world_a, "T_world_a"), check_transform(T_world_b, "T_world_b")
    T = invert_transform(T1) @ T2
    rotation, translation = np.ascontiguousarray(T[:3, :3]), np.ascontiguousarray(T[:3, 3])
    return a.parameters, b.parameters, T1, rotation, translation, jacobian == "analytic"


def published_result(T1: Array, p: Array, q: Array, distance: float, steps: int, converged: bool) -> DistanceResult:
    """A result in the world's frame from points of frame 1; bounds are infinite, for these solvers have none."""
    row = np.zeros(COLUMNS)
    converged = converged and math.isfinite(distance)
    row[DISTANCE] = distance if converged else math.nan
    row[LOWER], row[UPPER] = -math.inf, math.inf
    row[ITERATIONS] = steps
    row[STATUS] = UNCERTIFIED if converged else FAILED
    row[POINTS : POINTS + 6] = math.nan
    row[NORMAL : NORMAL + 3] = math.nan
    if converged:
        row[POINTS : POINTS + 3] = T1[:3, :3] @ p + T1[:3, 3]
        row[POINTS + 3 : POINTS + 6] = T1[:3, :3] @ q + T1[:3, 3]
        along = T1[:3, :3] @ (q - p) * math.copysign(1.0, distance)
        length = float(np.linalg.norm(along))
        row[NORMAL : NORMAL + 3] = along / length if length > 0.0 else math.nan
    return DistanceResult.from_row(row)
