"""The two times of a node: that of its messages, and wall time that no simulation stops."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer


def ros_time(node: Node) -> float:
    """Now by the clock that stamps are made with: simulated time where `use_sim_time` is set [s]."""
    return float(node.get_clock().now().nanoseconds * 1e-9)


def steady_timer(node: Node, period: float, callback: Callable[[], None], group: CallbackGroup | None = None) -> Timer:
    """A timer in wall time: it goes on when a simulation stands still or has died. `period` in [s]."""
    return node.create_timer(period, callback, callback_group=group, clock=Clock(clock_type=ClockType.STEADY_TIME))
