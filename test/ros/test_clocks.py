"""Simulated time reaches a node whose executor does nothing, and its timers."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

import time

import rclpy
from action_msgs.msg import GoalStatus
from rclpy.clock import ClockType
from rclpy.parameter import Parameter

from morphit_interfaces.action import GoHome
from morphit_ros.ros.core import clocks, interfaces
from morphit_ros.ros.core.clocks import SimulatedClock, ros_time
from morphit_ros.ros.core.conversions import stamp_from_seconds
from morphit_ros.ros.core.endpoints import watch_events_seldom

pytestmark = pytest.mark.ros


@pytest.fixture
def simulated(graph):
    node = rclpy.create_node("simulated", parameter_overrides=[Parameter("use_sim_time", value=True)])
    clock = SimulatedClock(node)
    yield node
    clock.end()
    node.destroy_node()


def test_time_goes_on_while_the_node_is_not_spun_and_its_timers_are_due(graph, simulated):
    out = graph.publisher(interfaces.CLOCK)

    def until(condition, seconds):
        def told():
            out.publish(interfaces.CLOCK.type(clock=stamp_from_seconds(seconds)))
            return condition()

        graph.wait_until(told, what=f"simulated time {seconds} s")

    until(lambda: ros_time(simulated) == 12.5, 12.5)
    due = []
    simulated.create_timer(1.0, lambda: due.append(ros_time(simulated)))
    graph._executor.add_node(simulated)
    for _ in range(5):
        graph._executor.spin_once(timeout_sec=0.02)
    assert not due
    until(lambda: due, 14.0)
    # What the executor does not wait for costs it nothing.
    assert not simulated._time_source._clock_sub.callback_group.can_execute(simulated._time_source._clock_sub)
    graph._executor.remove_node(simulated)


def test_a_result_is_kept_while_simulated_time_flies(graph, simulated):
    """A client on a busy machine asks for it seconds after a simulation has run on by minutes."""
    server = interfaces.GO_HOME.serve(
        simulated,
        lambda goal: (goal.succeed(), GoHome.Result(success=True, message="there"))[1],
        lambda words: GoHome.Result(message=words),
    )
    assert simulated.get_clock().clock_type is ClockType.ROS_TIME
    graph._executor.add_node(simulated)
    handle = graph.start_goal(interfaces.GO_HOME, GoHome.Goal())
    graph.wait_until(lambda: not any(goal.is_active for goal in server._goal_handles.values()), what="its end")
    out = graph.publisher(interfaces.CLOCK)

    def later():
        out.publish(interfaces.CLOCK.type(clock=stamp_from_seconds(5000.0)))
        return ros_time(simulated) == 5000.0

    graph.wait_until(later, what="much later")
    for _ in range(10):
        graph._executor.spin_once(timeout_sec=0.02)
    status, result = graph.result(handle)
    assert (status, result.message) == (GoalStatus.STATUS_SUCCEEDED, "there")
    graph._executor.remove_node(simulated)
    server.destroy()


def test_a_quality_that_does_not_fit_is_still_told(graph):
    node = rclpy.create_node("picky")
    interfaces.JOB_STATE.subscribe(node, lambda _: None)
    watch_events_seldom(node)
    [subscription] = [s for s in node.subscriptions if s.topic_name == "/job_state"]
    told = []
    for handler in subscription.event_handlers:
        handler.callback = told.append
    graph._executor.add_node(node)
    # Volatile, where latched is asked for.
    publisher = graph.node.create_publisher(interfaces.JOB_STATE.type, interfaces.JOB_STATE.name, 1)
    graph.wait_until(lambda: told, what="word of a publisher that does not fit")
    graph._executor.remove_node(node)
    graph.node.destroy_publisher(publisher)
    node.destroy_node()


class Times:
    """A node's clock and wall time, as a test sets them [s]."""

    def __init__(self, monkeypatch, simulated=True):
        self.ros, self.wall = 0.0, 1000.0
        self.ros_time_is_active = simulated
        monkeypatch.setattr(clocks, "monotonic", lambda: self.wall)

    def get_clock(self):
        return self

    def now(self):
        return self

    @property
    def nanoseconds(self):
        return round(self.ros * 1e9)

    def passes(self, watch, ros, wall, looks=100):
        for _ in range(looks):
            self.ros += ros / looks
            self.wall += wall / looks
            watch.elapsed  # noqa: B018 - to be looked at is what it needs
        return watch.elapsed


def test_what_a_slow_simulation_takes_is_not_late_and_one_that_stands_still_is(monkeypatch):
    times = Times(monkeypatch)
    times.ros = 50.0
    watch = clocks.Stopwatch(times, standstill=5.0)
    assert times.passes(watch, ros=10.0, wall=100.0) == pytest.approx(10.0)
    assert times.passes(watch, ros=30.0, wall=3.0) == pytest.approx(40.0)
    # A pause as of a simulation that renders counts for nothing, its death does from then on.
    assert times.passes(watch, ros=0.0, wall=4.0) == pytest.approx(40.0)
    assert times.passes(watch, ros=0.0, wall=11.0, looks=1000) == pytest.approx(50.0, abs=0.1)
    # Back again, and begun anew.
    assert times.passes(watch, ros=1.0, wall=1.0) == pytest.approx(51.0, abs=0.1)
    times.ros = 0.5
    assert watch.elapsed == pytest.approx(51.0, abs=0.1)
    assert times.passes(watch, ros=2.0, wall=2.0) == pytest.approx(53.0, abs=0.1)
    watch.start()
    assert times.passes(watch, ros=2.0, wall=9.0) == pytest.approx(2.0)


def test_the_first_message_of_a_clock_is_no_time_that_has_passed(monkeypatch):
    times = Times(monkeypatch)
    watch = clocks.Stopwatch(times)
    times.ros = 5000.0
    assert watch.elapsed == 0.0
    assert times.passes(watch, ros=2.0, wall=2.0) == pytest.approx(2.0)


def test_a_node_in_wall_time_counts_that_whatever_the_system_clock_is_set_to(monkeypatch):
    times = Times(monkeypatch, simulated=False)
    times.ros = 1.8e9
    watch = clocks.Stopwatch(times)
    assert times.passes(watch, ros=3600.0, wall=2.0) == pytest.approx(2.0)


def test_a_node_in_wall_time_has_none(graph):
    SimulatedClock(graph.node).end()
    assert abs(ros_time(graph.node) - time.time()) < 60.0
