"""Commands reach the robot while motion is allowed, a stop always, and an action's refusal is noticed."""

import sys
import types
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from action_msgs.msg import GoalStatus
from action_msgs.srv import CancelGoal
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.finger_positions import FingerPositions
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.execution import robot_commands
from morphit_ros.ros.execution.robot_commands import ActionCommands, CommandConfig, MotionGate

TRAJECTORY = Trajectory(("a",), np.array([0.0, 1.0]), np.zeros((2, 1)), np.zeros((2, 1)))


class Recorder:
    """A robot that notes what it is told."""

    def __init__(self, ready=True):
        self.told = []
        self._ready = ready

    def check_ready(self):
        if not self._ready:
            raise InvalidInputError("actions", "none", "some")

    def send(self, trajectory):
        self.told.append("send")

    def stop(self):
        self.told.append("stop")

    def grip(self, aperture, max_effort):
        self.told.append("grip")


def test_nothing_passes_a_closed_gate_but_a_stop():
    robot = Recorder()
    gate = MotionGate(robot)
    gate.send(TRAJECTORY)
    gate.grip(0.05, 10.0)
    assert robot.told == []
    gate.open()
    gate.send(TRAJECTORY)
    gate.grip(0.05, 10.0)
    gate.close()
    # A planner that ends late must not move a robot that was stopped.
    gate.send(TRAJECTORY)
    gate.grip(0.05, 10.0)
    gate.close()
    gate.stop()
    assert robot.told == ["send", "grip", "stop", "stop"]


def test_a_robot_that_is_not_ready_keeps_the_gate_shut():
    gate = MotionGate(Recorder(ready=False))
    with pytest.raises(InvalidInputError):
        gate.open()
    assert not gate.is_open


class Handle:
    def __init__(self, accepted=True):
        self.accepted = accepted
        self.result = Future()
        self.cancelled = None

    def cancel_goal_async(self):
        self.cancelled = Future()
        return self.cancelled

    def get_result_async(self):
        return self.result


class Client:
    """Stands in for an action client; its answers are given by hand."""

    made: ClassVar[list] = []

    def __init__(self, node, kind, name, callback_group=None):
        self.name, self.kind, self.ready, self.answers, self.goals = name, kind, True, [], []
        Client.made.append(self)

    def server_is_ready(self):
        return self.ready

    def send_goal_async(self, goal):
        self.goals.append(goal)
        self.answers.append(Future())
        return self.answers[-1]


class FollowJointTrajectory:
    class Goal:
        def __init__(self, trajectory):
            assert isinstance(trajectory, JointTrajectory)
            self.trajectory = trajectory


class Strict:
    """A message: takes values of its fields' types only, and no field that it does not have."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __setattr__(self, name, value):
        held = self.__dict__[name]
        assert type(value) is type(held), f"{name}: {value!r}"
        if isinstance(held, list):
            assert all(type(item) is (str if name == "name" else float) for item in value), f"{name}: {value!r}"
        self.__dict__[name] = value


class GripperCommand:
    class Goal:
        def __init__(self):
            self.command = Strict(position=0.0, max_effort=0.0)


class ParallelGripperCommand:
    class Goal:
        def __init__(self):
            self.command = Strict(name=[], position=[], velocity=[], effort=[])


@pytest.fixture
def robot(monkeypatch):
    return actions_robot(monkeypatch)


def actions_robot(monkeypatch, node=None, configuration=None, **config):
    actions = types.ModuleType("control_msgs.action")
    actions.FollowJointTrajectory, actions.GripperCommand = FollowJointTrajectory, GripperCommand
    actions.ParallelGripperCommand = ParallelGripperCommand
    monkeypatch.setitem(sys.modules, "control_msgs.action", actions)
    monkeypatch.setattr(robot_commands, "WholeActionClient", Client)
    monkeypatch.setattr(Client, "made", [])
    module = types.ModuleType("control_msgs")
    module.action = actions
    monkeypatch.setitem(sys.modules, "control_msgs", module)
    return ActionCommands(node, CommandConfig(**config), configuration or RobotConfiguration.load("panda"), None)


def answer(future, value):
    future.set_result(value)


def test_a_stop_cancels_the_goal_and_waits_for_the_answer(robot):
    arm, _ = Client.made
    assert arm.name.endswith("follow_joint_trajectory")
    assert robot.settled()
    robot.send(TRAJECTORY)
    handle = Handle()
    answer(arm.answers[0], handle)
    robot.stop()
    assert handle.cancelled is not None
    assert not robot.settled()
    answer(handle.cancelled, None)
    assert robot.settled()


def test_a_stop_before_the_controller_answered_cancels_when_it_does(robot):
    arm, _ = Client.made
    robot.send(TRAJECTORY)
    robot.stop()
    assert not robot.settled()
    handle = Handle()
    answer(arm.answers[0], handle)
    assert handle.cancelled is not None


def test_refused_and_aborted_trajectories_are_problems_once(robot):
    arm, _ = Client.made
    robot.send(TRAJECTORY)
    answer(arm.answers[0], Handle(accepted=False))
    assert "refused" in robot.problem()
    assert robot.problem() == ""
    robot.send(TRAJECTORY)
    handle = Handle()
    answer(arm.answers[1], handle)
    outcome = types.SimpleNamespace(error_string="goal tolerance", error_code=-5, PATH_TOLERANCE_VIOLATED=-4)
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_ABORTED, result=outcome))
    assert robot.blocked() == ""
    assert "goal tolerance" in robot.problem()


def test_an_arm_that_is_kept_from_following_is_blocked_once(robot):
    arm, _ = Client.made
    robot.send(TRAJECTORY)
    handle = Handle()
    answer(arm.answers[0], handle)
    outcome = types.SimpleNamespace(error_string="joint 2 is off", error_code=-4, PATH_TOLERANCE_VIOLATED=-4)
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_ABORTED, result=outcome))
    assert robot.problem() == ""
    assert "joint 2 is off" in robot.blocked()
    assert robot.blocked() == ""


def test_a_trajectory_that_somebody_else_cancels_is_a_problem(robot):
    arm, _ = Client.made
    robot.send(TRAJECTORY)
    handle = Handle()
    answer(arm.answers[0], handle)
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_CANCELED, result=None))
    assert "cancelled, and not by this node" in robot.problem()
    # Own stops are none.
    robot.send(TRAJECTORY)
    handle = Handle()
    answer(arm.answers[1], handle)
    robot.stop()
    answer(handle.cancelled, types.SimpleNamespace(return_code=CancelGoal.Response.ERROR_NONE))
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_CANCELED, result=None))
    assert robot.problem() == ""


@pytest.mark.parametrize("part", ["arm", "gripper"])
def test_a_cancellation_that_is_refused_is_a_problem(robot, part):
    arm, gripper = Client.made
    handle = Handle()
    if part == "arm":
        robot.send(TRAJECTORY)
        answer(arm.answers[0], handle)
    else:
        robot.grip(0.05, 10.0)
        answer(gripper.answers[0], handle)
    robot.stop()
    answer(handle.cancelled, types.SimpleNamespace(return_code=CancelGoal.Response.ERROR_REJECTED))
    assert "refused to cancel" in robot.problem()
    assert robot.settled()


def test_a_gripper_that_refuses_is_a_problem_and_one_that_closes_on_something_is_not(robot):
    _, gripper = Client.made
    robot.grip(0.05, 10.0)
    answer(gripper.answers[0], Handle(accepted=False))
    assert robot.problem() == "the gripper refused the gripper command"
    robot.grip(0.05, 10.0)
    handle = Handle()
    answer(gripper.answers[1], handle)
    # So ends a goal of fingers that stall on an object, where the driver is not told to expect it.
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_ABORTED, result=types.SimpleNamespace()))
    assert robot.problem() == ""
    # What has ended is not cancelled: the fingers go on pressing.
    robot.stop()
    assert handle.cancelled is None
    assert robot.settled()


def test_a_stop_cancels_the_gripper_too(robot):
    arm, gripper = Client.made
    handles = Handle(), Handle()
    robot.send(TRAJECTORY)
    robot.grip(0.05, 10.0)
    answer(arm.answers[0], handles[0])
    answer(gripper.answers[0], handles[1])
    robot.stop()
    for handle in handles:
        assert handle.cancelled is not None
        assert not robot.settled()
        answer(handle.cancelled, None)
    assert robot.settled()


def test_the_gripper_gets_positions_of_one_finger(robot):
    _, gripper = Client.made
    robot.grip(0.06, 20.0)
    assert gripper.goals[0].command.position == pytest.approx(0.03)
    assert gripper.goals[0].command.max_effort == 20.0


def test_fingers_that_turn_get_the_position_of_the_motors_joint(monkeypatch):
    """Whatever the scale is: that is of sliding fingers."""
    turning = replace(
        RobotConfiguration.load("panda"),
        finger_joints=("knuckle", "other_knuckle"),
        finger_positions=FingerPositions(
            np.array([0.0, 0.04, 0.08]), np.array([[0.8, -0.8], [0.45, -0.45], [0.0, 0.0]])
        ),
    )
    robot = actions_robot(monkeypatch, configuration=turning, gripper_position_scale=0.5)
    _, gripper = Client.made
    robot.grip(0.06, 20.0)
    assert gripper.goals[0].command.position == pytest.approx(0.225)
    assert gripper.goals[0].command.max_effort == 20.0


def test_a_parallel_gripper_gets_a_joint_state_of_one_finger(monkeypatch):
    """As parallel_gripper_controller takes it: it refuses a goal of any other number of positions than one."""
    robot = actions_robot(monkeypatch, gripper_action_type="ParallelGripperCommand")
    _, gripper = Client.made
    assert gripper.kind is ParallelGripperCommand
    robot.grip(0.06, 20)
    command = gripper.goals[0].command
    assert command.name == ["panda_finger_joint1"]
    assert command.position == pytest.approx([0.03])
    assert command.effort == [20.0]
    assert command.velocity == []
    handle = Handle()
    answer(gripper.answers[0], handle)
    answer(handle.result, types.SimpleNamespace(status=GoalStatus.STATUS_ABORTED, result=types.SimpleNamespace()))
    assert robot.problem() == ""


def test_a_gripper_with_the_other_action_is_named_as_that(monkeypatch):
    class Graph:
        def create_client(self, *_, **__):
            return None

        def get_publishers_info_by_topic(self, name):
            assert name == "panda_hand_controller/gripper_cmd/_action/feedback"
            return [types.SimpleNamespace(topic_type="control_msgs/action/ParallelGripperCommand_FeedbackMessage")]

    robot = actions_robot(monkeypatch, Graph())
    _, gripper = Client.made
    gripper.ready = False
    with pytest.raises(InvalidInputError, match="is a ParallelGripperCommand: set gripper_action_type"):
        robot.check_ready()


def test_missing_controllers_are_named(robot):
    arm, _ = Client.made
    arm.ready = False
    with pytest.raises(InvalidInputError, match="follow_joint_trajectory"):
        robot.check_ready()


def test_actions_without_control_msgs_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "control_msgs", None)
    with pytest.raises(MissingDependencyError, match="ros-jazzy-control-msgs"):
        ActionCommands(None, CommandConfig(), RobotConfiguration.load("panda"), None)


def test_a_goal_that_is_refused_leaves_the_one_before_to_be_stopped(robot):
    """A controller that refuses to brake on the path goes on with what it follows."""
    arm, _ = Client.made
    running = Handle()
    robot.send(TRAJECTORY)
    answer(arm.answers[0], running)
    robot.send(TRAJECTORY)
    answer(arm.answers[1], Handle(accepted=False))
    assert "refused the trajectory" in robot.problem()
    assert not robot.settled()
    robot.stop()
    assert running.cancelled is not None
    assert not robot.settled()
    answer(running.cancelled, types.SimpleNamespace(return_code=CancelGoal.Response.ERROR_NONE))
    assert robot.settled()


def test_a_stop_before_the_answer_cancels_what_is_followed_until_then(robot):
    arm, _ = Client.made
    running, late = Handle(), Handle()
    robot.send(TRAJECTORY)
    answer(arm.answers[0], running)
    robot.send(TRAJECTORY)
    robot.stop()
    assert running.cancelled is not None
    answer(running.cancelled, types.SimpleNamespace(return_code=CancelGoal.Response.ERROR_NONE))
    assert not robot.settled()
    answer(arm.answers[1], late)
    assert late.cancelled is not None
    answer(late.cancelled, types.SimpleNamespace(return_code=CancelGoal.Response.ERROR_NONE))
    assert robot.settled()


def test_a_goal_that_was_replaced_is_not_cancelled(robot):
    arm, _ = Client.made
    first, second = Handle(), Handle()
    for number, handle in enumerate((first, second)):
        robot.send(TRAJECTORY)
        answer(arm.answers[number], handle)
    # The controller ends what it has replaced.
    answer(first.result, types.SimpleNamespace(status=GoalStatus.STATUS_CANCELED, result=None))
    assert robot.problem() == ""
    robot.stop()
    assert first.cancelled is None
    assert second.cancelled is not None
