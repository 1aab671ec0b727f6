"""Identification: what its figures mean, by hand; the step's error, windows, tracks at other times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from identification_samples import SlidingBlock, block_start, observed
from scipy.spatial.transform import Rotation

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.world import RigidBody, World
from morphit_ros.neural.identification.experiments import Experiment, cut_windows
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.identify import identify
from morphit_ros.neural.identification.least_squares import Evaluation, LeastSquaresConfig, solve_least_squares
from morphit_ros.neural.identification.motion import Prediction
from morphit_ros.neural.identification.residuals import ParameterTrial, refined_residuals
from morphit_ros.neural.identification.simulated_motion import SimulatedMotion
from morphit_ros.neural.identification.tracks import PoseTrack, resampled_positions
from morphit_ros.neural.identification.unknowns import Unknown

FRICTION = Unknown("friction", 0.3, 0.0, 1.0)
TIMES = 0.1 * np.arange(21)


def test_residuals_are_distances_and_angles() -> None:
    # What friction can't make up for: 3 mm and 4 mm across, 0.03 rad about an axis of its own.
    track = observed(SlidingBlock())
    across = np.array([-0.8 * 0.003, 0.6 * 0.003, 0.004])
    turned = Rotation.from_quat(track.quats_xyzw) * Rotation.from_rotvec([0.03 * 0.6, 0.0, 0.03 * 0.8])
    seen = replace(track, positions=track.positions + across, quats_xyzw=turned.as_quat())
    result = identify(Experiment(SlidingBlock(), (seen,), block_start(), "known"), FRICTION)
    assert result.values["friction"] == pytest.approx(0.4, abs=1e-6)
    assert result.position_residual == pytest.approx(0.005, rel=1e-6)
    assert result.rotation_residual == pytest.approx(0.03, rel=1e-6)


def test_a_linear_model_has_the_covariance_of_ordinary_least_squares() -> None:
    rng = np.random.default_rng(0)
    jacobian = rng.normal(size=(80, 3)) * [1.0, 1.0, 1e-3]
    measured = jacobian @ [1.0, -2.0, 300.0] + 0.3 * rng.normal(size=80)
    unknowns = [Unknown("a", 0.0, -10.0, 10.0), Unknown("b", 0.0, -10.0, 10.0), Unknown("c", 0.0, -1e4, 1e4)]

    def solved(data: Array):
        config = LeastSquaresConfig(noise_floor=0.02)
        return solve_least_squares(lambda values: Evaluation(jacobian @ values - data, jacobian, 80), unknowns, config)

    best = np.linalg.lstsq(jacobian, measured, rcond=None)[0]
    left = jacobian @ best - measured
    expected = np.linalg.inv(jacobian.T @ jacobian)
    found = solved(measured)
    np.testing.assert_allclose(found.values, best, rtol=1e-6)
    np.testing.assert_allclose(found.uncertainty.covariance, left @ left / 77.0 * expected, rtol=1e-9)
    # A perfect fit is no proof of perfect data.
    perfect = solved(jacobian @ [1.0, -2.0, 300.0]).uncertainty.covariance
    np.testing.assert_allclose(perfect, 0.02**2 * expected, rtol=1e-6)


@dataclass(frozen=True)
class Drifting:
    """Moves along x at `speed`, turns about z at half of that; both off by the step, to first order."""

    step: float = 0.1

    @property
    def bodies(self) -> int:
        return 1

    def later(self, seconds: float) -> Drifting:
        return self

    def finer(self, divisions: int) -> Drifting:
        return Drifting(self.step / divisions)

    def poses(self, names: Sequence[str], values: Array, start: Array, times: Array) -> tuple[Array, Array]:
        way = (values[0] + self.step) * (times - times[0])
        positions = start[None, :, :3] + np.outer(way, [1.0, 0.0, 0.0])[:, None]
        return positions, Rotation.from_rotvec(np.outer(0.5 * way, [0.0, 0.0, 1.0])).as_quat()[:, None]

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        slopes = np.zeros((len(times), 1, 6, 1))
        slopes[:, 0, 0, 0], slopes[:, 0, 5, 0] = times - times[0], 0.5 * (times - times[0])
        return Prediction(*self.poses(names, values, start, times), slopes, np.zeros((len(times), 1, 6, 12)))


def drifted(speed: float) -> Experiment:
    start = np.zeros((1, 13))
    start[0, 6] = 1.0
    positions, quats = Drifting(0.0).poses((), np.array([speed]), start, TIMES)
    return Experiment(Drifting(), (PoseTrack(TIMES, positions[:, 0], quats[:, 0]),), start, "known")


def test_two_finer_rollouts_have_no_error_of_first_order_left() -> None:
    motion = Drifting()
    trial = ParameterTrial(drifted(0.7), ["speed"], np.array([0.7]), np.zeros((12, 0)), np.zeros(0), 0.001, 0.01)
    residuals, position_errors, rotation_errors = refined_residuals(trial, (motion.finer(2), motion.finer(4)))
    np.testing.assert_allclose(position_errors, 0.0, atol=1e-12)
    np.testing.assert_allclose(rotation_errors, 0.0, atol=1e-12)
    np.testing.assert_allclose(residuals, 0.0, atol=1e-9)


def test_a_correction_takes_the_steps_error_off_and_says_what_is_left() -> None:
    unknown = Unknown("speed", 0.5, 0.0, 2.0)
    raw, corrected = (identify(drifted(0.7), unknown, IdentificationConfig(corrections=count)) for count in (0, 1))
    assert raw.values["speed"] == pytest.approx(0.6, abs=1e-6)
    assert corrected.values["speed"] == pytest.approx(0.7, abs=1e-6)
    assert corrected.estimate.cost == pytest.approx(0.0, abs=1e-6)


def test_windows_overlap_in_a_pose_and_only_the_first_knows_its_start() -> None:
    whole = Experiment(SlidingBlock(), (observed(SlidingBlock(), frames=20),), block_start(), "known")
    parts = cut_windows(whole, 6)
    assert [part.knowledge for part in parts] == ["known", "unknown", "unknown", "unknown"]
    np.testing.assert_array_equal(parts[0].start, whole.start)
    for before, after in itertools.pairwise(parts):
        assert before.times[-1] == after.times[0]
        np.testing.assert_array_equal(before.positions[-1], after.positions[0])
    assert parts[-1].times[-1] == whole.times[-1]


def test_positions_between_the_poses_of_a_track() -> None:
    track = PoseTrack(np.array([1.0, 2.0, 4.0]), np.diag([1.0, 2.0, 4.0]), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)))
    found = resampled_positions(track, np.array([1.0, 1.5, 3.0, 4.0, 5.0]))
    np.testing.assert_allclose(found, [[1, 0, 0], [0.5, 1, 0], [0, 1, 2], [0, 0, 4], [0, 0, 4]])
    for times in ([0.9, 2.0], [2.0, 6.1]):
        with pytest.raises(InvalidInputError, match="track times"):
            resampled_positions(track, np.array(times))


def test_controls_that_have_ended_go_on_as_they_were_at_last() -> None:
    world = World([RigidBody.ball(0.05, 1.0, "ball")], (), step=0.01, controls=[("ball", "force")])
    motion = SimulatedMotion(world, np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]]), 0.02)
    np.testing.assert_array_equal(motion.later(0.02).controls, [[2.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    np.testing.assert_array_equal(motion.later(0.5).controls, [[3.0, 0.0, 0.0]])
    start = np.zeros((1, 13))
    start[0, 6] = 1.0
    times = np.array([0.0, 0.1, 0.2])
    still = replace(motion, world=replace(world, gravity=np.zeros(3)))
    positions, _ = still.later(0.5).poses((), np.zeros(0), start, times)
    np.testing.assert_allclose(positions[:, 0, 0], 1.5 * times**2, atol=1e-12)
