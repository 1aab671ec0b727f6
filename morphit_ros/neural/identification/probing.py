"""How far the cost really lets parameters go: where it is flatter than its curvature at the solution says.

Motions of contact have kinks, where what sticks begins to slide. At a solution beside one, s² (JᵀJ)⁻¹ is that of its
near side. So the cost itself is evaluated at ±3σ along the principal directions of the parameters: where it has
not risen as the quadratic says, the standard deviation along that direction is widened until it has. This is the
likelihood-ratio interval (Bates and Watts, Nonlinear Regression Analysis, 1988, chapter 6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_ros.geometry.transforms import Array

# Standard deviations from the solution at which the cost is evaluated.
_FAR = 3.0
# Most by which a deviation is widened in one evaluation, and by how much it is evaluated again.
_LARGEST, _AGAIN = 3.0, 1.05


def stretch_of(
    increase: Callable[[Array], float], covariance: Array, count: int, margins: tuple[Array, Array], looks: int
) -> Array:
    """(K, K) matrix by which deviations of the unknowns are widened; the identity if the cost is quadratic.

    Args:
        increase: of the cost, in variances of the residuals, by a step (K,) from the solution; without its linear part.
        covariance: (K, K) as the curvature says, for that cost; rows of zeros for what is held.
        count: number of parameters: the first ones. The others follow them, as the covariance says.
        margins: steps (K,) down to the lower bounds, and up to the upper ones.
        looks: most evaluations in one direction.
    """
    stretch = np.eye(len(covariance))
    deviations = np.sqrt(np.diag(covariance)[:count])
    among = np.flatnonzero((deviations > 0.0) & np.isfinite(deviations))
    if len(among) == 0:
        return stretch
    block = covariance[np.ix_(among, among)]
    scale = deviations[among]
    values, vectors = np.linalg.eigh(block / np.outer(scale, scale))
    directions = scale[:, None] * vectors * np.sqrt(np.maximum(values, 1e-12))
    # What the others do while the parameters move: least cost.
    follow = covariance[:, among] @ np.linalg.inv(block)
    factors = np.array([_factor(increase, follow @ direction, margins, looks) for direction in directions.T])
    stretch[np.ix_(among, among)] = directions @ (factors[:, None] * np.linalg.inv(directions))
    return stretch


def _factor(increase: Callable[[Array], float], step: Array, margins: tuple[Array, Array], looks: int) -> float:
    """How much longer, at least 1, a deviation (K,) is than it seems: on the flatter side."""
    largest = 1.0
    for side in (-1.0, 1.0):
        factor = 1.0
        for _ in range(looks):
            move = side * _FAR * factor * step
            # Bounds cut a step short: what is not allowed needs no deviation.
            part = min(1.0, _reach(move, margins))
            if part <= 0.0:
                break
            expected = 0.5 * (_FAR * part) ** 2
            grown = min(float(np.sqrt(expected / max(increase(part * move), 1e-12))), _LARGEST)
            before, factor = factor, max(factor * grown, 1.0)
            if max(factor / before, before / factor) < _AGAIN:
                break
        largest = max(largest, factor)
    return largest


def _reach(move: Array, margins: tuple[Array, Array]) -> float:
    """Share of a move (K,) up to the first bound."""
    bound = np.where(move < 0.0, margins[0], margins[1])
    moving = move != 0.0
    return float(np.min(bound[moving] / move[moving], initial=np.inf))
