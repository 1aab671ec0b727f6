"""What is known of the robot, between two descriptions of it."""

from __future__ import annotations

from types import SimpleNamespace
from unittest import mock

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from std_msgs.msg import String

from morphit_interfaces.action import GoHome
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.ros.execution import robot_watch
from morphit_ros.ros.execution.pick_jobs import PickJobs


class _Node:
    def __init__(self):
        self.errors = []

    def get_logger(self):
        return SimpleNamespace(error=self.errors.append, warning=lambda text: None)


@pytest.fixture
def watch():
    """One that hears nothing but what it is told."""
    made = robot_watch.RobotWatch.__new__(robot_watch.RobotWatch)
    made._node, made._robot = _Node(), RobotConfiguration.load("panda")
    made.driver = SimpleNamespace(problem="")
    made.model = made._limits = made._error = None
    return made


def test_what_was_known_holds_while_the_next_description_is_read(watch, monkeypatch):
    """Goals come in other threads: one must not meet a robot that is neither known nor refused."""
    right = load_robot_description(RobotConfiguration.load("panda").description).xml
    read, met = robot_watch.KinematicModel, []

    def slowly(text):
        met.append((watch.model is not None, bool(watch.misfit)))
        return read(text)

    monkeypatch.setattr(robot_watch, "KinematicModel", slowly)
    for text in (right.replace('"panda_hand"', '"other_hand"'), right, right, "<no robot>"):
        watch._on_description(String(data=text))
        met.append((watch.model is not None, bool(watch.misfit)))
    # Before it is read, and after: another robot's, ours twice, and none.
    assert met == [
        (False, False), (False, True),
        (False, True), (True, False),
        (True, False), (True, False),
        (True, False), (False, True),
    ]  # fmt: skip
    assert len(watch._node.errors) == 2


def test_a_goal_is_about_the_robot_as_it_was_said_to_be_before_it():
    """Where a node was not let run for a while, the goal may be taken before the joint states that came with it."""
    jobs, order = mock.Mock(), []
    jobs._node.get_clock.return_value.now.return_value.nanoseconds = 0
    jobs._watch.look.side_effect = lambda: order.append("look")
    jobs._memory.check.side_effect = lambda _: order.append("check") or ""
    jobs._job_of = lambda goal, action, kind: PickJobs._job_of(jobs, goal, action, mock.Mock())
    PickJobs.start_handling(jobs, mock.Mock(request=GoHome.Goal()))
    assert order == ["look", "check"]
