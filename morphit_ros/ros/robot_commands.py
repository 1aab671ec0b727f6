"""How trajectories and gripper commands reach the robot: plain topics, or the actions of ros2_control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rclpy.action import ActionClient
from rclpy.node import Node

from morphit_interfaces.msg import GripperCommand
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MissingDependencyError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.conversions import message_from_trajectory
from morphit_ros.ros.interfaces import GRIPPER_COMMAND, JOINT_TRAJECTORY


@dataclass(frozen=True)
class CommandConfig(Config):
    """How the robot takes its commands."""

    command_interface: str = parameter(
        "topics", "topics: joint_trajectory and gripper_command; actions: ros2_control's", choices=("topics", "actions")
    )
    gripper_position_scale: float = parameter(
        0.5,
        "Position of the gripper action over the aperture (0.5: position of one finger)",
        minimum=0.01,
        maximum=100.0,
    )


class RobotCommands(Protocol):
    """What the execution node needs of a robot."""

    def send(self, trajectory: Trajectory) -> None:
        """Follow a trajectory from now on."""

    def stop(self) -> None:
        """Stop all motion now."""

    def grip(self, aperture: float, max_effort: float) -> None:
        """Move the fingers to an aperture [m] with at most this force [N]."""


def make_robot_commands(node: Node, config: CommandConfig, robot: RobotConfiguration) -> RobotCommands:
    """The chosen interface.

    Raises:
        MissingDependencyError: actions without control_msgs.
    """
    return TopicCommands(node) if config.command_interface == "topics" else ActionCommands(node, config, robot)


class TopicCommands:
    """Publishes on joint_trajectory and gripper_command."""

    def __init__(self, node: Node) -> None:
        self._trajectory = node.create_publisher(
            JOINT_TRAJECTORY.type, JOINT_TRAJECTORY.name, JOINT_TRAJECTORY.quality.profile()
        )
        self._gripper = node.create_publisher(
            GRIPPER_COMMAND.type, GRIPPER_COMMAND.name, GRIPPER_COMMAND.quality.profile()
        )

    def send(self, trajectory: Trajectory) -> None:
        self._trajectory.publish(message_from_trajectory(trajectory))

    def stop(self) -> None:
        self._trajectory.publish(message_from_trajectory(None))

    def grip(self, aperture: float, max_effort: float) -> None:
        self._gripper.publish(GripperCommand(aperture=float(aperture), max_effort=float(max_effort)))


class ActionCommands:
    """FollowJointTrajectory and GripperCommand goals of control_msgs; a new goal replaces the last one."""

    def __init__(self, node: Node, config: CommandConfig, robot: RobotConfiguration) -> None:
        try:
            from control_msgs.action import FollowJointTrajectory
            from control_msgs.action import GripperCommand as GripperAction
        except ImportError as error:
            raise MissingDependencyError(
                "control_msgs", "command_interface: actions",
                "Install ros-jazzy-control-msgs, or set command_interface to topics.",
            ) from error  # fmt: skip
        self._trajectory_type, self._gripper_type = FollowJointTrajectory, GripperAction
        self._scale = config.gripper_position_scale
        controller = robot.moveit["arm_controller"]
        self._trajectory = ActionClient(node, FollowJointTrajectory, f"{controller}/follow_joint_trajectory")
        self._gripper = ActionClient(node, GripperAction, robot.moveit["gripper_action"])
        self._running = None

    def send(self, trajectory: Trajectory) -> None:
        goal = self._trajectory_type.Goal(trajectory=message_from_trajectory(trajectory))
        self._running = self._trajectory.send_goal_async(goal)

    def stop(self) -> None:
        if self._running is None:
            return
        # The goal may not have been answered yet: cancel it as soon as it is.
        self._running.add_done_callback(lambda future: future.result().cancel_goal_async())
        self._running = None

    def grip(self, aperture: float, max_effort: float) -> None:
        goal = self._gripper_type.Goal()
        goal.command.position = float(aperture) * self._scale
        goal.command.max_effort = float(max_effort)
        self._gripper.send_goal_async(goal)
