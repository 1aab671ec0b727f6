"""Plant, noise, estimation and whole runs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cover_samples import bowl, data_folder, published

from morphit_ros.cover import (
    ControllerConfig,
    CoverController,
    CoverState,
    SimulationConfig,
    StepStatus,
    simulate_cover,
)
from morphit_ros.cover.actuation.motors import motor_angles, motor_rates
from morphit_ros.cover.cases import load_case
from morphit_ros.cover.control.estimation import ClosureEstimator
from morphit_ros.cover.goals.targets import HeightTarget, ParametricTarget, grid_parameters
from morphit_ros.cover.kinematics.start import lay_on_surface
from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig, NoiseSource
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.state import rotate, worst_gap
from morphit_ros.errors import InvalidInputError


def test_plant_turns_motors_as_told_and_keeps_joints_closed() -> None:
    cover, state = bowl(4, 4)
    plant = CoverPlant(cover, state)
    rates = np.random.default_rng(0).uniform(-0.05, 0.05, len(cover.motors))
    before = plant.state.rotations
    for _ in range(20):
        assert plant.step(rates, 0.01)
        assert worst_gap(cover, plant.state) < 1e-8
    assert plant.slack_parts == 0
    # The motors' own rates, from the relative motion of one further step.
    last = plant.state.rotations
    plant.step(rates, 1e-4)
    from scipy.spatial.transform import Rotation

    turns = Rotation.from_matrix(plant.state.rotations @ last.transpose(0, 2, 1)).as_rotvec().ravel() / 1e-4
    np.testing.assert_allclose(motor_rates(cover, last, turns), rates, atol=1e-5)
    assert not np.allclose(before, last)
    np.testing.assert_allclose(np.linalg.det(last), 1.0, atol=1e-12)


def test_plant_stands_still_without_rates() -> None:
    cover, state = bowl(3, 5)
    plant = CoverPlant(cover, state)
    assert plant.step(np.zeros(len(cover.motors)), 0.01)
    np.testing.assert_allclose(plant.state.rotations, state.rotations, atol=1e-9)


def test_plant_comes_back() -> None:
    cover, state = bowl(4, 3)
    plant = CoverPlant(cover, state)
    rates = np.random.default_rng(1).uniform(-0.05, 0.05, len(cover.motors))
    for sign in (1.0, -1.0):
        for _ in range(200):
            plant.step(sign * rates, 1e-3)
    np.testing.assert_allclose(plant.state.rotations, state.rotations, atol=1e-4)


def test_bridge_between_fixed_nodes_holds() -> None:
    cover, state = bowl(4, 4, (0, 15))
    plant = CoverPlant(cover, state)
    start = state.positions(cover)
    rates = np.random.default_rng(2).uniform(-0.05, 0.05, len(cover.motors))
    for _ in range(20):
        assert plant.step(rates, 0.01)
    moved = plant.state.positions(cover)
    np.testing.assert_allclose(moved[[0, 15]], start[[0, 15]], atol=1e-8)
    assert np.linalg.norm(moved - start, axis=1).max() > 1e-4
    assert worst_gap(cover, plant.state) < 1e-8


def test_estimator_finds_the_configuration_again() -> None:
    cover, state = bowl(4, 4)
    plant = CoverPlant(cover, state)
    for _ in range(30):
        plant.step(np.random.default_rng(3).uniform(-0.05, 0.05, len(cover.motors)), 0.01)
    found = ClosureEstimator(cover).estimate(motor_angles(cover, plant.state.rotations), state)
    assert found.success
    np.testing.assert_allclose(found.state.rotations, plant.state.rotations, atol=1e-7)
    with pytest.raises(InvalidInputError, match="angles"):
        ClosureEstimator(cover).estimate(np.zeros(3), state)
    with pytest.raises(InvalidInputError, match="finite"):
        ClosureEstimator(cover).estimate(np.full(len(cover.motors), np.nan), state)
    far = ClosureEstimator(cover).estimate(np.full(len(cover.motors), 3.0), state)
    assert not far.success
    np.testing.assert_array_equal(far.state.rotations, state.rotations)


def test_noises_are_as_large_as_they_say() -> None:
    cover, state = bowl(4, 4)
    source = NoiseSource(cover, PAPER_NOISE, seed=0)
    kept = np.concatenate([source.actuate(np.ones(len(cover.motors))) for _ in range(500)])
    assert kept.min() == pytest.approx(0.8)
    assert kept.max() <= 1.0
    assert 1.0 - kept.mean() == pytest.approx(0.0908, abs=0.004)  # E|sat(N(0, .1216), .2)|
    errors = np.concatenate(
        [motor_angles(cover, source.measure(state).rotations) - motor_angles(cover, state.rotations) for _ in range(30)]
    )
    assert 0.0 < np.degrees(np.abs(errors).max()) < 0.1
    assert worst_gap(cover, source.measure(state)) < 1e-8
    exact = NoiseSource(cover, NoiseConfig(), seed=0)
    assert exact.measure(state) is state


def test_encoders_read_whole_steps() -> None:
    cover, state = bowl(3, 3)
    step = np.radians(0.5)
    seen = NoiseSource(cover, NoiseConfig(encoder_step=step), seed=0).measure(state)
    angles = motor_angles(cover, seen.rotations) / step
    np.testing.assert_allclose(angles, np.round(angles), atol=1e-5)
    assert np.abs(motor_angles(cover, state.rotations) / step - np.round(angles)).max() <= 0.5 + 1e-6
    assert worst_gap(cover, seen) < 1e-8


def test_same_seed_same_run() -> None:
    cover, state = bowl(3, 3)
    runs = [
        simulate_cover(
            cover, state, HeightTarget("2*x*y"), SimulationConfig(duration=0.3), noise=PAPER_NOISE, seed=seed
        )
        for seed in (5, 5, 6)
    ]
    np.testing.assert_array_equal(runs[0].rates, runs[1].rates)
    assert not np.array_equal(runs[0].rates, runs[2].rates)


def test_open_start_is_refused() -> None:
    cover, state = bowl(3, 3)
    turned = np.empty_like(state.rotations)
    rotate(state.rotations, np.full(27, 0.0) + np.eye(27)[13] * 0.2, turned)
    with pytest.raises(InvalidInputError, match="open"):
        simulate_cover(cover, CoverState(turned, state.origin), HeightTarget("x*y"))


def test_run_ends_where_the_target_does() -> None:
    cover, state = bowl(3, 3)
    vanishing = HeightTarget("x*y + 0*sqrt(0.2 - t)")
    found = simulate_cover(cover, state, vanishing, SimulationConfig(duration=1.0))
    assert not found.success
    assert found.statuses[-1] is StepStatus.TARGET_NOT_FINITE
    assert found.times[-1] == pytest.approx(0.2)
    assert not found.rates[-1].any()


def test_case_3x3_reaches_the_papers_figures_ideal_and_noisy() -> None:
    case = load_case("3x3", data_folder())
    ideal, noisy = (
        simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=8.0), case.controller, noise)
        for noise in (None, PAPER_NOISE)
    )
    for run in (ideal, noisy):
        assert run.success
        assert np.degrees(run.mean_angle(8.0)) < 4.5
        assert run.mean_distance(8.0) < 2.0e-3
        assert run.gaps.max() < 1e-6
    assert abs(np.degrees(ideal.mean_angle(8.0) - noisy.mean_angle(8.0))) < 1.0


def test_case_8x8_starts_as_published() -> None:
    cover, state = published("8x8")
    case = load_case("8x8", data_folder())
    found = simulate_cover(cover, state, case.target, SimulationConfig(duration=6.0), case.controller)
    assert found.success
    assert np.degrees(found.mean_angle(0.0)) > 40.0
    assert np.degrees(found.mean_angle(6.0)) < 20.0
    assert found.gaps.max() < 1e-6


def test_case_8x8_follows_the_wave_to_the_end() -> None:
    """It was slowed to a quarter for a third of its way, where joints are at the end of their range: 14.6 degrees."""
    case = load_case("8x8", data_folder())
    found = simulate_cover(
        case.cover, case.state, case.target, SimulationConfig(duration=40.0, forecast_time=0.0), case.controller
    )
    assert found.success
    assert np.degrees(found.mean_angle(40.0)) < 9.0
    assert found.mean_distance(40.0) < 8e-3


def test_case_4x8_follows_its_phases_with_and_without_noise() -> None:
    """The first two phases at the paper's figures; the fixed column is straight, its neighbours are hinges."""
    case = load_case("4x8", data_folder())
    fixed = list(case.cover.fixed_nodes)
    start = case.state.positions(case.cover)
    ideal, noisy = (
        simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=15.0), case.controller, noise)
        for noise in (None, PAPER_NOISE)
    )
    for run in (ideal, noisy):
        assert run.success, run.message
        assert np.degrees(run.mean_angle(10.0)) < 10.5
        assert np.degrees(run.mean_angle(15.0)) < 20.0
        assert run.mean_distance(15.0) < 18e-3
        assert run.gaps.max() < 1e-6
        np.testing.assert_allclose(run.state.positions(case.cover)[fixed], start[fixed], atol=1e-6)
    assert abs(np.degrees(ideal.mean_angle(15.0) - noisy.mean_angle(15.0))) < 1.0


def test_plant_passes_a_singular_configuration() -> None:
    """From one curved shape to the opposite through the flat cover, where the loop closure loses rank."""
    cover = dataclasses.replace(load_case("4x8").cover, T_world_base=np.eye(4))
    state = lay_on_surface(cover, HeightTarget("-0.3*x**2"))
    found = simulate_cover(cover, state, HeightTarget("0.3*x**2"), SimulationConfig(duration=2.0), ControllerConfig())
    assert found.success, found.message
    assert np.degrees(found.mean_angle(2.0)) < 0.5
    assert found.gaps.max() < 1e-6


def test_case_thigh_goes_from_the_cylinder_to_the_swollen_thigh() -> None:
    case = load_case("thigh", overrides={"rate_limit": 0.35})
    wrapped = np.degrees(np.arccos(np.clip(case.state.normals() @ case.state.normals()[4], -1.0, 1.0)))
    assert wrapped.max() > 170.0
    found = simulate_cover(case.cover, case.state, case.target, SimulationConfig(duration=8.0), case.controller)
    assert found.success, found.message
    assert np.degrees(found.mean_angle(8.0)) < 1.0
    assert found.mean_distance(8.0) < 3e-3


def test_passage_reaches_a_far_target_with_less_turning_of_the_motors() -> None:
    case = load_case("passage", overrides={"rate_limit": 0.35})
    last = HeightTarget("-3*x**2 + 3*y**2")
    start = last.sample(case.state.positions(case.cover), 0.0).normals
    assert np.degrees(np.arccos((start * case.state.normals()).sum(axis=1))).mean() > 30.0
    travel, ends = {}, {}
    for name, target in (("direct", last), ("planned", case.target)):
        found = simulate_cover(case.cover, case.state, target, SimulationConfig(duration=6.5), case.controller)
        assert found.success, found.message
        travel[name] = float(np.abs(found.rates).sum() * 0.01)
        ends[name] = np.degrees(found.mean_angle(6.5))
    assert travel["planned"] < 0.9 * travel["direct"]
    assert ends["planned"] < 10.0


def test_parametric_target_does_not_slide() -> None:
    """The cover ends where its parameters say, and position counts in all directions."""
    cover, state = bowl(4, 4)
    target = ParametricTarget(["u", "v", "u*v"], grid_parameters(cover))
    config = dataclasses.replace(CoverController(cover).config, position_weight=1000.0)
    found = simulate_cover(cover, state, target, SimulationConfig(duration=6.0), config)
    assert found.success
    assert found.mean_distance(6.0) < 5e-3 < found.mean_distance(0.0)
