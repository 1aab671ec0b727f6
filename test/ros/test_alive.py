"""Whoever waits for a node knows within a second that it has died, is stopped or is not heard any more, and says so."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from test_grasp_execution_node import Cell, FakeEyes, spherized_panda

from morphit_interfaces.action import Pick
from morphit_interfaces.srv import Segment
from morphit_ros.bringup.job import JOB_VARIABLE
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import PERIOD, NodeWatch
from morphit_ros.ros.core.heartbeat import own_process

__all__ = ["spherized_panda"]
pytestmark = [pytest.mark.ros, pytest.mark.alone]
# Of a node whose process has ended; two seconds more would already be by the timeout of its answer.
WITHIN = 1.0


def ask_for_pick(graph):
    """The result of a pick to come."""
    handle = graph.start_goal(interfaces.PICK, Pick.Goal())
    assert handle.accepted
    return handle


def await_signs(graph, name):
    """Signs of life for a second from now, so that others have heard some: of a node never heard nothing is known."""
    alive = graph.latest(interfaces.NODE_ALIVE)
    graph.wait_until(lambda: sum(sign.name == name for sign in alive) > 1.0 / PERIOD, what="signs of life")


def failure(graph, handle):
    """Stage and message of a pick that fails, and how long that took from now [s]."""
    began = time.monotonic()
    _, result = graph.result(handle)
    assert not result.success
    return result.failed_stage, result.message, time.monotonic() - began


@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, "has died"), (signal.SIGSTOP, "is stopped")])
def test_a_pick_does_not_wait_for_dead_perception_and_the_next_one_finds_its_successor(
    graph, spherized_panda, number, words
):
    perception = graph.start("scene_perception")
    # Without clouds it is asked again and again.
    cell = Cell(graph, spherized_panda, autostart=True, see_timeout=4.0)
    cell.wait_for_report("may move")
    graph.call(interfaces.SEGMENT, Segment.Request())
    await_signs(graph, "/scene_perception")
    handle = ask_for_pick(graph)
    graph.wait_until(lambda: cell.job_states and cell.job_states[-1].message == "segment", what="a pick that looks")
    os.kill(perception._process.pid, number)
    stage, message, took = failure(graph, handle)
    assert (stage, message) == ("segment", f"scene_perception {words}")
    assert took < WITHIN
    # As long as nobody has taken its place that is so at once.
    assert failure(graph, ask_for_pick(graph))[1] == f"scene_perception {words}"
    with contextlib.suppress(ProcessLookupError):
        os.kill(perception._process.pid, signal.SIGKILL)
    graph.start("scene_perception")

    def heard():
        stage, message, _ = failure(graph, ask_for_pick(graph))
        assert stage == "segment"
        return message != f"scene_perception {words}" and message

    words = "has died"
    assert "left camera: nothing received" in graph.wait_until(heard, what="the successor")
    assert cell.robot.trajectories == 0


def test_a_pick_does_not_wait_for_dead_planning(graph, spherized_panda):
    planning = graph.start("grasp_planning")
    FakeEyes(graph, [], plans=False)
    cell = Cell(graph, spherized_panda, autostart=True)
    cell.wait_for_report("may move")
    await_signs(graph, "/grasp_planning")
    os.kill(planning._process.pid, signal.SIGSTOP)
    stage, message, took = failure(graph, ask_for_pick(graph))
    assert (stage, message) == ("plan_grasp", "grasp_planning is stopped")
    assert took < WITHIN
    os.kill(planning._process.pid, signal.SIGKILL)
    stage, message, took = failure(graph, ask_for_pick(graph))
    assert (stage, message) == ("plan_grasp", "grasp_planning has died")
    assert took < WITHIN


@pytest.fixture
def watch(graph):
    """A watch of `perception`, and what sends its signs of life from a machine whose processes are not known here."""
    node = rclpy.create_node("watching")
    graph._executor.add_node(node)
    watch = NodeWatch(node, ["perception"], 0.6)
    out = graph.publisher(interfaces.NODE_ALIVE)

    def send(process="elsewhere 7", name="/perception", level=DiagnosticStatus.OK, behind=None):
        sign = DiagnosticStatus(name=name, hardware_id=process, level=level)
        if behind is not None:
            sign.values = [KeyValue(key="time", value=repr(time.time() - behind))]
        out.publish(sign)

    yield watch, send
    node.destroy_node()


def test_a_node_of_another_machine_is_known_by_its_silence(graph, watch):
    watch, send = watch
    send(name="/stranger")
    assert not watch.problem("perception"), "it was never heard, so nothing is known against it"
    send()
    graph.wait_until(lambda: watch._lives, what="a sign of life")
    assert not watch.problem("perception")
    assert watch.settled("perception")
    assert set(watch._lives) == {"perception"}
    began = time.monotonic()
    words = graph.wait_until(lambda: watch.problem("perception"), what="its silence")
    assert "perception has been silent for" in words
    assert 0.3 < time.monotonic() - began < 1.0
    send()
    graph.wait_until(lambda: not watch.problem("perception"), what="its return")


@pytest.mark.parametrize(
    ("behind", "words"),
    [(0.2, "clock is 0.2"), (-0.2, "ahead of this one's"), (0.0, ""), (0.03, "")],
)
def test_nodes_of_a_machine_with_another_clock_are_not_asked(graph, watch, behind, words):
    watch, send = watch

    def heard():
        send(behind=behind)
        return watch._lives and len(watch._lives["perception"].lags) >= 10

    graph.wait_until(heard, what="ten signs of life")
    problem = watch.problem("perception")
    assert words in problem if words else not problem
    # One late sign among many is the network's.
    send(behind=3.0)
    graph.wait_until(lambda: watch._lives["perception"].lags[-1] > 2.0, what="a late sign")
    assert bool(watch.problem("perception")) == bool(words)


def test_a_clock_is_not_judged_by_a_few_signs_nor_by_those_of_this_machine(graph, watch):
    watch, send = watch
    send(behind=9.0)
    graph.wait_until(lambda: watch._lives, what="a sign of life")
    assert not watch.problem("perception")
    send(own_process(), behind=9.0)
    graph.wait_until(lambda: watch._lives["perception"].process == own_process(), what="a sign of this machine")
    assert not watch._lives["perception"].lags


@pytest.mark.parametrize(
    ("own", "other", "strange"), [("a", "b", True), ("a", "a", False), ("a", "", False), ("", "b", False)]
)
def test_nodes_of_another_job_are_strangers(graph, monkeypatch, own, other, strange):
    """Two jobs on one graph: the second one's client commanded the first one's robot."""
    monkeypatch.setenv(JOB_VARIABLE, own)
    node = rclpy.create_node("watching")
    graph._executor.add_node(node)
    watch = NodeWatch(node, ["grasp_execution"], 0.6)
    out = graph.publisher(interfaces.NODE_ALIVE)
    sign = DiagnosticStatus(name="/grasp_execution", hardware_id="elsewhere 7")
    sign.values = [KeyValue(key="job", value=other)]
    out.publish(sign)
    if strange:
        words = graph.wait_until(lambda: watch.problem("grasp_execution"), what="a stranger")
        assert "grasp_execution of another job is on this ROS graph" in words
        # Gone, it is none any more.
        graph.wait_until(lambda: not watch.problem("grasp_execution"), what="its silence")
    else:
        graph.wait_until(lambda: watch._lives, what="a sign of life")
        assert not watch.problem("grasp_execution")
    node.destroy_node()


def test_a_client_asks_nothing_of_another_jobs_robot(graph, spherized_panda, monkeypatch):
    cell = Cell(graph, spherized_panda, autostart=True)
    cell.wait_for_report("may move")
    sign = DiagnosticStatus(name="/grasp_execution", hardware_id="elsewhere 7", values=[KeyValue(key="job", value="a")])
    out = graph.publisher(interfaces.NODE_ALIVE)
    graph.node.create_timer(0.1, lambda: out.publish(sign))
    monkeypatch.setitem(graph._environment, JOB_VARIABLE, "b")
    client = graph.start("pick_client", fresh=True)
    graph.wait_until(lambda: client._process.poll() is not None, what="the client's end")
    assert client.wait() == 1
    assert "FAILED: grasp_execution of another job is on this ROS graph" in client.output
    assert cell.robot.trajectories == 0


def test_a_node_that_takes_its_leave_is_not_waited_for_and_its_successor_is_asked_when_it_is_found(graph, watch):
    watch, send = watch
    send()
    graph.wait_until(lambda: watch._lives, what="a sign of life")
    send(level=DiagnosticStatus.STALE)
    graph.wait_until(lambda: watch.problem("perception") == "perception has ended", what="its leave")
    send("elsewhere 8")
    graph.wait_until(lambda: not watch.problem("perception"), what="its successor")
    assert not watch.settled("perception")

    def settled():
        send("elsewhere 8")
        return watch.settled("perception")

    graph.wait_until(settled, what="its services")


def test_a_node_that_ends_takes_its_leave(graph):
    process = graph.start("superovoid_distance")
    alive = graph.latest(interfaces.NODE_ALIVE)
    graph.wait_until(lambda: len(alive) > 3, what="signs of life")
    began, count = time.monotonic(), len(alive)
    graph.wait_until(lambda: len(alive) >= count + 5, what="five more")
    assert 3.0 * PERIOD < time.monotonic() - began < 12.0 * PERIOD
    assert process.stop() == 0
    graph.wait_until(lambda: alive[-1].level == DiagnosticStatus.STALE, what="its leave")
    assert {sign.name for sign in alive} == {"/superovoid_distance"}
