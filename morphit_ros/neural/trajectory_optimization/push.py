"""Push and slide: how a sphere has to move for an object on a plane to come to a goal (DANO, section V-C)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters, largest_implicit_step
from morphit_ros.neural.contact.shapes import HalfSpace
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import STATE_SIZE, TANGENT_SIZE, BodyState, subtract_states
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.trajectory_optimization.costs import GoalCost, goal_constraint
from morphit_ros.neural.trajectory_optimization.ilqr import (
    TrajectoryConfig,
    TrajectoryResult,
    TrajectoryStatus,
    optimize_trajectory,
    roll_out,
)
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Linearization, TrajectoryProblem
from morphit_ros.neural.trajectory_optimization.world_dynamics import WorldDynamics

_PUSHER, _TABLE, _OBJECT = "pusher", "table", "object"
# Constant forces tried as a first guess, relative to the one that covers the way in the time.
_GUESSES = (0.3, 0.5, 0.75, 1.0, 1.3, 1.7, 2.2)
# An object at rest moves less than this, in its own lengths per second.
_REST_SPEED = 1e-3
# A plan that is made anew begins close to its goal: its constraints can weigh at once, its cost needs no polish.
_REPLANNED_TOLERANCE, _REPLANNED_PENALTY = 1e-3, 300.0


@dataclass(frozen=True)
class PushConfig(Config):
    """The task of the paper: its numbers are the defaults, for an object of about unit size.

    For an object of another size set `length`; weights and constraints then refer to lengths in it, to speeds in
    √length and to forces in `force_unit`, and gravity stays as it is.
    """

    steps: int = parameter(60, "Steps of the plan", minimum=1, maximum=10000)
    timestep: float = parameter(0.02, "Step of the plan [s]", minimum=1e-4, maximum=1.0)
    substeps: int = parameter(1, "Steps of the simulation in a step of the plan", minimum=1, maximum=1000)
    pusher_mass: float = parameter(10.0, "Mass of the sphere [kg]", minimum=1e-4, maximum=1e5)
    pusher_radius: float = parameter(0.25, "Radius of the sphere [m]", minimum=1e-4, maximum=100.0)
    friction: float = parameter(0.05, "Sliding friction of object, plane and sphere", minimum=0.0, maximum=3.0)
    length: float = parameter(1.0, "Length in which the weights count positions [m]", minimum=1e-4, maximum=1e3)
    force_unit: float = parameter(
        50.0, "Force that counts as one in the costs [N]: in the paper an impulse of 1 N s", minimum=1e-6, maximum=1e9
    )
    largest_force: float = parameter(0.0, "Bound of each component of the force [N], 0 for none", minimum=0.0)
    state_weight: float = parameter(0.1, "Weight of the squared distance to the goal state", minimum=0.0, maximum=1e6)
    control_weight: float = parameter(0.2, "Weight of the squared force", minimum=1e-9, maximum=1e6)
    pusher_at_goal: bool = parameter(True, "Whether the sphere must end where its own goal is")
    arrive_at_rest: bool = parameter(False, "Whether object and sphere must be at rest at the end")
    contact: ContactParameters = nested(ContactParameters)
    optimization: TrajectoryConfig = nested(TrajectoryConfig)

    @property
    def duration(self) -> float:
        """[s]."""
        return self.steps * self.timestep

    @classmethod
    def scaled(
        cls, body: ContactBody, distance: float, duration: float, friction: float, pusher_radius: float, steps: int = 60
    ) -> Self:
        """For a body of any size that is pushed slowly and has to stop: lengths, forces and steps that suit it.

        Args:
            body: to be pushed.
            distance: how far [m].
            duration: of the push [s].
            friction: of body, plane and sphere.
            pusher_radius: [m].
            steps: of the plan.

        Raises:
            InvalidInputError: numbers that are not positive, or out of the range of a field.
        """
        for name, value in (("distance", distance), ("duration", duration), ("steps", steps)):
            if not (np.isfinite(value) and value > 0.0):
                raise InvalidInputError(name, value, "a positive number")
        timestep, pusher_mass = duration / steps, 5.0 * body.mass
        moved = (body.mass + pusher_mass) * 4.0 * distance / duration**2
        return cls(
            steps=steps,
            timestep=timestep,
            # A little shorter than the longest step that the simulation takes.
            substeps=int(np.ceil(timestep / (0.95 * largest_implicit_step(body.size)))),
            pusher_mass=pusher_mass,
            pusher_radius=pusher_radius,
            friction=friction,
            length=body.size,
            force_unit=moved + friction * body.mass * GRAVITY + 1e-6,
            arrive_at_rest=True,
            optimization=TrajectoryConfig(cost_tolerance=1e-4, constraint_tolerance=5e-3, initial_penalty=10.0),
        )


@dataclass(frozen=True)
class PushPlan:
    """A motion of the sphere and where the object goes with it.

    Attributes:
        status: outcome of the optimisation.
        message: for people.
        config: of the task.
        goal: (3,) wanted position of the object's centre of mass [m].
        times: (T + 1,) [s].
        states: (T + 1, 2, 13) of object and sphere, as in `BodyState.flat`.
        forces: (T, 3) on the sphere's centre, besides what carries its weight [N].
        gains: (T, 3, 24) feedback [N]: forces + gains (x − states) in tangents.
        cost: of the trajectory, as the paper counts it.
        violation: the worst violation of the goal [`length`, and speeds in its root].
        iterations: of the optimiser.
        seconds: that planning took.
        goal_quat_xyzw: (4,) how the object should lie there; counts in the cost only.
        pusher_goal: (3,) wanted position of the sphere's centre [m].
    """

    status: TrajectoryStatus
    message: str
    config: PushConfig
    goal: Array
    times: Array
    states: Array
    forces: Array
    gains: Array
    cost: float
    violation: float
    iterations: int
    seconds: float
    goal_quat_xyzw: Array
    pusher_goal: Array

    @property
    def success(self) -> bool:
        """Whether the goal is reached to within the optimiser's tolerance."""
        return self.status in (TrajectoryStatus.CONVERGED, TrajectoryStatus.FEASIBLE)

    @property
    def object_positions(self) -> Array:
        """(T + 1, 3) of the centre of mass [m]."""
        return self.states[:, 0, :3]

    @property
    def object_quats_xyzw(self) -> Array:
        """(T + 1, 4)."""
        return self.states[:, 0, 3:7]

    @property
    def pusher_positions(self) -> Array:
        """(T + 1, 3) of the sphere's centre [m]."""
        return self.states[:, 1, :3]

    @property
    def pusher_velocities(self) -> Array:
        """(T + 1, 3) [m/s]."""
        return self.states[:, 1, 7:10]

    def force(self, index: int, states: Array) -> Array:
        """(3,) force on the sphere in a step, with feedback on where object and sphere are: states (2, 13) [N]."""
        away = subtract_states(states, self.states[index])
        force = self.forces[index] + self.gains[index] @ away
        largest = self.config.largest_force or np.inf
        return np.clip(force, -largest, largest)

    @property
    def miss(self) -> float:
        """Distance of the object from its goal at the end [m]."""
        return float(np.linalg.norm(self.object_positions[-1] - self.goal))


def rest_on_plane(body: ContactBody, start: BodyState, config: PushConfig | None = None) -> BodyState:
    """Where a body that is put down near the plane z = 0 comes to rest, sliding aside.

    Raises:
        InvalidInputError: it doesn't come to rest within a few seconds: it rolls, or falls from too high.
    """
    settings = config or PushConfig()
    step = settings.timestep / settings.substeps
    contact = ContactParameters(**(settings.contact.to_flat() | {"friction": 1.0}))
    world = World(
        [RigidBody.from_contact_body(body, name=_OBJECT)], [Obstacle(HalfSpace(), name=_TABLE)], contact, step
    )
    # As long as it takes to fall over, a few times.
    steps = int(np.ceil(20.0 * np.sqrt(body.size / GRAVITY) / step))
    result = simulate(world, start, steps)
    last = result.states[-1, 0]
    speed = float(np.linalg.norm(last[7:10])) + body.size * float(np.linalg.norm(last[10:]))
    if result.status != "completed" or speed > _REST_SPEED * body.size:
        raise InvalidInputError(
            "start", f"a pose from which it still moves by {speed:.3g} m/s after {steps * step:.1f} s",
            "one in which it lies on the plane", "Put it down on a side on which it can lie.",
        )  # fmt: skip
    return BodyState(last[:3], last[3:7])


def plan_push(
    body: ContactBody,
    start: BodyState,
    goal: ArrayLike,
    pusher_start: ArrayLike,
    pusher_goal: ArrayLike | None = None,
    config: PushConfig | None = None,
    guess: Array | None = None,
    progress: Callable[[int, float, float], None] | None = None,
) -> PushPlan:
    """Plan the motion of a sphere that pushes a body over the plane z = 0 to a goal.

    The cost is the paper's, .1 ‖x − x_T‖² + .2 ‖u‖² at every step, with the positions of body and sphere as constraints
    at the end. The sphere is carried: neither its weight nor the plane act on it.

    Args:
        body: contact points, mass and inertia.
        start: of the body, at rest: see `rest_on_plane`.
        goal: (2,) position of its centre of mass on the plane at the end [m]; its height stays.
        pusher_start: (3,) centre of the sphere, at rest [m].
        pusher_goal: (3,) at the end [m]; None: as it stood to the object at the start.
        config: the task.
        guess: (T, 3) forces to begin with [N]; None tries some constant ones.
        progress: told after each step of the optimiser: how many there were, the cost, the object's miss [m].

    Raises:
        InvalidInputError: positions that are not finite, a sphere that starts inside of the body, a time step that is
            too long.
    """
    settings = config or PushConfig()
    began = time.perf_counter()
    target = _numbers("goal", goal, 2)
    sphere = _numbers("pusher_start", pusher_start, 3)
    shift = np.array([*(target - start.position[:2]), 0.0])
    sphere_goal = sphere + shift if pusher_goal is None else _numbers("pusher_goal", pusher_goal, 3)
    target_state = BodyState(np.array([*target, start.position[2]]), start.quat_xyzw)
    task = _Task(body, start, target_state, BodyState(sphere), sphere_goal, settings)
    if guess is None:
        controls = task.guess()
    else:
        if np.shape(guess) != (settings.steps, 3):
            raise InvalidInputError("guess", f"shape {np.shape(guess)}", f"shape ({settings.steps}, 3)")
        controls = np.asarray(guess, dtype=np.float64) / settings.force_unit

    def tell(iteration: int, cost: float, states: Array) -> None:
        if progress is not None:
            progress(iteration, cost, float(np.linalg.norm(states[-1, :3] - target_state.position)))

    result = optimize_trajectory(task.problem, controls, settings.optimization, tell)
    return task.plan(result, time.perf_counter() - began)


def replan_push(
    body: ContactBody,
    plan: PushPlan,
    index: int,
    states: Array,
    iterations: int = 6,
) -> PushPlan:
    """Plan the rest of a push anew from where object and sphere are seen, beginning with the plan's own forces.

    Args:
        body: as it was planned for.
        plan: of the whole push, or of its rest from an earlier look.
        index: step of this plan that is about to begin.
        states: (2, 13) of object and sphere, as in `BodyState.flat`.
        iterations: bound on the optimiser's steps between two updates of multipliers, of which there are two, so that
            an answer comes in time.

    Returns:
        a plan of the remaining steps, whose times begin with zero; its status says whether it reaches the goal.

    Raises:
        InvalidInputError: no step is left, or states that the simulation refuses.
    """
    left = plan.config.steps - index
    if not 0 <= index < plan.config.steps:
        raise InvalidInputError("index", index, f"0 to {plan.config.steps - 1}")
    if np.shape(states) != (2, STATE_SIZE):
        raise InvalidInputError("states", f"shape {np.shape(states)}", f"shape (2, {STATE_SIZE})")
    began = time.perf_counter()
    chosen = plan.config.optimization
    limits = replace(
        chosen,
        iterations=iterations,
        dual_updates=2,
        cost_tolerance=max(chosen.cost_tolerance, _REPLANNED_TOLERANCE),
        initial_penalty=max(chosen.initial_penalty, _REPLANNED_PENALTY),
    )
    settings = replace(plan.config, steps=left, optimization=limits)
    start, pusher = (BodyState(row[:3], row[3:7], row[7:10], row[10:]) for row in np.asarray(states, dtype=np.float64))
    target = BodyState(plan.goal, plan.goal_quat_xyzw)
    task = _Task(body, start, target, pusher, plan.pusher_goal, settings)
    result = optimize_trajectory(task.problem, plan.forces[index:] / settings.force_unit, limits)
    return task.plan(result, time.perf_counter() - began)


class _Weights(NamedTuple):
    """One for each entry of the tangent of object and sphere."""

    cost: Array
    scale: Array


class _Task:
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
            [Obstacle(HalfSpace(), name=_TABLE)],
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
                last = roll_out(self._dynamics, self.problem.initial_state, controls)[-1]
                miss = float(np.linalg.norm(last[:3] - self._goal[0, :3]))
                if miss < nearest:
                    best, nearest = controls, miss
        return best

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


def _numbers(name: str, given: ArrayLike, size: int) -> Array:
    array = np.array(given, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InvalidInputError(name, array.tolist(), f"{size} finite numbers [m]")
    return array
