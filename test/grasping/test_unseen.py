"""Space and sides that no camera saw: where the cameras stood, what is kept clear of, what is marked and comes last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from morphit_bench.grasping.camera_clouds import eyes_around, seen_cloud
from morphit_ros.geometry.outward_normals import estimate_outward_normals
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping import Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.unseen import likely_viewpoints, on_seen_sides, unseen_space

FRANKA, TABLE, UP = Gripper.load("franka_hand"), SupportPlane(np.eye(4)), np.array([0.0, 0.0, 1.0])
# Deep and high: what is behind it no camera in front of it sees.
BOX = box_mesh([0.05, 0.14, 0.1]).transformed(make_transform(None, (0.0, 0.0, 0.05)))


@pytest.mark.parametrize("azimuths", [[0.0], [25.0, 155.0]])
def test_cameras_are_concluded_from_what_they_saw(azimuths):
    eyes = eyes_around(BOX, azimuths, 35.0)
    points = seen_cloud(BOX, eyes).points
    likely = likely_viewpoints(points, estimate_outward_normals(points, viewpoints=eyes), UP)
    center = points.mean(axis=0)
    directions = (likely - center) / np.linalg.norm(likely - center, axis=1)[:, None]
    truth = (eyes - center) / np.linalg.norm(eyes - center, axis=1)[:, None]
    assert np.degrees(np.arccos((truth @ directions.T).max(axis=1))).max() < 40.0
    # None looked at a side that shows nothing.
    assert (directions @ [0.0, -1.0, 0.0]).max() < 0.5 if len(azimuths) == 2 else (directions[:, 0] > 0.0).all()


def test_the_shadow_of_an_object_is_unseen_and_what_is_before_it_is_not():
    eyes = eyes_around(BOX, [0.0], 30.0)
    points = seen_cloud(BOX, eyes).points
    normals = estimate_outward_normals(points, viewpoints=eyes)
    for told in (eyes, None):
        unseen = unseen_space(points, normals, TABLE, told)
        assert unseen[:, 2].min() > 0.0
        assert (unseen[:, 0] < 0.035).all()
        behind = (unseen[:, 0] < -0.03) & (np.abs(unseen[:, 1]) < 0.05) & (unseen[:, 2] < 0.06)
        # 20 mm deep, 100 mm wide, 60 mm high at least, in cells of 8 mm.
        assert behind.sum() > 0.02 * 0.1 * 0.06 / 0.008**3


def test_fingers_do_not_go_where_no_camera_saw_unless_told():
    eyes = eyes_around(BOX, [0.0], 30.0)
    cloud = seen_cloud(BOX, eyes)
    # Enough of the pads must press that the fingers go down behind the far edge, into the dark.
    config = PlannerConfig(min_overlap=1.0, rounds=1)
    free = plan_grasps(cloud, FRANKA, config, table=TABLE, viewpoints=eyes)
    occupied = plan_grasps(cloud, FRANKA, replace(config, unseen="occupied"), table=TABLE, viewpoints=eyes)
    assert free.grasps
    assert not any(grasp.on_seen_sides for grasp in free.grasps)
    assert not occupied.grasps
    assert occupied.rejected["unseen space"] > 0
    assert "'unseen space': the hand would pass through space" in occupied.message
    assert "set unseen to 'free'" in occupied.message


def test_sides_that_no_camera_saw_come_last_whatever_their_score():
    # One camera sees both narrow sides of a part but the far one of its broad sides.
    part = box_mesh([0.04, 0.05, 0.1]).transformed(make_transform(None, (0.0, 0.0, 0.05)))
    eyes = eyes_around(part, [60.0, -60.0], 35.0)
    cloud = seen_cloud(part, eyes)
    plan = plan_grasps(cloud, FRANKA, PlannerConfig(unseen_last=True), table=TABLE, viewpoints=eyes)
    marks = [grasp.on_seen_sides for grasp in plan.grasps]
    assert True in marks
    assert False in marks
    assert marks == sorted(marks, reverse=True)
    for grasp in plan.grasps:
        closing = np.abs(grasp.T_world_gripper[:3, 1])
        if closing[1] > 0.9:
            assert grasp.on_seen_sides
        elif closing[0] > 0.9:
            assert not grasp.on_seen_sides
    usual = plan_grasps(cloud, FRANKA, table=TABLE, viewpoints=eyes)
    scores = [grasp.score for grasp in usual.grasps]
    assert scores == sorted(scores, reverse=True)
    assert [grasp.score for grasp in plan.grasps] != scores


def test_virtual_points_beside_seen_ones_that_face_the_same_way_are_of_a_seen_side():
    points = np.array([[0.0, 0.0, 0.0], [0.005, 0.0, 0.0], [0.05, 0.0, 0.0], [0.005, 0.0, 0.001]])
    normals = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    observed = np.array([True, False, False, False])
    assert on_seen_sides(points, normals, observed).tolist() == [True, True, False, False]
