"""The distance function of an open gripper: exact against boxes and spheres, and what it is refused for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.superovoid import HalfSpace, ObjectClearance, Superovoid, hand_of_boxes


@dataclass(frozen=True)
class Cuboid:
    center: np.ndarray
    size: np.ndarray


def boxes(aperture):
    """Two fingers of 10 mm along y beside the opening, a palm 60 mm behind the tips."""
    size = np.array([0.02, 0.01, 0.04])
    sides = [Cuboid(np.array([0.0, sign * (aperture / 2 + 0.005), 0.0]), size) for sign in (1.0, -1.0)]
    return [*sides, Cuboid(np.array([0.0, 0.0, -0.06]), np.array([0.1, 0.1, 0.02]))]


fingers = hand_of_boxes(boxes)
BALL = (Superovoid.sphere(0.02), np.eye(4))


@pytest.mark.parametrize("aperture", [0.05, 0.06, 0.08])
def test_a_ball_between_the_fingers(aperture):
    clearance = ObjectClearance(fingers, [BALL])
    assert clearance(np.eye(4), aperture) == pytest.approx(aperture / 2 - 0.02, abs=1e-9)
    # Off the middle by 4 mm one finger is nearer by as much.
    aside = make_transform(translation=[0.0, 0.004, 0.0])
    assert clearance(aside, aperture) == pytest.approx(aperture / 2 - 0.024, abs=1e-9)


def test_fingers_in_the_object_are_deep_by_what_would_free_them():
    assert ObjectClearance(fingers, [BALL])(np.eye(4), 0.03) == pytest.approx(-0.005, abs=1e-8)


def test_it_moves_with_the_gripper_and_the_objects():
    rng = np.random.default_rng(0)
    egg = Superovoid((0.02, 0.015, 0.03), (0.7, 1.2), (0.2, 0.2))
    there = ObjectClearance(fingers, [(egg, np.eye(4))])(make_transform(translation=[0.003, 0.001, 0.004]), 0.06)
    for _ in range(5):
        motion = make_transform(matrix_from_rpy(rng.uniform(-3, 3, 3)), rng.uniform(-1, 1, 3))
        moved = ObjectClearance(fingers, [(egg, motion)])
        pose = motion @ make_transform(translation=[0.003, 0.001, 0.004])
        assert moved(pose, 0.06) == pytest.approx(there, abs=1e-9)


def test_the_nearest_of_all_counts():
    table = (HalfSpace(), make_transform(translation=[0.0, 0.0, -0.1]))
    # The palm's underside is 70 mm below the origin.
    assert ObjectClearance(fingers, [table])(np.eye(4), 0.06) == pytest.approx(0.03, abs=1e-9)
    far = (Superovoid.sphere(0.02), make_transform(translation=[0.5, 0.0, 0.0]))
    both = ObjectClearance(fingers, [far, BALL, table])
    assert both(np.eye(4), 0.06) == pytest.approx(0.01, abs=1e-9)


def test_bad_input_is_refused():
    with pytest.raises(InvalidInputError, match="at least one shape"):
        ObjectClearance(fingers, [])
    clearance = ObjectClearance(fingers, [BALL])
    for pose in (np.full((4, 4), np.nan), np.diag([2.0, 1.0, 1.0, 1.0])):
        with pytest.raises(InvalidInputError, match="T_world_gripper"):
            clearance(pose, 0.06)
