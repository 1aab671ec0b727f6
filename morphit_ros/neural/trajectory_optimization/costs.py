"""Costs and constraints that most trajectories need: the way to a goal, effort, a goal that must be met."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Dynamics, Expansion, Linearization


class GoalCost:
    """‖d‖²_Q + ‖u‖²_R with d the difference of state and goal, as in the DANO paper's section on planning.

    Args:
        dynamics: knows differences.
        goal: (S,) state.
        state_weights: (N,) diagonal of Q, not negative.
        control_weights: (M,) diagonal of R, not negative.

    Raises:
        InvalidInputError: a goal that is not finite, weights that are negative or of the wrong shape.
    """

    def __init__(self, dynamics: Dynamics, goal: Array, state_weights: Array, control_weights: Array) -> None:
        self._dynamics, self._goal = dynamics, _checked_goal(goal)
        self._state = _weights("state_weights", state_weights, dynamics.tangent_size)
        self._control = _weights("control_weights", control_weights, dynamics.control_size)

    def value(self, state: Array, control: Array) -> float:
        away = self._dynamics.difference(state, self._goal)
        return float(away @ (self._state * away) + control @ (self._control * control))

    def expand(self, state: Array, control: Array) -> Expansion:
        away = self._dynamics.difference(state, self._goal)
        turn = self._dynamics.difference_jacobian(state, self._goal)
        pull, effort = self._state * away, self._control * control
        return Expansion(
            float(away @ pull + control @ effort),
            2.0 * turn.T @ pull,
            2.0 * effort,
            # Without the curvature of the difference itself (Gauss-Newton), which could make it indefinite.
            2.0 * turn.T @ (self._state[:, None] * turn),
            2.0 * np.diag(self._control),
            np.zeros((len(control), len(away))),
        )


def goal_constraint(dynamics: Dynamics, goal: Array, entries: Sequence[int]) -> Constraint:
    """The named entries of the difference of state and goal (S,) are zero.

    Raises:
        InvalidInputError: a goal that is not finite, or entries that the tangent doesn't have.
    """
    target = _checked_goal(goal)
    size = dynamics.tangent_size
    rows = np.array(entries, dtype=np.intp)
    if rows.size == 0 or rows.min() < 0 or rows.max() >= size or len(np.unique(rows)) != len(rows):
        raise InvalidInputError("entries", list(entries), f"different numbers in [0, {size - 1}], at least one")

    def values(state: Array, control: Array) -> Array:
        return dynamics.difference(state, target)[rows]

    def linearize(state: Array, control: Array) -> Linearization:
        jacobian = dynamics.difference_jacobian(state, target)[rows]
        return Linearization(values(state, control), jacobian, np.zeros((len(rows), len(control))))

    return Constraint(linearize, equality=True, values=values)


def _checked_goal(goal: Array) -> Array:
    target = np.array(goal, dtype=np.float64)
    if target.ndim != 1 or not np.isfinite(target).all():
        raise InvalidInputError("goal", target.tolist(), "finite numbers of shape (S,)")
    return target


def _weights(name: str, given: Array, size: int) -> Array:
    weights = np.array(given, dtype=np.float64)
    if weights.shape != (size,) or not np.isfinite(weights).all() or (weights < 0.0).any():
        raise InvalidInputError(name, weights.tolist(), f"numbers that are not negative, of shape ({size},)")
    return weights
