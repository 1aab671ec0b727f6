"""Peaks of trajectories are exact, and profiles keep their limits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.trajectory_timing import (
    chord_deviations,
    peak_accelerations,
    peak_velocities,
    slowed_for_load,
    slowed_to_limits,
    time_line,
)


def random_trajectory(seed: int) -> Trajectory:
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], rng.uniform(0.05, 0.4, 6).cumsum()])
    return Trajectory(("a", "b"), times, rng.normal(size=(7, 2)), rng.normal(size=(7, 2)))


@pytest.mark.parametrize("seed", range(5))
def test_peaks_equal_dense_finite_differences(seed: int) -> None:
    trajectory = random_trajectory(seed)
    times = np.linspace(0.0, trajectory.duration, 40001)
    positions = np.array([trajectory.sample(t) for t in times])
    velocities = np.diff(positions, axis=0) / (times[1] - times[0])
    np.testing.assert_allclose(peak_velocities(trajectory), np.abs(velocities).max(axis=0), rtol=2e-3)
    # Differences across a row mix two accelerations: they stay below the larger one.
    accelerations = np.diff(velocities, axis=0) / (times[1] - times[0])
    np.testing.assert_allclose(peak_accelerations(trajectory), np.abs(accelerations).max(axis=0), rtol=2e-2)


def test_slowing_down_keeps_the_path_and_meets_the_tightest_limit() -> None:
    trajectory = random_trajectory(1)
    velocity, acceleration = np.array([0.5, 0.7]), np.array([1.0, 0.4])
    slow = slowed_to_limits(trajectory, velocity, acceleration)
    ratios = [peak_velocities(slow) / velocity, np.sqrt(peak_accelerations(slow) / acceleration)]
    assert np.max(ratios) == pytest.approx(1.0, abs=1e-9)
    for share in np.linspace(0.0, 1.0, 17):
        np.testing.assert_allclose(
            slow.sample(share * slow.duration), trajectory.sample(share * trajectory.duration), atol=1e-12
        )


def test_slowing_down_leaves_a_slow_trajectory_alone() -> None:
    trajectory = random_trajectory(2)
    assert slowed_to_limits(trajectory, np.full(2, 1e3), np.full(2, 1e4)) is trajectory


@pytest.mark.parametrize("radius", [0.2, 0.9])
def test_what_an_arm_carries_is_accelerated_by_no_more_than_asked_and_the_path_stays(radius: float) -> None:
    """A joint that turns by minimum jerk: the tip is accelerated along its circle and towards the middle."""
    times = np.linspace(0.0, 1.0, 401)
    angles = 2.0 * (10.0 * times**3 - 15.0 * times**4 + 6.0 * times**5)
    rates = 2.0 * (30.0 * times**2 - 60.0 * times**3 + 30.0 * times**4)
    fast = Trajectory(("a",), times, angles[:, None], rates[:, None])
    turning = 2.0 * (60.0 * times - 180.0 * times**2 + 120.0 * times**3)
    peak = radius * float(np.hypot(turning, rates**2).max())

    def tip(positions: np.ndarray) -> np.ndarray:
        return radius * np.array([np.cos(positions[0]), np.sin(positions[0]), 0.0])

    slow = slowed_for_load(fast, tip, 2.0)
    assert slow.duration == pytest.approx(np.sqrt(max(peak / 2.0, 1.0)), rel=0.01)
    np.testing.assert_allclose(slow.sample(0.3 * slow.duration), fast.sample(0.3), atol=1e-9)
    assert slowed_for_load(fast, tip, 1.05 * peak) is fast
    # What jumps off at once is no less than what speeds up over time.
    jump = Trajectory(("a",), np.array([0.0, 1.0]), np.array([[0.0], [0.1]]), np.full((2, 1), 0.1))
    assert slowed_for_load(jump, tip, 1.0).duration > 1.0


@pytest.mark.parametrize(("speed", "acceleration"), [(0.1, 0.5), (0.5, 0.2)])
def test_line_profile_is_a_trapezoid(speed: float, acceleration: float) -> None:
    lengths = np.linspace(0.0, 0.2, 41)
    unlimited = np.array([1e3])
    line = time_line(("a",), 3.0 * lengths[:, None], lengths, speed, acceleration, unlimited, unlimited, 0.01)
    cruise = min(speed, np.sqrt(0.2 * acceleration))
    assert line.duration == pytest.approx(0.2 / cruise + cruise / acceleration)
    assert peak_velocities(line)[0] == pytest.approx(3.0 * cruise, rel=1e-2)
    assert line.velocities[0] == line.velocities[-1] == 0.0
    assert line.positions[0] == 0.0
    assert line.positions[-1] == pytest.approx(0.6)
    middle = len(line.times) // 2
    assert line.sample(line.duration / 2.0)[0] == pytest.approx(0.3, abs=1e-3), middle


def test_line_profile_obeys_joint_limits() -> None:
    lengths = np.linspace(0.0, 0.3, 61)
    positions = np.column_stack([np.sin(8.0 * lengths), 2.0 * lengths])
    velocity, acceleration = np.array([0.3, 0.5]), np.array([0.8, 0.6])
    line = time_line(("a", "b"), positions, lengths, 0.5, 2.0, velocity, acceleration, 0.01)
    assert (peak_velocities(line) <= velocity * (1.0 + 1e-9)).all()
    assert (peak_accelerations(line) <= acceleration * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(line.positions[[0, -1]], positions[[0, -1]])


def test_chord_deviations_bound_the_cubic_between_rows() -> None:
    rng = np.random.default_rng(4)
    closest = 0.0
    for _ in range(50):
        times = np.cumsum([0.0, *rng.uniform(0.05, 0.5, 4)])
        trajectory = Trajectory(("a", "b"), times, rng.normal(size=(5, 2)), rng.normal(size=(5, 2)))
        bounds = chord_deviations(trajectory)
        for row, (begin, end) in enumerate(pairwise(times)):
            shares = np.linspace(0.0, 1.0, 101)
            points = np.array([trajectory.sample(time) for time in begin + shares * (end - begin)])
            chord = points[0] + shares[:, None] * (points[-1] - points[0])
            beside = np.abs(points - chord).max(axis=0)
            assert (beside <= bounds[row] + 1e-12).all()
            closest = max(closest, float((beside / bounds[row]).max()))
    assert closest > 0.9


def test_a_line_is_slow_where_a_joint_needs_it_and_nowhere_else() -> None:
    """As near a singular position: two joints turn by a radian within some millimetres of the way of the tip."""
    lengths = np.linspace(0.0, 0.2, 41)
    turn = np.tanh((lengths - 0.1) / 0.006)
    positions = np.column_stack([2.0 * lengths, 0.5 * turn, lengths - 0.5 * turn])
    velocity, acceleration = np.full(3, 1.0), np.full(3, 2.0)
    line = time_line(("a", "b", "c"), positions, lengths, 0.2, 0.5, velocity, acceleration, 0.02)
    assert (peak_velocities(line) <= velocity * (1.0 + 1e-9)).all()
    assert (peak_accelerations(line) <= acceleration * (1.0 + 1e-9)).all()
    np.testing.assert_allclose(line.positions[[0, -1]], positions[[0, -1]])
    assert not line.velocities[[0, -1]].any() and (np.diff(line.positions[:, 0]) > -1e-12).all()
    # The same line is followed.
    path = CubicSpline(2.0 * lengths, positions)
    assert np.abs(path(line.positions[:, 0]) - line.positions).max() < 1e-6
    # A trapezoid that is slowed as a whole until no joint exceeds a limit takes as long as this.
    unlimited = np.full(3, 1e6)
    fast = time_line(("a", "b", "c"), positions, lengths, 0.2, 0.5, unlimited, unlimited, 0.02)
    assert line.duration < 0.4 * slowed_to_limits(fast, velocity, acceleration).duration
    # 3 cm from there it goes at full speed.
    cruising = np.abs(line.positions[:, 0] - 0.1) < 0.04
    assert line.velocities[cruising, 0].max() > 0.9 * 2.0 * 0.2
