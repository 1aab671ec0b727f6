"""Times along paths with corners, against known optima, limits and the path itself."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.path_timing import rounded_path, time_path
from morphit_ros.robot.trajectory_timing import peak_accelerations, peak_velocities

VELOCITIES, ACCELERATIONS = np.array([1.1, 0.9, 1.3]), np.array([3.7, 1.9, 2.5])
NAMES, STEP = ("a", "b", "c"), 0.02
# What smoothing takes: the speed is a mean over two rows.
SMOOTHED = 2 * STEP


def timed(corners, blend=0.02):
    return time_path(NAMES, np.array(corners, dtype=float), blend, VELOCITIES, ACCELERATIONS, STEP)


def distance_to_path(point: np.ndarray, corners: np.ndarray) -> float:
    """Of a point to the straight pieces."""
    least = np.inf
    for first, last in pairwise(corners):
        way = last - first
        share = np.clip((point - first) @ way / max(way @ way, 1e-300), 0.0, 1.0)
        least = min(least, float(np.linalg.norm(point - first - share * way)))
    return least


@pytest.mark.parametrize("length", [0.02, 0.2, 1.0, 5.0])
def test_a_straight_way_takes_the_least_time(length: float) -> None:
    trajectory = timed([[0.0, 0.0, 0.0], [length, 0.0, 0.0]])
    v, a = VELOCITIES[0], ACCELERATIONS[0]
    least = length / v + v / a if length > v * v / a else 2.0 * math.sqrt(length / a)
    assert least <= trajectory.duration <= 1.03 * least + SMOOTHED


def test_the_slowest_joint_sets_the_pace() -> None:
    trajectory = timed([[0.0, 0.0, 0.0], [1.0, 2.0, -0.5]])
    v, a = VELOCITIES[1], ACCELERATIONS[1]
    assert 2.0 / v + v / a <= trajectory.duration <= 1.02 * (2.0 / v + v / a) + SMOOTHED
    share = trajectory.positions[:, 1] / 2.0
    np.testing.assert_allclose(trajectory.positions, share[:, None] * [1.0, 2.0, -0.5], atol=1e-12)


@pytest.mark.parametrize("blend", [0.0, 0.005, 0.05, 0.5])
def test_limits_and_the_way_are_kept(blend: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        corners = rng.normal(size=(rng.integers(2, 8), 3))
        trajectory = timed(corners, blend)
        np.testing.assert_array_equal(trajectory.positions[[0, -1]], corners[[0, -1]])
        assert not trajectory.velocities[[0, -1]].any()
        assert (peak_velocities(trajectory) <= VELOCITIES * (1.0 + 1e-9)).all()
        assert (peak_accelerations(trajectory) <= ACCELERATIONS * (1.0 + 1e-9)).all()
        # Between rows the cubic leaves the parabolas by little.
        for time in np.linspace(0.0, trajectory.duration, 200):
            assert distance_to_path(trajectory.sample(time), corners) <= blend + 2e-3
        # Each piece is driven: a corner is not left out.
        for corner in corners:
            assert np.linalg.norm(trajectory.positions - corner, axis=1).min() <= blend + 0.1


def test_rounder_corners_are_faster_and_none_stop() -> None:
    corners = [[0.0, 0.0, 0.0], [0.6, 0.2, 0.0], [0.7, 0.9, -0.3], [0.1, 0.8, 0.4]]
    durations = [timed(corners, blend).duration for blend in (0.0, 0.01, 0.05, 0.2)]
    assert durations == sorted(durations, reverse=True)
    assert durations[-1] < 0.8 * durations[0]
    speeds = np.abs(timed(corners, 0.05).velocities[1:-1]).max(axis=1)
    assert speeds.min() > 0.01
    stops = timed(corners, 0.0)
    for corner in corners:
        row = np.linalg.norm(stops.positions - corner, axis=1).argmin()
        np.testing.assert_allclose(stops.positions[row], corner, atol=1e-12)
        np.testing.assert_allclose(stops.velocities[row], 0.0, atol=1e-12)


def test_a_rounded_path_bends_without_a_jump_of_its_direction() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        grid = rounded_path(rng.normal(size=(6, 3)), 0.1)
        steps = np.diff(grid.lengths)[:, None]
        assert (steps > 0.0).all()
        np.testing.assert_allclose(grid.slopes[1:], grid.slopes[:-1] + steps * grid.curvatures, atol=1e-9)
        ends = grid.positions[:-1] + steps * grid.slopes[:-1] + 0.5 * steps**2 * grid.curvatures
        np.testing.assert_allclose(grid.positions[1:], ends, atol=1e-9)


def test_way_and_time_reversed_are_the_same_motion() -> None:
    corners = np.array([[0.0, 0.0, 0.0], [0.6, 0.2, 0.0], [0.7, 0.9, -0.3]])
    assert timed(corners).duration == pytest.approx(timed(corners[::-1]).duration, rel=0.03)


def test_no_way_repeated_corners_and_turning_back() -> None:
    assert timed([[0.1, 0.2, 0.3]] * 3).duration == 0.0
    once = timed([[0.0, 0.0, 0.0], [0.5, 0.1, 0.0]])
    again = timed([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.1, 0.0], [0.5, 0.1, 0.0]])
    np.testing.assert_array_equal(once.positions, again.positions)
    back = timed([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert np.abs(back.positions[:, 0]).max() >= 0.5 - 0.021
    assert (peak_accelerations(back) <= ACCELERATIONS * (1.0 + 1e-9)).all()


def test_limits_that_are_none_are_refused() -> None:
    corners = np.array([[0.0, 0.0, 0.0], [0.5, 0.1, 0.0]])
    with pytest.raises(InvalidInputError, match="velocity_limits"):
        time_path(NAMES, corners, 0.1, np.array([1.0, 0.0, 1.0]), ACCELERATIONS, STEP)
    with pytest.raises(InvalidInputError, match="acceleration_limits"):
        time_path(NAMES, corners, 0.1, VELOCITIES, np.array([1.0, np.nan, 1.0]), STEP)
    with pytest.raises(InvalidInputError, match="blend"):
        time_path(NAMES, corners, -0.1, VELOCITIES, ACCELERATIONS, STEP)
