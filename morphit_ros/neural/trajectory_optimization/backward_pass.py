"""The linear-quadratic model of a trajectory and its solution within the bounds (Tassa, Mansard, Todorov 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.trajectory_optimization.box_program import minimize_in_box
from morphit_ros.neural.trajectory_optimization.problem import Expansion


class LocalPolicy(NamedTuple):
    """Controls ū + α k + K (x − x̄) about a nominal trajectory.

    Attributes:
        steps: k (T, M).
        gains: K (T, M, N); zero for controls that their bounds hold.
        slope, curvature: the cost changes by α slope + ½ α² curvature to second order; the slope is not positive.
    """

    steps: Array
    gains: Array
    slope: float
    curvature: float


class LocalModel(NamedTuple):
    """Dynamics to first, costs to second order about a nominal trajectory.

    Attributes:
        transitions: A (N, N) and B (N, M) of each step.
        stages, end: costs of each step and of the last state.
        lower, upper: (T, M) bounds of the change of the controls.
    """

    transitions: Sequence[tuple[Array, Array]]
    stages: Sequence[Expansion]
    end: Expansion
    lower: Array
    upper: Array

    def solve(self, regularization: float) -> LocalPolicy | None:
        """The policy of least cost, backwards from the end; None where the curvature of some step isn't positive.

        Args:
            regularization: added to the curvature of every control: the larger, the nearer to the nominal trajectory.
        """
        return _solved(self, regularization)


def _solved(model: LocalModel, regularization: float) -> LocalPolicy | None:
    transitions, stages, end, lower, upper = model
    horizon = len(stages)
    size, count = len(end.x), lower.shape[1]
    steps, gains = np.zeros((horizon, count)), np.zeros((horizon, count, size))
    slope = curvature = 0.0
    pull, stiffness = end.x, end.xx
    damping = regularization * np.eye(count)
    for index in range(horizon - 1, -1, -1):
        A, B = transitions[index]
        stage = stages[index]
        carried = stiffness @ A
        q_x, q_u = stage.x + A.T @ pull, stage.u + B.T @ pull
        q_xx, q_ux = stage.xx + A.T @ carried, stage.ux + B.T @ carried
        q_uu = stage.uu + B.T @ stiffness @ B
        damped = q_uu + damping
        try:
            step, gain = _best_step(damped, q_u, q_ux, lower[index], upper[index])
        except np.linalg.LinAlgError:
            return None
        if not (np.isfinite(step).all() and np.isfinite(gain).all()):
            return None
        steps[index], gains[index] = step, gain
        slope += float(step @ q_u)
        curvature += float(step @ q_uu @ step)
        pressed = q_uu @ step + q_u
        pull = q_x + gain.T @ pressed + q_ux.T @ step
        stiffness = q_xx + gain.T @ q_uu @ gain + gain.T @ q_ux + q_ux.T @ gain
        stiffness = 0.5 * (stiffness + stiffness.T)
    return LocalPolicy(steps, gains, slope, curvature)


def _best_step(q_uu: Array, q_u: Array, q_ux: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Step (M,) within the bounds and gain (M, N) of one stage.

    Raises:
        numpy.linalg.LinAlgError: the curvature is not positive.
    """
    # Only to find that out: most stages press no bound, and then one solution gives both.
    np.linalg.cholesky(q_uu)
    both: Array = np.asarray(np.linalg.solve(q_uu, -np.column_stack([q_u, q_ux])), dtype=np.float64)
    step, gain = both[:, 0], both[:, 1:]
    if ((step >= lower) & (step <= upper)).all():
        return step, gain
    step, free = minimize_in_box(q_uu, q_u, lower, upper)
    gain = np.zeros(q_ux.shape)
    if free.any():
        gain[free] = -np.linalg.solve(q_uu[np.ix_(free, free)], q_ux[free])
    return step, gain
