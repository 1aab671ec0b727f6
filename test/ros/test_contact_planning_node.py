"""contact_planning as a process: clear refusals."""

import math
import time
from types import SimpleNamespace
from unittest import mock

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import PoseStamped, Vector3

from morphit_interfaces.action import Push
from morphit_ros.ros.contact.server import ContactServer
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header

pytestmark = pytest.mark.ros


def ask(graph, *, distance=0.08, wait=240.0, feedback=None, **direction):
    goal = Push.Goal(direction=Vector3(**direction), distance=distance)
    return graph.send_goal(interfaces.CONTACT_PUSH, goal, timeout=wait, feedback=feedback)[2]


@pytest.fixture(scope="module")
def node(shared_graph):
    process = shared_graph.start("contact_planning", robot="panda")
    process.wait_for_line("no push asked for yet", timeout=240.0)
    yield process
    assert process.stop() == 0


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"x": 1.0}, "object_pose: got none has come"),
        ({}, "direction"),
        ({"x": 1.0, "z": 1.0}, "direction"),
        ({"x": math.nan}, "direction"),
        ({"x": 1.0, "distance": -0.1}, "distance"),
    ],
)
def test_goals_that_mean_nothing_are_refused(shared_graph, node, goal, words):
    result = ask(shared_graph, **goal)
    assert not result.success
    assert (result.failed_stage, result.stages) == ("plan", ["plan"])
    assert words in result.message


def test_nothing_is_planned_that_is_out_of_reach_or_askew(shared_graph, node):
    poses = shared_graph.publisher(interfaces.OBJECT_POSE)
    message = PoseStamped(header=header("world"))
    message.pose.position.x = 1.5

    def asked(**direction):
        until = time.monotonic() + 0.3
        message.header.stamp = shared_graph.node.get_clock().now().to_msg()
        poses.publish(message)
        shared_graph.wait_until(lambda: time.monotonic() > until)
        return ask(shared_graph, **direction)

    assert "reaches" in asked(x=1.0).message
    assert "from the box's faces" in asked(x=1.0, y=0.5).message
    message.header.frame_id = "elsewhere"
    assert "object_pose" in asked(x=1.0).message


def test_an_error_that_nobody_foresaw_stops_the_arm():
    server = mock.create_autospec(ContactServer, instance=True)
    server._node, server._commands, server._diagnostics = mock.Mock(), mock.Mock(), mock.Mock()
    server._answer = mock.Mock(side_effect=RuntimeError("in the middle of a push"), __name__="_answer")
    goal = SimpleNamespace(is_cancel_requested=False, abort=mock.Mock(), execute=lambda end: ended.append(end(goal)))
    server._goal, ended = goal, []
    ContactServer._work(server)
    server._commands.stop.assert_called_once()
    assert "in the middle of a push" in ended[0].message
    assert not ended[0].success
    goal.abort.assert_called_once()
    assert server._goal is None
