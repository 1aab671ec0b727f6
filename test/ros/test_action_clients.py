"""Clients of actions that are asked in one thread while answers come in another."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from types import SimpleNamespace

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.executors import MultiThreadedExecutor

from morphit_interfaces.action import GoHome
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.execution import asking as asking_module
from morphit_ros.ros.execution.asking import AskingConfig, Request

# An answer comes within a millisecond; a thread may be held up for longer before it knows what it has asked [s].
_HELD_UP = 0.5


class _Slow:
    """What sends questions, and is held up after it has sent one."""

    def __init__(self, handle):
        self._handle = handle

    def __getattr__(self, name):
        do = getattr(self._handle, name)
        if not (name.startswith("send_") and name.endswith("_request")):
            return do

        def held_up(*what):
            number = do(*what)
            time.sleep(_HELD_UP)
            return number

        return held_up


@pytest.mark.ros
def test_an_answer_that_comes_before_the_question_is_noted_is_not_lost(ros_environment):
    node, asking = rclpy.create_node("serves"), rclpy.create_node("asks")
    waiting = []
    server = interfaces.GO_HOME.take(node, waiting.append)
    client = interfaces.GO_HOME.call(asking)
    executor = MultiThreadedExecutor(4)
    for one in (node, asking):
        executor.add_node(one)
    threading.Thread(target=executor.spin, daemon=True).start()

    def answered(future):
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        assert done.wait(20.0), "no answer"
        return future.result()

    try:
        assert client.wait_for_server(60.0)
        client._client_handle = _Slow(client._client_handle)
        handle = answered(client.send_goal_async(GoHome.Goal()))
        assert handle.accepted
        assert answered(handle.cancel_goal_async()).goals_canceling
        settle(waiting[0], GoHome.Result())
        result = answered(handle.get_result_async())
        assert result.status == GoalStatus.STATUS_CANCELED
    finally:
        client._client_handle = getattr(client._client_handle, "_handle", client._client_handle)
        executor.shutdown()
        client.destroy()
        server.destroy()
        for one in (node, asking):
            one.destroy_node()


@pytest.mark.ros
def test_a_goal_whose_answer_is_lost_is_taken_back_and_asked_for_anew(ros_environment, monkeypatch):
    """As where a server has not found its client yet: it accepts the goal, and its answer goes nowhere."""
    monkeypatch.setattr(asking_module, "_ANSWER_TIME", 0.5)
    monkeypatch.setattr(asking_module, "_PERIOD", 0.1)
    node, asks = rclpy.create_node("serves"), rclpy.create_node("asks")
    taken, ends, beats = [], [], []
    server = interfaces.GO_HOME.take(node, taken.append)
    lost = iter([True])
    answer = server._handle.send_goal_response
    server._handle = _Losing(server._handle, lambda *what: next(lost, False) or answer(*what))
    heart = SimpleNamespace(start=lambda: beats.append("starts"), stop=lambda: beats.append("stops"))
    request = Request(
        asks, interfaces.GO_HOME, AskingConfig(), lambda _: None, lambda *end: ends.append(end),
        lives=SimpleNamespace(problem=lambda _: ""), heart=heart,
    )  # fmt: skip
    executor = MultiThreadedExecutor(4)
    for one in (node, asks):
        executor.add_node(one)
    threading.Thread(target=executor.spin, daemon=True).start()

    def becomes(condition):
        deadline = time.monotonic() + 20.0
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.02)
        return condition()

    try:
        request.ask(GoHome.Goal())
        assert becomes(lambda: len(taken) == 2), "the goal was not asked for again"
        assert becomes(lambda: taken[0].is_cancel_requested), "the first goal was not taken back"
        settle(taken[0], GoHome.Result())
        assert becomes(lambda: "starts" in beats)
        assert not ends and not taken[1].is_cancel_requested
        settle(taken[1], GoHome.Result(success=True))
        assert becomes(lambda: ends)
        [(result, problem)] = ends
        assert (result.result.success, problem) == (True, "")
    finally:
        server._handle = server._handle._handle
        executor.shutdown()
        server.destroy()
        for one in (node, asks):
            one.destroy_node()


class _Losing:
    """The handle of a server whose answers to goals go another way."""

    def __init__(self, handle, answer):
        self._handle, self.send_goal_response = handle, answer

    def __getattr__(self, name):
        return getattr(self._handle, name)
