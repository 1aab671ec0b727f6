from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.feasibility import check_feasibility
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.simulation.objects import SimulatedObject, load_object
from morphit_ros.simulation.resting import mass_properties
from morphit_ros.simulation.solids import block, unite

FRANKA, HANDE = Gripper.load("franka_hand"), Gripper.load("hande")


def bar(size: tuple[float, float, float], mass: float, com_x: float = 0.0) -> SimulatedObject:
    """A block on z = 0 whose centre of mass may be off its middle."""
    surface = block(size, (0.0, 0.0, size[2] / 2.0)).surface
    center, inertia = mass_properties([surface], [1.0], mass)
    center = center + np.array([com_x, 0.0, 0.0])
    return SimulatedObject("bar", surface, [surface], mass, None, (0.5, 0.5, 0.5), center, inertia)


def test_a_cube_of_100_mm_is_too_wide_for_80_mm() -> None:
    found = check_feasibility(bar((0.1, 0.1, 0.1), 0.2), FRANKA, 0.6)
    assert not found.feasible
    assert found.least_width == pytest.approx(0.1, abs=1e-3)
    assert "too wide: 100 mm" in found.reason and "80 mm" in found.reason


def test_a_cube_of_60_mm_fits_one_gripper_and_not_the_other() -> None:
    cube = bar((0.06, 0.06, 0.06), 0.2)
    assert check_feasibility(cube, FRANKA, 0.6).feasible
    assert "too wide" in check_feasibility(cube, HANDE, 0.6).reason


def test_10_kg_at_friction_04_is_too_heavy() -> None:
    found = check_feasibility(bar((0.05, 0.05, 0.05), 10.0), FRANKA, 0.4)
    # 98.1 N on two pads that hold 2 · 0.4 · 40 N = 32 N.
    assert found.weight_share == pytest.approx(98.1 / 32.0, rel=1e-3)
    assert "too heavy: 98.1 N" in found.reason


def test_weight_limit_is_where_it_should_be() -> None:
    # 2 μ F / g = 3.26 kg at the centre of mass of a cube.
    assert check_feasibility(bar((0.05, 0.05, 0.05), 3.2), FRANKA, 0.4).feasible
    assert not check_feasibility(bar((0.05, 0.05, 0.05), 3.3), FRANKA, 0.4).feasible


def test_a_thin_flat_plate_is_not_squeezed_from_below() -> None:
    # 5 mm thick but 200 mm wide: the finger does not fit between plate and table.
    found = check_feasibility(bar((0.2, 0.2, 0.005), 0.2), FRANKA, 0.6)
    assert found.least_width > 0.19


def test_a_long_bar_needs_to_be_held_near_its_centre_of_mass() -> None:
    # All the mass 0.3 m beyond the end of what can be held: the torque is more than the pads' friction.
    inside, outside = bar((0.2, 0.03, 0.03), 0.5), bar((0.2, 0.03, 0.03), 0.5, com_x=0.4)
    assert check_feasibility(inside, FRANKA, 0.5).feasible
    found = check_feasibility(outside, FRANKA, 0.5)
    assert "off its centre" in found.reason
    # Lever 0.3 m: torque 1.47 N m over 2 · 0.5 · 40 N · 2/3 · 10.2 mm; slanting pairs in the friction cone need less.
    square = 0.5 * 9.81 * 0.3 / (40.0 * 2.0 / 3.0 * 0.01016)
    assert square * np.cos(np.arctan(0.5)) * 0.99 < found.load_share < square * 1.01


def test_turning_the_object_about_the_vertical_changes_nothing_much() -> None:
    item = load_object("t_block")
    turned = item.transformed(make_transform(matrix_from_rpy((0.0, 0.0, 1.0)), (0.3, 0.1, 0.0)))
    one, other = (check_feasibility(thing, FRANKA, 0.5) for thing in (item, turned))
    assert other.least_width == pytest.approx(one.least_width, rel=1e-3)
    assert other.load_share == pytest.approx(one.load_share, rel=1e-2)


@pytest.mark.parametrize("friction", [0.0, -0.4, float("nan"), float("inf")])
def test_bad_friction_is_refused(friction: float) -> None:
    with pytest.raises(InvalidInputError, match="friction"):
        check_feasibility(bar((0.05, 0.05, 0.05), 0.1), FRANKA, friction)


def test_a_place_that_holds_is_of_no_use_where_the_hand_does_not_fit() -> None:
    """A fin at the centre of mass in a pit that leaves no room for fingers, and a free one too far from it."""
    plate, fin = block((0.6, 0.22, 0.02), (0.0, 0.0, 0.01)), block((0.06, 0.02, 0.05), (0.0, 0.0, 0.04))
    walls = [block((0.24, 0.09, 0.15), (0.0, side * 0.06, 0.09)) for side in (-1.0, 1.0)]
    ends = [block((0.09, 0.21, 0.15), (side * 0.075, 0.0, 0.09)) for side in (-1.0, 1.0)]
    # Too long to be held by its ends, which would not be turned.
    far = block((0.1, 0.02, 0.05), (0.2, 0.0, 0.04))
    surface = unite([plate, fin, *walls, *ends, far])

    def reason(center_x: float) -> str:
        center = np.array([center_x, 0.0, 0.02])
        item = SimulatedObject("pocket", surface, [surface], 2.0, None, (0.5, 0.5, 0.5), center, np.eye(3))
        return check_feasibility(item, FRANKA, 0.5).reason

    assert "close on it and hold it" in reason(0.0)
    assert reason(0.2) == ""
