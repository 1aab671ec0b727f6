"""Identification on a motion in closed form: what is found, how surely, and what cannot be found."""

import dataclasses

import numpy as np
import pytest
from identification_samples import SlidingBlock, block_experiment, block_start, observed

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.identification.experiments import Experiment, cut_windows, first_state
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.least_squares import (
    EstimationStatus,
    Evaluation,
    LeastSquaresConfig,
    compress,
    solve_least_squares,
)
from morphit_ros.neural.identification.residuals import ParameterTrial, residuals_of, start_directions
from morphit_ros.neural.identification.unknowns import Unknown

FRICTION = Unknown("friction", 0.2, 0.0, 1.0)
MASS = Unknown("mass_scale", 1.0, 0.1, 10.0)


@pytest.mark.parametrize("start", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("knowledge", ["known", "velocity_unknown", "unknown"])
def test_friction_of_a_block_is_found_from_any_start(start, knowledge):
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock(), knowledge=knowledge)
    result = identify(experiment, Unknown("friction", start, 0.0, 1.0))
    assert result.success, result.message
    assert result.values["friction"] == pytest.approx(0.3, abs=1e-7)
    assert result.position_residual < 1e-7
    assert result.rotation_residual < 1e-6


def test_mass_and_friction_from_pushes_with_different_forces():
    true = {"friction": 0.25, "mass_scale": 1.7}
    experiments = [
        block_experiment(SlidingBlock(force=force, **true), SlidingBlock(force=force)) for force in (0.0, 3.0, 5.0)
    ]
    result = identify(experiments, [FRICTION, MASS])
    assert result.success
    assert result.values == pytest.approx(true, abs=1e-6)


def test_scatter_over_noise_is_as_large_as_the_deviation_says():
    estimates, deviations = [], []
    for seed in range(60):
        experiment = block_experiment(SlidingBlock(), SlidingBlock(), 0.002, "unknown", seed)
        result = identify(experiment, FRICTION, IdentificationConfig(position_noise=0.002, rotation_noise=0.02))
        estimates.append(result.values["friction"])
        deviations.append(result.standard_deviations["friction"])
        assert result.estimate.residual_ratio == pytest.approx(1.0, abs=0.2)
    assert np.mean(estimates) == pytest.approx(0.4, abs=3.0 * np.std(estimates) / np.sqrt(60))
    assert np.std(estimates) == pytest.approx(np.mean(deviations), rel=0.3)


def test_noise_is_judged_from_the_residuals_not_from_what_was_stated():
    experiment = block_experiment(SlidingBlock(), SlidingBlock(), 0.004, "unknown")
    right, wrong = (
        identify(experiment, FRICTION, IdentificationConfig(position_noise=noise, rotation_noise=10.0 * noise))
        for noise in (0.004, 0.001)
    )
    assert wrong.standard_deviations["friction"] == pytest.approx(right.standard_deviations["friction"], rel=1e-3)
    assert wrong.estimate.residual_ratio == pytest.approx(4.0, rel=0.3)
    # It says so; with the right noise there is nothing to say.
    assert not wrong.explained
    assert f"{wrong.estimate.residual_ratio:.1f} times the stated noise" in wrong.message
    assert wrong.success
    assert right.explained
    assert right.message == "Converged."


def test_a_model_that_misses_a_force_says_that_it_does_not_explain_the_motion():
    # A block that curves, seen by a model of one that goes straight: no friction fits.
    track = observed(SlidingBlock(), frames=60)
    curved = dataclasses.replace(track, positions=track.positions + np.outer(0.05 * track.times**2, [-0.8, 0.6, 0.0]))
    result = identify(Experiment(SlidingBlock(), (curved,), block_start(), "known"), FRICTION)
    assert not result.explained
    assert "does not explain the motion" in result.message
    # As sure as the noise alone would leave it, it is not.
    clean = identify(Experiment(SlidingBlock(), (track.with_noise(1e-3, 0.02, 0),), block_start(), "known"), FRICTION)
    assert result.standard_deviations["friction"] > 5.0 * clean.standard_deviations["friction"]


def test_a_block_at_rest_or_without_contact_does_not_tell_friction():
    # Far above the ground friction never acts: here a plane without gravity's share, a force that keeps up the speed.
    @dataclasses.dataclass(frozen=True)
    class Floating(SlidingBlock):
        def predict(self, names, values, start, times):
            prediction = super().predict([], np.zeros(0), start, times)
            return dataclasses.replace(prediction, by_parameters=np.zeros((len(times), 1, 6, len(names))))

    result = identify(block_experiment(SlidingBlock(), Floating()), FRICTION)
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert result.unidentifiable == ("friction",)
    assert np.isinf(result.standard_deviations["friction"])
    assert "does not depend on friction" in result.message
    assert not result.success


def test_one_constant_force_tells_mass_and_friction_only_together():
    true = SlidingBlock(force=3.0, friction=0.4)
    result = identify(block_experiment(true, SlidingBlock(force=3.0)), [FRICTION, dataclasses.replace(MASS, start=2.0)])
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert set(result.estimate.uncertainty.confounded) == {"friction", "mass_scale"}
    assert "combination" in result.message


def test_a_track_too_short_says_so_with_its_uncertainty():
    short = block_experiment(SlidingBlock(), SlidingBlock(), 0.002, "unknown", frames=3)
    result = identify(short, FRICTION, IdentificationConfig(position_noise=0.002))
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert result.standard_deviations["friction"] > FRICTION.ignorance
    assert "no better than its bounds" in result.message


def test_two_poses_are_too_few_and_it_says_for_what():
    result = identify(
        block_experiment(SlidingBlock(), SlidingBlock(), knowledge="velocity_unknown", frames=2), FRICTION
    )
    assert result.status is EstimationStatus.NOT_IDENTIFIABLE
    assert np.isinf(result.standard_deviations["friction"])
    assert "6 measurements are too few for 7 unknowns" in result.message


@pytest.mark.parametrize(("deviation", "words"), [(0.4, ""), (0.6, "hardly better"), (1.2, "no better")])
def test_what_is_told_hardly_better_than_by_the_bounds_is_not_identified(deviation, words):
    item = Unknown("a", 0.5, 0.0, 1.0)
    slope = np.full((100, 1), 1.0 / (10.0 * deviation * item.ignorance))
    signs = np.where(np.arange(100) % 2, 1.0, -1.0) * np.sqrt(0.99)

    result = solve_least_squares(lambda values: Evaluation(slope @ (values - 0.5) + signs, slope, 100), [item])
    assert result.uncertainty.standard_deviations[0] == pytest.approx(deviation * item.ignorance)
    assert result.success == (not words)
    assert words in result.message


def test_what_is_unknown_of_a_start_has_names():
    one = block_experiment(SlidingBlock(), SlidingBlock(), knowledge="velocity_unknown")
    names = identify([one, one], FRICTION).estimate.names
    assert names[1:4] == tuple(f"first velocity {axis} of motion 0" for axis in "xyz")
    assert names[-1] == "first spin z of motion 1"
    assert identify(dataclasses.replace(one, knowledge="unknown"), FRICTION).estimate.names[4] == "first turn x"


def test_a_pilot_that_learns_nothing_leaves_the_search_to_all():
    @dataclasses.dataclass(frozen=True)
    class Floating(SlidingBlock):
        def predict(self, names, values, start, times):
            prediction = super().predict([], np.zeros(0), start, times)
            return dataclasses.replace(prediction, by_parameters=np.zeros((len(times), 1, 6, len(names))))

    # The first and the fourth are the pilot's, and tell nothing; the block would stop long before it is seen to.
    blocks = [Floating(friction=0.1) if index % 3 == 0 else SlidingBlock() for index in range(6)]
    experiments = [block_experiment(SlidingBlock(friction=0.1), block) for block in blocks]
    config = IdentificationConfig(corrections=1)
    result = identify(experiments, Unknown("friction", 1.0, 0.0, 1.0), config)
    assert result.values["friction"] == pytest.approx(0.1, abs=1e-6)


def test_a_bound_holds_and_is_said():
    result = identify(block_experiment(SlidingBlock(friction=0.6), SlidingBlock()), Unknown("friction", 0.1, 0.0, 0.5))
    assert result.values["friction"] == 0.5
    assert result.estimate.uncertainty.at_bound.all()
    assert "At a bound: friction" in result.message
    assert 0.0 < result.standard_deviations["friction"] < 0.2


def test_a_parameter_at_its_bound_is_known_to_the_others():
    def evaluate(values):
        jacobian = np.array([[1.0, 1.0], [1.0, 1.001], [0.0, 0.01]])
        return Evaluation(jacobian @ (values - np.array([1.0, 2.0])), jacobian, 3)

    free = solve_least_squares(evaluate, [Unknown("a", 0.0, -9.0, 9.0), Unknown("b", 0.0, -9.0, 9.0)])
    held = solve_least_squares(evaluate, [Unknown("a", 0.0, -9.0, 9.0), Unknown("b", 0.0, -9.0, 1.0)])
    assert free.values == pytest.approx([1.0, 2.0])
    assert held.values[1] == 1.0
    assert held.values[0] == pytest.approx(2.0005, abs=1e-6)
    # One variable: variance s² / (JᵀJ); the other one is not in it.
    assert held.uncertainty.covariance[0, 0] == pytest.approx(max(held.residual_ratio, 0.01) ** 2 / 2.0)
    assert held.uncertainty.covariance[1, 1] == 0.0


@pytest.mark.parametrize("knowledge", ["velocity_unknown", "unknown"])
def test_jacobian_of_residuals_equals_central_differences(knowledge):
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock(force=1.0), 0.01, knowledge)
    directions = start_directions(experiment)
    rng = np.random.default_rng(3)
    values = np.concatenate([[0.25, 1.2], 0.2 * rng.normal(size=directions.shape[1])])

    def residuals(point):
        return residuals_of(
            ParameterTrial(experiment, ["friction", "mass_scale"], point[:2], directions, point[2:], 0.001, 0.01)
        )

    jacobian = residuals(values).jacobian
    step = 1e-6
    for column in range(len(values)):
        move = step * np.eye(len(values))[column]
        slope = (residuals(values + move).residuals - residuals(values - move).residuals) / (2.0 * step)
        assert jacobian[:, column] == pytest.approx(slope, abs=2e-4 * max(1.0, np.abs(slope).max()))


def test_compression_keeps_steps_and_cost():
    rng = np.random.default_rng(0)
    jacobian, residuals = rng.normal(size=(50, 4)), rng.normal(size=50)
    short, slope = compress(residuals, jacobian)
    assert len(short) == 5
    assert slope.T @ slope == pytest.approx(jacobian.T @ jacobian)
    assert slope.T @ short == pytest.approx(jacobian.T @ residuals)
    assert short @ short == pytest.approx(residuals @ residuals)


def test_many_windows_find_what_one_rollout_finds():
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock(), knowledge="unknown", frames=20)
    assert len(cut_windows(experiment, 6)) == 4
    result = identify(experiment, FRICTION, IdentificationConfig(window=6))
    assert result.values["friction"] == pytest.approx(0.3, abs=1e-6)
    assert len(result.starts) == 4


def test_same_input_gives_the_same_result_on_any_number_of_threads():
    experiments = [block_experiment(SlidingBlock(), SlidingBlock(), 0.002, "unknown", seed) for seed in range(4)]
    results = [identify(experiments, FRICTION, IdentificationConfig(threads=threads)) for threads in (1, 2, 1)]
    assert len({result.values["friction"] for result in results}) == 1


def test_first_state_of_a_track_has_its_velocities():
    track = observed(SlidingBlock(), step=0.005)
    assert first_state(track) == pytest.approx(block_start()[0], abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("friction", 0.5, 1.0, 0.0), "bounds of friction"),
        (("friction", 0.5, 0.5, 0.5), "bounds of friction"),
        (("friction", 0.5, 0.0, np.nan), "bounds of friction"),
        (("friction", 1.5, 0.0, 1.0), "start of friction"),
        (("friction", np.nan, 0.0, 1.0), "start of friction"),
    ],
)
def test_unknowns_with_bad_bounds_are_refused(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        Unknown(*arguments)


def test_empty_or_repeated_unknowns_and_no_experiments_are_refused():
    experiment = block_experiment(SlidingBlock(), SlidingBlock())
    with pytest.raises(InvalidInputError, match="unknowns"):
        identify(experiment, [])
    with pytest.raises(InvalidInputError, match="occur once"):
        identify(experiment, [FRICTION, FRICTION])
    with pytest.raises(InvalidInputError, match="experiments"):
        identify([], FRICTION)


def test_experiments_that_do_not_fit_are_refused():
    track = observed(SlidingBlock())
    with pytest.raises(InvalidInputError, match="one for each"):
        Experiment(SlidingBlock(), (track, track))
    with pytest.raises(InvalidInputError, match="at least one body"):
        Experiment(SlidingBlock(), (None,), block_start())
    with pytest.raises(InvalidInputError, match="start"):
        Experiment(SlidingBlock(), (track,), np.zeros((2, 13)))
    with pytest.raises(InvalidInputError, match="knowledge"):
        Experiment(SlidingBlock(), (track,), None, "guessed")
    with pytest.raises(InvalidInputError, match="window"):
        cut_windows(Experiment(SlidingBlock(), (track,)), 2)


def test_a_start_without_a_finite_motion_is_refused_and_a_step_to_one_is_not():
    def evaluate(values):
        residuals = np.log(values)  # not finite below zero
        return Evaluation(residuals, np.diag(1.0 / values), 5)

    with pytest.raises(InvalidInputError, match="start"), np.errstate(all="ignore"):
        solve_least_squares(evaluate, [Unknown("a", -1.0)])
    with np.errstate(all="ignore"):
        result = solve_least_squares(evaluate, [Unknown("a", 20.0)])
    assert result.values == pytest.approx([1.0])


def test_an_iteration_limit_is_said():
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock())
    config = IdentificationConfig(search=LeastSquaresConfig(max_evaluations=2))
    result = identify(experiment, FRICTION, config)
    assert result.status is EstimationStatus.ITERATION_LIMIT


@pytest.mark.parametrize("phase", np.linspace(0.0, 2.0 * np.pi, 6, endpoint=False))
def test_residuals_that_hang_together_over_time_count_less(phase):
    # A model that misses a slow wave: its residuals are no independent measurements.
    track = observed(SlidingBlock(), frames=60)
    wave = 0.002 * np.sin(np.linspace(0.0, 6.0, 60) + phase)
    wavy = dataclasses.replace(track, positions=track.positions + np.outer(wave, [0.6, 0.8, 0.0]))
    smooth = identify(Experiment(SlidingBlock(), (wavy,), block_start(), "known"), FRICTION)
    generator = np.random.default_rng(0)
    shuffled = dataclasses.replace(
        track, positions=track.positions + np.outer(generator.permutation(wave), [0.6, 0.8, 0.0])
    )
    rough = identify(Experiment(SlidingBlock(), (shuffled,), block_start(), "known"), FRICTION)
    assert smooth.standard_deviations["friction"] > 2.0 * rough.standard_deviations["friction"]
    assert abs(smooth.values["friction"] - 0.4) < 3.0 * smooth.standard_deviations["friction"]
