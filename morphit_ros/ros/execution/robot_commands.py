"""How trajectories and gripper commands reach the robot, and the gate that they pass only while motion is allowed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Protocol

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Bool

from morphit_interfaces.msg import GripperCommand
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core.conversions import message_from_trajectory
from morphit_ros.ros.core.endpoints import WholeActionClient
from morphit_ros.ros.core.heartbeat import Heartbeat, ended
from morphit_ros.ros.core.interfaces import (
    GATE_STATE,
    GATED_TRAJECTORY,
    GRIPPER_COMMAND,
    JOINT_TRAJECTORY,
    VACUUM_COMMAND,
)

# What a robot consists of, as far as commands go.
PARTS = ("arm", "gripper")
# Of control_msgs.
GRIPPER_ACTIONS = ("GripperCommand", "ParallelGripperCommand")
# Looks that must find the gate silent: the first after a pause of one's own always does.
_GATE_LOOKS = 2


@dataclass(frozen=True)
class CommandConfig(Config):
    """How the robot takes its commands."""

    command_interface: str = parameter(
        "topics",
        "topics: joint_trajectory (an empty one means stop) and gripper_command, as workcell_sim takes them; actions: "
        "FollowJointTrajectory and that of the gripper, for ros2_control, whose controllers do not stop on a topic",
        choices=("topics", "actions"),
    )
    gripper_action_type: str = parameter(
        "GripperCommand",
        "Type of the gripper's action in control_msgs, with command_interface actions: GripperCommand, or "
        "ParallelGripperCommand of the parallel_gripper_controller",
        choices=GRIPPER_ACTIONS,
    )
    gripper_position_scale: float = parameter(
        0.5, "Position of the gripper action over the aperture (0.5: of one finger)", minimum=0.01, maximum=100.0
    )
    gate_timeout: float = parameter(
        0.08, "Silence of motion_gate after which the controller is stopped without it [s]", minimum=0.02, maximum=2.0
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

    def switch_vacuum(self, on: bool) -> None:
        """Run the vacuum of a suction cup, or end it."""

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

    def switch_vacuum(self, on: bool) -> None:
        with self._lock:
            if self._open:
                self._robot.switch_vacuum(on)

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
    node: Node,
    config: CommandConfig,
    robot: RobotConfiguration,
    group: CallbackGroup | None,
    parts: Sequence[str] = PARTS,
) -> TopicCommands | ActionCommands:
    """The chosen interface; `group` is that of the callbacks which give commands, `parts` are what is commanded.

    Raises:
        MissingDependencyError: actions without control_msgs.
    """
    if config.command_interface == "topics":
        return TopicCommands(node, parts, not robot.finger_joints)
    return ActionCommands(node, config, robot, group, parts)


class TopicCommands:
    """Publishes on joint_trajectory, and for a gripper on gripper_command, for one that is a cup on vacuum_command.

    The frame of a trajectory, which no controller asks for, is the name of the node that sends it.
    """

    def __init__(self, node: Node, parts: Sequence[str] = PARTS, is_cup: bool = False) -> None:
        self._name = node.get_fully_qualified_name()
        self._trajectory = JOINT_TRAJECTORY.publish(node)
        self._gripper = GRIPPER_COMMAND.publish(node) if "gripper" in parts else None
        self._vacuum = VACUUM_COMMAND.publish(node) if is_cup and "gripper" in parts else None

    def check_ready(self) -> None:
        """Always: a topic has no server."""

    def send(self, trajectory: Trajectory) -> None:
        self._publish(trajectory)

    def stop(self) -> None:
        self._publish(None)

    def _publish(self, trajectory: Trajectory | None) -> None:
        message = message_from_trajectory(trajectory)
        message.header.frame_id = self._name
        self._trajectory.publish(message)

    def grip(self, aperture: float, max_effort: float) -> None:
        assert self._gripper is not None
        self._gripper.publish(GripperCommand(aperture=float(aperture), max_effort=float(max_effort)))

    def switch_vacuum(self, on: bool) -> None:
        assert self._vacuum is not None
        self._vacuum.publish(Bool(data=on))

    def settled(self) -> bool:
        return self._trajectory.wait_for_all_acked(Duration(nanoseconds=1))

    def problem(self) -> str:
        return ""

    def blocked(self) -> str:
        return ""

    def stop_from_outside(self) -> None:
        """Stop what another node commands."""
        self.stop()


class _LatestGoal:
    """The goals of one action, of which the newest counts; a new one replaces the one before.

    Args:
        client: of the action.
        name: of the action.
        who: takes the goals, for messages.
        what: a goal is, for messages.
        may_abort: an aborted goal is no problem: fingers that close on something do not reach where they were sent.
    """

    def __init__(self, client: ActionClient, name: str, who: str, what: str, may_abort: bool) -> None:
        self.client, self.name = client, name
        self._who, self._what, self._may_abort = who, what, may_abort
        self._lock = threading.Lock()
        self._number = 0
        self._stopped_number = self._refused_number = -1
        # By its number the goal that the server follows: one that a refused goal should have replaced, too.
        self._running: dict[int, ClientGoalHandle] = {}
        # Whether nothing runs any longer: never begun, refused, ended, or the stop was answered.
        self._over = True
        self._problem = self._blocked = ""

    def send(self, goal: Any) -> None:
        """Replace the goal before."""
        with self._lock:
            self._number += 1
            number, self._over = self._number, False
            self._problem = self._blocked = ""
        self.client.send_goal_async(goal).add_done_callback(lambda future: self._answered(number, future))

    def _answered(self, number: int, future: Future) -> None:
        handle: ClientGoalHandle = future.result()
        with self._lock:
            if not handle.accepted:
                if number == self._number:
                    self._refused_number, self._over = number, not self._running
                    self._problem = f"the {self._who} refused the {self._what}"
                return
            late = number != self._number or number <= self._stopped_number
            if not late:
                self._running = {number: handle}
        if late:
            # Stopped or replaced before the controller had answered.
            self._cancel(number, handle)
        else:
            handle.get_result_async().add_done_callback(lambda result: self._ended(number, result))

    def _ended(self, number: int, future: Future) -> None:
        answer = future.result()
        with self._lock:
            # Nothing is left to be cancelled.
            self._running.pop(number, None)
            if not self._counts(number):
                return
            self._over = True
            if answer.status == GoalStatus.STATUS_CANCELED and number > self._stopped_number:
                self._problem = f"the {self._what} was cancelled, and not by this node"
            elif answer.status == GoalStatus.STATUS_ABORTED and not self._may_abort:
                result = answer.result
                cause = f"the {self._who} aborted the {self._what}: {result.error_string or 'no reason given'}"
                # Controllers watch the path themselves, and are often quicker to notice that something is in the way.
                if result.error_code == result.PATH_TOLERANCE_VIOLATED:
                    self._blocked = cause
                else:
                    self._problem = cause

    def _counts(self, number: int) -> bool:
        # What a refused goal should have replaced goes on in its place.
        return number == self._number or (self._refused_number == self._number and not self._running)

    def stop(self) -> None:
        """Cancel the newest goal, or what it has not replaced, once."""
        with self._lock:
            if self._stopped_number == self._number:
                return
            self._stopped_number = self._number
            running = tuple(self._running.items())
        for number, handle in running:
            self._cancel(number, handle)

    def _cancel(self, number: int, handle: ClientGoalHandle) -> None:
        handle.cancel_goal_async().add_done_callback(lambda future: self._cancelled(number, future))

    def _cancelled(self, number: int, future: Future) -> None:
        answer = future.result()
        with self._lock:
            self._running.pop(number, None)
            if self._counts(number):
                self._over = True
                if answer is not None and answer.return_code == CancelGoal.Response.ERROR_REJECTED:
                    self._problem = f"the {self._who} refused to cancel the {self._what}, and may go on with it"

    def settled(self) -> bool:
        """Whether nothing was ever sent, or the last stop was answered."""
        with self._lock:
            return self._over

    def problem(self) -> str:
        """As of `RobotCommands`."""
        with self._lock:
            problem, self._problem = self._problem, ""
            return problem

    def blocked(self) -> str:
        """As of `RobotCommands`."""
        with self._lock:
            blocked, self._blocked = self._blocked, ""
            return blocked


def controller_actions(robot: RobotConfiguration) -> dict[str, str]:
    """Part of the robot → name of its controller's action."""
    return {
        "arm": f"{robot.moveit['arm_controller']}/follow_joint_trajectory",
        "gripper": robot.moveit["gripper_action"],
    }


def offered_action(node: Node, name: str) -> str:
    """Type of the action of a name, as GripperCommand; empty while nobody offers it."""
    # The feedback's type names the action's: control_msgs/action/GripperCommand_FeedbackMessage.
    offers = node.get_publishers_info_by_topic(f"{name}/_action/feedback")
    return next((offer.topic_type.rpartition("/")[2].removesuffix("_FeedbackMessage") for offer in offers), "")


class _VacuumService:
    """The service of a suction cup that switches its vacuum, a std_srvs/SetBool.

    Raises:
        MissingDependencyError: std_srvs is not installed.
    """

    def __init__(self, node: Node, name: str, group: CallbackGroup | None) -> None:
        try:
            from std_srvs.srv import SetBool
        except ImportError as error:
            raise MissingDependencyError(
                "std_srvs", "command_interface: actions with a suction cup",
                "Install ros-jazzy-std-srvs, or set command_interface to topics.",
            ) from error  # fmt: skip
        self.name, self._type = name, SetBool
        self._client = node.create_client(SetBool, name, callback_group=group)
        self._problem = ""

    def is_ready(self) -> bool:
        return self._client.service_is_ready()

    def switch(self, on: bool) -> None:
        self._client.call_async(self._type.Request(data=on)).add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        answer = future.result()
        if not answer.success:
            self._problem = f"{self.name} refused to switch the vacuum: {answer.message or 'no reason given'}"

    def problem(self) -> str:
        """As of `RobotCommands`."""
        problem, self._problem = self._problem, ""
        return problem


class ActionCommands:
    """Goals of control_msgs, FollowJointTrajectory and the gripper's; a new goal replaces the last one.

    The vacuum of a suction cup, which takes no goals, is switched by a service.

    Args:
        node: owner of the clients.
        config: the gripper's type of action, and how its positions are meant.
        robot: names of the actions.
        group: of the callbacks that give commands. Answers come in it too: rclpy loses one that arrives in
            another thread before the goal is noted.
        parts: what is commanded.

    Raises:
        MissingDependencyError: control_msgs is not installed, or std_srvs, for a suction cup.
    """

    def __init__(
        self,
        node: Node,
        config: CommandConfig,
        robot: RobotConfiguration,
        group: CallbackGroup | None,
        parts: Sequence[str] = PARTS,
    ) -> None:
        try:
            from control_msgs import action
        except ImportError as error:
            raise MissingDependencyError(
                "control_msgs", "command_interface: actions",
                "Install ros-jazzy-control-msgs, or set command_interface to topics.",
            ) from error  # fmt: skip
        self._trajectory_type = action.FollowJointTrajectory
        self._gripper_type = getattr(action, config.gripper_action_type)
        self._has_list = config.gripper_action_type == "ParallelGripperCommand"
        self._scale, self._robot = config.gripper_position_scale, robot
        names = controller_actions(robot)
        actions = {
            "arm": (names["arm"], self._trajectory_type, "controller", "trajectory"),
            "gripper": (names["gripper"], self._gripper_type, "gripper", "gripper command"),
        }
        self._node, self._group = node, group
        self._arm_action, self._gripper_action = names["arm"], names["gripper"]
        self._goals = {
            part: _LatestGoal(
                WholeActionClient(node, kind, name, callback_group=group), name, who, what, part == "gripper"
            )
            for part, (name, kind, who, what) in actions.items()
            if part in parts and (part == "arm" or robot.finger_joints)
        }
        has_vacuum = "gripper" in parts and not robot.finger_joints
        self._vacuum = _VacuumService(node, robot.moveit["vacuum_service"], group) if has_vacuum else None
        self._outside = None if "arm" in parts else node.create_client(
            CancelGoal, f"{self._arm_action}/_action/cancel_goal", callback_group=group
        )  # fmt: skip

    def check_ready(self) -> None:
        if self._vacuum is not None and not self._vacuum.is_ready():
            raise InvalidInputError(
                "vacuum of the robot", f"no {self._vacuum.name}", "a std_srvs/SetBool on the graph",
                "Start the driver of the suction cup; the service's name is in config/robots.",
            )  # fmt: skip
        missing = [goal.name for goal in self._goals.values() if not goal.client.server_is_ready()]
        if missing:
            remedy = "Start the robot's controllers; their names are in config/robots."
            gripper, wanted = self._gripper_action, self._gripper_type.__name__
            other = offered_action(self._node, gripper) if gripper in missing else ""
            if other not in ("", wanted):
                remedy = f"{gripper} is a {other}: set gripper_action_type, which is {wanted}."
            raise InvalidInputError(
                "actions of the robot", f"no {' and no '.join(missing)}", "both on the graph", remedy
            )

    def send(self, trajectory: Trajectory) -> None:
        # From its arrival on: the controller's machine may have another clock.
        message = message_from_trajectory(replace(trajectory, start=0.0))
        self._goals["arm"].send(self._trajectory_type.Goal(trajectory=message))

    def grip(self, aperture: float, max_effort: float) -> None:
        goal = self._gripper_type.Goal()
        position, force = float(aperture) * self._scale, float(max_effort)
        fingers = self._robot.finger_joints
        if self._robot.finger_positions is not None:
            # Drivers of hands whose fingers turn take the position of the joint that the motor turns.
            position = self._robot.finger_state(aperture)[fingers[0]]
        if self._has_list:
            # A joint state of the one joint that is commanded: the others follow it.
            goal.command.name, goal.command.position, goal.command.effort = [*fingers[:1]], [position], [force]
        else:
            goal.command.position, goal.command.max_effort = position, force
        self._goals["gripper"].send(goal)

    def switch_vacuum(self, on: bool) -> None:
        assert self._vacuum is not None
        self._vacuum.switch(on)

    def stop(self) -> None:
        for goal in self._goals.values():
            goal.stop()

    def settled(self) -> bool:
        return all(goal.settled() for goal in self._goals.values())

    def problem(self) -> str:
        said = [goal.problem() for goal in self._goals.values()]
        return "; ".join(filter(None, [*said, "" if self._vacuum is None else self._vacuum.problem()]))

    def blocked(self) -> str:
        return "; ".join(filter(None, [goal.blocked() for goal in self._goals.values()]))

    def stop_from_outside(self) -> None:
        """Stop what another node commands: a request without a goal cancels all of them."""
        if self._outside is not None:
            self._outside.call_async(CancelGoal.Request())


class GatedCommands:
    """Trajectories go to motion_gate, which hears this node's heart; the gripper is commanded directly.

    The two watch each other: where the gate falls silent while the arm moves, the controller is stopped without it.

    Args:
        node: commands.
        hand: of the robot; commands the gripper.
        group: of the callbacks that give commands, where the heart beats too.
        timeout: silence of the gate after which it counts as dead [s]. Its process is watched besides.

    Attributes:
        heart: beats; at rest the gate asks for no other than its commander's.
    """

    def __init__(
        self,
        node: Node,
        hand: TopicCommands | ActionCommands,
        group: CallbackGroup,
        timeout: float,
    ) -> None:
        self._hand, self._trajectory = hand, GATED_TRAJECTORY.publish(node)
        self._name = node.get_fully_qualified_name()
        self._number, self._told = 0, ""
        self._problem, self._sent = "", False
        self._state: DiagnosticStatus | None = None
        self._values: dict[str, str] = {}
        self._heard, self._silent_looks, self._timeout = 0.0, 0, timeout
        self._states = GATE_STATE.inbox(node)
        self._taking = threading.Lock()
        self.heart = Heartbeat(node, group, self._look)
        self.heart.start()

    def _take(self) -> None:
        """What the gate has said until now: it speaks 125 times a second, of which the newest word counts."""
        with self._taking:
            messages = self._states.take()
            if messages:
                self._values = {pair.key: pair.value for pair in messages[-1].values}
                self._state, self._heard = messages[-1], monotonic()

    def _look(self) -> None:
        self._take()
        # The gate may have died before it could say that it has passed the newest command on.
        if not (self._values.get("phase") == "moving" or (self._sent and not self._is_answered())):
            self._silent_looks = 0
            return
        silence = monotonic() - self._heard
        self._silent_looks = self._silent_looks + 1 if silence > self._timeout else 0
        end = ended(self._state.hardware_id) if self._state is not None else ""
        if end or self._silent_looks == _GATE_LOOKS:
            self._hand.stop_from_outside()
            self._values, self._sent, self._silent_looks = {}, False, 0
            self._problem = f"motion_gate {end or f'has been silent for {silence:.3f} s: has it died?'}"

    def check_ready(self) -> None:
        self._hand.check_ready()
        self._take()
        if self._state is None or monotonic() - self._heard > 1.0 or not self._trajectory.get_subscription_count():
            raise InvalidInputError("motion_gate", "nothing heard", "its state", "Start it, or set gate to false.")
        if self._state.level == DiagnosticStatus.WARN:
            raise InvalidInputError("motion_gate", self._state.message, "a gate that is ready")
        if self._state.level == DiagnosticStatus.ERROR:
            # Of a motion before this node.
            self.stop()

    def _publish(self, trajectory: Trajectory | None) -> None:
        self._number, self._sent = self._number + 1, trajectory is not None
        message = message_from_trajectory(trajectory)
        message.header.frame_id = f"{self._name} {self._number}"
        self._problem = ""
        self._trajectory.publish(message)

    def send(self, trajectory: Trajectory) -> None:
        self._publish(trajectory)

    def stop(self) -> None:
        self._publish(None)
        if isinstance(self._hand, ActionCommands):
            self._hand.stop()

    def grip(self, aperture: float, max_effort: float) -> None:
        self._hand.grip(aperture, max_effort)

    def switch_vacuum(self, on: bool) -> None:
        self._hand.switch_vacuum(on)

    def settled(self) -> bool:
        self._take()
        at_rest = self._values.get("phase") in ("resting", "stopped") and self._is_answered()
        return self._hand.settled() and (at_rest or monotonic() - self._heard > 1.0)

    def _is_answered(self) -> bool:
        """Whether the gate speaks of the newest command, and not of one before."""
        return self._number == 0 or self._values.get("command") == f"{self._name} {self._number}"

    def _fault(self, blocked: bool) -> str:
        self._take()
        state = self._state
        if state is None or state.level != DiagnosticStatus.ERROR or not self._is_answered():
            return ""
        said = f"{self._number} {state.message}"
        if bool(self._values.get("blocked")) is not blocked or said == self._told:
            return ""
        self._told = said
        return state.message

    def problem(self) -> str:
        problem, self._problem = self._problem or self._hand.problem(), ""
        return problem or self._fault(blocked=False)

    def blocked(self) -> str:
        return self._fault(blocked=True)
