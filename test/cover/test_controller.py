"""The controller: the law, the limits, and stopping."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from cover_samples import bowl, data_folder, published
from scipy.spatial.transform import Rotation

from morphit_ros.cover import (
    ControllerConfig,
    Cover,
    CoverController,
    CoverState,
    SimulationConfig,
    StepStatus,
    simulate_cover,
)
from morphit_ros.cover.actuation.motors import motor_rates
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.control.forecast import forecast_reach
from morphit_ros.cover.control.limits import compared_pairs, desired_rates, fold_cosines, near_pairs
from morphit_ros.cover.control.quadratic_program import DaqpSolver, NearestPoint, NearestPointProblem, make_solver
from morphit_ros.cover.control.singularity import SpanTracker
from morphit_ros.cover.goals.surfaces import MeshTarget
from morphit_ros.cover.goals.targets import HeightTarget, ParametricTarget, TargetSample, grid_parameters
from morphit_ros.cover.kinematics.closure import close_loops
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.state import check_state, flat_state, rotate, worst_gap
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import sphere_mesh

SADDLE = HeightTarget("5*x*y*cos(y/2)")


def realised(cover: Cover, before: np.ndarray, after: np.ndarray, period: float) -> float:
    """Greatest mean rate of a joint axis over a step [rad/s], from relative rotations alone."""
    parent, child = cover.joints.T

    def relative(rotations: np.ndarray) -> Rotation:
        inside = np.einsum("jba,jcb,jcd,jde->jae", cover.joint_frames, rotations[parent], rotations[child],
                           cover.joint_frames)  # fmt: skip
        return Rotation.from_matrix(inside)

    return float(np.abs((relative(after) * relative(before).inv()).as_rotvec()).max()) / period


def greatest_fold(cover: Cover, rotations: np.ndarray) -> float:
    """[rad]"""
    cosines = np.empty(cover.joint_count)
    fold_cosines(rotations, cover.joints, cover.joint_along_column, cosines)
    return float(np.arccos(cosines.min()))


def test_law_has_the_papers_gains() -> None:
    """K is 30 where normals agree, 100 where they are opposite; the target's own turning is followed without spin."""
    z = np.array([[0.0, 0.0, 1.0]])
    for angle, gain in ((1e-6, 30.0), (np.pi - 1e-3, 100.0)):
        n = np.array([[np.sin(angle), 0.0, np.cos(angle)]])
        rates = np.empty((1, 3))
        desired_rates(z, n, np.zeros((1, 3)), 85.714, 60 / 70, np.inf, rates)
        assert np.linalg.norm(rates) / np.sin(angle) == pytest.approx(gain, rel=1e-3)
        assert rates[0, 1] > 0.0  # about +y, z turns towards +x
    n_rate = np.array([[0.3, -0.2, 0.0]])
    desired_rates(z, z, n_rate, 85.714, 60 / 70, np.inf, rates)
    np.testing.assert_allclose(np.cross(rates[0], z[0]), n_rate[0], atol=1e-12)


def test_opposite_normals_are_no_rest() -> None:
    rates = np.empty((1, 3))
    z = np.array([[0.0, 0.0, 1.0]])
    desired_rates(z, -z, np.zeros((1, 3)), 85.714, 60 / 70, np.inf, rates)
    assert np.linalg.norm(rates) == pytest.approx(100.0, rel=1e-3)


def test_wanted_rates_are_cut() -> None:
    rates = np.empty((1, 3))
    n = np.array([[1.0, 0.0, 0.0]])
    desired_rates(np.array([[0.0, 0.0, 1.0]]), n, np.zeros((1, 3)), 85.714, 60 / 70, 0.5, rates)
    assert np.linalg.norm(rates) == pytest.approx(0.5)


def test_optimum_without_limits_is_the_projection() -> None:
    """With limits out of the way, the motion is the least-squares fit over the null space.

    In a short period: what closes the joints at its end grows with it.
    """
    cover, state = bowl(4, 4)
    config = ControllerConfig(rate_limit=10.0, gain=1e-3, damping=0.0, period=1e-4, condition_target=0.0)
    found = CoverController(cover, config).step(state, SADDLE, 0.0)
    sample = SADDLE.sample(state.positions(cover), 0.0)
    wanted = np.empty((cover.node_count, 3))
    desired_rates(
        np.ascontiguousarray(state.normals()),
        sample.normals,
        sample.normal_rates,
        1e-3,
        config.gain_offset,
        np.inf,
        wanted,
    )
    basis = NullSpaceSolver(cover).basis(state.rotations)
    motion = basis @ np.linalg.lstsq(basis, wanted.ravel(), rcond=None)[0]
    np.testing.assert_allclose(found.rates, motor_rates(cover, state.rotations, motion), atol=1e-10)


@pytest.mark.parametrize("settings", [{}, {"variation_weight": 500.0}, {"position_weight": 1e3}, {"spin_weight": 0.1}])
def test_limits_hold_on_every_axis(settings: dict) -> None:
    cover, state = bowl(4, 5)
    config = ControllerConfig(**settings)
    found = CoverController(cover, config).step(state, SADDLE, 0.0)
    assert found.status is StepStatus.OK
    assert found.saturated > 0
    plant = CoverPlant(cover, state)
    assert plant.step(found.rates, config.period)
    # Something reaches it: the cover moves as fast as it may.
    moved = realised(cover, state.rotations, plant.state.rotations, config.period)
    assert 0.99 * config.rate_limit < moved <= 1.005 * config.rate_limit


def test_solvers_agree() -> None:
    pytest.importorskip("qpsolvers")
    quadprog = pytest.importorskip("quadprog")
    assert quadprog
    cover, state = bowl(4, 4)
    one, other = (
        CoverController(cover, ControllerConfig(greatest_rate=5.0), solver).step(state, SADDLE, 0.0).rates
        for solver in (DaqpSolver(), make_solver("quadprog"))
    )
    np.testing.assert_allclose(one, other, atol=1e-7)


@pytest.mark.parametrize("case", ["3x3", "passage", "saddle"])
def test_limits_hold_over_the_whole_step(case: str) -> None:
    """Every axis, also where motors nearly lose the cover: they bent passive joints up to 3.5 times too fast."""
    if case == "saddle":
        cover, state = bowl(5, 7)
        target, config, steps = HeightTarget("4*x*y"), ControllerConfig(position_weight=20.0), 300
    else:
        loaded = load_case(case, data_folder() if case == "3x3" else None)
        cover, state, target, config, steps = loaded.cover, loaded.state, loaded.target, loaded.controller, 500
    controller, plant = CoverController(cover, config), CoverPlant(cover, state)
    moved = []
    for step in range(steps):
        found = controller.step(plant.state, target, config.period * step)
        assert found.status.moves, found.message
        before = plant.state.rotations
        assert plant.step(found.rates, config.period)
        moved.append(realised(cover, before, plant.state.rotations, config.period))
        assert greatest_fold(cover, plant.state.rotations) <= cover.range_of_motion + 1e-9
    assert max(moved) <= 1.01 * config.rate_limit
    # It is not the standing cover that keeps its limits.
    assert np.median(moved) > 0.5 * config.rate_limit


def test_limits_of_drawn_targets_hold() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        cover, state = bowl(*((4, 4), (2, 6), (5, 7))[seed % 3])
        a, b, c = rng.uniform(-5.0, 5.0, 3)
        target = HeightTarget(f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2")
        config = ControllerConfig(rate_limit=float(rng.choice([0.0873, 0.35])), greatest_rate=5.0, position_weight=20.0)
        controller, plant = CoverController(cover, config), CoverPlant(cover, state)
        for step in range(100):
            before = plant.state.rotations
            rates = controller.step(plant.state, target, 0.01 * step).rates
            assert plant.step(rates, 0.01)
            assert realised(cover, before, plant.state.rotations, 0.01) <= 1.01 * config.rate_limit
            assert greatest_fold(cover, plant.state.rotations) <= cover.range_of_motion + 1e-9


@pytest.mark.parametrize("name", ["3x3", "4x8", "8x8"])
def test_slopes_of_singular_values(name: str) -> None:
    """Against differences of decompositions, with one fixed node and with hinges."""
    cover, state = published(name)

    def least(rotations: np.ndarray) -> np.ndarray:
        basis = np.linalg.qr(NullSpaceSolver(cover).basis(rotations))[0]
        return np.linalg.svd(motor_rates(cover, rotations, basis), compute_uv=False)[::-1][:2]

    space = NullSpaceSolver(cover).solve(state.rotations)
    tracker = SpanTracker(cover)
    span = tracker.measure(space, motor_rates(cover, state.rotations, space.basis))
    np.testing.assert_allclose(span.least[:2], least(state.rotations), rtol=1e-6)
    slopes = tracker.slopes(state.rotations, span, 2)
    assert slopes is not None
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(space.basis)[0]
    for _ in range(2):
        way, ends = basis @ rng.normal(size=basis.shape[1]), []
        for sign in (1e-6, -1e-6):
            turned = np.empty_like(state.rotations)
            rotate(state.rotations, sign * way, turned)
            ends.append(least(close_loops(cover, CoverState(turned, state.origin)).rotations))
        np.testing.assert_allclose(slopes @ way, (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-5)


def test_motors_keep_the_cover() -> None:
    """3 x 3 to the paper's saddle: the condition was above 1000 for a quarter of the way; the status says why not."""
    case = load_case("3x3", data_folder())
    statuses, conditions = {}, {}
    for target in (0.0, case.controller.condition_target):
        config = dataclasses.replace(case.controller, condition_target=target, condition_limit=1e12)
        controller, plant = CoverController(case.cover, config), CoverPlant(case.cover, case.state)
        found = []
        for step in range(600):
            found.append(controller.step(plant.state, case.target, 0.01 * step))
            plant.step(found[-1].rates, 0.01)
        conditions[target] = max(one.condition for one in found)
        statuses[target] = {one.status for one in found}
    assert conditions[0.0] > 3000.0
    kept = case.controller.condition_target
    assert conditions[kept] < 1000.0
    assert statuses[kept] == {StepStatus.OK, StepStatus.NEARLY_SINGULAR}
    assert "hardly hold joint" in found[-1].message or found[-1].status is StepStatus.OK


def test_range_of_motion_is_kept() -> None:
    cover, state = bowl(3, 3)
    cosines = np.empty(cover.joint_count)
    fold_cosines(state.rotations, cover.joints, cover.joint_along_column, cosines)
    narrow = dataclasses.replace(cover, range_of_motion=float(np.arccos(cosines.min())) + np.radians(1.0))
    controller, plant = CoverController(narrow), CoverPlant(narrow, state)
    for step in range(150):
        found = controller.step(plant.state, HeightTarget("-12*(x**2 + y**2)"), 0.01 * step)
        assert found.status is StepStatus.OK
        assert plant.step(found.rates, 0.01)
    fold_cosines(plant.state.rotations, cover.joints, cover.joint_along_column, cosines)
    assert np.arccos(cosines.min()) < narrow.range_of_motion + np.radians(0.05)
    # Without the limit the cover folds further.
    free = CoverPlant(cover, state)
    controller = CoverController(cover)
    for step in range(150):
        free.step(controller.step(free.state, HeightTarget("-12*(x**2 + y**2)"), 0.01 * step).rates, 0.01)
    fold_cosines(free.state.rotations, cover.joints, cover.joint_along_column, cosines)
    assert np.arccos(cosines.min()) > narrow.range_of_motion + np.radians(1.0)


def test_acceleration_limit() -> None:
    cover, state = bowl(3, 4)
    limit = 0.5
    controller, plant = CoverController(cover, ControllerConfig(acceleration_limit=limit)), CoverPlant(cover, state)
    last = np.zeros(len(cover.motors))
    for step in range(30):
        found = controller.step(plant.state, SADDLE, 0.01 * step)
        assert found.status.moves
        if found.status is StepStatus.OK:
            assert np.abs(found.rates - last).max() <= limit * 0.01 * (1 + 1e-3)
        last = found.rates
        plant.step(found.rates, 0.01)
    assert np.abs(last).max() > 0.05


def test_collision_avoidance_keeps_nodes_apart() -> None:
    """The strip of config/cover that is told to roll up stops before its ends meet."""

    def least_distance(distance: float) -> float:
        case = load_case("strip", overrides={"collision_distance": distance, "rate_limit": 0.35})
        cover = case.cover
        controller, plant = CoverController(cover, case.controller), CoverPlant(cover, case.state)
        columns = np.arange(cover.node_count) % cover.cols
        neighbours = np.abs(columns[:, None] - columns) < 2
        least = np.inf
        for step in range(400):
            found = controller.step(plant.state, case.target, 0.01 * step)
            assert found.status.moves, found.status
            assert plant.step(found.rates, 0.01)
            positions = plant.state.positions(cover)
            apart = np.linalg.norm(positions[:, None] - positions, axis=2)
            apart[neighbours] = np.inf
            least = min(least, float(apart.min()))
        return least

    assert least_distance(0.0) < 0.06
    # It comes as near as it may: nodes of one face, nearer than that at the start, are none of its business.
    assert 0.0645 < least_distance(0.065) < 0.0655


class Broken:
    """A target, or a solver, that fails."""

    def sample(self, positions: np.ndarray, time: float) -> TargetSample:
        return dataclasses.replace(SADDLE.sample(positions, time), normals=np.full_like(positions, np.nan))

    def solve(self, problem: NearestPointProblem) -> NearestPoint:
        return NearestPoint(np.zeros_like(problem.point), np.zeros(len(problem.rows), np.int8), False, 7, "no")


def test_motors_stop_on_every_failure() -> None:
    cover, state = bowl(3, 3)
    opened = np.empty_like(state.rotations)
    turns = np.zeros(3 * cover.node_count)
    turns[12] = 0.1
    rotate(state.rotations, turns, opened)
    spoiled = state.rotations.copy()
    spoiled[4, 0, 0] = np.nan
    outcomes = {
        StepStatus.TARGET_NOT_FINITE: CoverController(cover).step(state, Broken(), 0.0),
        StepStatus.QP_FAILED: CoverController(cover, solver=Broken()).step(state, SADDLE, 0.0),
        StepStatus.GAP: CoverController(cover).step(CoverState(opened, state.origin), SADDLE, 0.0),
        StepStatus.RANK_DROP: CoverController(cover).step(flat_state(cover), SADDLE, 0.0),
    }
    for status, found in outcomes.items():
        assert found.status is status
        assert not found.status.moves
        assert found.rates.shape == (12,)
        assert not found.rates.any()
    assert outcomes[StepStatus.QP_FAILED].message == "no"
    assert outcomes[StepStatus.RANK_DROP].dof == 13
    spoiled_step = CoverController(cover).step(CoverState(spoiled, state.origin), SADDLE, 0.0)
    assert spoiled_step.status is StepStatus.GAP
    assert not spoiled_step.rates.any()


@pytest.mark.parametrize(("possible", "moves"), [(0.01, True), (1e-6, False)])
def test_motors_near_a_singular_configuration_come_back_as_fast_as_limits_let_them(
    possible: float, moves: bool
) -> None:
    """A rise of the singular values that no motion brings is asked for more slowly before motors count as lost."""

    class Limited:
        def solve(self, problem: NearestPointProblem) -> NearestPoint:
            if (problem.lower > possible).any():
                return NearestPoint(np.zeros_like(problem.point), problem.active, False, 1, "infeasible")
            return DaqpSolver().solve(problem)

    cover, state = bowl(4, 4)
    config = ControllerConfig(condition_target=2.0, condition_limit=3.0)
    found = CoverController(cover, config, Limited()).step(state, SADDLE, 0.0)
    assert found.condition > 3.0
    assert found.status is (StepStatus.NEARLY_SINGULAR if moves else StepStatus.MOTORS_SINGULAR)
    assert found.rates.any() == moves
    if moves:
        plant = CoverPlant(cover, state)
        plant.step(found.rates, 0.01)
        assert CoverController(cover, config).step(plant.state, SADDLE, 0.01).condition < found.condition


def test_motors_that_do_not_span_stop() -> None:
    cover, state = bowl(4, 4)
    # All axes of the joints of the first square and its neighbours: what is far away moves freely.
    crowded = cover.with_motors([(joint, axis) for joint in range(6) for axis in range(3)])
    assert len(crowded.motors) == cover.expected_dof
    found = CoverController(crowded).step(state, SADDLE, 0.0)
    assert found.status is StepStatus.MOTORS_SINGULAR
    assert not found.rates.any()
    assert found.condition > 1e12
    assert CoverController(cover).step(state, SADDLE, 0.0).condition < 1e4


def test_solver_that_exceeds_limits_is_not_believed() -> None:
    class Liar:
        def solve(self, *arguments: object, **settings: object) -> tuple:
            return np.array([5.0]), 0.0, 1, {"lam": np.zeros(1), "iterations": 1}

    solver = DaqpSolver()
    solver._library = Liar()
    problem = NearestPointProblem(np.ones(1), np.ones((1, 1)), -np.ones(1), np.ones(1), np.zeros(1, np.int8))
    found = solver.solve(problem)
    assert not found.success
    assert not found.point.any()


def test_bad_input_is_refused() -> None:
    cover, _ = bowl(3, 3)
    with pytest.raises(InvalidInputError, match="motors"):
        CoverController(cover.with_motors(cover.motors[:-1]))
    with pytest.raises(InvalidInputError, match="9, as the cover has"):
        CoverController(cover).step(bowl(3, 4)[1], SADDLE, 0.0)
    with pytest.raises(MissingDependencyError):
        DaqpSolver.__init__.__globals__["_import"]("no_such_solver")


def test_rows_left_out_change_nothing() -> None:
    """The programme that takes in axes as they are needed has the solution of the one with all axes."""
    cover, state = bowl(5, 5)
    found = {}
    for everything in (False, True):
        controller = CoverController(cover, ControllerConfig(greatest_rate=5.0, position_weight=50.0))
        plant = CoverPlant(cover, state)
        found[everything] = []
        for step in range(8):
            if everything:
                controller._programme._near = np.ones(3 * cover.joint_count, dtype=np.bool_)
            one = controller.step(plant.state, SADDLE, 0.01 * step)
            before = plant.state.rotations
            plant.step(one.rates, 0.01)
            moved = realised(cover, before, plant.state.rotations, 0.01)
            assert moved <= 1.005 * controller.config.rate_limit
            found[everything].append(one.rates)
    np.testing.assert_allclose(found[False], found[True], atol=1e-6)


def test_jumping_target_changes_nothing_but_the_direction() -> None:
    """A target that jumps by a metre: limits hold at the next step as at any other."""
    cover, state = bowl(3, 4)
    controller = CoverController(cover)
    for target in (SADDLE, HeightTarget("1 + 40*x - 30*y"), HeightTarget("-9*x*y")):
        found = controller.step(state, target, 0.0)
        assert found.status is StepStatus.OK
        plant = CoverPlant(cover, state)
        assert plant.step(found.rates, 0.01)
        assert realised(cover, state.rotations, plant.state.rotations, 0.01) <= 1.005 * controller.config.rate_limit


def test_warm_start_changes_nothing() -> None:
    cover, state = published("8x8")
    target = HeightTarget("x*y")
    controller = CoverController(cover)
    first = controller.step(state, target, 0.0)
    second = controller.step(state, target, 0.0)
    assert second.iterations < first.iterations
    np.testing.assert_allclose(second.rates, first.rates, atol=1e-8)


@pytest.mark.parametrize("formula", ["60*x**2 - 60*y**2", "10 + x*y", "1e6*x", "abs(x)*1e3"])
def test_targets_that_cannot_be_reached_are_approached_within_limits(formula: str) -> None:
    cover, state = bowl(4, 4)
    config = ControllerConfig(rate_limit=0.35, position_weight=50.0)
    controller, plant = CoverController(cover, config), CoverPlant(cover, state)
    cosines = np.empty(cover.joint_count)
    for step in range(120):
        found = controller.step(plant.state, HeightTarget(formula), 0.01 * step)
        assert found.status is StepStatus.OK
        assert np.abs(found.rates).max() <= config.rate_limit
        assert plant.step(found.rates, 0.01)
    fold_cosines(plant.state.rotations, cover.joints, cover.joint_along_column, cosines)
    assert np.arccos(cosines.min()) < cover.range_of_motion + np.radians(0.5)
    assert worst_gap(cover, plant.state) < 1e-6


@pytest.mark.parametrize(("rows", "cols"), [(1, 5), (5, 1), (1, 2)])
def test_chains_work(rows: int, cols: int) -> None:
    cover, state = bowl(rows, cols)
    controller, plant = CoverController(cover), CoverPlant(cover, state)
    before = None
    for step in range(100):
        found = controller.step(plant.state, HeightTarget("2*x + 2*y"), 0.01 * step)
        assert found.status is StepStatus.OK
        assert plant.step(found.rates, 0.01)
        before = found.angles.mean() if before is None else before
    assert found.angles.mean() < before - np.radians(1.0)


def test_states_from_outside_are_checked() -> None:
    cover, state = bowl(3, 3)
    assert check_state(cover, state.rotations.tolist(), state.origin).rotations.shape == (9, 3, 3)
    spoiled, scaled, mirrored = (state.rotations.copy() for _ in range(3))
    spoiled[2, 1, 1] = np.inf
    scaled[3] *= 1.001
    mirrored[4, :, 0] *= -1.0
    for rotations, origin, says in (
        (state.rotations[:8], state.origin, "shapes"),
        (state.rotations, state.origin[:2], "shapes"),
        (spoiled, state.origin, "finite"),
        (state.rotations, [0.0, np.nan, 0.0], "finite"),
        (scaled, state.origin, "rotations"),
        (mirrored, state.origin, "rotations"),
    ):
        with pytest.raises(InvalidInputError, match=says):
            check_state(cover, rotations, origin)


def test_programme_without_solution_stops() -> None:
    """Limits that contradict each other: the library says so, and the motors stop."""
    problem = NearestPointProblem(
        np.zeros(2), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -np.inf]), np.array([np.inf, 0.0]),
        np.zeros(2, np.int8),
    )  # fmt: skip
    found = DaqpSolver().solve(problem)
    assert not found.success
    assert not found.point.any()


def test_cover_does_not_cross_itself_by_default() -> None:
    """A 3 x 11 that rolls up to a radius of 62 mm, 1.4 turns, passed through itself with status ok."""

    def least_distance(settings: dict) -> float:
        cover, state = bowl(3, 11)
        radius = "(0.062 + 0.1*exp(-t/2))"
        formulas = (f"{radius}*sin(u/{radius})", "v", f"{radius}*cos(u/{radius}) - {radius}")
        target = ParametricTarget(formulas, grid_parameters(cover))
        config = ControllerConfig(position_weight=100.0, rate_limit=0.35, **settings)
        controller, plant = CoverController(cover, config), CoverPlant(cover, state)
        rows, cols = np.divmod(np.arange(cover.node_count), cover.cols)
        share = (np.abs(rows[:, None] - rows) < 2) & (np.abs(cols[:, None] - cols) < 2)
        least = np.inf
        for step in range(400):
            found = controller.step(plant.state, target, 0.01 * step)
            assert found.status.moves, found.message
            assert plant.step(found.rates, 0.01)
            apart = np.linalg.norm(plant.state.positions(cover)[:, None] - plant.state.positions(cover), axis=2)
            least = min(least, float(apart[~share].min()))
        return least

    pitch = bowl(3, 11)[0].pitch
    assert least_distance({"collision_distance": 0.0}) < 0.7 * pitch
    assert least_distance({}) > 0.99 * pitch


def test_near_nodes_are_found_by_a_tree_as_by_comparing_all() -> None:
    rng = np.random.default_rng(5)
    positions = rng.uniform(0.0, 0.5, (30 * 31, 3))
    found, expected = (
        {tuple(sorted(pair)) for pair in search(positions, 31, 0.04).tolist()}
        for search in (near_pairs, compared_pairs)
    )
    assert len(expected) > 100
    assert found == expected


def test_says_what_it_cannot_reach() -> None:
    """Before it moves, and while it moves; a target that it can reach stays ok."""
    cover, state = published("3x3")
    config = ControllerConfig(position_weight=1200.0, rate_limit=0.35, reach_time=0.5)
    for formula, reachable in (("0.042 + x*y", False), ("x*y", True)):
        target = HeightTarget(formula)
        forecast = forecast_reach(cover, state, target, config)
        assert forecast.within is reachable
        assert re.fullmatch(r"best is \d+\.\d degrees and \d+\.\d mm", forecast.description)
        controller, plant = CoverController(cover, config), CoverPlant(cover, state)
        found = []
        for step in range(700):
            found.append(controller.step(plant.state, target, 0.01 * step))
            assert found[-1].status.moves
            plant.step(found[-1].rates, 0.01)
        said = [one for one in found if one.status is StepStatus.OUT_OF_REACH]
        assert bool(said) is not reachable
        if said:
            assert "best is" in said[-1].message
            assert "no nearer for 0.5 s" in said[-1].message


def test_what_no_cover_follows_is_told_of_before_it_moves_and_from_the_first_step_on() -> None:
    """A formula, a target 42 mm away, and a sphere of 160 mm: status ok for the first seconds, or to the end."""
    sphere = sphere_mesh(0.16)
    below = TriangleMesh(sphere.vertices - np.array([0.0, 0.0, 0.16]), sphere.faces)
    for name, target in (
        ("3x3", HeightTarget("1e6*x*y")), ("3x3", HeightTarget("0.042 + x*y")), ("8x8", MeshTarget(below)),
    ):  # fmt: skip
        case = load_case(name, data_folder())
        run = simulate_cover(case.cover, case.state, target, SimulationConfig(duration=0.05), case.controller)
        assert run.forecast is not None
        assert not run.forecast.within
        assert set(run.statuses) == {StepStatus.OUT_OF_REACH}
    without = SimulationConfig(duration=0.05, forecast_time=0.0)
    run = simulate_cover(case.cover, case.state, target, without, case.controller)
    assert run.forecast is None
    assert StepStatus.OUT_OF_REACH not in run.statuses


def test_forecast_comes_near_to_what_runs_reach() -> None:
    """Drawn targets, forecast and reached; limits all along a step made a forecast slow and pessimistic."""
    case = load_case("3x3", data_folder())
    config = dataclasses.replace(case.controller, rate_limit=0.35)
    differences = []
    for seed in range(5):
        a, b, c = np.random.default_rng(seed).uniform(-4.0, 4.0, 3)
        target = HeightTarget(f"{a:.3f}*x**2 + {b:.3f}*x*y + {c:.3f}*y**2")
        run = simulate_cover(case.cover, case.state, target, SimulationConfig(duration=5.0), config)
        forecast = run.forecast
        assert forecast is not None
        assert forecast.within
        differences.append((forecast.angle - run.mean_angle(5.0), forecast.distance - run.mean_distance(5.0)))
        assert forecast == forecast_reach(
            case.cover, case.state, target, dataclasses.replace(config, whole_step=False), 5.0
        )
    off = np.abs(differences)
    assert np.median(off[:, 0]) < np.radians(1.0)
    assert np.median(off[:, 1]) < 1e-3


def test_forecast_ends_in_time() -> None:
    cover, state = published("8x8")
    some = forecast_reach(cover, state, HeightTarget("x*y"), time_limit=0.0)
    assert not some.settled
    assert some.description.startswith("best so far is")
    nothing = forecast_reach(cover, state, HeightTarget("log(x - 9)"))
    assert nothing.description == "no way to it is known"
