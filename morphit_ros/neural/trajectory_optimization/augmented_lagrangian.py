"""Constraints as costs: an augmented Lagrangian with a multiplier for every constraint of every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Cost, Expansion, TrajectoryProblem


class AugmentedLagrangian:
    """The costs of a trajectory with λᵀc + ½ ρ ‖c‖² for what must be zero, and with only the violated or pressed part
    ‖max(0, λ + ρ c)‖² / 2ρ for what must not be positive (Nocedal and Wright, Numerical Optimization, section 17.4).

    Args:
        problem: costs and constraints.
        horizon: number of steps.
        penalty: ρ to begin with.
    """

    def __init__(self, problem: TrajectoryProblem, horizon: int, penalty: float) -> None:
        self.problem, self.horizon, self.penalty = problem, horizon, penalty
        zero = np.zeros(problem.dynamics.control_size)
        self._no_control = zero
        start = problem.initial_state
        at_stages = [np.zeros(len(item.at(start, zero))) for item in problem.stage_constraints]
        self._stage = [[part.copy() for part in at_stages] for _ in range(horizon)]
        self._terminal = [np.zeros(len(item.at(start, zero))) for item in problem.terminal_constraints]

    @property
    def constrained(self) -> bool:
        """Whether there are constraints at all."""
        return bool(self.problem.stage_constraints or self.problem.terminal_constraints)

    def value(self, states: Array, controls: Array) -> float:
        """Of a whole trajectory: states (T + 1, S) and controls (T, M)."""
        problem, total = self.problem, 0.0
        for index, control in enumerate(controls):
            total += problem.stage_cost.value(states[index], control)
            total += self._penalties(problem.stage_constraints, self._stage[index], states[index], control)
        if problem.terminal_cost is not None:
            total += problem.terminal_cost.value(states[-1], self._no_control)
        return total + self._penalties(problem.terminal_constraints, self._terminal, states[-1], self._no_control)

    def expand_stage(self, index: int, state: Array, control: Array) -> Expansion:
        """Of one step to second order; the constraints' own curvature is left out (Gauss-Newton)."""
        problem = self.problem
        return self._expanded(problem.stage_cost, problem.stage_constraints, self._stage[index], state, control)

    def expand_end(self, state: Array) -> Expansion:
        """Of the last state to second order."""
        problem = self.problem
        constraints, multipliers = problem.terminal_constraints, self._terminal
        return self._expanded(problem.terminal_cost, constraints, multipliers, state, self._no_control)

    def begin_with(self, multipliers: Sequence[Array]) -> None:
        """Take the multipliers of the terminal constraints from elsewhere: one array (C,) for each."""
        if [len(item) for item in multipliers] != [len(item) for item in self._terminal]:
            found = [len(item) for item in multipliers]
            raise InvalidInputError("multipliers", f"lengths {found}", f"{[len(item) for item in self._terminal]}")
        self._terminal = [np.array(item, dtype=np.float64) for item in multipliers]

    def next_multipliers(self, states: Array) -> tuple[Array, ...]:
        """Of the terminal constraints, as an update at these states would leave them."""
        constraints = self.problem.terminal_constraints
        return tuple(self._updated(constraints, self._terminal, states[-1], self._no_control))

    def update_multipliers(self, states: Array, controls: Array) -> None:
        """First order: λ + ρ c, not negative for what must not be positive."""
        problem = self.problem
        for index, control in enumerate(controls):
            self._stage[index] = self._updated(problem.stage_constraints, self._stage[index], states[index], control)
        self._terminal = self._updated(problem.terminal_constraints, self._terminal, states[-1], self._no_control)

    def _updated(
        self, constraints: Sequence[Constraint], multipliers: list[Array], state: Array, control: Array
    ) -> list[Array]:
        updated = []
        for item, multiplier in zip(constraints, multipliers, strict=True):
            pressed = multiplier + self.penalty * item.at(state, control)
            updated.append(pressed if item.equality else np.maximum(pressed, 0.0))
        return updated

    def _penalties(
        self, constraints: Sequence[Constraint], multipliers: list[Array], state: Array, control: Array
    ) -> float:
        total = 0.0
        for item, multiplier in zip(constraints, multipliers, strict=True):
            pressed = multiplier + self.penalty * item.at(state, control)
            if not item.equality:
                pressed = np.maximum(pressed, 0.0)
            # Both forms are this one; what is constant in x and u is taken off so that values stay comparable to costs.
            total += float(pressed @ pressed - multiplier @ multiplier) / (2.0 * self.penalty)
        return total

    def _expanded(
        self,
        cost: Cost | None,
        constraints: Sequence[Constraint],
        multipliers: list[Array],
        state: Array,
        control: Array,
    ) -> Expansion:
        size, count = self.problem.dynamics.tangent_size, len(control)
        if cost is not None:
            value, x, u, xx, uu, ux = cost.expand(state, control)
        else:
            value, x, u = 0.0, np.zeros(size), np.zeros(count)
            xx, uu, ux = np.zeros((size, size)), np.zeros((count, count)), np.zeros((count, size))
        for item, multiplier in zip(constraints, multipliers, strict=True):
            line = item.linearize(state, control)
            pressed = multiplier + self.penalty * line.values
            at_x, at_u = line.x, line.u
            if not item.equality:
                active = pressed > 0.0
                pressed, at_x, at_u = pressed[active], at_x[active], at_u[active]
            value += float(pressed @ pressed - multiplier @ multiplier) / (2.0 * self.penalty)
            x, u = x + at_x.T @ pressed, u + at_u.T @ pressed
            xx = xx + self.penalty * at_x.T @ at_x
            uu = uu + self.penalty * at_u.T @ at_u
            ux = ux + self.penalty * at_u.T @ at_x
        return Expansion(value, x, u, xx, uu, ux)
