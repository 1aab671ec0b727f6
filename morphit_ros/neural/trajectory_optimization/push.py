"""Push and slide: how a sphere has to move for an object on a plane to come to a goal (DANO, section V-C)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.array_faults import array_fault
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import GRAVITY, ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import STATE_SIZE, BodyState
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.trajectory_optimization.ilqr import TrajectoryStatus, optimize_trajectory
from morphit_ros.neural.trajectory_optimization.merit import Merit
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_plan import PlanOrigin, PushPlan
from morphit_ros.neural.trajectory_optimization.push_task import PushTask

_TABLE, _OBJECT = "table", "object"
# An object at rest moves less than this, in its own lengths per second.
_REST_SPEED = 1e-3
# A plan that is made anew begins close to its goal: its constraints can weigh at once, its cost needs no polish.
_REPLANNED_TOLERANCE, _REPLANNED_PENALTY = 1e-3, 300.0


def rest_on_plane(body: ContactBody, start: BodyState, config: PushConfig | None = None) -> BodyState:
    """Where a body that is put down near the plane z = 0 comes to rest, sliding aside.

    Raises:
        InvalidInputError: it doesn't come to rest within a few seconds: it rolls, or falls from too high.
    """
    settings = config or PushConfig()
    step = settings.timestep / settings.substeps
    contact = ContactParameters(**(settings.contact.to_flat() | {"friction": 1.0}))
    world = World(
        [RigidBody.from_contact_body(body, name=_OBJECT)], [Obstacle(ContactHalfSpace(), name=_TABLE)], contact, step
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
    task = PushTask(body, start, target_state, BodyState(sphere), sphere_goal, settings)
    if guess is None:
        controls = task.guess()
    else:
        if fault := array_fault(np.asarray(guess, dtype=np.float64), (settings.steps, 3)):
            raise InvalidInputError("guess", fault, f"finite numbers of shape ({settings.steps}, 3)")
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
    time_limit: float = 0.0,
) -> PushPlan:
    """Plan the rest of a push anew from where object and sphere are seen; the rest of the plan is kept if it is better.

    The rest is tried in the simulation from what is seen, by its forces alone and with its feedback. The better one of
    the two starts the optimiser, with the multipliers that the plan ended with; the best of all that was tried is
    returned: what reaches the goal first, then what costs less. So it never worsens a plan, as far as the simulation
    can tell, however short its time is.

    Args:
        body: as it was planned for.
        plan: of the whole push, or of its rest from an earlier look.
        index: step of this plan that is about to begin.
        states: (2, 13) of object and sphere, as in `BodyState.flat`.
        iterations: bound on the optimiser's steps between two updates of multipliers, of which there are two, so that
            an answer comes in time.
        time_limit: time after which no step of the optimiser is begun [s], 0 for none. It ends by about one such step
            later.

    Returns:
        a plan of the remaining steps, whose times begin with zero. Its status says whether it reaches the goal, its
        origin whether it is new, its `seconds` how long that took and its `period` how often that can be done. Where
        the simulation refuses what is seen, such as a sphere deep in the object, it is the rest as it was planned.

    Raises:
        InvalidInputError: no step is left, states of another shape or that are not finite, iterations below one.
    """
    left = plan.config.steps - index
    if not 0 <= index < plan.config.steps:
        raise InvalidInputError("index", index, f"0 to {plan.config.steps - 1}")
    if fault := array_fault(np.asarray(states, dtype=np.float64), (2, STATE_SIZE)):
        raise InvalidInputError("states", fault, f"finite numbers of shape (2, {STATE_SIZE})")
    began = time.perf_counter()
    chosen = plan.config.optimization
    limits = replace(
        chosen,
        iterations=iterations,
        dual_updates=2,
        cost_tolerance=max(chosen.cost_tolerance, _REPLANNED_TOLERANCE),
        initial_penalty=max(chosen.initial_penalty, _REPLANNED_PENALTY),
        time_limit=time_limit,
        keep_best=True,
    )
    settings = replace(plan.config, steps=left, optimization=limits)
    start, pusher = (BodyState(row[:3], row[3:7], row[7:10], row[10:]) for row in np.asarray(states, dtype=np.float64))
    target = BodyState(plan.goal, plan.goal_quat_xyzw)
    try:
        task = PushTask(body, start, target, pusher, plan.pusher_goal, settings)
    except InvalidInputError as error:
        return _as_planned(plan, index, settings, f"not judged, as the simulation refuses what is seen: {error}", began)
    rests = task.rests(plan, index)
    if not rests:
        words = "not judged, as the simulation finds no motion from what is seen"
        return _as_planned(plan, index, settings, words, began)
    kept = rests[0]
    try:
        if time_limit > 0.0:
            # Trying the rest took some of it.
            limits = replace(limits, time_limit=max(began + time_limit - time.perf_counter(), 1e-9))
        found = optimize_trajectory(task.problem, kept.controls, limits, multipliers=plan.multipliers)
    except (InvalidInputError, ArithmeticError, np.linalg.LinAlgError) as error:
        failed = f"kept, as the optimisation failed: {error}"
        return replace(task.plan(kept.result(failed), time.perf_counter() - began), origin=PlanOrigin.KEPT)
    if Merit(found.cost, found.violation).better_than(kept.merit, limits.constraint_tolerance):
        found = replace(found, multipliers=found.multipliers or plan.multipliers)
        return replace(task.plan(found, time.perf_counter() - began), origin=PlanOrigin.ANEW)
    words = f"kept, as nothing better was found: {found.message}"
    gains = found.gains if np.array_equal(found.controls, kept.controls) else kept.gains
    better = replace(
        kept.result(words), gains=gains, iterations=found.iterations, multipliers=found.multipliers or plan.multipliers
    )
    return replace(task.plan(better, time.perf_counter() - began), origin=PlanOrigin.KEPT)


def _as_planned(plan: PushPlan, index: int, settings: PushConfig, message: str, began: float) -> PushPlan:
    """The rest of a plan from a step on, untouched."""
    return replace(
        plan,
        status=TrajectoryStatus.INFEASIBLE,
        message=message,
        config=settings,
        times=plan.times[: len(plan.times) - index],
        states=plan.states[index:],
        forces=plan.forces[index:],
        gains=plan.gains[index:],
        cost=float("inf"),
        violation=float("inf"),
        iterations=0,
        seconds=time.perf_counter() - began,
        origin=PlanOrigin.UNJUDGED,
    )


def _numbers(name: str, given: ArrayLike, size: int) -> Array:
    array = np.array(given, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise InvalidInputError(name, array.tolist(), f"{size} finite numbers [m]")
    return array
