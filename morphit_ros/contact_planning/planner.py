"""Plans through contact: found by drawing shapes together, solved, and judged before they are called a success."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.contact_planning.solver import Solution, SolverConfig, SolverStatus, carried_along, solve_trajectory
from morphit_ros.contact_planning.system import ContactSystem
from morphit_ros.contact_planning.transcription import Task, deepest_overlap, evaluation_arrays
from morphit_ros.contact_planning.tree import BALL
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Of the solve that finds a contact.
_START_ITERATIONS, _START_TOLERANCE, _START_OVERLAP, _START_PENALTY = 60, 1e-2, 1e3, 10.0
_NO_LIMIT = 1e3
# Iterations with each start; the best goes on, and where it is no good the next.
_FIRST_ITERATIONS, _TRIED = 21, 2
# Of solutions that are compared before they have converged: weight of efforts without motor, as a share of the penalty
# (most of what they need then vanishes later), and of what the goal is missed by, as a multiple of the final weight.
_EFFORT, _MISSED = 0.01, 3.0
# By how much final weights grow where a goal is missed.
_PULL = 5.0
# Times between two steps at which bodies are held against each other.
_BETWEEN = 4


class PlanStatus(enum.StrEnum):
    """What became of a plan; only SUCCEEDED may be carried out.

    SUCCEEDED: converged, no overlap beyond what is allowed, and at the goal.
    GOAL_MISSED: converged, but farther from the goal than the tolerance.
    OVERLAP: converged, but shapes overlap by more than is allowed.
    NOT_CONVERGED: iterations ran out, or joints without motor would need effort.
    TIMED_OUT: the time ran out.
    """

    SUCCEEDED = "succeeded"
    GOAL_MISSED = "goal missed"
    OVERLAP = "overlap"
    NOT_CONVERGED = "not converged"
    TIMED_OUT = "timed out"


@dataclass(frozen=True)
class ContactLaw(Config):
    """How shapes in contact push and hold each other (`contact.py`)."""

    stiffness: float = parameter(200.0, "Normal force a depth [N/m]", minimum=1e-3, maximum=1e7)
    smoothing: float = parameter(0.01, "Gap over which force begins [m]", minimum=1e-6, maximum=1.0)
    dissipation_velocity: float = parameter(0.1, "Approach that doubles the force [m/s]", minimum=1e-6, maximum=1e3)
    friction: float = parameter(0.5, "Coefficient of friction", minimum=0.0, maximum=10.0)
    stiction_velocity: float = parameter(0.05, "Slip with 0.7 of all friction [m/s]", minimum=1e-6, maximum=10.0)

    @property
    def numbers(self) -> Array:
        """(5,) for the kernels."""
        return np.array(astuple(self))


@dataclass(frozen=True)
class ContactPlanConfig(Config):
    """How a plan is searched, and when it is one."""

    step: float = parameter(0.05, "Time of a step [s]", minimum=1e-4, maximum=1.0)
    steps: int = parameter(40, "Number of steps", minimum=3, maximum=2000)
    starts: int = parameter(
        5, "Most pairs of shapes that are drawn together, one by one, to find a contact", minimum=1, maximum=1000
    )
    attraction: float = parameter(300.0, "Weight of the gap of such a pair, squared [1/m²]", minimum=1e-6, maximum=1e9)
    pulls: int = parameter(
        2, "How often a plan that misses its goal, or overlaps, goes on with higher weights", minimum=0, maximum=100
    )
    overlap: float = parameter(0.001, "Most that shapes may overlap in a plan [m]", minimum=0.0, maximum=1.0)
    overlap_weight: float = parameter(1e6, "Weight of overlap squared [1/m²]", minimum=0.0, maximum=1e12)
    limit_weight: float = parameter(1e4, "Weight of positions beyond limits squared", minimum=0.0, maximum=1e12)
    iterations: int = parameter(700, "Most iterations of all solves of a plan", minimum=1, maximum=1_000_000)
    time_limit: float = parameter(10.0, "Most time of planning [s]", minimum=1e-3, maximum=1e5)
    law: ContactLaw = nested(ContactLaw)
    solver: SolverConfig = nested(SolverConfig)


@dataclass(frozen=True, eq=False)
class ContactGoal:
    """Where a system should be at the end, and what it costs on the way.

    Weights are of squares, (V,) each; those on the way are integrated over time.

    Attributes:
        positions: (Q,) at the end.
        position, velocity, effort: weights on the way.
        final_position, final_velocity: weights at the end.
        tolerance: (V,) largest deviation at the end, infinite where it does not matter [rad or m].
        path: (N, Q) nominal positions at times h, 2h, …; None: they lead straight from the start to the goal.
    """

    positions: Array
    position: Array
    velocity: Array
    effort: Array
    final_position: Array
    final_velocity: Array
    tolerance: Array
    path: Array | None = None


@dataclass(frozen=True, eq=False)
class ContactPlan:
    """A planned motion through contact.

    Attributes:
        status: whether it may be carried out.
        message: why not, or what it reaches.
        times: (N + 1,) [s].
        positions: (N + 1, Q), the start first.
        velocities, efforts: (N, V) that lead to each later position.
        error: (V,) positions at the end minus the goal.
        overlap: deepest of all pairs [m], 0 for none, at the times and four times between.
        solution: of the solver.
        seconds: of planning.
    """

    status: PlanStatus
    message: str
    times: Array
    positions: Array
    velocities: Array
    efforts: Array
    error: Array
    overlap: float
    solution: Solution
    seconds: float

    @property
    def success(self) -> bool:
        """Whether it may be carried out."""
        return self.status is PlanStatus.SUCCEEDED


DEFAULT_CONFIG = ContactPlanConfig()


class ContactPlanner:
    """Plans for one system and goal, anew or from where the last plan has led.

    Attributes:
        system, goal, config: as given.
        latest: the last solution, None before the first.

    Raises:
        InvalidInputError: a goal of another size or with numbers that are not finite, or no pair of shapes.
    """

    def __init__(self, system: ContactSystem, goal: ContactGoal, config: ContactPlanConfig = DEFAULT_CONFIG) -> None:
        self.system, self.config = system, config
        self.aim(goal)
        if len(system.contacts.pairs) == 0:
            raise InvalidInputError("pairs", "none", "at least one pair of shapes that may touch")
        self.latest: Solution | None = None

    def aim(self, goal: ContactGoal) -> None:
        """Take another goal.

        Raises:
            InvalidInputError: as of the class.
        """
        system = self.system
        shape = self.config.steps, system.position_count
        if goal.path is not None and (goal.path.shape != shape or not np.isfinite(goal.path).all()):
            raise InvalidInputError("goal.path", f"shape {goal.path.shape}", f"finite, {shape[0]} rows of {shape[1]}")
        for name in ("position", "velocity", "effort", "final_position", "final_velocity", "tolerance"):
            values = np.asarray(getattr(goal, name), dtype=np.float64)
            if values.shape != (system.velocity_count,) or not (values >= 0.0).all():
                raise InvalidInputError(f"goal.{name}", values, f"{system.velocity_count} numbers, none negative")
        self.goal = replace(goal, positions=_checked_positions(system, "goal", goal.positions))
        self._final_weights = goal.final_position

    def plan(
        self, positions: ArrayLike, velocities: ArrayLike | None = None, guess: Array | None = None
    ) -> ContactPlan:
        """Plan from a configuration (Q,) and velocity (V,), at rest if none is given.

        Args:
            guess: (N, Q) of the joints with motors, to start from instead of looking for contacts.

        Raises:
            InvalidInputError: numbers that are not finite or of another size, or shapes that overlap at the start.
        """
        began = time.monotonic()
        self._deadline, self._left = began + self.config.time_limit, self.config.iterations
        start, speed = self._checked_state(positions, velocities)
        self._check_apart(start)
        self._final_weights = self.goal.final_position
        task = self._task(start, speed)
        if guess is None:
            best = self._found(start, speed)
        else:
            best = self._solved(task, carried_along(self.system, task, guess), self.config.solver)
        best = self._bettered(best, task, start)
        if best.status is SolverStatus.ITERATIONS and time.monotonic() > self._deadline:
            best = replace(best, status=SolverStatus.TIMED_OUT)
        self.latest = best
        return self._made(start, best, began)

    def replan(self, positions: ArrayLike, velocities: ArrayLike, elapsed: int = 1, iterations: int = 1) -> ContactPlan:
        """Go on with the last plan from what is measured, by some iterations (model predictive control).

        Args:
            elapsed: steps that have passed since the last plan.
            iterations: of the solver, all that are done.

        Raises:
            InvalidInputError: nothing was planned before; else as of `plan`.
        """
        began = time.monotonic()
        if self.latest is None:
            raise InvalidInputError("replan", "no earlier plan", "a call of `plan` first")
        # What is measured may overlap by what a soft contact gives way.
        start, speed = self._checked_state(positions, velocities)
        rows = np.minimum(np.arange(self.config.steps) + elapsed, self.config.steps - 1)
        config = replace(self.config.solver, iterations=iterations)
        solution = solve_trajectory(
            self.system, self._task(start, speed), self.latest.positions[rows], config,
            self.latest.multipliers[rows], began + self.config.time_limit, self.latest.penalty,
        )  # fmt: skip
        self.latest = solution
        return self._made(start, solution, began)

    def _checked_state(self, positions: ArrayLike, velocities: ArrayLike | None) -> tuple[Array, Array]:
        start = _checked_positions(self.system, "positions", positions)
        count = self.system.velocity_count
        speed = np.zeros(count) if velocities is None else np.array(velocities, dtype=np.float64)
        if speed.shape != (count,) or not np.isfinite(speed).all():
            raise InvalidInputError("velocities", speed, f"{count} finite numbers")
        return start, speed

    def _check_apart(self, start: Array) -> None:
        system, allowed = self.system, self.config.overlap
        gaps = system.gaps(start)
        deepest = int(np.argmin(gaps))
        if gaps[deepest] < -allowed:
            first, second = (system.shape_names[row] for row in system.contacts.pairs[deepest])
            raise InvalidInputError(
                "positions", f"'{first}' and '{second}' overlapping by {-gaps[deepest]:.3g} m at the start",
                f"at most {allowed:g} m", "Start with the bodies apart.",
            )  # fmt: skip

    def _task(self, start: Array, speed: Array) -> Task:
        """The last stage's task."""
        config, goal, system = self.config, self.goal, self.system
        steps, h = config.steps, config.step
        way, goals = system.difference(goal.positions, start), goal.path
        if goals is None:
            goals = np.array([system.moved(start, way * (t + 1) / steps) for t in range(steps)])
        # Twice, as the cost has a factor ½ that the weights have not.
        weights = [np.tile(2.0 * h * part, (steps, 1)) for part in (goal.position, goal.velocity, goal.effort)]
        weights[0][-1], weights[1][-1] = 2.0 * self._final_weights, 2.0 * goal.final_velocity
        return Task(
            h, start, speed, goals, weights[0], weights[1], weights[2], np.zeros_like(weights[2]),
            system.lower, system.upper, config.limit_weight, config.overlap_weight, 0.0,
            np.zeros(len(system.contacts.pairs)), config.law.numbers,
        )  # fmt: skip

    def _starts(self, start: Array, speed: Array) -> Iterator[Array]:
        """Guesses (N, Q), each with another pair drawn together while the idle joints turn as they should."""
        system, config = self.system, self.config
        final = self._task(start, speed)
        rest = final.goals.copy()
        columns = system.tree.first_position[system.tree.bodies[system.actuated]]
        rest[:, columns] = start[columns]
        solver = replace(
            config.solver, iterations=_START_ITERATIONS, cost_tolerance=_START_TOLERANCE, effort_tolerance=_NO_LIMIT,
            penalty=_START_PENALTY * config.solver.penalty,
        )  # fmt: skip
        for pair in self._candidates(start):
            attraction = np.zeros(len(system.contacts.pairs))
            attraction[pair] = config.attraction
            task = final._replace(attraction=attraction, overlap_weight=min(_START_OVERLAP, config.overlap_weight))
            yield self._solved(task, rest, solver).positions

    def _found(self, start: Array, speed: Array) -> Solution:
        """The best solution from several starts: a few iterations with each, then all with the most promising one."""
        task, solver = self._task(start, speed), self.config.solver
        first = replace(solver, iterations=min(_FIRST_ITERATIONS, solver.iterations))
        found: list[Solution] = []
        halfway = 0.5 * self._missed(start).sum()
        for candidate in self._starts(start, speed):
            found.append(self._solved(task, candidate, first))
            if self._judged(found[-1], start)[0] is PlanStatus.SUCCEEDED or self._left <= 0:
                return found[-1]
            # Where nothing has been moved yet, as many pairs again are tried.
            moved = any(self._missed(solution.positions[-1]).sum() < halfway for solution in found)
            if len(found) >= (self.config.starts if moved else 2 * self.config.starts):
                break
        solved: list[Solution] = []
        for best in sorted(found, key=self._merit)[:_TRIED]:
            if best.status is SolverStatus.ITERATIONS:
                best = self._solved(task, best.positions, solver, best)
            solved.append(best)
            if best.status is SolverStatus.CONVERGED and self._missed(best.positions[-1]).sum() < halfway:
                return best
        return min(solved, key=lambda solution: (solution.status is not SolverStatus.CONVERGED, self._merit(solution)))

    def _bettered(self, best: Solution, task: Task, start: Array) -> Solution:
        """A solution that misses the goal or overlaps, gone on with until it does neither, or no more is gained."""
        for _ in range(self.config.pulls):
            status, missed = self._judged(best, start)[0], self._missed(best.positions[-1])
            if status not in (PlanStatus.GOAL_MISSED, PlanStatus.OVERLAP) or self._left <= 0:
                break
            weights = task.position_weights.copy()
            weights[-1, missed > 0.0] *= _PULL
            # Between the times of a plan shapes come closer than at them.
            excess = self._overlap(best, start) if status is PlanStatus.OVERLAP else 0.0
            task = task._replace(position_weights=weights, free_overlap=task.free_overlap + excess)
            pulled = self._solved(task, best.positions, self.config.solver, best)
            nearer = excess > 0.0 or self._missed(pulled.positions[-1]).sum() < missed.sum()
            if not nearer or self._judged(pulled, start)[0] not in (PlanStatus.SUCCEEDED, PlanStatus.GOAL_MISSED):
                break
            best, self._final_weights = pulled, 0.5 * weights[-1]
        return best

    def _solved(self, task: Task, guess: Array, solver: SolverConfig, earlier: Solution | None = None) -> Solution:
        """A task solved with what iterations and time are left, with the multipliers of an earlier solution."""
        config = replace(solver, iterations=max(1, min(solver.iterations, self._left)))
        known = (None, None) if earlier is None else (earlier.multipliers, earlier.penalty)
        solution = solve_trajectory(self.system, task, guess, config, known[0], self._deadline, known[1])
        self._left = self._left - solution.iterations if time.monotonic() <= self._deadline else 0
        return solution

    def _missed(self, positions: Array) -> Array:
        """(V,) by how much more than the tolerance a configuration (Q,) misses the goal."""
        error = np.abs(self.system.difference(positions, self.goal.positions))
        return np.maximum(error - self.goal.tolerance, 0.0)

    def _merit(self, solution: Solution) -> float:
        """What solutions are compared by, the least the best."""
        efforts = float(np.square(solution.efforts[:, ~self.system.actuated]).sum())
        missed = float(self.goal.final_position @ np.square(self._missed(solution.positions[-1])))
        return solution.cost + _EFFORT * self.config.solver.penalty * efforts + _MISSED * missed

    def _candidates(self, start: Array) -> list[int]:
        """Pairs of a driven and an idle body: every other one of the body that most joints move, else of any."""
        contacts, tree = self.system.contacts, self.system.tree
        bodies = contacts.bodies[contacts.pairs]
        driven = np.where(bodies >= 0, tree.moves[self.system.actuated].sum(axis=0)[bodies], 0)
        mixed, most, gaps = (driven > 0).sum(axis=1) == 1, driven.max(axis=1), self.system.gaps(start)
        outer = most == most[mixed].max(initial=0)
        groups = [_spread(sorted(np.flatnonzero(mixed & rows), key=gaps.__getitem__)) for rows in (outer, ~outer)]
        return [pair for both in zip_longest(*groups) for pair in both if pair is not None]

    def _overlap(self, solution: Solution, start: Array) -> float:
        """Deepest overlap [m], between the times of the plan too."""
        positions = np.vstack([start, solution.positions])
        evaluation = evaluation_arrays(self.system.tree, self.system.contacts, 1)
        return float(deepest_overlap(self.system.tree, self.system.contacts, positions, _BETWEEN, evaluation))

    def _judged(self, solution: Solution, start: Array) -> tuple[PlanStatus, str]:
        """Status and message of a solution."""
        if solution.status is SolverStatus.TIMED_OUT:
            return PlanStatus.TIMED_OUT, f"after {self.config.time_limit:g} s; allow more time or fewer steps"
        if solution.status is not SolverStatus.CONVERGED:
            return PlanStatus.NOT_CONVERGED, (
                f"{solution.status.value} after {solution.iterations} iterations: without motor joints would need "
                f"{solution.unactuated:.2g} (N or N m)"
            )
        overlap = self._overlap(solution, start)
        if overlap > self.config.overlap:
            allowed = self.config.overlap
            return PlanStatus.OVERLAP, f"bodies overlap by {1e3 * overlap:.2g} mm, at most {1e3 * allowed:g} mm"
        missed = self._missed(solution.positions[-1])
        worst = int(np.argmax(missed))
        if missed[worst] > 0.0:
            allowed = self.goal.tolerance[worst]
            return PlanStatus.GOAL_MISSED, (
                f"coordinate {worst} ends {missed[worst] + allowed:.3g} from its goal, at most {allowed:g}; "
                "the goal may be out of reach"
            )
        return PlanStatus.SUCCEEDED, f"cost {solution.cost:.4g}"

    def _made(self, start: Array, solution: Solution, began: float) -> ContactPlan:
        status, message = self._judged(solution, start)
        return ContactPlan(
            status, message, np.linspace(0.0, self.config.step * self.config.steps, self.config.steps + 1),
            np.vstack([start, solution.positions]), solution.velocities, solution.efforts,
            self.system.difference(solution.positions[-1], self.goal.positions),
            self._overlap(solution, start), solution, time.monotonic() - began,
        )  # fmt: skip


def _spread(items: list[int]) -> list[int]:
    """All items, so that the first few are spread over the list: by halves, quarters, eighths."""
    counts = (2**k for k in range(len(items).bit_length() + 1))
    rows = ((2 * k + 1) * len(items) // (2 * parts) for parts in counts for k in range(parts))
    return [items[row] for row in dict.fromkeys(rows) if row < len(items)]


def _checked_positions(system: ContactSystem, name: str, values: ArrayLike) -> Array:
    """A configuration (Q,), quaternions made unit ones.

    Raises:
        InvalidInputError: another size, numbers that are not finite, or no quaternion.
    """
    positions = np.array(values, dtype=np.float64)
    if positions.shape != (system.position_count,) or not np.isfinite(positions).all():
        raise InvalidInputError(name, positions, f"{system.position_count} finite numbers")
    for body in np.flatnonzero(system.tree.kinds == BALL):
        first = system.tree.first_position[body]
        length = float(np.linalg.norm(positions[first : first + 4]))
        if abs(length - 1.0) > 1e-3:
            raise InvalidInputError(name, f"a quaternion of length {length:g}", "a unit quaternion (x, y, z, w)")
        positions[first : first + 4] /= length
    return positions
