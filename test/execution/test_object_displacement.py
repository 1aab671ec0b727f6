"""Whether an object moved, told from two partial looks at it."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.displacement import object_displacement, planar_motion
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, rotation_angle, transform_points

SIZE = np.array([0.055, 0.09, 0.12])


def box(seed, count=3000, noise=5e-4):
    """Points on five faces of a box."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.5, 0.5, (count, 3))
    axis = rng.integers(0, 3, count)
    side = np.where(axis == 2, 1.0, rng.choice([-1.0, 1.0], count))
    points[np.arange(count), axis] = 0.5 * side
    return points * SIZE + rng.normal(scale=noise, size=(count, 3))


@pytest.mark.parametrize("direction", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
def test_a_moved_box_shows(direction):
    moved = box(1) + 0.03 * np.array(direction)
    assert 0.012 < object_displacement(box(0), moved) < 0.032
    assert object_displacement(box(0), moved) == pytest.approx(object_displacement(moved, box(0)))


def test_noise_is_no_motion():
    assert object_displacement(box(0), box(1)) < 0.004


def test_an_arm_that_hides_a_part_is_no_motion():
    after = box(1)
    assert object_displacement(box(0), after[after[:, 0] > 0.0]) < 0.004


def test_an_arm_that_is_taken_for_a_part_is_no_motion():
    after = box(1)
    finger = after[:800] * 0.3 + [0.0, 0.0, 0.12]
    assert object_displacement(box(0), np.concatenate([after, finger])) < 0.006


@pytest.mark.parametrize("bad", [np.empty((0, 3)), np.full((4, 3), np.nan), np.zeros((3, 2)), np.zeros(3)])
def test_bad_points_are_named(bad):
    with pytest.raises(InvalidInputError, match="after"):
        object_displacement(box(0), bad)
    with pytest.raises(InvalidInputError, match="before"):
        object_displacement(bad, box(0))


def hammer(seed, count=800, noise=1e-3):
    """Points on a handle of 0.24 m with a head across its end."""
    rng = np.random.default_rng(seed)
    handle = rng.uniform([-0.12, -0.01, 0.0], [0.1, 0.01, 0.02], (count // 2, 3))
    head = rng.uniform([0.09, -0.05, 0.0], [0.12, 0.05, 0.03], (count // 2, 3))
    return np.concatenate([handle, head]) + rng.normal(scale=noise, size=(count // 2 * 2, 3))


@pytest.mark.parametrize("turn", [0.0, 40.0, -100.0, 180.0])
def test_a_motion_on_the_table_is_found_with_its_turn(turn):
    truth = make_transform(matrix_from_rpy((0.0, 0.0, np.radians(turn))), (0.06, -0.03, 0.0))
    found = planar_motion(hammer(0) + 0.4, transform_points(truth, hammer(1) + 0.4))
    head = np.array([[0.5, 0.4, 0.4]])
    assert np.linalg.norm(transform_points(found, head) - transform_points(truth, head)) < 0.006


def test_of_poses_that_look_alike_the_one_that_turns_least_is_taken():
    found = planar_motion(box(0), box(1) + np.array([0.02, 0.0, 0.0]))
    assert rotation_angle(found[:3, :3]) < np.radians(4.0)
    assert found[:3, 3] == pytest.approx([0.02, 0.0, 0.0], abs=0.003)


def test_an_object_on_another_side_is_no_motion_on_the_table():
    upright = box(0) @ np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]) * [1.0, 1.0, 1.0]
    assert planar_motion(box(0), upright * [2.0, 1.0, 1.0]) is None
