"""The two times of a node: that of its messages, and wall time that no simulation stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.timer import Timer

from morphit_ros.ros.core.endpoints import Inbox, Unwatched
from morphit_ros.ros.core.guarded import guarded

# Time between two looks at the simulated clock [s].
_CLOCK_PERIOD = 0.005


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


class SimulatedClock:
    """Takes the simulated time of a node in a thread of its own, where `use_sim_time` is set.

    The executor of rclpy would wake for each message and look at all that the node has: at 100 Hz that is most of what
    a node costs that has nothing to do. Of what comes between two looks the newest counts.

    Args:
        node: whose clock it is.
    """

    def __init__(self, node: Node) -> None:
        self._over = threading.Event()
        self._source = node._time_source
        if self._source._clock_sub is not None:
            subscription = self._source._clock_sub
            # Its events too: waiting for one of them, a waiting executor wakes for each message.
            for waited in (subscription, *subscription.event_handlers):
                waited.callback_group = Unwatched()
            threading.Thread(target=self._run, args=(Inbox(subscription),), name="clock", daemon=True).start()

    def _run(self, inbox: Inbox) -> None:
        while not self._over.wait(_CLOCK_PERIOD):
            try:
                messages = inbox.take()
                if messages:
                    self._source.clock_callback(messages[-1])
            except InvalidHandle:
                # The node has been destroyed, or takes another clock.
                return

    def end(self) -> None:
        """Take no more of it; to be called before the node is destroyed."""
        self._over.set()
