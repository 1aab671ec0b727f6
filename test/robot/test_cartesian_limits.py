"""Lines as Pilz times them, within the limits that are derived from the joints': its own check, by code of ours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy
from morphit_ros.motion.moveit import MoveItConfig
from morphit_ros.robot.cartesian_limits import CartesianLimits, cartesian_limits
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel

ROBOTS = ("panda", "ur3e_hande", "ur5e_hande", "iiwa_umi")
# Of Pilz: between two points of a path [s].
SAMPLING = 0.1
EXACT = IKConfig(position_tolerance=1e-7, rotation_tolerance=1e-7, restarts=0)
# Approach, lift, the fastest approach that can be set, and a slanted one: way of the tip [m] and speed [m/s].
LINES = (((0.0, 0.0, -0.12), 0.08), ((0.0, 0.0, 0.2), 0.1), ((0.0, 0.0, -0.15), 0.5), ((0.05, 0.05, -0.1), 0.5))


class Arm:
    """One robot and its picks from above in the workcell."""

    def __init__(self, name: str) -> None:
        self.robot = RobotConfiguration.load(name)
        self.description = load_robot_description(self.robot.description)
        self.model = KinematicModel(self.description)
        self.home = dict(zip(self.robot.arm_joints, self.robot.home.tolist(), strict=True))
        self.home |= dict.fromkeys(self.robot.finger_joints, 0.0)

    def solve(self, T_base_tip: Array, near: Mapping[str, float], config: IKConfig) -> dict[str, float] | None:
        joints, rng = self.robot.arm_joints, np.random.default_rng(0)
        found = inverse_kinematics(self.model, T_base_tip, self.robot.tip_link, joints, near, rng, config)
        return {**near, **found.positions} if found.status is IKStatus.SUCCEEDED else None

    def starts(self) -> list[tuple[Array, dict[str, float]]]:
        """Poses of the tip 0.2 m above the table, with joint positions."""
        robot, found = self.robot, []
        T_world_base = make_transform(matrix_from_rpy([0.0, 0.0, robot.base_yaw]), robot.base_position)
        for x, y, turn in itertools.product((0.4, 0.5, 0.6), (-0.15, 0.15), (0.0, 0.8)):
            T_world_gripper = make_transform(matrix_from_rpy([math.pi, 0.0, turn]), [x, y, 0.2])
            pose = invert_transform(T_world_base) @ T_world_gripper @ invert_transform(robot.T_tip_gripper)
            positions = self.solve(pose, self.home, IKConfig())
            if positions is not None:
                found.append((pose, positions))
        return found

    def share_of_limits(
        self, start: tuple[Array, dict[str, float]], way: Array, speed: float, acceleration: float
    ) -> float | None:
        """The largest share of a joint's velocity or acceleration limit; None where the line leaves the reach."""
        pose, near = start
        length = float(np.linalg.norm(way))
        speed = min(speed, math.sqrt(length * acceleration))
        ramp, end = speed / acceleration, length / speed + speed / acceleration
        times = [*np.arange(0.0, end - 1e-5, SAMPLING), end]
        velocities, accelerations = self.model.limits(self.robot.arm_joints)[2], self.robot.acceleration_limits
        last, rates, largest = None, np.zeros(len(self.robot.arm_joints)), 0.0
        for k, t in enumerate(times):
            left = end - t
            if t < ramp:
                way_done = 0.5 * acceleration * t**2
            elif left > ramp:
                way_done = speed * (t - 0.5 * ramp)
            else:
                way_done = length - 0.5 * acceleration * left**2
            moved = pose.copy()
            moved[:3, 3] += way * (way_done / length)
            solved = self.solve(moved, near, EXACT)
            if solved is None:
                return None
            near = solved
            now = np.array([near[name] for name in self.robot.arm_joints])
            if last is not None:
                step = t - times[k - 1]
                new = (now - last) / step
                largest = max(largest, float(np.max(np.abs(new) / velocities)))
                change = 2.0 * (new - rates) / (SAMPLING + step)
                largest = max(largest, float(np.max(np.abs(change) / accelerations)))
                rates = new
            last = now
        return largest


def shares(arm: Arm, limits: CartesianLimits) -> list[float]:
    """Of all lines that the backend might ask for."""
    acceleration = MoveItConfig().acceleration_scaling * limits.max_trans_acc
    found = [
        arm.share_of_limits(start, np.array(way), min(speed, limits.max_trans_vel), acceleration)
        for start in arm.starts()
        for way, speed in LINES
    ]
    return [share for share in found if share is not None]


@pytest.mark.parametrize("name", ROBOTS)
def test_no_line_of_a_pick_exceeds_a_limit(name: str) -> None:
    arm = Arm(name)
    found = shares(arm, cartesian_limits(arm.robot, arm.description))
    assert len(found) >= 30
    assert max(found) < 1.0


def test_limits_that_know_no_robot_do() -> None:
    arm = Arm("ur3e_hande")
    found = shares(arm, CartesianLimits(max_trans_vel=1.0, max_trans_acc=2.25, max_rot_vel=1.57))
    assert np.mean(np.array(found) > 1.0) > 0.3


@pytest.mark.parametrize("name", ROBOTS)
def test_joints_at_home_allow_each_direction_and_no_more(name: str) -> None:
    arm = Arm(name)
    limits = cartesian_limits(arm.robot, arm.description)
    inverse = np.linalg.pinv(arm.model.jacobian(arm.home, arm.robot.tip_link, arm.robot.arm_joints))
    velocities = arm.model.limits(arm.robot.arm_joints)[2]
    directions = np.random.default_rng(1).normal(size=(20000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for columns, largest in ((slice(0, 3), limits.max_trans_vel), (slice(3, 6), limits.max_rot_vel)):
        share = np.max(np.abs(inverse[:, columns] @ directions.T) * largest / velocities[:, None])
        assert 0.95 < share <= 1.0
    radius = limits.max_trans_vel / limits.max_rot_vel
    moving = np.abs(inverse[:, :3] @ directions.T) * limits.max_trans_acc
    turning = np.abs(inverse[:, 3:] @ directions.T) * limits.max_trans_acc / radius
    share = max(np.max(both / arm.robot.acceleration_limits[:, None]) for both in (moving, turning))
    assert 0.95 < share <= 1.0


def test_a_home_where_the_tip_cannot_move_freely() -> None:
    arm = Arm("ur3e_hande")
    # Stretched out: the elbow is straight.
    home = arm.robot.home.copy()
    home[2] = 0.0
    with pytest.raises(InvalidInputError, match="singular"):
        cartesian_limits(replace(arm.robot, home=home), arm.description)
