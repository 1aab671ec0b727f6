"""The newest message of each topic is shown in order, once it can be; what cannot be shown is said."""

import contextlib
from collections import deque
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.frames import UnknownTransformError
from morphit_ros.ros.core.latest import LatestMessages

ROBOT, JOINTS, CLOUD = interfaces.ROBOT_DESCRIPTION, interfaces.JOINT_STATES, interfaces.LEFT_POINTS


class Inbox(contextlib.AbstractContextManager):
    """The handle of a subscription whose messages are fetched."""

    def __init__(self):
        self.messages = deque()

    def take_message(self, kind, raw):
        return (self.messages.popleft(), None) if self.messages else None

    def __exit__(self, *_):
        pass


class Viewer:
    """A node with three topics, driven by hand."""

    def __init__(self):
        self.callbacks, self.inboxes, self.shown, self.said = {}, {}, [], []
        self.has_robot, self.has_pose, self.watched = False, False, True
        show = {ROBOT: self._show_robot, JOINTS: lambda m: self.shown.append(m), CLOUD: self._show_cloud}
        report = SimpleNamespace(report=lambda level, text: self.said.append(text))
        LatestMessages(
            self, show, 5.0, True, report, lambda topic, m: m != "foreign", lambda t: self._ready(t),
            lambda: self.watched,
        )  # fmt: skip

    def create_subscription(self, kind, name, callback, profile, callback_group):
        self.callbacks[name] = callback, profile
        self.inboxes[name] = Inbox()
        return SimpleNamespace(handle=self.inboxes[name], msg_type=kind)

    def create_timer(self, period, callback, callback_group, clock):
        assert period == 0.2
        self.update = callback

    def take(self, topic, *messages):
        for message in messages:
            if topic is JOINTS:
                self.inboxes[topic.name].messages.append(message)
            else:
                self.callbacks[topic.name][0](message)

    def _ready(self, topic):
        return self.has_robot or topic is not JOINTS

    def _show_robot(self, message):
        if message == "broken":
            raise InvalidInputError("robot", message, "a robot")
        self.has_robot = True
        self.shown.append(message)

    def _show_cloud(self, message):
        if not self.has_pose:
            raise UnknownTransformError("pose", "nothing yet", "a transform")
        self.shown.append(message)


def test_what_needs_the_robot_waits_for_it_and_only_the_newest_is_shown():
    viewer = Viewer()
    viewer.take(JOINTS, "first", "second")
    viewer.update()
    assert viewer.shown == []
    viewer.take(ROBOT, "panda", "foreign")
    viewer.update()
    viewer.update()
    assert viewer.shown == ["panda", "second"]


def test_a_missing_pose_is_waited_for_in_silence_and_a_bad_message_is_said():
    viewer = Viewer()
    viewer.take(CLOUD, "cloud")
    viewer.take(ROBOT, "broken")
    viewer.update()
    assert viewer.shown == []
    assert len(viewer.said) == 1 and "robot_description not shown: robot" in viewer.said[0]
    viewer.has_pose = True
    viewer.update()
    viewer.update()
    assert viewer.shown == ["cloud"]
    assert len(viewer.said) == 1


def test_what_nobody_looks_at_is_drawn_once_a_second(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("morphit_ros.ros.core.latest.monotonic", lambda: now[0])
    viewer = Viewer()
    viewer.has_robot, viewer.watched = True, False
    for number in range(12):
        viewer.take(JOINTS, number)
        viewer.update()
        now[0] += 0.2
    assert viewer.shown == [0, 5, 10]
    # Whoever comes sees the newest at once.
    viewer.watched = True
    viewer.update()
    assert viewer.shown[-1] == 11


def test_only_clouds_are_received_with_the_reliability_of_cameras():
    viewer = Viewer()
    kinds = {name: profile.reliability.name for name, (_, profile) in viewer.callbacks.items()}
    assert kinds == {ROBOT.name: "RELIABLE", JOINTS.name: "RELIABLE", CLOUD.name: "BEST_EFFORT"}
    depths = {name: profile.depth for name, (_, profile) in viewer.callbacks.items()}
    assert depths == {ROBOT.name: 1, JOINTS.name: 50, CLOUD.name: 1}
