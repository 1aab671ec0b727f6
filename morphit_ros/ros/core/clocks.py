"""The two times of a node: that of its messages, and wall time that no simulation stops."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer

from morphit_ros.ros.core.guarded import guarded


def ros_time(node: Node) -> float:
    """Now by the clock that stamps are made with: simulated time where `use_sim_time` is set [s]."""
    return float(node.get_clock().now().nanoseconds * 1e-9)


def steady_timer(node: Node, period: float, callback: Callable[[], None], group: CallbackGroup | None = None) -> Timer:
    """A timer in wall time: it goes on when a simulation stands still or has died. `period` in [s].

    Errors are as of `guarded`, but for nodes that move a robot: such a node must not go on with half of its work done.
    It ends instead, which stops the robot.
    """
    due = callback if hasattr(node, "end_motion") else guarded(node, "timer", callback)
    return node.create_timer(period, due, callback_group=group, clock=Clock(clock_type=ClockType.STEADY_TIME))
