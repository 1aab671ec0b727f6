"""The robot as its driver describes it, held against the robot's file, and its newest joint state."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

import numpy as np
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, invert_transform, rotation_angle
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.interfaces import JOINT_STATES, ROBOT_DESCRIPTION
from morphit_ros.ros.core.joint_states import follow_joint_states

# Joint positions that bring the gripper no further than this from where they should are those of the pose [m], [rad].
_DISTANCE, _ANGLE = 0.002, 0.01


class RobotWatch:
    """Follows the robot's description and joint states; says whether motions may be planned with the robot's file.

    Args:
        node: subscribes.
        group: of the subscriptions' callbacks.
        robot: the robot's file.

    Attributes:
        state: the newest joint state, None before the first.
    """

    def __init__(self, node: Node, group: CallbackGroup, robot: RobotConfiguration) -> None:
        self._node, self._robot = node, robot
        self._model: KinematicModel | None = None
        self._error: MorphitError | None = None
        self.state: JointState | None = None
        self._arrival = monotonic()
        ROBOT_DESCRIPTION.subscribe(node, self._on_description, group)
        follow_joint_states(node, self._on_joint_state, group)

    def _on_joint_state(self, state: JointState) -> None:
        self.state, self._arrival = state, monotonic()

    @property
    def silence(self) -> float:
        """Wall time since the last joint state [s]."""
        return monotonic() - self._arrival

    def _on_description(self, message: String) -> None:
        self._model = self._error = None
        try:
            model = KinematicModel(message.data)
            self._robot.check_description(model.description)
            self._model = model
        except ResourceNotFoundError as error:
            # Without its meshes nothing can be said about it; robot_spheres cannot do without them and says so.
            self._node.get_logger().warning(f"{ROBOT_DESCRIPTION.name} is not checked: {error}")
        except MorphitError as error:
            self._error = error
            self._node.get_logger().error(self.problem)

    @property
    def problem(self) -> str:
        """Why this robot is not moved, empty if nothing speaks against it."""
        return f"{ROBOT_DESCRIPTION.name} does not fit the robot's file: {self._error}" if self._error else ""

    def check(self) -> None:
        """Raise the MorphitError that says where the driver's description and the robot's file differ, if they do."""
        if self._error is not None:
            raise self._error

    def check_state(self) -> None:
        """Raise an InvalidInputError if no joint state has come yet."""
        if self.state is None:
            raise InvalidInputError(JOINT_STATES.name, "nothing yet", "a joint state")

    def reaches(self, T_base_gripper: Array, positions: Mapping[str, float]) -> bool:
        """Whether arm joint positions [rad] bring the gripper to a pose; not where no description has come."""
        if self._model is None:
            return False
        robot = self._robot
        try:
            closed = {**dict.fromkeys(robot.finger_joints, 0.0), **positions}
            poses = [self._model.link_pose(closed, link) for link in (robot.base_link, robot.tip_link)]
        except InvalidInputError:
            # Joints of another robot.
            return False
        offset = invert_transform(T_base_gripper) @ invert_transform(poses[0]) @ poses[1] @ robot.T_tip_gripper
        return float(np.linalg.norm(offset[:3, 3])) <= _DISTANCE and rotation_angle(offset[:3, :3]) <= _ANGLE
