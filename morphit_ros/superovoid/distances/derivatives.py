"""Derivative of a distance with respect to the poses of both shapes, and to joint positions.

Moving a shape by a small rigid motion changes the distance d = n·(q - p) to first order only through the motion of
the closest points as if they were fixed to the shapes: the distance is stationary in where on the surfaces they are,
and in n (envelope theorem). This holds in penetration as well, for a local optimum that isn't shared by two normals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.min_distance import DistanceResult, DistanceStatus


@dataclass(frozen=True, eq=False)
class DistanceDerivative:
    """First derivative of a signed distance.

    Twists are (linear, angular), (6,): velocity of the point of the shape that is at the reference point [m/s], and
    angular velocity [rad/s], both in the world's frame.

    Attributes:
        by_twist_a, by_twist_b: (6,) derivative by the twist of each shape; linear part without unit, angular in m.
    """

    by_twist_a: Array
    by_twist_b: Array


def distance_derivative(
    result: DistanceResult, reference_a: ArrayLike = (0.0, 0.0, 0.0), reference_b: ArrayLike = (0.0, 0.0, 0.0)
) -> DistanceDerivative:
    """Derivative of a result's distance by the twists of both shapes.

    Args:
        reference_a, reference_b: (3,) points in the world's frame that the twists refer to, such as the origins of
            the shapes' frames [m].

    Raises:
        InvalidInputError: a result without closest points, or a reference of another shape.
    """
    if result.status in (DistanceStatus.BEYOND, DistanceStatus.FAILED):
        raise InvalidInputError("result", f"status {result.status.value}", "a solved distance")
    p, q = result.points
    n = result.normal
    wrench_a = np.concatenate([n, np.cross(p - _point("reference_a", reference_a), n)])
    wrench_b = np.concatenate([n, np.cross(q - _point("reference_b", reference_b), n)])
    return DistanceDerivative(-wrench_a, wrench_b)


def joint_derivative(
    result: DistanceResult,
    jacobian_a: ArrayLike | None,
    jacobian_b: ArrayLike | None,
    reference_a: ArrayLike = (0.0, 0.0, 0.0),
    reference_b: ArrayLike = (0.0, 0.0, 0.0),
) -> Array:
    """Derivative (N,) of a result's distance by joint positions.

    Args:
        jacobian_a, jacobian_b: geometric Jacobians (6, N), linear rows first, of the points of both shapes' links that
            are at the references, in the world's frame; None for a shape that doesn't move.

    Raises:
        InvalidInputError: no Jacobian at all, or shapes that don't fit.
    """
    derivative = distance_derivative(result, reference_a, reference_b)
    total: Array | None = None
    for name, jacobian, wrench in (
        ("jacobian_a", jacobian_a, derivative.by_twist_a),
        ("jacobian_b", jacobian_b, derivative.by_twist_b),
    ):
        if jacobian is None:
            continue
        matrix = np.asarray(jacobian, dtype=np.float64)
        if matrix.ndim != 2 or len(matrix) != 6 or (total is not None and matrix.shape[1] != len(total)):
            raise InvalidInputError(name, f"shape {matrix.shape}", "geometric Jacobians (6, N) of the same joints")
        part = wrench @ matrix
        total = part if total is None else total + part
    if total is None:
        raise InvalidInputError("jacobian_a and jacobian_b", None, "at least one geometric Jacobian (6, N)")
    return total


def _point(name: str, value: ArrayLike) -> Array:
    point = np.asarray(value, dtype=np.float64)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise InvalidInputError(name, value, "a finite point (3,) [m]")
    return point
