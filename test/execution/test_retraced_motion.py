"""The way back along a trajectory."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.execution.moves import retraced, strayed
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.trajectory_timing import peak_velocities


@pytest.fixture
def arc():
    """Two joints on a quarter circle."""
    times = np.linspace(0.0, 2.0, 51)
    s = times / 2.0
    phase = 0.5 * np.pi * (3 * s**2 - 2 * s**3)
    rate = 0.5 * np.pi * (6 * s - 6 * s**2) / 2.0
    positions = np.stack([np.cos(phase), np.sin(phase)], axis=1)
    velocities = rate[:, None] * np.stack([-np.sin(phase), np.cos(phase)], axis=1)
    return Trajectory(("a", "b"), times, positions, velocities)


@pytest.mark.parametrize("time", [0.3, 1.0, 2.0])
def test_it_ends_where_the_motion_began_and_stays_on_its_path(arc, time):
    here = arc.sample(time)
    back = retraced(arc, here)
    np.testing.assert_allclose(back.positions[0], here, atol=0.02)
    np.testing.assert_allclose(back.positions[-1], arc.positions[0], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(back.positions, axis=1), 1.0, atol=2e-3)
    assert (back.velocities[[0, -1]] == 0.0).all()
    assert (peak_velocities(back) <= 1.1 * peak_velocities(arc).max()).all()


def test_a_deviation_fades_out_without_a_jump(arc):
    here = arc.sample(1.0) + np.array([0.03, 0.0])
    back = retraced(arc, here)
    np.testing.assert_allclose(back.positions[0], here, atol=1e-9)
    np.testing.assert_allclose(back.positions[-1], arc.positions[0], atol=1e-9)
    assert np.abs(np.diff(back.positions, axis=0)).max() < 0.04


def test_an_arm_that_has_not_left_stays(arc):
    back = retraced(arc, arc.positions[0])
    np.testing.assert_allclose(back.positions, np.tile(arc.positions[0], (len(back.times), 1)), atol=1e-9)
    assert back.duration > 0.0


def test_a_trajectory_of_one_row():
    single = Trajectory(("a",), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)))
    back = retraced(single, np.array([0.01]))
    assert back.positions[0, 0] == pytest.approx(0.01)
    assert back.positions[-1, 0] == pytest.approx(0.0)


def test_there_is_no_way_back_from_where_the_arm_cannot_have_come(arc):
    for time in (0.0, 0.7, 2.0):
        assert strayed(arc, arc.sample(time), 0.05) == ""
        assert strayed(arc, arc.sample(time) + np.array([0.04, 0.0]), 0.05) == ""
        assert "rad off the way it came" in strayed(arc, arc.sample(time) + np.array([2.0 * np.pi, 0.0]), 0.3)
    assert "rad off the way it came" in strayed(arc, -arc.sample(1.0), 0.3)
