"""Deviations of what is identified cover the truth: autocorrelated noise, starts seen with noise, flat costs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from identification_samples import SlidingBlock, block_experiment, block_start, observed
from scipy.fft import dct
from scipy.linalg import toeplitz
from scipy.spatial.transform import Rotation

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.identification.experiments import Experiment, cut_windows
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.least_squares import EstimationStatus
from morphit_ros.neural.identification.probing import stretch_of
from morphit_ros.neural.identification.residual_spectrum import (
    Series,
    channel_spectra,
    process_spectra,
    residual_information,
)
from morphit_ros.neural.identification.tracks import PoseTrack
from morphit_ros.neural.identification.unknowns import Unknown
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_identification import identify_push, push_experiment
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.neural.objects.resting_start import resting_pose

FRICTION = Unknown("friction", 0.2, 0.0, 1.0)


def process(rng: np.random.Generator, count: int, correlation: float) -> np.ndarray:
    """(T, 3) of variance 1, each value of this correlation with the last."""
    values = rng.normal(size=(count, 3))
    for row in range(1, count):
        values[row] = correlation * values[row - 1] + np.sqrt(1.0 - correlation**2) * values[row]
    return values


@pytest.mark.parametrize("length", [1, 2, 3, 20])
def test_spectra_of_a_process_are_those_of_its_covariance(length: int) -> None:
    correlations = np.array([0.0, 0.4, 0.95])
    cosines = dct(np.eye(length), axis=0, norm="ortho")
    for correlation, spectrum in zip(correlations, process_spectra(length, correlations), strict=True):
        covariance = toeplitz(correlation ** np.arange(length))
        np.testing.assert_allclose(spectrum, np.diag(cosines @ covariance @ cosines.T), atol=1e-12)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_a_spectrum_is_found_from_a_few_tracks(correlation: float) -> None:
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        squares = [dct(2.0 * process(rng, 60, correlation)[:, 0], norm="ortho") ** 2 for _ in range(4)]
        found.append(channel_spectra(squares, [np.ones(60)] * 4)[0])
    expected = 4.0 * process_spectra(60, np.array([correlation]))[0]
    np.testing.assert_allclose(np.median(found, axis=0)[[0, 2, 5, 20, 50]], expected[[0, 2, 5, 20, 50]], rtol=0.25)


def test_the_information_of_white_residuals_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    jacobian = rng.normal(size=(4000, 1, 3))
    series = Series(0.3 * rng.normal(size=(4000, 1)), jacobian, np.arange(3))
    flat = jacobian[:, 0]
    root = np.linalg.cholesky(np.linalg.inv(flat.T @ flat))
    np.testing.assert_allclose(residual_information([series], root, 0.0), 0.09 * flat.T @ flat, rtol=0.06, atol=15.0)
    # A perfect fit is no proof of perfect data.
    silent = dataclasses.replace(series, residuals=np.zeros((4000, 1)))
    np.testing.assert_allclose(
        residual_information([silent], root, 0.02), 0.02**2 * flat.T @ flat, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("slow", [0.0, 0.5, 1.0])
def test_the_truth_lies_within_two_deviations_whatever_the_noise(slow: float) -> None:
    """White, slow, or half of each: of 40 tracks at least 90 % (95 % are meant), and the deviations are no excuse."""
    track, far = observed(SlidingBlock(), frames=60), []
    estimates, deviations = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        places, turns = (
            np.sqrt(slow) * process(rng, 60, 0.9) + np.sqrt(1.0 - slow) * process(rng, 60, 0.0) for _ in range(2)
        )
        quats = (Rotation.from_quat(track.quats_xyzw) * Rotation.from_rotvec(0.02 * turns)).as_quat()
        seen = PoseTrack(track.times, track.positions + 0.002 * places, quats)
        result = identify(
            Experiment(SlidingBlock(), (seen,), knowledge="unknown"), FRICTION,
            IdentificationConfig(position_noise=0.002, rotation_noise=0.02),
        )  # fmt: skip
        estimates.append(result.values["friction"])
        deviations.append(result.standard_deviations["friction"])
        far.append(abs(estimates[-1] - 0.4) > 2.0 * deviations[-1])
    assert np.mean(far) <= 0.1
    assert np.median(deviations) < 2.0 * np.std(estimates)


def test_a_quadratic_cost_stretches_nothing_and_a_flat_one_until_it_has_risen() -> None:
    covariance = np.array([[4.0, 1.0, 0.5], [1.0, 9.0, 0.0], [0.5, 0.0, 1.0]])
    information = np.linalg.inv(covariance)
    free = (np.full(3, -np.inf), np.full(3, np.inf))
    same = stretch_of(lambda step: 0.5 * float(step @ information @ step), covariance, 2, free, 6)
    np.testing.assert_allclose(same, np.eye(3), atol=1e-9)

    # Steep within a tenth of a deviation, then as flat as for five: three of these are looked for.
    def kinked(step: np.ndarray) -> float:
        return float(0.5 * (step[0] / 5.0) ** 2 + min(abs(step[0]), 0.1) * 0.01)

    drawn = stretch_of(kinked, np.eye(1), 1, (np.full(1, -np.inf), np.full(1, np.inf)), 8)
    assert drawn[0, 0] == pytest.approx(5.0, rel=0.02)
    # Only on one side, and where a bound cuts that side off.
    one_sided = stretch_of(
        lambda step: 0.5 * float(step[0] / (4.0 if step[0] > 0.0 else 1.0)) ** 2, np.eye(1), 1, free_of(1), 8
    )
    assert one_sided[0, 0] == pytest.approx(4.0, rel=0.02)
    nowhere = stretch_of(lambda step: 0.0, np.eye(1), 1, (np.zeros(1), np.zeros(1)), 8)
    assert nowhere[0, 0] == 1.0
    # A motion that cannot be computed there is far enough.
    assert stretch_of(lambda step: np.inf, np.eye(1), 1, free_of(1), 8)[0, 0] == 1.0


def free_of(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(count, -np.inf), np.full(count, np.inf)


@dataclasses.dataclass(frozen=True)
class TwoValleys(SlidingBlock):
    """A block whose friction is bent: two of them make nearly the same motion, one of them the very same."""

    def predict(self, names, values, start, times):
        bent = np.asarray(values, dtype=np.float64).copy()
        slope = np.ones(1)
        if len(bent):
            away = bent[0] - 0.5
            slope = np.array([1.0 - 2.0 * away / 0.2])
            bent[0] = 0.4 + away - away**2 / 0.2 + 0.06 * (away > 0.1)
        prediction = super().predict(names, bent, start, times)
        return dataclasses.replace(prediction, by_parameters=prediction.by_parameters * slope)


def test_of_two_valleys_the_deeper_one_is_found() -> None:
    """From the top of the ridge between them a search goes into one; a scan sees both."""
    track = observed(SlidingBlock(friction=0.35), frames=40)
    motion = Experiment(TwoValleys(), (track,), block_start(), "unknown")
    begun = Unknown("friction", 0.66, 0.3, 0.7)
    one, single, several = (
        identify(motion, begun, IdentificationConfig(starts=count, looks=0, scan=scan))
        for count, scan in ((1, 0), (1, 33), (4, 33))
    )
    for found in (single, several):
        assert found.estimate.cost < 1e-3 * one.estimate.cost
        assert found.values["friction"] == pytest.approx(0.4581, abs=1e-3)


def test_starts_in_some_directions_are_estimated_there_and_nowhere_else() -> None:
    directions = np.zeros((12, 2))
    directions[0, 0], directions[[6, 7], 1] = 1.0, [0.6, 0.8]
    start = block_start()
    start[0, 0] += 0.01
    start[0, 6 + 1 : 6 + 3] *= 1.1
    experiment = Experiment(SlidingBlock(), (observed(SlidingBlock()),), start, directions=directions)
    result = identify(experiment, FRICTION)
    assert result.values["friction"] == pytest.approx(0.4, abs=1e-6)
    np.testing.assert_allclose(result.starts[0], block_start(), atol=1e-6)
    assert result.estimate.names[1:] == ("first pose, direction 0", "first pose, direction 1")
    assert not experiment.certain
    assert experiment.with_certain_start().certain
    assert [part.directions is None for part in cut_windows(experiment, 10)][:2] == [False, True]
    with pytest.raises(InvalidInputError, match="directions"):
        Experiment(SlidingBlock(), (observed(SlidingBlock()),), start, directions=np.zeros((6, 2)))


def test_a_search_that_stopped_says_so_with_any_deviations() -> None:
    experiment = block_experiment(SlidingBlock(friction=0.3), SlidingBlock(), noise=0.002, knowledge="unknown")
    # A scan begins so near that two evaluations are enough.
    config = IdentificationConfig(scan=0)
    config = dataclasses.replace(config, search=dataclasses.replace(config.search, max_evaluations=2))
    assert identify(experiment, FRICTION, config).status is EstimationStatus.ITERATION_LIMIT


SIZE = np.array([0.10, 0.06, 0.04])
CONFIG = PredictionConfig(contact_points=200, step=0.01)
TRUTH = {"center_of_mass_x": 0.015, "center_of_mass_y": -0.006}


@pytest.fixture(scope="module")
def known():
    return know_object(BoxField(SIZE), 500.0)


def scene_of(known) -> PushScene:
    """A finger that pushes the box's end aside."""
    times = np.array([0.0, 0.6])
    way = np.array([[-0.03, -0.048, 0.0], [-0.03, -0.003, 0.0]])
    return PushScene(known, carrying_table(known, np.eye(4)), Pusher(0.01, times, way, 0.0, np.zeros((2, 3))), CONFIG)


def seen_with_noise(poses: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    seen = poses.copy()
    seen[:, :3, 3] += rng.normal(0.0, 1e-3, (len(poses), 3))
    seen[:, :3, :3] = seen[:, :3, :3] @ Rotation.from_rotvec(rng.normal(0.0, 5e-3, (len(poses), 3))).as_matrix()
    return seen


def test_centres_found_by_a_push_are_as_uncertain_as_they_say(known) -> None:
    """The first pose is seen with noise, as all others are."""
    motion = predict_push(scene_of(known.identified(TRUTH, {})), np.eye(4), 0.7)
    rows, scores = slice(0, None, 2), []
    for seed in range(6):
        result = identify_push(
            scene_of(known), motion.times[rows], seen_with_noise(motion.poses[rows], seed), tuple(TRUTH),
            IdentificationConfig(position_noise=1e-3, rotation_noise=5e-3, threads=1, starts=1),
        )  # fmt: skip
        assert result.success, result.message
        scores.append([(result.values[name] - TRUTH[name]) / result.standard_deviations[name] for name in TRUTH])
    assert np.sqrt(np.mean(np.square(scores))) < 1.5
    assert np.abs(scores).max() < 3.5


def track_of(poses: np.ndarray, step: float = 0.02) -> PoseTrack:
    return PoseTrack(
        step * np.arange(len(poses)), poses[:, :3, 3], Rotation.from_matrix(poses[:, :3, :3]).as_quat()
    )  # fmt: skip


def test_what_lies_still_begins_where_the_table_holds_it(known) -> None:
    scene = scene_of(known)
    T_world_object = make_transform(matrix_from_rpy((0.0, 0.0, 0.7)), (0.02, -0.01, 0.0))
    poses = seen_with_noise(np.tile(T_world_object, (30, 1, 1)), 3)
    lying = resting_pose(scene, track_of(poses))
    assert lying is not None
    # Upright to far better than one look would tell, at the mean place of the first looks.
    np.testing.assert_allclose(lying[:3, 2], [0.0, 0.0, 1.0], atol=5e-4)
    resting = predict_push(dataclasses.replace(scene, pusher=None), T_world_object, 1.0).poses[-1]
    assert lying[2, 3] == pytest.approx(resting[2, 3], abs=1e-4)
    np.testing.assert_allclose(lying[:2, 3], [0.02, -0.01], atol=1.5e-3)
    assert np.arctan2(lying[1, 0], lying[0, 0]) == pytest.approx(0.7, abs=0.01)
    # What was computed, without noise, is not put elsewhere: this box floats up by a millimetre in its first steps.
    exact = np.tile(T_world_object, (30, 1, 1))
    np.testing.assert_allclose(resting_pose(scene, track_of(exact)), T_world_object, atol=1e-9)
    experiment = push_experiment(scene, track_of(poses).times, poses)
    assert experiment.directions is not None
    assert experiment.directions.shape == (12, 3)
    np.testing.assert_array_equal(experiment.start[0, 7:], np.zeros(6))


@pytest.mark.parametrize("how", ["slides", "turns", "falls", "short", "hangs"])
def test_what_moves_or_does_not_lie_there_begins_as_it_was_seen(known, how: str) -> None:
    scene, count = scene_of(known), 4 if how == "short" else 30
    poses = np.tile(np.eye(4), (count, 1, 1))
    times = 0.02 * np.arange(count)
    if how == "slides":
        poses[:, 0, 3] = 0.3 * times
    if how == "turns":
        poses[:, :3, :3] = Rotation.from_rotvec(np.outer(8.0 * times, [0.0, 0.0, 1.0])).as_matrix()
    if how == "hangs":
        poses[:, 2, 3] = 0.03
    if how == "falls":
        poses[:] = make_transform(matrix_from_rpy((0.5, 0.0, 0.0)), (0.0, 0.0, 0.03))
    if how == "short":
        poses = poses[:2]
    poses = seen_with_noise(poses, 1)
    assert resting_pose(scene, track_of(poses)) is None
    experiment = push_experiment(scene, track_of(poses).times, poses)
    assert experiment.knowledge == "unknown"
    assert experiment.directions is None


@dataclasses.dataclass(frozen=True)
class BlockWithoutDerivatives(SlidingBlock):
    """From some friction on it explains the track exactly, but there its derivatives cannot be computed."""

    edge: float = np.inf
    track: PoseTrack | None = None

    def poses(self, names, values, start, times):
        if values[list(names).index("friction")] < self.edge:
            return SlidingBlock.poses(self, names, values, start, times)
        return self.track.positions[:, None], self.track.quats_xyzw[:, None]

    def predict(self, names, values, start, times):
        prediction = super().predict(names, values, start, times)
        if "friction" in names and values[list(names).index("friction")] >= self.edge:
            return dataclasses.replace(prediction, positions=np.full_like(prediction.positions, np.nan))
        return prediction


def test_a_lower_cost_that_cannot_be_searched_from_leaves_what_was_found() -> None:
    track = observed(SlidingBlock(friction=0.3)).with_noise(0.002, 0.02, 0)
    resting = np.zeros((12, 0))
    known = identify(Experiment(SlidingBlock(), (track,), block_start(), directions=resting), FRICTION)
    edge = known.values["friction"] + 1.5 * known.standard_deviations["friction"]
    motion = BlockWithoutDerivatives(edge=edge, track=track)
    found = identify(Experiment(motion, (track,), block_start(), directions=resting), FRICTION)
    assert found.values["friction"] == pytest.approx(known.values["friction"], abs=1e-9)
    assert found.standard_deviations["friction"] >= known.standard_deviations["friction"]
