"""A callback's error is reported and ends there; work that piles up is refused; clouds in a hurry still are pairs."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from action_msgs.msg import GoalStatus
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import GraspArray
from morphit_interfaces.srv import DetachObject, Segment
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.conversions import message_from_cloud
from morphit_ros.ros.core.guarded import Turns, guarded
from morphit_ros.ros.core.runner import NodeFinished
from morphit_ros.ros.scene.camera_clouds import CameraClouds, CameraCloudsConfig

pytestmark = pytest.mark.ros


class Server(Node):
    """Whose callbacks all fail, in a way of their own."""

    def __init__(self, error):
        super().__init__("failing")
        self._error, self.calls = error, []
        interfaces.LEFT_POINTS.subscribe(self, self.fail)
        interfaces.DETACH_OBJECT.serve(self, self.fail)
        interfaces.SEGMENT.serve(self, self.fail)
        interfaces.PLAN_GRASP.serve(self, self.fail, lambda words: PlanGrasp.Result(grasps=GraspArray(message=words)))
        steady_timer(self, 0.05, self.fail)

    def fail(self, *message):
        self.calls.append(message)
        raise self._error


@pytest.fixture
def failing(graph, request):
    node = Server(request.param)
    graph._executor.add_node(node)
    yield node
    graph._executor.remove_node(node)
    node.destroy_node()


ERRORS = [InvalidInputError("cloud", "nonsense", "a cloud"), MemoryError("96 GiB"), KeyError("x"), AssertionError("no")]


@pytest.mark.parametrize("failing", ERRORS, indirect=True, ids=lambda error: type(error).__name__)
def test_a_callback_that_fails_does_not_end_a_node_and_a_request_is_answered(graph, failing):
    """`graph` spins the node: an error that escapes would be raised here."""
    publisher = graph.publisher(interfaces.LEFT_POINTS)

    def received():
        publisher.publish(message_from_cloud(PointCloud(np.zeros((1, 3)))))
        return any(len(message) == 1 for message in failing.calls)

    graph.wait_until(received, what="a cloud")
    for service, request in ((interfaces.DETACH_OBJECT, DetachObject), (interfaces.SEGMENT, Segment)):
        response = graph.call(service, request.Request())
        assert not response.success and str(failing._error).strip("'") in response.message
    _, status, result = graph.send_goal(interfaces.PLAN_GRASP, PlanGrasp.Goal())
    assert status == GoalStatus.STATUS_ABORTED
    assert not result.success and str(failing._error).strip("'") in result.grasps.message
    graph.wait_until(lambda: failing.calls.count(()) > 2, what="the timer")


def test_what_ends_a_node_on_purpose_is_let_through(graph):
    for leave in (NodeFinished(0), KeyboardInterrupt()):

        def end(_, leave=leave):
            raise leave

        with pytest.raises(type(leave)):
            guarded(graph.node, "end", end)(None)


def test_of_many_requests_some_wait_and_the_rest_hear_that_the_node_is_busy():
    turns = Turns("segment", most_waiting=2)
    at_work, finish, order = threading.Event(), threading.Event(), []

    def work(number):
        with turns.turn():
            order.append(number)
            at_work.set()
            finish.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    threads[0].start()
    at_work.wait()
    for thread in threads[1:]:
        thread.start()
    refused = 0
    # The threads that wait have come when the next is refused.
    while not refused:
        try:
            with turns.if_free() as free:
                assert not free
            if turns._places._value == 0:
                with turns.turn():
                    raise AssertionError("a fourth was let in")
        except InvalidInputError as error:
            assert "busy" in str(error)
            refused += 1
    finish.set()
    for thread in threads:
        thread.join()
    assert sorted(order) == [0, 1, 2]
    with turns.turn(), turns.if_free() as free:
        assert not free
    with turns.if_free() as free:
        assert free


def test_pairs_are_formed_of_clouds_that_come_faster_than_they_are_taken(graph):
    """Four clouds of each camera come for each that is taken, of the one camera and then of the other."""
    node, executor = Node("hurried"), SingleThreadedExecutor()
    executor.add_node(node)
    config = PerceptionConfig(sync_tolerance=0.01)
    clouds = CameraClouds(node, MutuallyExclusiveCallbackGroup(), CameraCloudsConfig(max_age=60.0), config)
    out = [graph.publisher(topic) for topic in (interfaces.LEFT_POINTS, interfaces.RIGHT_POINTS)]
    graph.wait_until(lambda: all(publisher.get_subscription_count() for publisher in out), what="the subscriptions")
    start = node.get_clock().now().nanoseconds * 1e-9
    for step in range(100):
        stamp = start + 0.1 * step
        for publisher in out:
            publisher.publish(message_from_cloud(PointCloud(np.ones((10, 3)), frame="camera", stamp=stamp)))
        if step % 4 == 3:
            executor.spin_once(timeout_sec=1.0)
    assert clouds.counts()["pairs"] >= 10
    # The pair is of the newest clouds.
    assert abs(clouds.fresh().stamp - stamp) < 1.0
    executor.shutdown()
    node.destroy_node()


def test_a_request_that_comes_while_a_pair_is_matched_gets_that_pair(graph, monkeypatch):
    """One between match and pair was told that clouds are missing, without a reason: requests have their threads."""
    clouds = CameraClouds(
        graph.node, MutuallyExclusiveCallbackGroup(), CameraCloudsConfig(max_age=60.0), PerceptionConfig()
    )
    push, requests = clouds._synchronizer.push, ThreadPoolExecutor(1)
    asked = []

    def push_slowly(*arguments):
        pair = push(*arguments)
        if pair is not None:
            asked.append(requests.submit(clouds.fresh))
            time.sleep(0.1)
        return pair

    monkeypatch.setattr(clouds._synchronizer, "push", push_slowly)
    stamp = graph.node.get_clock().now().nanoseconds * 1e-9
    for camera in ("left", "right"):
        clouds._push(camera, message_from_cloud(PointCloud(np.ones((10, 3)), frame="camera", stamp=stamp)))
    assert asked[0].result(timeout=10.0).left is clouds.fresh().left
    requests.shutdown()
