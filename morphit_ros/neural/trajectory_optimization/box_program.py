"""Small convex quadratic programs within bounds, by projected Newton steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array

_STEPS = 50
_GRADIENT_TOLERANCE = 1e-10
# Share of the decrease that the slope promises, as in Armijo's rule.
_ARMIJO = 0.1


class BoxSolution(NamedTuple):
    """Where ½ xᵀ H x + gᵀ x is least within the bounds.

    Attributes:
        x: (M,).
        free: (M,) whether each entry may move: it is not held by a bound.
    """

    x: Array
    free: NDArray[np.bool_]


def minimize_in_box(hessian: Array, gradient: Array, lower: Array, upper: Array) -> BoxSolution:
    """The least value of a quadratic function within bounds (Tassa, Mansard, Todorov 2014, section III B).

    Args:
        hessian: (M, M) symmetric.
        gradient: (M,) at zero.
        lower, upper: (M,), may be infinite; lower ≤ upper.

    Raises:
        numpy.linalg.LinAlgError: the curvature over the free entries is not positive.
    """
    x = np.clip(np.zeros_like(gradient), lower, upper)
    scale = _GRADIENT_TOLERANCE * (1.0 + float(np.abs(gradient).max(initial=0.0)))
    free = np.ones(len(x), dtype=np.bool_)
    for _ in range(_STEPS):
        slope = gradient + hessian @ x
        held = ((x <= lower) & (slope > 0.0)) | ((x >= upper) & (slope < 0.0)) | (lower == upper)
        free = ~held
        if not free.any():
            break
        factor = np.linalg.cholesky(hessian[np.ix_(free, free)])
        if float(np.abs(slope[free]).max()) <= scale:
            break
        direction = np.zeros_like(x)
        direction[free] = -np.linalg.solve(factor.T, np.linalg.solve(factor, slope[free]))
        value = float(x @ (gradient + 0.5 * hessian @ x))
        length = 1.0
        while True:
            moved = np.clip(x + length * direction, lower, upper)
            drop = value - float(moved @ (gradient + 0.5 * hessian @ moved))
            if drop >= -_ARMIJO * float(slope @ (moved - x)) or length < 1e-9:
                break
            length *= 0.5
        x = moved
        if drop <= 1e-15 * (1.0 + abs(value)):
            break
    return BoxSolution(x, free)
