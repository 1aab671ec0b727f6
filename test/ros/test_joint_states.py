"""Joint states are fetched at a rate of one's own, however fast a driver publishes them."""

import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

import rclpy
from sensor_msgs.msg import JointState

from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.joint_states import follow_joint_states


@pytest.fixture
def follower(graph):
    """What a node took and refused, and what publishes for it."""
    node = rclpy.create_node("following")
    graph._executor.add_node(node)
    taken, refused = [], []
    follow_joint_states(node, taken.append, refuse=refused.append, period=0.05)
    out = graph.publisher(interfaces.JOINT_STATES)
    yield taken, refused, out
    node.destroy_node()


def state(position, *names):
    return JointState(name=list(names), position=[position] * len(names))


def test_of_many_the_newest_is_taken_and_of_several_publishers_that_of_each(graph, follower):
    taken, refused, out = follower
    began = time.monotonic()
    for number in range(200):
        out.publish(state(float(number), "arm"))
        if number % 50 == 0:
            out.publish(state(1000.0 + number, "finger"))
        graph._executor.spin_once(timeout_sec=0.0)
        time.sleep(0.002)
    graph.wait_until(lambda: taken and any(s.positions[0] == 199.0 for s in taken), what="the newest")
    arm = [float(s.positions[0]) for s in taken if s.names == ("arm",)]
    assert arm == sorted(arm)
    assert len(arm) <= (time.monotonic() - began) / 0.05 + 2
    assert {s.positions[0] for s in taken if s.names == ("finger",)} == {1000.0, 1050.0, 1100.0, 1150.0}
    assert not refused


def test_a_broken_one_is_refused_with_its_reason_and_the_next_is_taken(graph, follower):
    taken, refused, out = follower
    out.publish(JointState(name=["arm"], position=[0.1, 0.2]))
    graph.wait_until(lambda: refused, what="a refusal")
    assert "2" in refused[0]
    assert not taken
    out.publish(state(0.3, "arm"))
    graph.wait_until(lambda: taken, what="the next one")
    assert taken[0].positions[0] == 0.3


def test_a_driver_that_publishes_best_effort_is_heard(graph):
    """What is lost of a stream is not waited for: the newest counts."""
    node = rclpy.create_node("following")
    graph._executor.add_node(node)
    taken = []
    follow_joint_states(node, taken.append, period=0.05)
    quality = interfaces.JOINT_STATES.quality.profile(best_effort=True)
    out = graph.node.create_publisher(JointState, interfaces.JOINT_STATES.name, quality)
    timer = graph.node.create_timer(0.05, lambda: out.publish(state(0.2, "arm")))
    graph.wait_until(lambda: taken, what="a joint state")
    graph.node.destroy_timer(timer)
    node.destroy_node()
