"""Constrained iLQR on systems whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.trajectory_optimization.box_program import minimize_in_box
from morphit_ros.neural.trajectory_optimization.costs import GoalCost, goal_constraint
from morphit_ros.neural.trajectory_optimization.ilqr import (
    TrajectoryConfig,
    TrajectoryStatus,
    forward_rollout,
    optimize_trajectory,
)
from morphit_ros.neural.trajectory_optimization.problem import Constraint, Linearization, TrajectoryProblem


class LinearSystem:
    """x⁺ = A x + B u."""

    def __init__(self, A: np.ndarray, B: np.ndarray) -> None:
        self.A, self.B = A, B
        self.tangent_size, self.control_size = B.shape

    def step(self, state, control):
        return self.A @ state + self.B @ control

    def linearize(self, state, control):
        return self.A, self.B

    def difference(self, state, reference):
        return state - reference

    def difference_jacobian(self, state, reference):
        return np.eye(self.tangent_size)


class Pendulum(LinearSystem):
    """A pendulum of 1 m and 1 kg that hangs at 0, with a torque at its pivot [N m]; semi-implicit steps."""

    def __init__(self, timestep: float = 0.05) -> None:
        self.timestep = timestep
        self.tangent_size, self.control_size = 2, 1

    def step(self, state, control):
        rate = state[1] + self.timestep * (control[0] - 9.81 * np.sin(state[0]))
        return np.array([state[0] + self.timestep * rate, rate])

    def linearize(self, state, control):
        h = self.timestep
        pull = -9.81 * h * np.cos(state[0])
        return np.array([[1.0 + h * pull, h], [pull, 1.0]]), np.array([[h * h], [h]])


def double_integrator(timestep: float = 0.1) -> LinearSystem:
    """A point in the plane: position, velocity; the control is its acceleration."""
    eye, zero = np.eye(2), np.zeros((2, 2))
    return LinearSystem(
        np.block([[eye, timestep * eye], [zero, eye]]), np.vstack([0.5 * timestep**2 * eye, timestep * eye])
    )


def total_cost(problem: TrajectoryProblem, controls: np.ndarray) -> float:
    states = forward_rollout(problem.dynamics, problem.initial_state, controls)
    cost = sum(problem.stage_cost.value(x, u) for x, u in zip(states, controls, strict=False))
    if problem.terminal_cost is not None:
        cost += problem.terminal_cost.value(states[-1], np.zeros(problem.dynamics.control_size))
    return cost


def test_linear_quadratic_problem_has_the_riccati_solution_in_one_step() -> None:
    rng = np.random.default_rng(1)
    system = LinearSystem(np.eye(4) + 0.2 * rng.normal(size=(4, 4)), rng.normal(size=(4, 2)))
    state_weights, control_weights, end_weights = np.array([1.0, 2.0, 0.5, 3.0]), np.array([0.3, 0.7]), np.full(4, 9.0)
    goal, horizon = np.zeros(4), 15
    problem = TrajectoryProblem(
        system,
        rng.normal(size=4),
        GoalCost(system, goal, state_weights, control_weights),
        GoalCost(system, goal, end_weights, np.zeros(2)),
    )
    result = optimize_trajectory(problem, np.zeros((horizon, 2)), TrajectoryConfig(initial_regularization=0.0))
    P, gains = np.diag(end_weights), []
    for _ in range(horizon):
        gain = np.linalg.solve(np.diag(control_weights) + system.B.T @ P @ system.B, system.B.T @ P @ system.A)
        P = np.diag(state_weights) + system.A.T @ P @ (system.A - system.B @ gain)
        gains.insert(0, -gain)
    state = problem.initial_state
    for index, gain in enumerate(gains):
        np.testing.assert_allclose(result.gains[index], gain, atol=1e-9)
        np.testing.assert_allclose(result.controls[index], gain @ state, atol=1e-9)
        state = system.step(state, gain @ state)
    assert result.status is TrajectoryStatus.CONVERGED
    assert result.iterations == 2
    assert result.cost == pytest.approx(problem.initial_state @ P @ problem.initial_state, rel=1e-12)
    assert result.cost == pytest.approx(total_cost(problem, result.controls), rel=1e-12)


def test_terminal_equality_and_bounds_give_the_optimum_of_a_general_solver() -> None:
    system = double_integrator(0.2)
    goal = np.array([1.0, 0.5, 0.0, 0.0])
    bound = np.array([1.3, 0.6])
    problem = TrajectoryProblem(
        system,
        np.array([0.0, 0.0, 0.1, -0.2]),
        GoalCost(system, goal, np.array([0.2, 0.2, 0.0, 0.0]), np.array([0.1, 0.1])),
        terminal_constraints=(goal_constraint(system, goal, range(4)),),
        control_lower=-bound,
        control_upper=bound,
    )
    horizon = 12
    result = optimize_trajectory(
        problem, np.zeros((horizon, 2)), TrajectoryConfig(constraint_tolerance=1e-9, cost_tolerance=1e-12)
    )
    reference = minimize(
        lambda u: total_cost(problem, u.reshape(horizon, 2)),
        np.zeros(2 * horizon),
        method="SLSQP",
        bounds=[(-b, b) for b in bound] * horizon,
        constraints={
            "type": "eq",
            "fun": lambda u: forward_rollout(system, problem.initial_state, u.reshape(horizon, 2))[-1] - goal,
        },
        options={"maxiter": 400, "ftol": 1e-14},
    )
    assert reference.success
    assert result.status is TrajectoryStatus.CONVERGED
    assert result.violation <= 1e-9
    assert (np.abs(result.controls) <= bound).all()
    # The bounds take part.
    assert np.isclose(np.abs(result.controls), bound, atol=1e-9).any()
    assert result.cost == pytest.approx(reference.fun, rel=1e-7)
    np.testing.assert_allclose(result.controls.ravel(), reference.x, atol=1e-4)


def test_pendulum_swings_up_with_less_torque_than_it_takes_to_hold_it() -> None:
    system = Pendulum()
    goal = np.array([np.pi, 0.0])
    problem = TrajectoryProblem(
        system,
        np.zeros(2),
        GoalCost(system, goal, np.zeros(2), np.array([0.05])),
        terminal_constraints=(goal_constraint(system, goal, (0, 1)),),
        control_lower=np.array([-4.0]),
        control_upper=np.array([4.0]),
    )
    guess = np.sin(np.arange(80) * 0.05 * np.sqrt(9.81))[:, None]
    result = optimize_trajectory(problem, guess, TrajectoryConfig(iterations=300, constraint_tolerance=1e-6))
    assert result.success
    np.testing.assert_allclose(result.states[-1], goal, atol=1e-6)
    assert np.abs(result.controls).max() <= 4.0
    np.testing.assert_allclose(forward_rollout(system, np.zeros(2), result.controls), result.states, atol=1e-12)


def disc(center: tuple[float, float], radius: float) -> Constraint:
    """Keep out of a disc."""

    def linearize(state, control):
        away = state[:2] - center
        slope = np.concatenate([-2.0 * away, np.zeros(2)])[None]
        return Linearization(np.array([radius**2 - away @ away]), slope, np.zeros((1, 2)))

    return Constraint(linearize, equality=False)


def test_a_way_round_an_obstacle_touches_it_and_never_enters() -> None:
    system = double_integrator()
    goal = np.array([2.0, 0.0, 0.0, 0.0])
    effort = GoalCost(system, goal, np.zeros(4), np.ones(2))
    keep_out = disc((1.0, 0.1), 0.4)
    end = (goal_constraint(system, goal, range(4)),)
    free = TrajectoryProblem(system, np.zeros(4), effort, terminal_constraints=end)
    round_it = TrajectoryProblem(system, np.zeros(4), effort, stage_constraints=(keep_out,), terminal_constraints=end)
    config = TrajectoryConfig(constraint_tolerance=1e-6)
    straight = optimize_trajectory(free, np.zeros((30, 2)), config)
    bent = optimize_trajectory(round_it, np.zeros((30, 2)), config)
    distance = np.linalg.norm(bent.states[:, :2] - [1.0, 0.1], axis=1)
    assert np.linalg.norm(straight.states[:, :2] - [1.0, 0.1], axis=1).min() < 0.2
    assert bent.success
    assert distance.min() == pytest.approx(0.4, abs=1e-5)
    assert bent.cost > straight.cost
    # It passes below, the shorter way.
    assert bent.states[:, 1].min() < -0.25


def test_goal_out_of_reach_is_a_status() -> None:
    system = double_integrator()
    goal = np.array([100.0, 0.0, 0.0, 0.0])
    problem = TrajectoryProblem(
        system,
        np.zeros(4),
        GoalCost(system, goal, np.zeros(4), np.ones(2)),
        terminal_constraints=(goal_constraint(system, goal, (0, 1)),),
        control_lower=-np.ones(2),
        control_upper=np.ones(2),
    )
    result = optimize_trajectory(problem, np.zeros((10, 2)))
    assert result.status is TrajectoryStatus.INFEASIBLE
    assert not result.success
    # It goes as far as it can: half a metre.
    np.testing.assert_allclose(result.controls[:, 0], 1.0)
    assert result.violation == pytest.approx(99.5, rel=1e-6)
    assert "violated" in result.message


def test_one_step_is_a_horizon() -> None:
    system = double_integrator(1.0)
    goal = np.array([0.5, -0.25, 0.0, 0.0])
    problem = TrajectoryProblem(
        system,
        np.zeros(4),
        GoalCost(system, goal, np.zeros(4), np.full(2, 0.1)),
        terminal_constraints=(goal_constraint(system, goal, (0, 1)),),
    )
    result = optimize_trajectory(problem, np.zeros((1, 2)), TrajectoryConfig(constraint_tolerance=1e-8))
    assert result.success
    np.testing.assert_allclose(result.controls, [[1.0, -0.5]], atol=1e-7)


def test_states_that_are_lost_are_a_status_or_avoided() -> None:
    class Cliff(LinearSystem):
        def step(self, state, control):
            following = self.A @ state + self.B @ control
            return following if following[0] < 0.9 else np.full_like(following, np.nan)

    plain = double_integrator()
    system = Cliff(plain.A, plain.B)
    goal = np.array([0.8, 0.0, 0.0, 0.0])
    problem = TrajectoryProblem(system, np.zeros(4), GoalCost(system, goal, np.full(4, 10.0), np.full(2, 1e-3)))
    lost = optimize_trajectory(problem, np.full((20, 2), 5.0))
    assert lost.status is TrajectoryStatus.DIVERGED
    assert "not finite" in lost.message
    found = optimize_trajectory(problem, np.zeros((20, 2)))
    assert found.success
    assert np.isfinite(found.states).all()


def test_bounds_program_satisfies_the_optimality_conditions() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 6):
        for _ in range(20):
            root = rng.normal(size=(size, size))
            hessian, gradient = root @ root.T + 0.05 * np.eye(size), rng.normal(size=size) * 3.0
            lower, upper = -rng.uniform(0.0, 1.0, size), rng.uniform(0.0, 1.0, size)
            lower[rng.random(size) < 0.2] = -np.inf
            x, free = minimize_in_box(hessian, gradient, lower, upper)
            slope = hessian @ x + gradient
            assert (x >= lower).all()
            assert (x <= upper).all()
            np.testing.assert_allclose(slope[free], 0.0, atol=1e-8)
            assert (slope[~free & (x <= lower)] >= 0.0).all()
            assert (slope[~free & (x >= upper)] <= 0.0).all()
    with pytest.raises(np.linalg.LinAlgError):
        minimize_in_box(-np.eye(2), np.ones(2), np.full(2, -np.inf), np.full(2, np.inf))


def test_equal_bounds_hold_a_control() -> None:
    system = double_integrator()
    goal = np.array([1.0, 1.0, 0.0, 0.0])
    problem = TrajectoryProblem(
        system,
        np.zeros(4),
        GoalCost(system, goal, np.ones(4), np.full(2, 0.1)),
        control_lower=np.array([-np.inf, 0.3]),
        control_upper=np.array([np.inf, 0.3]),
    )
    result = optimize_trajectory(problem, np.zeros((10, 2)))
    assert result.status is TrajectoryStatus.CONVERGED
    np.testing.assert_array_equal(result.controls[:, 1], 0.3)
    np.testing.assert_array_equal(result.gains[:, 1], 0.0)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"control_lower": np.array([1.0, 0.0]), "control_upper": np.array([-1.0, 0.0])}, "control_lower"),
        ({"control_lower": np.array([np.nan, 0.0])}, "control_lower"),
        ({"control_upper": np.ones(3)}, "control_upper"),
        ({"control_upper": np.full(2, -np.inf)}, "control"),
        ({"initial_state": np.array([np.nan, 0.0, 0.0, 0.0])}, "initial_state"),
    ],
)
def test_bad_problems_are_refused(changed: dict, name: str) -> None:
    system = double_integrator()
    cost = GoalCost(system, np.zeros(4), np.ones(4), np.ones(2))
    with pytest.raises(InvalidInputError, match=name):
        TrajectoryProblem(**({"dynamics": system, "initial_state": np.zeros(4), "stage_cost": cost} | changed))


@pytest.mark.parametrize("controls", [np.zeros((0, 2)), np.zeros(2), np.zeros((5, 3)), np.full((5, 2), np.nan)])
def test_bad_guesses_are_refused(controls: np.ndarray) -> None:
    system = double_integrator()
    problem = TrajectoryProblem(system, np.zeros(4), GoalCost(system, np.zeros(4), np.ones(4), np.ones(2)))
    with pytest.raises(InvalidInputError, match="controls"):
        optimize_trajectory(problem, controls)


def test_bad_costs_and_goals_are_refused() -> None:
    system = double_integrator()
    with pytest.raises(InvalidInputError, match="control_weights"):
        GoalCost(system, np.zeros(4), np.ones(4), -np.ones(2))
    with pytest.raises(InvalidInputError, match="goal"):
        GoalCost(system, np.full(4, np.nan), np.ones(4), np.ones(2))
    for entries in ((), (4,), (0, 0), (-1,)):
        with pytest.raises(InvalidInputError, match="entries"):
            goal_constraint(system, np.zeros(4), entries)
