"""The simulated cover turns its motors as told, and holds them still without a command."""

import numpy as np
import pytest

from morphit_ros.cover.cases import load_case
from morphit_ros.cover.noise import NoiseConfig
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.simulated import SimulatedCover

PERIOD, TIMEOUT = 0.01, 0.1


def simulated(encoders="joints"):
    case = load_case("3x3")
    return case, SimulatedCover(case.cover, case.state, NoiseConfig(), 0, encoders, PERIOD, TIMEOUT)


def test_motors_follow_a_command_until_it_is_too_old():
    case, cover = simulated("motors")
    rates = np.linspace(-0.02, 0.02, len(case.cover.motors))
    start = cover.angles(cover.measure())
    cover.command(rates, now=0.0)
    cover.advance(0.05)
    assert cover.moving
    plant = CoverPlant(case.cover, case.state)
    assert plant.step(rates, PERIOD)
    there = cover.angles(cover.measure())
    np.testing.assert_array_equal(there, cover.angles(plant.state))
    assert np.abs(there - start).max() > 1e-4
    cover.advance(0.11)
    cover.advance(0.12)
    assert not cover.moving
    # Counted once, not every period.
    assert (cover.commands, cover.holds) == (1, 1)
    np.testing.assert_array_equal(cover.angles(cover.measure()), there)


def test_what_nobody_understands_stops_the_motors_and_is_forgotten_with_the_next_command():
    case, cover = simulated()
    cover.command(np.full(len(case.cover.motors), 0.02), now=0.0)
    cover.refuse("three numbers")
    cover.advance(0.01)
    assert not cover.moving
    assert (cover.refused, cover.refusal) == (1, "three numbers")
    cover.command(np.zeros(len(case.cover.motors)), now=0.02)
    cover.advance(0.03)
    assert cover.refusal == ""


@pytest.mark.parametrize("encoders", ["joints", "folds", "motors"])
def test_encoders_name_their_axes_those_of_motors_among_them(encoders):
    case, cover = simulated(encoders)
    assert len(cover.axis_names) == len(set(cover.axis_names)) == len(cover.angles(cover.measure()))
    assert set(case.cover.motor_labels) <= set(cover.axis_names)
    assert len(cover.axis_names) <= {"joints": 3, "folds": 2, "motors": 1}[encoders] * 3 * case.cover.joint_count
