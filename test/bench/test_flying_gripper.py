from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_bench.picks.flying_gripper import (
    FlightPlanner,
    flying_gripper,
    rotation_of_turns,
    turns_of_rotation,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_backend import MotionStatus


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MORPHIT_CACHE", str(tmp_path))


def rotations() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    turned = [matrix_from_rpy(rng.uniform(-3.0, 3.0, 3)) for _ in range(50)]
    # Closing direction straight up and straight down: singular.
    return [*turned, matrix_from_rpy((np.pi / 2.0, 0.0, 0.7)), matrix_from_rpy((-np.pi / 2.0, 0.0, 0.7)), np.eye(3)]


@pytest.mark.parametrize("rotation", rotations())
def test_turns_give_the_rotation_back(rotation: np.ndarray) -> None:
    assert np.allclose(rotation_of_turns(turns_of_rotation(rotation)), rotation, atol=1e-7)


@pytest.mark.parametrize("name", ["franka_hand", "hande", "umi"])
def test_the_description_puts_palm_and_pads_where_the_planner_thinks_they_are(name: str) -> None:
    gripper = Gripper.load(name)
    robot = flying_gripper(gripper)
    description = load_robot_description(robot.description)
    robot.check_description(description)
    pose = make_transform(matrix_from_rpy((0.4, -1.1, 2.0)), (0.3, -0.2, 0.4))
    joints = dict(zip(robot.arm_joints, [*pose[:3, 3], *turns_of_rotation(pose[:3, :3])], strict=True))
    joints |= dict.fromkeys(robot.finger_joints, gripper.aperture_max / 2.0)
    links = KinematicModel(description).forward_kinematics(joints)
    assert np.allclose(links["palm"], pose, atol=1e-9)
    for finger, side in (("finger_1", 1.0), ("finger_2", -1.0)):
        expected = pose @ make_transform(translation=(0.0, side * gripper.aperture_max / 2.0, 0.0))
        assert np.allclose(links[finger], expected, atol=1e-9)
    # Collision boxes: those of the gripper, mirrored for finger 2.
    for link, boxes, side in (
        ("palm", gripper.palm_boxes, 1.0),
        ("finger_1", gripper.finger_boxes, 1.0),
        ("finger_2", gripper.finger_boxes, -1.0),
    ):
        shapes = description.links[link].collisions
        assert len(shapes) == len(boxes)
        for shape, box in zip(shapes, boxes, strict=True):
            assert np.allclose(shape.dimensions, box.size)
            assert np.allclose(shape.T_link_geometry[:3, 3], box.center * [1.0, side, 1.0])


def test_flights_end_at_the_pose_and_pass_above() -> None:
    robot = flying_gripper(Gripper.load("franka_hand"))
    planner = FlightPlanner(robot)
    home = dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    goal = make_transform(matrix_from_rpy((np.pi, 0.3, 1.2)), (0.5, 0.1, 0.05))
    flight = planner.plan_to_pose(home, goal).trajectory
    assert flight is not None
    assert np.allclose(flight.positions[0], robot.home)
    end = flight.positions[-1]
    assert np.allclose(make_transform(rotation_of_turns(end[3:]), end[:3]), goal, atol=1e-9)
    beside = np.linalg.norm(flight.positions[:, :2] - end[:2], axis=1) > 1e-6
    assert (flight.positions[beside, 2] > 0.45).all()


def test_a_straight_line_keeps_the_orientation_and_refuses_to_turn() -> None:
    robot = flying_gripper(Gripper.load("franka_hand"))
    planner = FlightPlanner(robot)
    start = dict(zip(robot.arm_joints, robot.home.tolist(), strict=True))
    straight = make_transform(matrix_from_rpy((np.pi, 0.0, 0.0)), (0.0, 0.0, 0.6))
    line = planner.plan_straight(start, straight, 0.1).trajectory
    assert line is not None
    assert np.ptp(line.positions[:, 3:], axis=0).max() == 0.0
    assert line.positions[-1, 2] == pytest.approx(0.6)
    assert np.abs(np.diff(line.positions[:, 2]) / np.diff(line.times)).max() < 0.1 + 1e-6
    turned = straight @ make_transform(matrix_from_rpy((0.0, 0.0, 0.5)))
    assert planner.plan_straight(start, turned, 0.1).status is MotionStatus.PATH_BLOCKED
    with pytest.raises(InvalidInputError, match="speed"):
        planner.plan_straight(start, straight, 0.0)
