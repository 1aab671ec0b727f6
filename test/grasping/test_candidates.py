"""Stages of the planner: poses tried again further back, the table's clearance, trust in unseen sides."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import matrix_from_rotation_vector
from morphit_ros.grasping import Gripper, PlannerConfig
from morphit_ros.grasping.candidates import Candidates, backed_off
from morphit_ros.grasping.planner import _clearance_above
from morphit_ros.grasping.scene import ObjectScene
from morphit_ros.grasping.scoring.ranking import score_candidates

UP = np.array([0.0, 0.0, 1.0])


def poses_of(rotation: np.ndarray, translation: np.ndarray, aperture: float = 0.04) -> Candidates:
    one = np.ones(1)
    return Candidates(rotation[None], translation[None], aperture * one, 0.08 * one, 0.01 * one)


def scene_of(points: np.ndarray, normals: np.ndarray, observed: np.ndarray) -> ObjectScene:
    return ObjectScene(points, normals, observed, 0.003, np.zeros(3), UP, -UP, True, 0.001, "")


@pytest.mark.parametrize(("name", "height"), [("franka_hand", 0.018), ("umi", 0.03)])
def test_poses_back_off_along_their_approach(name, height):
    turn = matrix_from_rotation_vector((0.3, -1.0, 0.2))
    copies = backed_off(poses_of(turn, np.array([0.1, 0.2, 0.3])), Gripper.load(name))
    moved = (copies.translations - [0.1, 0.2, 0.3]) @ turn
    np.testing.assert_allclose(moved, [[0.0, 0.0, -0.4 * height], [0.0, 0.0, -0.8 * height]], atol=1e-12)
    np.testing.assert_allclose(copies.rotations, [turn, turn])


def test_clearance_above_the_table_follows_the_usual_top_not_the_highest():
    rng = np.random.default_rng(0)
    handle, facing = sample_surface_evenly(box_mesh([0.16, 0.02, 0.006]), 1500, rng)
    head, head_facing = sample_surface_evenly(box_mesh([0.03, 0.04, 0.02]), 500, rng)
    points = np.concatenate([handle + np.array([0.0, 0.0, 0.003]), head + np.array([0.095, 0.0, 0.01])])
    scene = scene_of(points, np.concatenate([facing, head_facing]), np.ones(len(points)))
    assert _clearance_above(SupportPlane(np.eye(4)), scene, PlannerConfig()) == pytest.approx(0.002)


def test_less_margin_is_left_beside_a_side_that_no_camera_saw():
    points, normals = sample_surface_evenly(box_mesh([0.06, 0.068, 0.05]), 3000, np.random.default_rng(0))
    gripper, pose = Gripper.load("franka_hand"), poses_of(np.diag([1.0, -1.0, -1.0]), np.zeros(3), 0.068)
    margins = []
    for trust in (1.0, 0.75):
        observed = np.where(normals[:, 1] > 0.5, trust, 1.0)
        _, ranking = score_candidates(pose, scene_of(points, normals, observed), gripper, PlannerConfig())
        margins.append(float(ranking.terms["margin"][0]))
    assert margins[0] == pytest.approx(0.5 * (gripper.aperture_max - 0.068) / 0.01, abs=1e-6)
    assert margins[1] == pytest.approx(margins[0] - 0.4, abs=1e-6)
