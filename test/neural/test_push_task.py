"""The push as an optimiser's problem: its cost, constraints, units and feedback, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from contact_samples import box_body

from morphit_ros.neural.contact.parameters import largest_implicit_step
from morphit_ros.neural.dynamics.state import BodyState, add_tangent
from morphit_ros.neural.trajectory_optimization.augmented_lagrangian import AugmentedLagrangian
from morphit_ros.neural.trajectory_optimization.costs import GoalCost
from morphit_ros.neural.trajectory_optimization.ilqr import (
    TrajectoryConfig,
    TrajectoryResult,
    TrajectoryStatus,
    forward_rollout,
    optimize_trajectory,
)
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Linearization, TrajectoryProblem
from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
from morphit_ros.neural.trajectory_optimization.push_task import PushTask

BODY = box_body((0.1, 0.06, 0.04), 100, mass=0.4)
START = BodyState([0.0, 0.0, 0.0205])
TARGET = BodyState([0.08, 0.03, 0.0205])
PUSHER, PUSHER_GOAL = BodyState([-0.08, 0.0, 0.02]), np.array([0.0, 0.03, 0.02])
SETTINGS = {"steps": 4, "timestep": 0.008, "pusher_mass": 2.0, "pusher_radius": 0.02, "length": 0.09, "force_unit": 7.0}


def task(**changed: object) -> PushTask:
    return PushTask(BODY, START, TARGET, PUSHER, PUSHER_GOAL, PushConfig(**(SETTINGS | changed)))  # type: ignore[arg-type]


def at(tangent: np.ndarray) -> np.ndarray:
    """The goal of both bodies moved by tangents (2, 12)."""
    return add_tangent(np.stack([TARGET.flat, BodyState(PUSHER_GOAL).flat]), tangent).ravel()


AWAY = np.random.default_rng(0).normal(size=(2, 12)) * 0.3


def cost_of(tangent: np.ndarray, weight: float, length: float) -> float:
    places, turns, speeds, spins = np.split(tangent, 4, axis=1)
    squares = (places / length) ** 2 + turns**2 + speeds**2 / length + spins**2 * length
    return float(weight * squares.sum())


@pytest.mark.parametrize("length", [1.0, 0.09])
def test_the_cost_counts_in_lengths_of_the_object(length: float) -> None:
    problem = task(length=length, state_weight=0.3, control_weight=0.7).problem
    control = np.array([0.4, -1.0, 2.0])
    expected = cost_of(AWAY, 0.3, length)
    assert problem.stage_cost.value(at(AWAY), control) == pytest.approx(expected + 0.7 * control @ control)
    # At the end there is no force.
    assert problem.terminal_cost is not None
    assert problem.terminal_cost.value(at(AWAY), control) == pytest.approx(expected)


@pytest.mark.parametrize("pusher", [True, False])
@pytest.mark.parametrize("rest", [True, False])
def test_the_end_is_held_in_the_same_units(pusher: bool, rest: bool) -> None:
    (constraint,) = task(pusher_at_goal=pusher, arrive_at_rest=rest).problem.terminal_constraints
    root = np.sqrt(0.09)
    expected = [*AWAY[0, :3] / 0.09]
    expected += [*AWAY[1, :3] / 0.09] if pusher else []
    expected += [*AWAY[0, 6:8] / root, AWAY[0, 11] * root, *AWAY[1, 6:8] / root] if rest else []
    assert constraint.equality
    np.testing.assert_allclose(constraint.at(at(AWAY), np.zeros(3)), expected, atol=1e-12)
    line = constraint.linearize(at(AWAY), np.zeros(3))
    np.testing.assert_allclose(line.values, expected, atol=1e-12)
    for column in (0, 7, 11, 13):
        move = 1e-6 * np.eye(24)[column].reshape(2, 12)
        states = [add_tangent(at(AWAY).reshape(2, 13), side * move).ravel() for side in (1.0, -1.0)]
        slope = (constraint.at(states[0], np.zeros(3)) - constraint.at(states[1], np.zeros(3))) / 2e-6
        np.testing.assert_allclose(line.x[:, column], slope, atol=1e-6)


def test_forces_are_bounded_in_newtons_and_one_is_the_force_unit() -> None:
    problem = task(largest_force=3.5).problem
    np.testing.assert_allclose(problem.bounds, [[-0.5] * 3, [0.5] * 3])
    # Beside the object nothing acts on the sphere but its control: what carries it balances its weight.
    after = problem.dynamics.step(problem.initial_state, np.array([0.0, -0.2, 0.1])).reshape(2, 13)
    np.testing.assert_allclose(after[1, 7:10], np.array([0.0, -0.2, 0.1]) * 7.0 / 2.0 * 0.008, atol=1e-9)
    assert np.isinf(task().problem.bounds).all()


def test_a_plan_is_in_newtons_and_its_feedback_too() -> None:
    made = task(largest_force=20.0)
    rng = np.random.default_rng(1)
    states = np.tile(made.problem.initial_state, (5, 1))
    controls, gains = rng.normal(size=(4, 3)) * 0.3, rng.normal(size=(4, 3, 24))
    result = TrajectoryResult(TrajectoryStatus.CONVERGED, states, controls, gains, 1.0, 0.0, 3, 1, "")
    plan = made.plan(result, 0.5)
    np.testing.assert_allclose(plan.forces, 7.0 * controls)
    np.testing.assert_allclose(plan.goal, TARGET.position)
    np.testing.assert_allclose(plan.pusher_goal, PUSHER_GOAL)
    np.testing.assert_allclose(plan.times, 0.008 * np.arange(5))
    away = np.zeros((2, 12))
    away[1, 1], away[0, 5] = 0.01, -0.02
    seen = add_tangent(states[2].reshape(2, 13), away)
    expected = 7.0 * (controls[2] + gains[2] @ away.ravel())
    assert np.abs(expected).max() < 20.0
    np.testing.assert_allclose(plan.force(2, seen), expected, atol=1e-9)
    far = add_tangent(states[2].reshape(2, 13), 1000.0 * away * (np.arange(12) < 3))
    assert np.abs(plan.force(2, far)).max() == 20.0


def test_settings_for_a_body_suit_its_size_mass_and_way() -> None:
    config = PushConfig.scaled(BODY, distance=0.15, duration=2.4, friction=0.3, pusher_radius=0.012, steps=40)
    assert config.length == BODY.size
    assert config.timestep == pytest.approx(0.06)
    assert config.duration == pytest.approx(2.4)
    assert config.timestep / config.substeps <= largest_implicit_step(BODY.size)
    assert config.timestep / (config.substeps - 1) > 0.9 * largest_implicit_step(BODY.size)
    # What takes object and sphere over half the way in half the time, against friction.
    moved = (BODY.mass + config.pusher_mass) * 4.0 * 0.15 / 2.4**2
    assert config.force_unit == pytest.approx(moved + 0.3 * BODY.mass * 9.81, rel=1e-4)
    assert config.arrive_at_rest


def test_the_guess_is_the_push_that_comes_nearest() -> None:
    made = task(steps=40, friction=0.1)
    guess = made.guess()
    assert guess.shape == (40, 3)
    assert (guess == guess[0]).all() and guess[0, 0] > 0.0

    def miss(controls: np.ndarray) -> float:
        last = forward_rollout(made.problem.dynamics, made.problem.initial_state, controls)[-1]
        return float(np.linalg.norm(last[:3] - TARGET.position))

    assert miss(guess) < 0.7 * miss(np.zeros((40, 3)))


def test_the_optimiser_tells_costs_without_penalties_and_keeps_to_its_steps() -> None:
    made, told = task(), []
    config = TrajectoryConfig(total_iterations=3, iterations=2, initial_penalty=50.0)
    result = optimize_trajectory(
        made.problem, made.guess(), config, lambda number, cost, states: told.append((number, cost, states[-1].copy()))
    )
    assert result.iterations <= 3
    assert [number for number, _, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][1] == pytest.approx(result.cost, rel=1e-12)
    np.testing.assert_array_equal(told[-1][2], result.states[-1])
    problem, nothing = made.problem, np.zeros(3)
    assert problem.terminal_cost is not None
    by_hand = sum(problem.stage_cost.value(x, u) for x, u in zip(result.states, result.controls, strict=False))
    assert result.cost == pytest.approx(by_hand + problem.terminal_cost.value(result.states[-1], nothing))


def test_multipliers_of_what_must_not_be_positive_are_not_negative() -> None:
    # One step of a force that is pushed up by its cost and must stay under 0.2: far from it nothing is felt.
    made = task(steps=1)
    free = made.problem
    limit = Constraint(
        lambda state, control: Linearization(control[:1] - 0.2, np.zeros((1, 24)), np.eye(3)[:1]), equality=False
    )
    problem = TrajectoryProblem(
        free.dynamics, free.initial_state, GoalCost(free.dynamics, free.initial_state, np.zeros(24), np.ones(3)),
        stage_constraints=(limit,),
    )  # fmt: skip
    held = AugmentedLagrangian(problem, 1, 10.0)
    states = np.tile(free.initial_state, (2, 1))
    under, over = np.array([[-0.5, 0.0, 0.0]]), np.array([[0.3, 0.0, 0.0]])
    held.update_multipliers(states, under)
    assert held.value(states, under) == pytest.approx(0.25)
    # λ = 0 still: ½ ρ c² alone.
    assert held.value(states, over) == pytest.approx(0.09 + 0.5 * 10.0 * 0.1**2)
    held.update_multipliers(states, over)
    # λ = ρ c = 1 now: λ c + ½ ρ c².
    assert held.value(states, over) == pytest.approx(0.09 + 1.0 * 0.1 + 0.5 * 10.0 * 0.1**2)
    expansion = held.expand_stage(0, states[0], over[0])
    np.testing.assert_allclose(expansion.u, [0.6 + 1.0 + 10.0 * 0.1, 0.0, 0.0])
    np.testing.assert_allclose(np.diag(expansion.uu), [12.0, 2.0, 2.0])
