"""Constrained iLQR: trajectories through dynamics with derivatives, with bounded controls and constraints."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.array_faults import array_fault
from morphit_ros.neural.trajectory_optimization.augmented_lagrangian import AugmentedLagrangian
from morphit_ros.neural.trajectory_optimization.backward_pass import LocalModel, LocalPolicy
from morphit_ros.neural.trajectory_optimization.merit import Merit, merit_of
from morphit_ros.neural.trajectory_optimization.problem import Dynamics, TrajectoryProblem

# Of the decrease that the quadratic model promises, a step must keep this share.
_ARMIJO = 1e-4
_HALVINGS = 12
_LEAST_REGULARIZATION = 1e-9

# Told after each iLQR step: how many there were, the cost without penalties, the states (T + 1, S).
Progress = Callable[[int, float, Array], None]


@dataclass(frozen=True)
class TrajectoryConfig(Config):
    """Effort and accuracy of the optimisation."""

    iterations: int = parameter(60, "Most iLQR steps between two updates of multipliers", minimum=1, maximum=100000)
    total_iterations: int = parameter(0, "Most iLQR steps over all updates, 0 for no bound", minimum=0, maximum=1000000)
    dual_updates: int = parameter(12, "Most updates of the multipliers", minimum=1, maximum=1000)
    cost_tolerance: float = parameter(
        1e-6, "A step that promises or brings less than this share of the cost is the last", minimum=1e-15, maximum=0.1
    )
    constraint_tolerance: float = parameter(
        1e-4, "Accepted violation, in the constraints' units", minimum=1e-12, maximum=10.0
    )
    initial_penalty: float = parameter(1.0, "Penalty of constraints to begin with", minimum=1e-9, maximum=1e12)
    penalty_growth: float = parameter(
        10.0, "Factor of the penalty where the violation doesn't fall", minimum=1.1, maximum=1e6
    )
    largest_penalty: float = parameter(1e8, "Penalty at which to give up", minimum=1e-9, maximum=1e16)
    initial_regularization: float = parameter(
        1e-6, "Curvature added to each control to begin with", minimum=0.0, maximum=1e12
    )
    largest_regularization: float = parameter(1e10, "Curvature at which to give up", minimum=1e-6, maximum=1e16)
    time_limit: float = parameter(
        0.0, "Time after which no iLQR step is begun [s], 0 for none; results then depend on the machine", minimum=0.0
    )
    keep_best: bool = parameter(
        False, "Whether the best of all trajectories on the way is returned, the guess included, and not the last one"
    )


class TrajectoryStatus(enum.Enum):
    """Outcome of an optimisation."""

    CONVERGED = "no step brings a lower cost, all constraints hold"
    FEASIBLE = "all constraints hold, the cost could be lower still"
    INFEASIBLE = "some constraint is violated: there is no such trajectory near the guess, or it takes more effort"
    DIVERGED = "the guess leads to states that are not finite"


@dataclass(frozen=True)
class TrajectoryResult:
    """The best trajectory found.

    Attributes:
        status: outcome.
        states: (T + 1, S).
        controls: (T, M), within their bounds.
        gains: (T, M, N) feedback about the trajectory: u = controls + gains (x − states).
        cost: sum of stage costs and terminal cost, without penalties.
        violation: the worst violation of any constraint, in its own units.
        iterations: iLQR steps over all updates.
        dual_updates: updates of the multipliers.
        message: what kept it from going on, for people.
        multipliers: of each terminal constraint (C,), for another optimisation of nearly the same problem; none where
            constraints are violated.
    """

    status: TrajectoryStatus
    states: Array
    controls: Array
    gains: Array
    cost: float
    violation: float
    iterations: int
    dual_updates: int
    message: str
    multipliers: tuple[Array, ...] = ()

    @property
    def success(self) -> bool:
        """Whether all constraints hold."""
        return self.status in (TrajectoryStatus.CONVERGED, TrajectoryStatus.FEASIBLE)


def forward_rollout(dynamics: Dynamics, initial_state: Array, controls: Array) -> Array:
    """(T + 1, S) states that controls (T, M) lead to; rows after a state that is not finite are NaN."""
    states = np.full((len(controls) + 1, len(initial_state)), np.nan)
    states[0] = initial_state
    for index, control in enumerate(controls):
        states[index + 1] = dynamics.step(states[index], control)
        if not np.isfinite(states[index + 1]).all():
            states[index + 1 :] = np.nan
            break
    return states


def optimize_trajectory(
    problem: TrajectoryProblem,
    controls: Array,
    config: TrajectoryConfig | None = None,
    progress: Progress | None = None,
    multipliers: Sequence[Array] = (),
) -> TrajectoryResult:
    """Lower the cost of a trajectory until no step does and the constraints hold.

    Control-limited iLQR (Tassa, Mansard, Todorov 2014) inside an augmented Lagrangian (as ALTRO's, Howell, Jackson,
    Manchester 2019). It finds the nearest local optimum: a control that touches nothing has no influence on an object.

    Args:
        problem: what is wanted.
        controls: (T, M) guess; clipped to the bounds. T is the number of steps.
        config: effort and accuracy.
        progress: told after each iLQR step; what it raises ends the optimisation.
        multipliers: of the terminal constraints to begin with, from an earlier result; none: zero.

    Raises:
        InvalidInputError: a guess with no step, of the wrong shape or with numbers that are not finite, multipliers of
            other constraints.
    """
    settings = config or TrajectoryConfig()
    guess = np.array(controls, dtype=np.float64)
    expected = f"finite numbers of shape (T, {problem.dynamics.control_size}), at least one step"
    if fault := array_fault(guess, (None, problem.dynamics.control_size)) or ("no step" if len(guess) == 0 else ""):
        raise InvalidInputError("controls", fault, expected)
    guess = np.clip(guess, *problem.bounds)
    states = forward_rollout(problem.dynamics, problem.initial_state, guess)
    if not np.isfinite(states).all():
        gains = np.zeros((*guess.shape, problem.dynamics.tangent_size))
        message = f"the state after step {int(np.isfinite(states).all(axis=1).sum())} of the guess is not finite"
        return TrajectoryResult(
            TrajectoryStatus.DIVERGED, states, guess, gains, float("nan"), float("nan"), 0, 0, message
        )  # fmt: skip
    return _Optimization(problem, states, guess, settings, progress, multipliers).run()


class _Optimization:
    """One request: the trajectory as it is now and how careful the steps are."""

    def __init__(
        self,
        problem: TrajectoryProblem,
        states: Array,
        controls: Array,
        settings: TrajectoryConfig,
        progress: Progress | None,
        multipliers: Sequence[Array] = (),
    ) -> None:
        self._problem, self._settings, self._progress = problem, settings, progress
        self._states, self._controls = states, controls
        self._lagrangian = AugmentedLagrangian(problem, len(controls), settings.initial_penalty)
        if multipliers:
            self._lagrangian.begin_with(multipliers)
        self._regularization = settings.initial_regularization
        self._iterations = 0
        self._linearized: tuple[Array, list[tuple[Array, Array]]] | None = None
        self._ends = perf_counter() + settings.time_limit if settings.time_limit > 0.0 else np.inf
        self._best: tuple[Merit, Array, Array] = (merit_of(problem, states, controls), states, controls)

    def run(self) -> TrajectoryResult:
        """Minimise, update the multipliers, and so on."""
        settings, lagrangian = self._settings, self._lagrangian
        before = self._best[0].violation
        updates, message = 0, ""
        while True:
            settled, message = self._minimize()
            violation = merit_of(self._problem, self._states, self._controls).violation
            # The nearer the constraints, the less the penalties say about them: one more round settles the multipliers.
            if violation <= settings.constraint_tolerance or not lagrangian.constrained:
                break
            if self._steps_left() == 0:
                break
            if updates >= settings.dual_updates:
                message = f"violated by {violation:.3g} after {updates} updates of the multipliers"
                break
            if lagrangian.penalty > settings.largest_penalty:
                message = f"violated by {violation:.3g} at the largest penalty, {settings.largest_penalty:g}"
                break
            lagrangian.update_multipliers(self._states, self._controls)
            updates += 1
            if violation > 0.25 * before:
                lagrangian.penalty *= settings.penalty_growth
            before = violation
            self._regularization = settings.initial_regularization
        merit = merit_of(self._problem, self._states, self._controls)
        if settings.keep_best and self._best[0].better_than(merit, settings.constraint_tolerance):
            merit, self._states, self._controls = self._best
            settled = False
        status = TrajectoryStatus.INFEASIBLE
        if merit.violation <= settings.constraint_tolerance:
            status = TrajectoryStatus.CONVERGED if settled else TrajectoryStatus.FEASIBLE
        # Where a constraint cannot be kept they grow without end.
        multipliers = () if status is TrajectoryStatus.INFEASIBLE else lagrangian.next_multipliers(self._states)
        return TrajectoryResult(
            status, self._states, self._controls, self._gains(), merit.cost, merit.violation, self._iterations, updates,
            message, multipliers,
        )  # fmt: skip

    def _minimize(self) -> tuple[bool, str]:
        """iLQR steps on the present Lagrangian; whether they came to an end, and what ended them."""
        settings = self._settings
        value = self._lagrangian.value(self._states, self._controls)
        steps = self._steps_left()
        for _ in range(steps):
            if perf_counter() >= self._ends:
                return False, f"the time of {settings.time_limit:g} s is over after {self._iterations} steps"
            self._iterations += 1
            model = self._model()
            least = settings.cost_tolerance * (1.0 + abs(value))
            while True:
                policy = model.solve(self._regularization)
                if policy is not None:
                    if -policy.slope <= 1e-3 * least:
                        return True, "no step promises a lower cost"
                    found = self._search(policy, value)
                    if found is not None:
                        break
                if self._regularization >= settings.largest_regularization:
                    return policy is not None, "no step lowers the cost, however short"
                self._regularization = max(4.0 * self._regularization, _LEAST_REGULARIZATION * 1e3)
            drop = value - found
            value = found
            if self._progress is not None or settings.keep_best:
                self._note()
            self._regularization *= 0.25
            if self._regularization < _LEAST_REGULARIZATION:
                self._regularization = 0.0
            if drop <= least and drop >= 0.0 and self._regularization < 1.0:
                return True, "the cost falls no more"
        return False, f"{self._iterations if self._steps_left() == 0 else steps} steps were not enough"

    def _note(self) -> None:
        """Tell of a step, and keep the best."""
        merit = merit_of(self._problem, self._states, self._controls)
        if merit.better_than(self._best[0], self._settings.constraint_tolerance):
            self._best = merit, self._states, self._controls
        if self._progress is not None:
            self._progress(self._iterations, merit.cost, self._states)

    def _steps_left(self) -> int:
        """iLQR steps until the next update, or until the end."""
        settings = self._settings
        if perf_counter() >= self._ends:
            return 0
        if settings.total_iterations == 0:
            return settings.iterations
        return min(settings.iterations, settings.total_iterations - self._iterations)

    def _model(self) -> LocalModel:
        lagrangian, dynamics = self._lagrangian, self._problem.dynamics
        pairs = list(zip(self._states[:-1], self._controls, strict=True))
        # What costs most: an update of the multipliers leaves it, and so does a search that finds nothing.
        if self._linearized is None or self._linearized[0] is not self._states:
            self._linearized = self._states, [dynamics.linearize(state, control) for state, control in pairs]
        lower, upper = (bound - self._controls for bound in self._problem.bounds)
        return LocalModel(
            self._linearized[1],
            [lagrangian.expand_stage(index, *pair) for index, pair in enumerate(pairs)],
            lagrangian.expand_end(self._states[-1]),
            lower,
            upper,
        )

    def _gains(self) -> Array:
        """Feedback about the final trajectory, with as little regularisation as it takes."""
        model, regularization = self._model(), self._regularization
        while (policy := model.solve(regularization)) is None:
            regularization = max(10.0 * regularization, _LEAST_REGULARIZATION)
            if regularization > self._settings.largest_regularization:
                return np.zeros((*self._controls.shape, self._problem.dynamics.tangent_size))
        return policy.gains

    def _search(self, policy: LocalPolicy, value: float) -> float | None:
        """Take the longest of the halved steps that lowers the value enough: the new value, or None."""
        length = 1.0
        for _ in range(_HALVINGS):
            states, controls = self._followed(policy, length)
            if np.isfinite(states).all():
                new = self._lagrangian.value(states, controls)
                promised = -(length * policy.slope + 0.5 * length**2 * policy.curvature)
                if value - new >= max(_ARMIJO * promised, 0.0):
                    self._states, self._controls = states, controls
                    return new
            length *= 0.5
        return None

    def _followed(self, policy: LocalPolicy, length: float) -> tuple[Array, Array]:
        """States and controls of the policy in the true dynamics."""
        dynamics, (lower, upper) = self._problem.dynamics, self._problem.bounds
        states, controls = np.full_like(self._states, np.nan), self._controls.copy()
        states[0] = self._states[0]
        for index in range(len(controls)):
            away = dynamics.difference(states[index], self._states[index])
            change = length * policy.steps[index] + policy.gains[index] @ away
            controls[index] = np.clip(self._controls[index] + change, lower, upper)
            if not np.isfinite(controls[index]).all():
                break
            states[index + 1] = dynamics.step(states[index], controls[index])
            if not np.isfinite(states[index + 1]).all():
                break
        return states, controls
