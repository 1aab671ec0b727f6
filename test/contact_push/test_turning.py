"""A bottle is turned about the edge of its foot, and the hand stays at its cap."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.contact_push.objects import BOTTLE_CAP, BOTTLE_CENTER, BOTTLE_CYLINDERS, BOTTLE_RADIUS, lying_bottle
from morphit_ros.contact_push.turning import lying_place, lying_pose, turned_poses, unspun
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.simulation.objects import load_object

START, SHARES = np.array([0.5, -0.1]), np.linspace(0.0, 1.0, 41)


def edge(pose):
    """The lowest point of the foot's rim, sampled."""
    turns = np.linspace(0.0, 2.0 * np.pi, 721)
    rim = np.column_stack([BOTTLE_RADIUS * np.cos(turns), BOTTLE_RADIUS * np.sin(turns), 0.0 * turns - BOTTLE_CENTER])
    points = rim @ pose[:3, :3].T + pose[:3, 3]
    return points[points[:, 2].argmin()]


@pytest.mark.parametrize("heading", [0.3, -2.0])
def test_a_bottle_turns_about_its_foots_edge(heading):
    ahead = np.array([np.cos(heading), np.sin(heading)])
    way = (BOTTLE_CENTER + BOTTLE_RADIUS) * ahead
    hands, bottles = turned_poses(START, way, BOTTLE_CENTER, 0.002, SHARES)
    np.testing.assert_allclose(bottles[0], lying_pose(START, heading, BOTTLE_CENTER), atol=1e-12)
    np.testing.assert_allclose(bottles[0][:3, 3], [*START, BOTTLE_RADIUS], atol=1e-12)
    np.testing.assert_allclose(bottles[0][:3, 2], [*-ahead, 0.0], atol=1e-12)
    np.testing.assert_allclose(bottles[-1][:3, 3], [*START + way, BOTTLE_CENTER], atol=1e-12)
    np.testing.assert_allclose(bottles[-1][:3, 2], [0.0, 0.0, 1.0], atol=1e-12)
    # In between nothing slides and nothing leaves the table.
    tilted = [bottle for bottle in bottles if 0.01 < bottle[2, 2] < 0.999]
    assert len(tilted) > 20
    for bottle in tilted:
        np.testing.assert_allclose(edge(bottle), [*START + BOTTLE_CENTER * ahead, 0.0], atol=1e-6)
    for hand, bottle in zip(hands, bottles, strict=True):
        np.testing.assert_allclose(hand[:3, :3].T @ hand[:3, :3], np.eye(3), atol=1e-12)
        assert np.linalg.det(hand[:3, :3]) > 0.0
        # It points down, its fingers to both sides of the axis that the cap turns about.
        np.testing.assert_allclose(hand[:3, 2], [0.0, 0.0, -1.0], atol=1e-12)
        assert hand[:3, 1] @ bottle[:3, 2] == pytest.approx(0.0, abs=1e-12)
        cap = bottle[:3, 3] + bottle[:3, 2] * (BOTTLE_CAP - BOTTLE_CENTER)
        np.testing.assert_allclose(cap[:2], hand[:2, 3], atol=1e-12)
        assert 0.0019 < cap[2] - hand[2, 3] < 0.0051
    # At last it presses.
    assert hands[-1][2, 3] < hands[-5][2, 3] - 0.001


def test_a_foot_slides_to_where_it_is_to_stand():
    way = np.array([0.06, 0.0])
    _, bottles = turned_poses(START, way, BOTTLE_CENTER, 0.002, SHARES)
    np.testing.assert_allclose(bottles[-1][:2, 3], START + way, atol=1e-12)
    assert all(abs(edge(bottle)[2]) < 1e-6 for bottle in bottles)


def test_a_lying_bottle_is_held_by_its_cap_and_rests_on_its_side():
    thing = lying_bottle(0.5)
    assert not set(thing.touched) & set(thing.standing)
    sideways = lying_pose(np.zeros(2), 0.0, BOTTLE_CENTER)
    heights = (thing.centers @ sideways[:3, :3].T + sideways[:3, 3])[:, 2] - thing.radii
    np.testing.assert_allclose(heights[thing.standing].min(), 0.0, atol=1e-12)
    assert heights[thing.touched].min() > 0.015
    assert thing.height == pytest.approx(BOTTLE_CENTER)


@pytest.mark.parametrize("heading", [0.3, -2.0])
@pytest.mark.parametrize("spin", [0.0, 3.0])
def test_where_a_bottle_lies_whatever_its_spin(heading, spin):
    spun = lying_pose(START, heading, BOTTLE_CENTER) @ make_transform(matrix_from_rpy((0.0, 0.0, spin)))
    place, found = lying_place(spun)
    np.testing.assert_allclose(place, START, atol=1e-12)
    assert found == pytest.approx(heading)
    _, bottles = turned_poses(START, 0.1 * np.array([np.cos(heading), np.sin(heading)]), BOTTLE_CENTER, 0.0, SHARES)
    for bottle in bottles:
        back = unspun(bottle @ make_transform(matrix_from_rpy((0.0, 0.0, spin))), heading)
        np.testing.assert_allclose(back, bottle, atol=1e-12)


@pytest.mark.parametrize(
    ("tilt", "above"), [(np.pi / 2, BOTTLE_CENTER - BOTTLE_RADIUS), (-np.pi / 2, 0.0), (0.1, 0.0), (0.0, 0.02)]
)
def test_what_does_not_lie_on_the_table_is_refused(tilt, above):
    pose = lying_pose(START, 0.3, BOTTLE_CENTER)
    pose[:3, :3] = pose[:3, :3] @ matrix_from_rpy((0.0, tilt, 0.0))
    pose[2, 3] += above
    with pytest.raises(InvalidInputError, match=r"object: got a bottle .* lies on the table"):
        lying_place(pose)


def test_cylinders_contain_the_workcells_bottle():
    points = load_object("bottle").mesh.vertices
    heights, radii = np.array(BOTTLE_CYLINDERS).T
    around = radii[np.searchsorted(heights, points[:, 2] - 1e-6).clip(max=len(radii) - 1)]
    assert points[:, 2].max() <= heights[-1] + 1e-6
    assert (np.hypot(points[:, 0], points[:, 1]) <= around + 1e-6).all()
