"""Known things are found again by shape, however they lie, and others are not taken for them."""

import numpy as np
import pytest
from memory_scenes import EYES, can, hammer, seen

from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import (
    invert_transform,
    make_transform,
    matrix_from_rpy,
    rotation_angle,
    transform_points,
)
from morphit_ros.memory.look import Look, is_empty, sightlines
from morphit_ros.memory.recognition import Shape, register


def test_a_moved_look_is_found_where_it_was_moved_to():
    look, _ = seen(hammer(), 0.3, 0)
    moved = make_transform(matrix_from_rpy((0.4, 1.1, -2.0)), (0.3, -0.2, 0.1))
    match = register(Shape(look), Shape(look.transformed(moved), seed=1))
    left = match.T_known_seen @ moved
    assert rotation_angle(left[:3, :3]) < 0.03
    assert transform_points(left, look.middle) == pytest.approx(look.middle, abs=1e-3)
    assert match.shared > 0.9 and match.refuted < 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lying", [(0.0, 0.0), (np.pi / 2.0, 0.0)])
def test_a_thing_is_found_from_other_sides(seed, lying):
    first, before = seen(hammer(), 0.2, seed)
    second, now = seen(hammer(), 2.5 + seed, 10 + seed, lying=lying)
    match = register(Shape(first), Shape(second))
    # The hammer looks the same after half a turn about its handle.
    truth = before @ invert_transform(now)
    points = second.points[second.points[:, 2] > 0.0]
    handle = transform_points(invert_transform(now), points)[:, 0]
    along = transform_points(invert_transform(before) @ match.T_known_seen, points)[:, 0]
    assert np.abs(along - handle).max() < 0.008
    assert match.shared > 0.4 and match.refuted < 0.03
    assert np.linalg.norm((match.T_known_seen - truth)[2, 3]) < 0.2


def test_another_thing_of_about_the_same_size_is_refuted():
    first, _ = seen(hammer(), 0.2, 0)
    for other in (hammer(head=0.06), box_mesh((0.235, 0.06, 0.036)), can()):
        match = register(Shape(first), Shape(seen(other, 1.0, 5)[0]))
        assert match.shared < 0.4 or match.refuted > 0.03


def test_cameras_see_past_what_is_not_there_and_know_nothing_of_what_is_behind():
    look, _ = seen(can(), 0.0, 0)
    sight = sightlines(look)
    towards = EYES[0] - look.middle
    towards /= np.linalg.norm(towards)
    before, behind = look.middle + 0.1 * towards, look.middle - 0.01 * towards
    below, beside = np.array([*look.middle[:2], -0.02]), look.middle + np.array([0.0, 0.0, 0.12])
    told = [is_empty(*place, sight, 0.008) for place in (before, behind, below, beside)]
    assert told == [True, False, True, True]


def test_an_eye_with_something_in_its_way_is_not_free():
    look, _ = seen(can(), 0.0, 0)
    assert len(look.free_eyes) == 2
    between = look.middle + 0.5 * (EYES[0] - look.middle) + np.zeros((5, 3))
    blocked = Look(look.points, look.normals, look.eyes, look.planes, between)
    assert blocked.free_eyes == pytest.approx(EYES[1:])
    # What is behind it hides nothing.
    far = look.middle - (EYES[0] - look.middle) + np.zeros((5, 3))
    assert len(Look(look.points, look.normals, look.eyes, look.planes, far).free_eyes) == 2
