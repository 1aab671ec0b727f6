"""Starts: level closing directions, places on the pads."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.grasping import Gripper, PlannerConfig
from morphit_ros.grasping.candidates import clear_of_table, make_starts
from morphit_ros.grasping.fitting.starts import AntipodalPairs, Starts, antipodal_pairs, starts_from_pairs
from morphit_ros.grasping.rejections import Rejections
from morphit_ros.grasping.scene import ObjectScene

UP = np.array([0.0, 0.0, 1.0])
FRAME = np.array([[0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
TABLE = SupportPlane(np.eye(4))


def slanted_pairs(tilt: float, count: int = 4) -> tuple[np.ndarray, np.ndarray, AntipodalPairs]:
    normal = np.array([0.0, np.cos(tilt), np.sin(tilt)])
    points = np.concatenate([np.tile(0.01 * normal, (count, 1)), np.tile(-0.01 * normal, (count, 1))])
    normals = np.concatenate([np.tile(normal, (count, 1)), np.tile(-normal, (count, 1))])
    return points, normals, AntipodalPairs(np.arange(count), np.arange(count) + count, np.inf, 0, 0)


def test_every_second_pair_that_is_nearly_level_is_closed_on_along_a_level_line():
    starts = starts_from_pairs(*slanted_pairs(0.3), FRAME, np.zeros(1), UP)
    np.testing.assert_allclose(np.abs(starts.rotations[:, 2, 1]), [0.0, np.sin(0.3)] * 2, atol=1e-12)
    np.testing.assert_allclose(starts.widths, [0.02 * np.cos(0.3), 0.02] * 2)
    np.testing.assert_allclose(np.linalg.det(starts.rotations), 1.0)
    # Without a vertical, and where it would turn them far, pairs stay as they are.
    for tilt, vertical in ((0.3, None), (1.0, UP)):
        starts = starts_from_pairs(*slanted_pairs(tilt), FRAME, np.zeros(1), vertical)
        np.testing.assert_allclose(np.abs(starts.rotations[:, 2, 1]), np.sin(tilt))


def test_places_follow_what_is_moved():
    turn = matrix_from_rotation_vector((0.4, 0.1, -0.7))
    starts = Starts(turn[None], np.zeros((1, 3)), np.array([0.02]), np.zeros(1)).moved(np.array([0.012]))
    surface = np.zeros(3)
    assert ((surface - starts.translations[0]) @ turn)[2] == pytest.approx(starts.places[0]) == -0.012


@pytest.mark.parametrize("name", ["franka_hand", "umi"])
def test_surfaces_are_placed_from_the_middle_to_the_tips_of_the_pads(name):
    gripper, rng = Gripper.load(name), np.random.default_rng(0)
    across = np.column_stack([np.zeros(200), np.repeat([0.01, -0.01], 100), rng.uniform(-0.01, 0.01, 200)])
    normals = np.sign(across[:, 1:2]) * np.array([[0.0, 1.0, 0.0]])
    scene = ObjectScene(across, normals, np.ones(200), 0.003, np.zeros(3), UP, -UP, True, 0.001, "")
    starts, _ = make_starts(scene, gripper, PlannerConfig(), rng, Rejections())
    furthest = starts.places.max()
    # The tips reach a little beyond what is grasped furthest out on the pads.
    assert 0.002 < 0.5 * gripper.pad_height - furthest < 0.012
    assert starts.places.min() < -0.005


def test_starts_that_the_table_would_lift_off_their_surfaces_are_dropped():
    gripper, config = Gripper.load("umi"), PlannerConfig()
    down = np.diag([1.0, -1.0, -1.0])
    half = 0.5 * gripper.pad_height
    # The surfaces are 10 mm above the table, in front of the pads' middle or near their tips.
    for height, place, kept in ((0.010, 0.0, True), (0.010, 0.049, True), (-0.010, 0.049, False)):
        pose = np.array([[0.0, 0.0, height + place]])
        starts = Starts(down[None], pose, np.array([0.02]), np.array([place]))
        rejected = Rejections()
        found = clear_of_table(starts, gripper, config, TABLE, rejected)
        assert (len(found), rejected["table"]) == ((1, 0) if kept else (0, 1))
        if kept:
            assert found.translations[0, 2] - half == pytest.approx(max(config.table_clearance, place + height - half))


def test_seeds_are_drawn_again_while_few_find_a_partner():
    rng = np.random.default_rng(0)
    # Two faces 0.1 m apart, too wide, and a twentieth of all points on a neck of 0.04 m.
    side = np.where(rng.random(2000) < 0.5, 1.0, -1.0)
    half = np.where(np.arange(2000) < 100, 0.02, 0.05)
    along = np.where(np.arange(2000) < 100, 0.2, 0.0) + 0.05 * rng.random(2000)
    points = np.stack([along, side * half, 0.02 * rng.random(2000)], axis=1)
    normals = side[:, None] * np.array([0.0, 1.0, 0.0])

    def paired(wide: float) -> AntipodalPairs:
        return antipodal_pairs(points, normals, 400, 0.005, wide, np.radians(35.0), np.random.default_rng(1), UP)

    few, all_of_them = paired(0.08), paired(0.12)
    assert (np.abs(points[few.first, 1]) < 0.03).all()
    assert len(np.unique(few.first)) > 50
    assert few.too_wide + few.alone > 4 * 400
    # Where most find one the first draw is enough.
    assert all_of_them.paired <= 2 * 400
