"""Further objects of the simulation: apart where there is room, at rest, and seen."""

from __future__ import annotations

import importlib.util
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree

# Not imported here: this package first chooses what MuJoCo renders with.
if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

from morphit_ros.errors import ResourceNotFoundError
from morphit_ros.geometry.transforms import transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.simulation.clutter import heap, scatter
from morphit_ros.simulation.objects import load_object
from morphit_ros.simulation.workcell import Workcell, WorkcellConfig


def test_they_stand_apart_where_there_is_room_and_fall_where_there_is_none() -> None:
    first, ball = load_object("t_block"), load_object("golf_ball")
    for seed in range(3):
        poses = scatter(first, np.eye(4), [ball] * 4, seed)
        places = [first.mesh.vertices, *(transform_points(pose, ball.mesh.vertices) for pose in poses)]
        for index, points in enumerate(places):
            assert points[:, 2].min() == pytest.approx(0.0, abs=1e-3)
            for other in places[:index]:
                assert cKDTree(other[:, :2]).query(points[:, :2])[0].min() > 0.015
    crowd = scatter(first, np.eye(4), [first] * 30, 0)
    heights = [pose[2, 3] for pose in crowd]
    assert heights[0] == 0.0
    assert max(heights) > 0.1
    assert not np.array_equal(scatter(first, np.eye(4), [ball], 1), scatter(first, np.eye(4), [ball], 2))


def test_they_are_simulated() -> None:
    with Workcell(WorkcellConfig(object="t_block", others="golf_ball t_block", seed=1)) as cell:
        before = cell.other_poses()
        assert len(before) == 2
        cell.step(0.5)
        for old, new in zip(before, cell.other_poses(), strict=True):
            # At rest, on the table.
            assert np.linalg.norm(new[:3, 3] - old[:3, 3]) < 2e-3
            assert new[2, 3] > -2e-3
    with Workcell(WorkcellConfig(object="t_block")) as cell:
        assert cell.other_poses() == []
    with pytest.raises(ResourceNotFoundError, match="nosuch"):
        Workcell(WorkcellConfig(others="nosuch"))


def test_a_heap_begins_one_above_the_other_turned_any_way() -> None:
    items = [load_object("t_block")] * 5
    poses = heap(np.array([0.4, 0.1]), items, 3)
    clouds = [transform_points(pose, item.mesh.vertices) for pose, item in zip(poses, items, strict=True)]
    for below, above in pairwise(clouds):
        assert above[:, 2].min() > below[:, 2].max()
    for cloud in clouds:
        middle = 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))[:2]
        assert (np.abs(middle - [0.4, 0.1]) <= [0.1, 0.15]).all()
    # Upright ones would all have the same upper side.
    assert len({round(float(pose[2, 2]), 3) for pose in poses}) == 5
    assert np.array_equal(poses, heap(np.array([0.4, 0.1]), items, 3))
    assert not np.array_equal(poses, heap(np.array([0.4, 0.1]), items, 4))


def test_a_heap_has_come_to_rest_when_the_clock_starts_and_some_of_it_lies_on_the_rest() -> None:
    config = WorkcellConfig(object="t_block", others="t_block t_block box t_block", heap=True, seed=3)
    with Workcell(config) as cell:
        before = cell.poses()
        assert cell.time == 0.0
        cell.step(0.5)
        for old, new in zip(before, cell.poses(), strict=True):
            assert np.linalg.norm(new[:3, 3] - old[:3, 3]) < 2e-3
        heights = [
            transform_points(pose, item.mesh.vertices)[:, 2].min()
            for pose, item in zip(before, cell.objects, strict=True)
        ]
        # Nobody in the table, and not all on it.
        assert min(heights) > -2e-3
        assert max(heights) > 0.01
        # The arm is felt again: it was not while they fell.
        assert cell._model.geom_contype[cell._robot_geoms].any()
        cell.reset()
        assert np.allclose(cell.poses(), before)


def test_another_robot_finds_the_objects_as_the_one_before_left_them() -> None:
    config = WorkcellConfig(heap=True, object="mug", others="golf_ball t_block", seed=1)
    with Workcell(config) as cell:
        fingers = cell.robot.finger_joints
        cell.step(0.3)
        cell.place(dict(zip(cell.joint_names, 0.5 * cell.joint_state().positions, strict=True)))
        cell.command_gripper(0.0)
        before, now = cell.poses(), cell.time
        cell.exchange_robot(RobotConfiguration.load("panda_cup"))
        assert cell.robot.name == "panda_cup" and cell.time == now
        for old, new in zip(before, cell.poses(), strict=True):
            np.testing.assert_array_equal(new, old)
        # The arm is at home, whatever the other one had done.
        np.testing.assert_array_equal(cell.joint_state().positions, cell.robot.home)
        cell.step(0.5)
        for old, new in zip(before, cell.poses(), strict=True):
            assert np.linalg.norm(new[:3, 3] - old[:3, 3]) < 1e-3
        assert cell.time == pytest.approx(now + 0.5)
        # And back: what lies there does not know of either robot.
        before = cell.poses()
        cell.exchange_robot(RobotConfiguration.load("panda"))
        assert cell.robot.finger_joints == fingers and cell.aperture == pytest.approx(cell.two_fingers.aperture_max)
        # Poses are those of the step before, which differ by what moves at rest.
        np.testing.assert_allclose(cell.poses(), before, atol=1e-9)
