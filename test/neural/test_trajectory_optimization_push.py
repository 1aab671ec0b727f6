"""Pushes over a plane: dynamics with contact inside the optimiser, and plans that reach their goals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.parameters import ContactParameters
from morphit_ros.neural.contact.shapes import ContactHalfSpace, ContactSphere
from morphit_ros.neural.dynamics.simulate import simulate
from morphit_ros.neural.dynamics.state import BodyState, add_tangent, subtract_states
from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
from morphit_ros.neural.trajectory_optimization import push
from morphit_ros.neural.trajectory_optimization.costs import GoalCost
from morphit_ros.neural.trajectory_optimization.ilqr import (
    TrajectoryConfig,
    TrajectoryResult,
    TrajectoryStatus,
    forward_rollout,
)
from morphit_ros.neural.trajectory_optimization.merit import Merit, merit_of
from morphit_ros.neural.trajectory_optimization.push import plan_push, replan_push, rest_on_plane
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_plan import PlanOrigin
from morphit_ros.neural.trajectory_optimization.replanned_push import ReplanningPush
from morphit_ros.neural.trajectory_optimization.world_dynamics import WorldDynamics

SIZE = np.array([0.6, 0.9, 0.4])
CONFIG = PushConfig(
    steps=30,
    timestep=0.03,
    friction=0.2,
    contact=ContactParameters(indicator_width=1e-3),
    optimization=TrajectoryConfig(iterations=20, cost_tolerance=1e-3, constraint_tolerance=1e-2, initial_penalty=100.0),
)
PUSHER = np.array([-0.6, 0.0, 0.25])


def box_body(mass: float = 3.0) -> ContactBody:
    axes = [np.linspace(-0.5, 0.5, count) for count in (7, 9, 5)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    points = points[np.abs(points).max(axis=1) > 0.499] * SIZE
    inertia = mass / 12.0 * np.diag((SIZE**2).sum() - SIZE**2)
    weights = np.full(len(points), mass / len(points))
    return ContactBody(points, weights, np.zeros_like(points), mass, inertia, np.zeros(3))


@pytest.fixture(scope="module")
def body() -> ContactBody:
    return box_body()


@pytest.fixture(scope="module")
def start(body: ContactBody) -> BodyState:
    return rest_on_plane(body, BodyState([0.0, 0.0, 0.22]), CONFIG)


@pytest.fixture(scope="module")
def plan(body: ContactBody, start: BodyState):
    return plan_push(body, start, np.add(start.position[:2], [0.5, 0.15]), PUSHER, config=CONFIG)


def push_world(body: ContactBody) -> World:
    ball = RigidBody.ball(0.25, 10.0, "ball")
    parameters = ContactParameters(friction=0.2, indicator_width=1e-3)
    return World([body, ball], [Obstacle(ContactHalfSpace())], parameters, 0.015, controls=[("ball", "force")])


def test_steps_of_a_world_are_its_simulation_and_have_its_derivatives(body: ContactBody, start: BodyState) -> None:
    world, carried = push_world(body), np.zeros((2, 6))
    carried[1, 2] = 98.1
    dynamics = WorldDynamics(world, substeps=2, control_scale=50.0, wrenches=carried)
    # In contact with plane and ball, turned and moving.
    turned = BodyState(start.position, [0.0, 0.0, np.sin(0.1), np.cos(0.1)], [0.3, 0.1, 0.0], [0.0, 0.0, 0.4])
    state = np.stack([turned.flat, BodyState([-0.55, 0.05, 0.25], velocity=[0.5, 0.0, 0.0]).flat])
    control = np.array([0.8, -0.3, 0.1])
    following = dynamics.step(state.ravel(), control).reshape(2, 13)
    simulated = simulate(world, state, 2, controls=50.0 * control, wrenches=carried)
    np.testing.assert_allclose(following, simulated.states[-1], atol=1e-9)
    assert np.linalg.norm(simulated.velocities[-1, 0] - turned.velocity) > 0.01
    A, B = dynamics.linearize(state.ravel(), control)
    size = 1e-6
    for matrix, count, moved in (
        (A, 24, lambda change: dynamics.step(add_tangent(state, change).ravel(), control)),
        (B, 3, lambda change: dynamics.step(state.ravel(), control + change)),
    ):
        for column, direction in enumerate(np.eye(count)):
            ahead, behind = moved(size * direction), moved(-size * direction)
            slope = (dynamics.difference(ahead, following) - dynamics.difference(behind, following)) / (2.0 * size)
            np.testing.assert_allclose(matrix[:, column], slope, atol=2e-5 * max(1.0, np.abs(slope).max()))


def test_differences_and_costs_of_turned_bodies_have_exact_gradients(body: ContactBody) -> None:
    dynamics = WorldDynamics(push_world(body))
    rng = np.random.default_rng(3)
    goal = np.stack([BodyState().flat, BodyState([1.0, 0.0, 0.0]).flat])
    state = add_tangent(goal, rng.normal(size=24))
    np.testing.assert_allclose(
        dynamics.difference(state.ravel(), goal.ravel()), subtract_states(state, goal), atol=1e-12
    )
    cost = GoalCost(dynamics, goal.ravel(), rng.random(24), rng.random(3))
    control = rng.normal(size=3)
    expansion = cost.expand(state.ravel(), control)
    assert expansion.value == cost.value(state.ravel(), control)
    size = 1e-6
    slopes = [
        (cost.value(add_tangent(state, d).ravel(), control) - cost.value(add_tangent(state, -d).ravel(), control))
        / (2.0 * size)
        for d in size * np.eye(24)
    ]
    np.testing.assert_allclose(expansion.x, slopes, atol=1e-8)
    np.testing.assert_allclose(expansion.u, [
        (cost.value(state.ravel(), control + d) - cost.value(state.ravel(), control - d)) / (2.0 * size)
        for d in size * np.eye(3)
    ], atol=1e-8)  # fmt: skip


def test_push_reaches_its_goal_and_the_forces_do_it_again(plan, body: ContactBody, start: BodyState) -> None:
    assert plan.success
    assert plan.miss < 0.02
    np.testing.assert_allclose(plan.pusher_positions[-1], np.add(PUSHER, [0.5, 0.15, 0.0]), atol=0.02)
    # The same world through the front door, open loop.
    ball = RigidBody.ball(0.25, 10.0, "ball")
    parameters = ContactParameters(friction=0.2, indicator_width=1e-3)
    world = World([body, ball], [Obstacle(ContactHalfSpace())], parameters, 0.03, controls=[("ball", "force")])
    carried = np.zeros((2, 6))
    carried[1, 2] = 98.1
    again = simulate(world, [start, BodyState(PUSHER)], 30, controls=plan.forces, wrenches=carried)
    np.testing.assert_allclose(again.positions[-1, 0], plan.object_positions[-1], atol=1e-6)


def test_feedback_holds_against_a_disturbance(plan, body: ContactBody) -> None:
    np.testing.assert_allclose(plan.force(4, plan.states[4]), plan.forces[4])
    nudged = plan.states[4].copy()
    nudged[1, 1] += 0.01
    assert np.linalg.norm(plan.force(4, nudged) - plan.forces[4]) > 1e-3


def test_plan_made_anew_mends_a_disturbance(plan, body: ContactBody) -> None:
    nudged = plan.states[5].copy()
    nudged[1, 1] += 0.05
    carried = np.zeros((2, 6))
    carried[1, 2] = 98.1
    ball = RigidBody.ball(0.25, 10.0, "ball")
    parameters = ContactParameters(friction=0.2, indicator_width=1e-3)
    world = World([body, ball], [Obstacle(ContactHalfSpace())], parameters, 0.03, controls=[("ball", "force")])
    blind = simulate(world, nudged, 25, controls=plan.forces[5:], wrenches=carried)
    blind_miss = np.linalg.norm(blind.positions[-1, 0] - plan.goal)
    anew = replan_push(body, plan, 5, nudged)
    assert anew.forces.shape == (25, 3)
    np.testing.assert_array_equal(anew.states[0], nudged)
    np.testing.assert_allclose(anew.goal, plan.goal, atol=1e-12)
    np.testing.assert_allclose(anew.pusher_goal, plan.pusher_goal, atol=1e-12)
    assert anew.miss < 0.3 * blind_miss
    # As feedback: the plan's forces until the first look, then those of the new plan.
    feedback = ReplanningPush(body, plan, every=5)
    np.testing.assert_array_equal(feedback(4, nudged), plan.forces[4])
    np.testing.assert_allclose(feedback(5, nudged), anew.forces[0])
    np.testing.assert_allclose(feedback(6, nudged), anew.forces[1])
    assert len(feedback.seconds) == 1
    with pytest.raises(InvalidInputError, match="index"):
        replan_push(body, plan, 30, nudged)
    with pytest.raises(InvalidInputError, match="states"):
        replan_push(body, plan, 5, nudged[0])
    with pytest.raises(InvalidInputError, match="every"):
        ReplanningPush(body, plan, every=0)


def nudge(plan, index: int, aside: float):
    """What the plan expects at a step, with both bodies moved aside [m]."""
    seen = plan.states[index].copy()
    seen[:, 1] += aside
    return seen


def merit_by_hand(body: ContactBody, plan, index: int, seen: np.ndarray, with_feedback: bool) -> tuple[float, float]:
    """Cost and violation of the rest of a plan, by another way than the planner's: the paper's sums."""
    ball = RigidBody.ball(0.25, 10.0, "ball")
    parameters = ContactParameters(friction=0.2, indicator_width=1e-3)
    world = World([body, ball], [Obstacle(ContactHalfSpace())], parameters, 0.03, controls=[("ball", "force")])
    carried = np.zeros((2, 6))
    carried[1, 2] = 98.1
    goal = np.stack([BodyState(plan.goal, plan.goal_quat_xyzw).flat, BodyState(plan.pusher_goal).flat])
    state, cost = seen, 0.0
    for step in range(index, plan.config.steps):
        force = plan.force(step, state) if with_feedback else plan.forces[step]
        away = subtract_states(state, goal)
        cost += 0.1 * float(away @ away) + 0.2 * float(force @ force) / 50.0**2
        state = simulate(world, state, 1, controls=force[None], wrenches=carried).states[-1]
    away = subtract_states(state, goal)
    return cost + 0.1 * float(away @ away), float(np.abs(away[[0, 1, 2, 12, 13, 14]]).max())


@pytest.mark.parametrize(("index", "aside"), [(5, 0.0), (5, 2e-3), (12, -4e-3), (20, 1e-3), (26, 0.01)])
@pytest.mark.parametrize("effort", [{"iterations": 1}, {"time_limit": 1e-6}, {}])
def test_planning_anew_never_worsens_a_plan(plan, body: ContactBody, index: int, aside: float, effort) -> None:
    seen, tolerance = nudge(plan, index, aside), CONFIG.optimization.constraint_tolerance
    anew = replan_push(body, plan, index, seen, **effort)
    for with_feedback in (False, True):
        cost, violation = merit_by_hand(body, plan, index, seen, with_feedback)
        if violation < 0.999 * tolerance:
            assert anew.success
            assert anew.violation <= tolerance
            assert anew.cost <= cost * (1.0 + 1e-6)
        else:
            assert anew.violation <= violation * (1.0 + 1e-6)
    # What it says of itself is so.
    cost, violation = merit_by_hand(body, replace(anew, config=anew.config), 0, seen, False)
    assert anew.cost == pytest.approx(cost, rel=1e-6)
    assert anew.violation == pytest.approx(violation, abs=1e-6)
    assert anew.success == (anew.violation <= tolerance)
    assert anew.origin in (PlanOrigin.ANEW, PlanOrigin.KEPT)
    assert ("kept" in anew.message) == (anew.origin is PlanOrigin.KEPT)
    assert anew.period >= 1.25 * anew.seconds > 0.0
    assert anew.period == pytest.approx(0.03 * round(anew.period / 0.03))


def worse_result(problem, controls, config, progress=None, multipliers=()) -> TrajectoryResult:
    """Of an optimiser that went astray: no force at all."""
    controls = np.zeros_like(controls)
    states = forward_rollout(problem.dynamics, problem.initial_state, controls)
    merit = merit_of(problem, states, controls)
    return TrajectoryResult(
        TrajectoryStatus.CONVERGED, states, controls, np.zeros((*controls.shape, 24)), *merit, 1, 0, ""
    )


def no_result(error: Exception):
    def fail(*given, **named):
        raise error

    return fail


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [
        (worse_result, "nothing better was found"),
        (no_result(InvalidInputError("state", "one from which no step leads on", "another")), "optimisation failed"),
        (no_result(np.linalg.LinAlgError("Singular matrix")), "failed: Singular matrix"),
        (no_result(FloatingPointError("overflow")), "failed: overflow"),
    ],
)
def test_a_plan_is_kept_where_planning_anew_fails(plan, body: ContactBody, monkeypatch, optimizer, words) -> None:
    monkeypatch.setattr(push, "optimize_trajectory", optimizer)
    kept = replan_push(body, plan, 10, plan.states[10])
    assert kept.origin is PlanOrigin.KEPT
    assert words in kept.message
    # From where the plan expected to be it is still feasible, and the same.
    assert kept.success
    np.testing.assert_allclose(kept.forces, plan.forces[10:], atol=1e-6)
    np.testing.assert_allclose(kept.states, plan.states[10:], atol=1e-6)
    np.testing.assert_allclose(kept.gains, plan.gains[10:], rtol=1e-12)
    assert kept.config.steps == 20
    # It can be planned anew again.
    monkeypatch.undo()
    assert replan_push(body, kept, 5, kept.states[5]).success


def test_what_the_simulation_refuses_leaves_the_plan_as_it_was(plan, body: ContactBody) -> None:
    # The sphere is seen deep in the object.
    seen = plan.states[10].copy()
    seen[1, :3] = seen[0, :3] + [-0.3, 0.0, 0.03]
    rest = replan_push(body, plan, 10, seen)
    assert rest.origin is PlanOrigin.UNJUDGED
    assert "deep at the start" in rest.message
    assert not rest.success
    np.testing.assert_array_equal(rest.forces, plan.forces[10:])
    np.testing.assert_array_equal(rest.states, plan.states[10:])
    assert (len(rest.times), rest.config.steps) == (21, 20)
    feedback = ReplanningPush(body, plan, every=10)
    np.testing.assert_array_equal(feedback(10, seen), plan.forces[10])
    assert feedback.origins == [PlanOrigin.UNJUDGED]
    # A look that makes sense again is judged again, and numbers that are none are refused as before.
    assert replan_push(body, rest, 2, plan.states[12]).success
    with pytest.raises(InvalidInputError, match="finite"):
        replan_push(body, plan, 10, np.full((2, 13), np.nan))


def test_planning_anew_begins_with_the_multipliers_of_the_plan(plan, body: ContactBody) -> None:
    """With them a step or two settle what takes rounds without, from where the plan expected to be and beside it."""
    seen = nudge(plan, 8, 4e-3)
    warm, cold = (replan_push(body, old, 8, seen) for old in (plan, replace(plan, multipliers=())))
    assert plan.multipliers[0].shape == (6,)
    assert warm.success
    assert cold.success
    assert warm.iterations < cold.iterations


def test_goal_that_the_bounded_force_cannot_reach_is_a_status(body: ContactBody, start: BodyState) -> None:
    config = PushConfig(
        **(
            {name: getattr(CONFIG, name) for name in ("timestep", "friction", "contact")}
            | {"steps": 8, "largest_force": 40.0}
        ),
        optimization=TrajectoryConfig(iterations=4, dual_updates=2),
    )
    plan = plan_push(body, start, np.add(start.position[:2], [5.0, 0.0]), PUSHER, config=config)
    assert plan.status is TrajectoryStatus.INFEASIBLE
    assert "violated" in plan.message
    assert np.abs(plan.forces).max() <= 40.0 + 1e-9
    assert plan.miss > 4.0


def test_bad_input_is_refused(body: ContactBody, start: BodyState) -> None:
    with pytest.raises(InvalidInputError, match="goal"):
        plan_push(body, start, [np.nan, 0.0], PUSHER, config=CONFIG)
    with pytest.raises(InvalidInputError, match="pusher_start"):
        plan_push(body, start, [1.0, 0.0], PUSHER[:2], config=CONFIG)
    with pytest.raises(InvalidInputError, match="guess"):
        plan_push(body, start, [1.0, 0.0], PUSHER, config=CONFIG, guess=np.zeros((5, 3)))
    with pytest.raises(InvalidInputError, match="deep at the start"):
        plan_push(body, start, [1.0, 0.0], [-0.3, 0.0, 0.25], config=CONFIG)
    with pytest.raises(InvalidInputError, match="step"):
        plan_push(body, start, [1.0, 0.0], PUSHER, config=PushConfig(timestep=0.5))
    with pytest.raises(InvalidInputError, match="steps"):
        PushConfig(steps=0)
    with pytest.raises(InvalidInputError, match="controls"):
        WorldDynamics(World([body], [Obstacle(ContactHalfSpace())]))
    moving = Obstacle(ContactSphere(0.1), positions=np.array([[2.0, 0.0, 1.0], [2.0, 0.0, 1.1]]))
    with pytest.raises(InvalidInputError, match="driven"):
        WorldDynamics(World([body], [moving], controls=[("body0", "force")]))


def test_body_that_does_not_come_to_rest_is_refused() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    points *= 0.3 / np.linalg.norm(points, axis=1, keepdims=True)
    ball = ContactBody(points, np.full(400, 0.01), np.zeros((400, 3)), 4.0, 0.144 * np.eye(3), np.zeros(3))
    with pytest.raises(InvalidInputError, match="still moves"):
        rest_on_plane(ball, BodyState([0.0, 0.0, 40.0]), CONFIG)


def test_what_reaches_its_goal_is_better_than_what_costs_less() -> None:
    near, cheap, far = Merit(5.0, 0.01), Merit(1.0, 0.2), Merit(1.0, 0.3)
    assert near.better_than(cheap, 0.1)
    assert not cheap.better_than(near, 0.1)
    # Both within the tolerance: what costs less. Both outside: what is nearer.
    assert cheap.better_than(near, 0.25)
    assert cheap.better_than(far, 0.1)
    assert not near.better_than(near, 0.1)
    for broken in (Merit(np.nan, 0.0), Merit(0.0, np.inf)):
        assert not broken.better_than(far, 0.1)
        assert far.better_than(broken, 0.1)
