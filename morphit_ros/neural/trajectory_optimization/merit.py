"""How good a trajectory is: what it costs and how far it is from keeping its constraints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.trajectory_optimization.problem import TrajectoryProblem


class Merit(NamedTuple):
    """Of one trajectory.

    Attributes:
        cost: sum of stage costs and terminal cost, without penalties.
        violation: the worst of any constraint, in its own units.
    """

    cost: float
    violation: float

    def better_than(self, other: Merit, tolerance: float) -> bool:
        """Whether this one is to be preferred: what keeps its constraints first, then what costs less.

        Of two that don't keep them the one nearer to that; what is not finite is never better.

        Args:
            other: to compare with.
            tolerance: violation that counts as none.
        """
        if not np.isfinite(self).all():
            return False
        if not np.isfinite(other).all():
            return True
        kept, others = self.violation <= tolerance, other.violation <= tolerance
        if kept and others:
            return self.cost < other.cost
        return kept if kept != others else self.violation < other.violation


def merit_of(problem: TrajectoryProblem, states: Array, controls: Array) -> Merit:
    """Of states (T + 1, S) and controls (T, M); not finite where the states aren't."""
    if not np.isfinite(states).all():
        return Merit(np.inf, np.inf)
    nothing = np.zeros(problem.dynamics.control_size)
    cost = sum(problem.stage_cost.value(state, control) for state, control in zip(states, controls, strict=False))
    if problem.terminal_cost is not None:
        cost += problem.terminal_cost.value(states[-1], nothing)
    worst = 0.0
    for item in problem.stage_constraints:
        for state, control in zip(states, controls, strict=False):
            worst = max(worst, float(item.violation(item.at(state, control)).max(initial=0.0)))
    for item in problem.terminal_constraints:
        worst = max(worst, float(item.violation(item.at(states[-1], nothing)).max(initial=0.0)))
    return Merit(float(cost), worst)
