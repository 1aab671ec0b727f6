"""How trajectories and gripper commands reach the robot, and the gate that they pass only while motion is allowed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Protocol

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future

from morphit_interfaces.msg import GripperCommand
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core.conversions import message_from_trajectory
from morphit_ros.ros.core.interfaces import GRIPPER_COMMAND, JOINT_TRAJECTORY


@dataclass(frozen=True)
class CommandConfig(Config):
    """How the robot takes its commands."""

    command_interface: str = parameter(
        "topics",
        "topics: joint_trajectory (an empty one means stop) and gripper_command, as workcell_sim takes them; actions: "
        "FollowJointTrajectory and GripperCommand, for ros2_control, whose controllers do not stop on a topic",
        choices=("topics", "actions"),
    )
    gripper_position_scale: float = parameter(
        0.5, "Position of the gripper action over the aperture (0.5: of one finger)", minimum=0.01, maximum=100.0
    )

    def probed(self, sequence: SequenceConfig) -> SequenceConfig:
        """A grasp sequence whose probe suits the interface: gripper drivers finish one goal before the next."""
        if self.command_interface == "topics":
            return sequence
        return replace(sequence, probe=replace(sequence.probe, speed=0.0))


class RobotCommands(Protocol):
    """What the execution node needs of a robot."""

    def check_ready(self) -> None:
        """Raise an InvalidInputError that names what the robot does not offer yet."""

    def send(self, trajectory: Trajectory) -> None:
        """Follow a trajectory from now on."""

    def stop(self) -> None:
        """Stop all motion now."""

    def grip(self, aperture: float, max_effort: float) -> None:
        """Move the fingers to an aperture [m] with at most this force [N]."""

    def settled(self) -> bool:
        """Whether the last stop has reached the robot."""

    def problem(self) -> str:
        """What the robot says against the last trajectory, empty if nothing; asked once, then forgotten."""

    def blocked(self) -> str:
        """How the robot was kept from following the last trajectory, empty if it was not; asked once."""


class MotionGate:
    """Lets commands through only while motion is allowed; closing it stops the robot.

    Safe from several threads: nothing passes after `close` has returned.
    """

    def __init__(self, robot: RobotCommands) -> None:
        self._robot = robot
        self._lock = threading.Lock()
        self._open = False

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        """Allow motion.

        Raises:
            InvalidInputError: the robot is not ready for commands.
        """
        self._robot.check_ready()
        with self._lock:
            self._open = True

    def close(self) -> None:
        """Stop the robot, if motion was allowed, and let nothing through from now on."""
        with self._lock:
            if self._open:
                self._open = False
                self._robot.stop()

    def send(self, trajectory: Trajectory) -> None:
        with self._lock:
            if self._open:
                self._robot.send(trajectory)

    def grip(self, aperture: float, max_effort: float) -> None:
        with self._lock:
            if self._open:
                self._robot.grip(aperture, max_effort)

    def stop(self) -> None:
        with self._lock:
            self._robot.stop()

    def settled(self) -> bool:
        return self._robot.settled()

    def problem(self) -> str:
        return self._robot.problem()

    def blocked(self) -> str:
        return self._robot.blocked()


def make_robot_commands(
    node: Node, config: CommandConfig, robot: RobotConfiguration, group: CallbackGroup
) -> RobotCommands:
    """The chosen interface; `group` is that of the callbacks which give commands.

    Raises:
        MissingDependencyError: actions without control_msgs.
    """
    return TopicCommands(node) if config.command_interface == "topics" else ActionCommands(node, config, robot, group)


class TopicCommands:
    """Publishes on joint_trajectory and gripper_command."""

    def __init__(self, node: Node) -> None:
        self._trajectory, self._gripper = JOINT_TRAJECTORY.publish(node), GRIPPER_COMMAND.publish(node)

    def check_ready(self) -> None:
        """Always: a topic has no server."""

    def send(self, trajectory: Trajectory) -> None:
        self._trajectory.publish(message_from_trajectory(trajectory))

    def stop(self) -> None:
        self._trajectory.publish(message_from_trajectory(None))

    def grip(self, aperture: float, max_effort: float) -> None:
        self._gripper.publish(GripperCommand(aperture=float(aperture), max_effort=float(max_effort)))

    def settled(self) -> bool:
        return self._trajectory.wait_for_all_acked(Duration(nanoseconds=1))

    def problem(self) -> str:
        return ""

    def blocked(self) -> str:
        return ""


class ActionCommands:
    """FollowJointTrajectory and GripperCommand goals of control_msgs; a new goal replaces the last one.

    Args:
        node: owner of the clients.
        config: how positions of the gripper are meant.
        robot: names of the actions.
        group: of the callbacks that give commands. Answers come in it too: rclpy loses one that arrives in
            another thread before the goal is noted.

    Raises:
        MissingDependencyError: control_msgs is not installed.
    """

    def __init__(self, node: Node, config: CommandConfig, robot: RobotConfiguration, group: CallbackGroup) -> None:
        try:
            from control_msgs.action import FollowJointTrajectory, GripperCommand as GripperAction
        except ImportError as error:
            raise MissingDependencyError(
                "control_msgs", "command_interface: actions",
                "Install ros-jazzy-control-msgs, or set command_interface to topics.",
            ) from error  # fmt: skip
        self._trajectory_type, self._gripper_type = FollowJointTrajectory, GripperAction
        self._scale = config.gripper_position_scale
        controller, gripper = robot.moveit["arm_controller"], robot.moveit["gripper_action"]
        self._trajectory = ActionClient(
            node, FollowJointTrajectory, f"{controller}/follow_joint_trajectory", callback_group=group
        )
        self._gripper = ActionClient(node, GripperAction, gripper, callback_group=group)
        self._names = {self._trajectory: f"{controller}/follow_joint_trajectory", self._gripper: gripper}
        self._lock = threading.Lock()
        self._number = 0
        self._stopped_number = -1
        self._handle: ClientGoalHandle | None = None
        self._cancel: Future | None = None
        self._problem = self._blocked = ""

    def check_ready(self) -> None:
        missing = [name for client, name in self._names.items() if not client.server_is_ready()]
        if missing:
            raise InvalidInputError(
                "actions of the robot", f"no {' and no '.join(missing)}", "both on the graph",
                "Start the robot's controllers; their names are in config/robots.",
            )  # fmt: skip

    def send(self, trajectory: Trajectory) -> None:
        with self._lock:
            self._number += 1
            number, self._handle, self._cancel = self._number, None, None
            self._problem = self._blocked = ""
        goal = self._trajectory_type.Goal(trajectory=message_from_trajectory(trajectory))
        self._trajectory.send_goal_async(goal).add_done_callback(lambda future: self._answered(number, future))

    def _answered(self, number: int, future: Future) -> None:
        handle: ClientGoalHandle = future.result()
        with self._lock:
            if number == self._number:
                if not handle.accepted:
                    self._problem = "the controller refused the trajectory"
                    return
                self._handle = handle
            late = handle.accepted and (number != self._number or number <= self._stopped_number)
        if late:
            # Stopped or replaced before the controller had answered.
            cancel = handle.cancel_goal_async()
            with self._lock:
                if number == self._number:
                    self._cancel = cancel
            return
        handle.get_result_async().add_done_callback(lambda result: self._ended(number, result))

    def _ended(self, number: int, future: Future) -> None:
        with self._lock:
            if number == self._number and future.result().status == GoalStatus.STATUS_ABORTED:
                result = future.result().result
                cause = f"the controller aborted the trajectory: {result.error_string or 'no reason given'}"
                # Controllers watch the path themselves, and are often quicker to notice that something is in the way.
                if result.error_code == result.PATH_TOLERANCE_VIOLATED:
                    self._blocked = cause
                else:
                    self._problem = cause

    def stop(self) -> None:
        with self._lock:
            if self._stopped_number == self._number:
                return
            self._stopped_number = self._number
            if self._handle is not None:
                self._cancel = self._handle.cancel_goal_async()

    def settled(self) -> bool:
        with self._lock:
            return self._number == 0 or (self._cancel is not None and self._cancel.done())

    def problem(self) -> str:
        with self._lock:
            problem, self._problem = self._problem, ""
            return problem

    def blocked(self) -> str:
        with self._lock:
            blocked, self._blocked = self._blocked, ""
            return blocked

    def grip(self, aperture: float, max_effort: float) -> None:
        goal = self._gripper_type.Goal()
        goal.command.position = float(aperture) * self._scale
        goal.command.max_effort = float(max_effort)
        self._gripper.send_goal_async(goal)
