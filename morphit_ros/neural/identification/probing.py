"""How far the cost really lets parameters go: where it is flatter than its curvature at the solution says.

Motions of contact have kinks, where what sticks begins to slide. At a solution beside one, s² (JᵀJ)⁻¹ is that of its
near side. So the cost itself is looked at three deviations away, along the principal directions of the parameters:
where it has not risen as the quadratic says, the deviation along that direction is drawn out until it has. This is the
interval of the likelihood ratio (Bates and Watts, Nonlinear Regression Analysis, 1988, chapter 6).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_ros.geometry.transforms import Array

# Deviations from the solution at which the cost is looked at.
_FAR = 3.0
# A direction is drawn out by no more in one look, and looked at again where by more than this.
_LARGEST, _AGAIN = 3.0, 1.05


def stretch_of(
    increase: Callable[[Array], float], covariance: Array, count: int, room: tuple[Array, Array], looks: int
) -> Array:
    """(K, K) matrix by which a deviation of the unknowns is drawn out; the identity if the cost is quadratic.

    Args:
        increase: of the cost, in variances of the residuals, by a step (K,) from the solution; without its linear part.
        covariance: (K, K) as the curvature says, for that cost; rows of zeros for what is held.
        count: number of parameters: the first ones. The others follow them, as the covariance says.
        room: steps (K,) down to the lower bounds, and up to the upper ones.
        looks: most in one direction.
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
    factors = np.array([_factor(increase, follow @ direction, room, looks) for direction in directions.T])
    stretch[np.ix_(among, among)] = directions @ (factors[:, None] * np.linalg.inv(directions))
    return stretch


def _factor(increase: Callable[[Array], float], step: Array, room: tuple[Array, Array], looks: int) -> float:
    """How much longer, at least 1, a deviation (K,) is than it seems: on the flatter side."""
    largest = 1.0
    for side in (-1.0, 1.0):
        factor = 1.0
        for _ in range(looks):
            move = side * _FAR * factor * step
            # Bounds cut a look short: what is not allowed needs no deviation.
            part = min(1.0, _reach(move, room))
            if part <= 0.0:
                break
            expected = 0.5 * (_FAR * part) ** 2
            grown = min(float(np.sqrt(expected / max(increase(part * move), 1e-12))), _LARGEST)
            before, factor = factor, max(factor * grown, 1.0)
            if max(factor / before, before / factor) < _AGAIN:
                break
        largest = max(largest, factor)
    return largest


def _reach(move: Array, room: tuple[Array, Array]) -> float:
    """Share of a move (K,) up to the first bound."""
    bound = np.where(move < 0.0, room[0], room[1])
    moving = move != 0.0
    return float(np.min(bound[moving] / move[moving], initial=np.inf))
