"""A box is found in what cameras see of it, and pushed along its sides to a place."""

import numpy as np
import pytest

from morphit_ros.contact_push.push_config import ContactPushConfig
from morphit_ros.contact_push.standing_box import StandingBox
from morphit_ros.errors import InvalidInputError

SIZE = np.array([0.12, 0.08, 0.1])


def seen(heading, center=(0.5, -0.1), noise=0.001, seed=0):
    """Top and two sides of a box, with noise and a few stray points."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.5, 0.5, (3000, 3))
    face = rng.integers(0, 3, 3000)
    for axis in range(3):
        points[face == axis, axis] = 0.5
    points = points * SIZE + [0.0, 0.0, 0.5 * SIZE[2]] + rng.normal(0.0, noise, (3000, 3))
    points[:5, :2] += 0.05
    c, s = np.cos(heading), np.sin(heading)
    return points @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + [*center, 0.0]


@pytest.mark.parametrize("heading", [-1.3, 0.0, 0.3, 0.8, 2.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_box_is_found_however_it_is_turned(heading, seed):
    box = StandingBox.around(seen(heading, seed=seed)).facing(np.array([np.cos(heading), np.sin(heading)]))
    np.testing.assert_allclose(box.center, [0.5, -0.1], atol=0.003)
    np.testing.assert_allclose(box.size, SIZE, atol=0.006)
    assert np.cos(box.heading - heading) > np.cos(np.deg2rad(2.0))


def test_two_ways_along_the_sides_lead_to_the_goal_and_the_face_that_is_pushed_comes_first():
    box = StandingBox(np.array([0.5, 0.0]), 0.3, SIZE)
    goal = np.array([0.45, 0.25])
    ways = box.ways_to(goal, 0.01, 1.0)
    np.testing.assert_allclose(box.center + sum(ways), goal)
    assert abs(ways[0] @ ways[1]) < 1e-12
    assert np.linalg.norm(ways[0]) > np.linalg.norm(ways[1])
    for way in ways:
        facing = box.facing(way)
        np.testing.assert_allclose([np.cos(facing.heading), np.sin(facing.heading)], way / np.linalg.norm(way))
        # Its own extent along the way, whichever side that is.
        side = abs(np.cos(facing.heading - box.heading)) > 0.5
        assert facing.size[0] == SIZE[0 if side else 1]
        pushed = box.pushed(way, ContactPushConfig(object="ball", mass=0.7))
        assert (pushed.object, pushed.mass, pushed.size) == ("box", 0.7, tuple(facing.size))
    assert np.linalg.norm(box.ways_to(goal, 0.01, 0.14)[0]) == pytest.approx(0.14)
    assert box.ways_to(box.center + 0.005, 0.01, 0.14) == []


def test_what_stands_in_the_way_is_met_before_and_beside_and_not_elsewhere():
    box = StandingBox(np.array([0.5, 0.0]), 0.0, SIZE)
    place = {"ahead": (0.65, 0.0, 0.05), "behind": (0.36, 0.05, 0.05), "beside": (0.5, 0.11, 0.2)}
    for point in place.values():
        assert len(box.in_the_way(np.array([0.1, 0.0]), np.array([point]), 0.12, 0.12)) == 1
    for point in ((0.7, 0.0, 0.0), (0.3, 0.0, 0.0), (0.5, 0.2, 0.0)):
        assert len(box.in_the_way(np.array([0.1, 0.0]), np.array([point]), 0.12, 0.12)) == 0


@pytest.mark.parametrize("points", [np.empty((0, 3)), np.full((30, 3), np.nan), np.zeros((5, 3))])
def test_what_is_no_object_is_refused(points):
    with pytest.raises(InvalidInputError, match="object"):
        StandingBox.around(points)


def test_what_is_too_small_to_be_pushed_is_refused():
    with pytest.raises(InvalidInputError, match="size"):
        StandingBox(np.array([0.5, 0.0]), 0.0, np.array([0.01, 0.01, 0.01])).pushed(
            np.array([0.1, 0.0]), ContactPushConfig()
        )


def test_points_along_its_sides_belong_to_it_and_others_do_not() -> None:
    box = StandingBox(np.array([0.5, 0.1]), np.pi / 2.0, np.array([0.2, 0.1, 0.1]))
    # Turned: 0.1 along x, 0.2 along y.
    points = np.array([[0.46, 0.19, 0.05], [0.57, 0.1, 0.11], [0.5, 0.1, 0.02], [0.6, 0.1, 0.05], [0.5, 0.1, 0.2]])
    assert box.near(points, 0.03).tolist() == [True, True, True, False, False]
    assert box.near(np.empty((0, 3)), 0.03).shape == (0,)
