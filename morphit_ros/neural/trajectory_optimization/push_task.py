"""Push and slide as a problem of trajectory optimisation: world, cost, constraints, first guess."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import STATE_SIZE, TANGENT_SIZE, BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.trajectory_optimization.costs import GoalCost, goal_constraint
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryResult, TrajectoryStatus, forward_rollout
from morphit_ros.neural.trajectory_optimization.merit import Merit, merit_of
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Linearization, TrajectoryProblem
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_plan import PushPlan
from morphit_ros.neural.trajectory_optimization.world_dynamics import WorldDynamics

_PUSHER, _TABLE, _OBJECT = "pusher", "table", "object"
# Constant forces tried as a first guess, relative to the one that covers the way in the time.
_GUESSES = (0.3, 0.5, 0.75, 1.0, 1.3, 1.7, 2.2)


class _Weights(NamedTuple):
    """One for each entry of the tangent of object and sphere."""

    cost: Array
    scale: Array


class RemainingPlan(NamedTuple):
    """What is left of an earlier plan, from where this task starts.

    Attributes:
        states, controls, gains: (T + 1, 26), (T, 3) and (T, 3, 24), as of `TrajectoryResult`.
        merit: how good it is.
        tolerance: violation that counts as none.
        multipliers: of the plan.
    """

    states: Array
    controls: Array
    gains: Array
    merit: Merit
    tolerance: float
    multipliers: tuple[Array, ...]

    def result(self, message: str) -> TrajectoryResult:
        """As if an optimisation had ended with it."""
        status = TrajectoryStatus.FEASIBLE if self.merit.violation <= self.tolerance else TrajectoryStatus.INFEASIBLE
        return TrajectoryResult(
            status, self.states, self.controls, self.gains, *self.merit, 0, 0, message, self.multipliers
        )  # fmt: skip


class PushTask:
    """One request in the optimiser's terms; controls are forces in `force_unit`."""

    def __init__(
        self,
        body: ContactBody,
        start: BodyState,
        target: BodyState,
        pusher: BodyState,
        pusher_goal: Array,
        settings: PushConfig,
    ) -> None:
        self._settings = settings
        contact = ContactParameters(**(settings.contact.to_flat() | {"friction": settings.friction}))
        ball = RigidBody.ball(settings.pusher_radius, settings.pusher_mass, _PUSHER)
        world = World(
            [RigidBody.from_contact_body(body, name=_OBJECT), ball],
            [Obstacle(ContactHalfSpace(), name=_TABLE)],
            contact,
            settings.timestep / settings.substeps,
            controls=[(_PUSHER, "force")],
        )
        carried = np.zeros((2, 6))
        carried[1, 2] = GRAVITY * settings.pusher_mass
        initial = np.stack([start.flat, pusher.flat])
        # One step by the front door, for its checks of the start.
        simulate(world, initial, 1, wrenches=carried)
        self._dynamics = WorldDynamics(world, settings.substeps, settings.force_unit, carried)
        self._goal = np.stack([
            BodyState(target.position, target.quat_xyzw).flat,
            BodyState(pusher_goal).flat,
        ])  # fmt: skip
        self._way = float(np.linalg.norm(pusher_goal - pusher.position))
        self._total_mass = body.mass + settings.pusher_mass
        self._rubbing = settings.friction * body.mass * GRAVITY
        ways = (target.position - start.position, pusher_goal - pusher.position, start.position - pusher.position)
        self._directions = [_direction(way) for way in ways]
        self.problem = self._problem(initial)

    def _problem(self, initial: Array) -> TrajectoryProblem:
        settings, dynamics, goal = self._settings, self._dynamics, self._goal.ravel()
        weights = _weights(settings)
        effort = np.full(3, settings.control_weight)
        entries = [0, 1, 2]
        entries += [TANGENT_SIZE + entry for entry in (0, 1, 2)] if settings.pusher_at_goal else []
        if settings.arrive_at_rest:
            entries += [6, 7, 11, TANGENT_SIZE + 6, TANGENT_SIZE + 7]
        bound = settings.largest_force / settings.force_unit if settings.largest_force > 0.0 else np.inf
        return TrajectoryProblem(
            dynamics,
            initial.ravel(),
            GoalCost(dynamics, goal, weights.cost, effort),
            GoalCost(dynamics, goal, weights.cost, np.zeros(3)),
            terminal_constraints=(_scaled(goal_constraint(dynamics, goal, entries), weights.scale[entries]),),
            control_lower=np.full(3, -bound),
            control_upper=np.full(3, bound),
        )

    def guess(self) -> Array:
        """(T, 3) the constant force that brings the object nearest to its goal, among a few."""
        settings = self._settings
        force = 2.0 * self._way * self._total_mass / settings.duration**2 + self._rubbing
        best, nearest = np.zeros((settings.steps, 3)), np.inf
        for direction in self._directions:
            for factor in _GUESSES:
                controls = np.tile(factor * force / settings.force_unit * direction, (settings.steps, 1))
                controls = np.clip(controls, *self.problem.bounds)
                last = forward_rollout(self._dynamics, self.problem.initial_state, controls)[-1]
                miss = float(np.linalg.norm(last[:3] - self._goal[0, :3]))
                if miss < nearest:
                    best, nearest = controls, miss
        return best

    def rests(self, plan: PushPlan, index: int) -> list[RemainingPlan]:
        """What is left of a plan from a step on, tried from this task's start by its forces and with its feedback.

        The better one comes first; what the simulation cannot compute is left out. Its configuration must be this
        task's but for the number of steps and the optimiser's.
        """
        problem, unit = self.problem, self._settings.force_unit
        gains = plan.gains[index:] / unit
        controls = np.clip(plan.forces[index:] / unit, *problem.bounds)
        led = np.zeros_like(controls)
        states = np.full((len(controls) + 1, problem.initial_state.size), np.nan)
        states[0] = problem.initial_state
        for step in range(len(controls)):
            force = plan.force(index + step, states[step].reshape(2, STATE_SIZE))
            led[step] = np.clip(force / unit, *problem.bounds)
            states[step + 1] = self._dynamics.step(states[step], led[step])
            if not np.isfinite(states[step + 1]).all():
                break
        alone = forward_rollout(self._dynamics, problem.initial_state, controls)
        tolerance = self._settings.optimization.constraint_tolerance
        tried = [
            RemainingPlan(way, forces, gains, merit_of(problem, way, forces), tolerance, plan.multipliers)
            for way, forces in ((alone, controls), (states, led))
            if np.isfinite(way).all() and np.isfinite(forces).all()
        ]
        if len(tried) == 2 and tried[1].merit.better_than(tried[0].merit, tolerance):
            tried.reverse()
        return tried

    def plan(self, result: TrajectoryResult, seconds: float) -> PushPlan:
        settings = self._settings
        return PushPlan(
            result.status,
            result.message,
            settings,
            self._goal[0, :3].copy(),
            settings.timestep * np.arange(settings.steps + 1, dtype=np.float64),
            result.states.reshape(-1, 2, STATE_SIZE),
            settings.force_unit * result.controls,
            settings.force_unit * result.gains,
            result.cost,
            result.violation,
            result.iterations,
            seconds,
            self._goal[0, 3:7].copy(),
            self._goal[1, :3].copy(),
            multipliers=result.multipliers,
        )


def _weights(settings: PushConfig) -> _Weights:
    """Lengths in `length`, speeds in its root, angular speeds in one over its root."""
    root = np.sqrt(settings.length)
    scale = np.tile(np.repeat([1.0 / settings.length, 1.0, 1.0 / root, root], 3), 2)
    return _Weights(settings.state_weight * scale**2, scale)


def _scaled(constraint: Constraint, scale: Array) -> Constraint:
    """The same constraint counted in other units."""

    def linearize(state: Array, control: Array) -> Linearization:
        line = constraint.linearize(state, control)
        return Linearization(scale * line.values, scale[:, None] * line.x, scale[:, None] * line.u)

    def values(state: Array, control: Array) -> Array:
        return scale * constraint.at(state, control)

    return Constraint(linearize, constraint.equality, values)


def _direction(vector: Sequence[float] | Array) -> Array:
    """(3,) of unit length in the plane, zero where there is none."""
    flat = np.array([vector[0], vector[1], 0.0])
    length = float(np.linalg.norm(flat))
    return flat / length if length > 0.0 else flat
