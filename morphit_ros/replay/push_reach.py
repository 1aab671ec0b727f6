"""Whether an arm can push so far: inverse kinematics at both ends of a push, before anything is planned."""

from __future__ import annotations

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.inverse_kinematics import IKConfig, IKStatus, inverse_kinematics
from morphit_ros.robot.kinematics import KinematicModel

# Where the workcell's object lies [m].
START = (0.45, -0.1)
# The fingertips stay this far above the table [m].
CLEARANCE = 0.004
# Shares of a way that is too long, tried from the longest, to say how far the arm comes.
_SHARES = np.linspace(0.95, 0.05, 19)
_ATTEMPTS = IKConfig(restarts=5)


def closed_fingers(gripper: Gripper) -> tuple[float, float]:
    """How far the fingertips reach from the gripper frame along x and along z [m]."""
    centers, sizes = gripper.closed_fingers
    ends = centers + 0.5 * sizes
    lowest = float(ends[:, 2].max())
    return float(ends[ends[:, 2] > lowest - 0.01, 0].max()), lowest


def check_push_reach(robot: RobotConfiguration, way: Array, behind: float, height: float) -> None:
    """Refuse a push at whose start or end the closed gripper, pointing down, is out of the arm's reach.

    Args:
        robot: as it stands in the workcell, the object at `START`.
        way: (2,) of the object [m].
        behind: from the object's centre back to where the gripper pushes, along the way [m].
        height: at which it pushes [m].

    Raises:
        InvalidInputError: how far it could push that way.
    """
    model = KinematicModel(load_robot_description(robot.description))
    front, tip = closed_fingers(Gripper.load(robot.gripper))
    length = float(np.hypot(*way))
    x = np.array([way[0], way[1], 0.0]) / length
    down = np.array([0.0, 0.0, -1.0])
    rotation = np.column_stack([x, np.cross(down, x), down])
    home = dict(zip(robot.arm_joints, robot.home, strict=True)) | dict.fromkeys(robot.finger_joints, 0.0)
    base = make_transform(matrix_from_rpy((0.0, 0.0, robot.base_yaw)), robot.base_position)
    T_root_world = model.link_pose(home, robot.base_link) @ invert_transform(base)

    def reached(share: float) -> bool:
        position = np.array([*START, max(height, tip + CLEARANCE)]) + x * (share * length - behind - front)
        target = T_root_world @ make_transform(rotation, position) @ invert_transform(robot.T_tip_gripper)
        rng = np.random.default_rng(0)
        found = inverse_kinematics(model, target, robot.tip_link, robot.arm_joints, home, rng, _ATTEMPTS)
        return found.status is IKStatus.SUCCEEDED

    pushed = f"a way from {START[0]:g} {START[1]:g} that {robot.name} can push with its gripper pointing down"
    given = f"{way[0]:g} {way[1]:g}"
    if not reached(0.0):
        raise InvalidInputError("--goal", given, pushed, "It does not reach the start: choose another direction.")
    if not reached(1.0):
        most = next((share * length for share in _SHARES if reached(share)), 0.0)
        raise InvalidInputError(
            "--goal", given, pushed, f"It reaches about {most:.2f} m in this direction, not {length:.2f} m."
        )
