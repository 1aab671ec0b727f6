"""The two times of a node, that of its messages and wall time that no simulation stops, and what takes how long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from time import monotonic

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.timer import Timer

from morphit_ros.ros.core.endpoints import Inbox, Unwatched
from morphit_ros.ros.core.guarded import guarded

# Time between two looks at the simulated clock [s].
_CLOCK_PERIOD = 0.005
# Attribute of a node.
_CLOCK = "_simulated_clock"


def ros_time(node: Node) -> float:
    """Now by the clock that stamps are made with: simulated time where `use_sim_time` is set [s]."""
    return float(node.get_clock().now().nanoseconds * 1e-9)


def take_clock(node: Node) -> None:
    """Let a node know the newest simulated time, whatever its thread for that was kept from."""
    clock = vars(node).get(_CLOCK)
    if clock is not None:
        with contextlib.suppress(InvalidHandle):
            clock.look()


def steady_timer(node: Node, period: float, callback: Callable[[], None], group: CallbackGroup | None = None) -> Timer:
    """A timer in wall time: it goes on when a simulation stands still or has died. `period` in [s].

    Errors are as of `guarded`, but for nodes that move a robot: such a node must not go on with half of its work done.
    It ends instead, which stops the robot.
    """
    due = callback if hasattr(node, "end_motion") else guarded(node, "timer", callback)
    return node.create_timer(period, due, callback_group=group, clock=Clock(clock_type=ClockType.STEADY_TIME))


class Stopwatch:
    """How long something takes by the clock of a node: what a slow simulation takes longer for is not late.

    A simulated clock that stands still, or goes back, is not waited for: wall time counts then, as of a simulation that
    has died. To be looked at more often than once in `standstill`.

    Args:
        node: whose clock it is.
        standstill: of a simulated clock, after which wall time counts [s of wall time].
    """

    def __init__(self, node: Node, standstill: float = 5.0) -> None:
        self._node, self._standstill = node, standstill
        self.start()

    def start(self) -> None:
        """Begin at zero."""
        self._elapsed = 0.0
        self._ros, self._wall = ros_time(self._node), monotonic()
        self._moved = self._wall

    @property
    def elapsed(self) -> float:
        """Since the start [s]."""
        ros, wall = ros_time(self._node), monotonic()
        if not self._node.get_clock().ros_time_is_active:
            self._elapsed += wall - self._wall
        elif ros > self._ros:
            # The first message of a clock is no step: time began somewhere else before it.
            self._elapsed += ros - self._ros if self._ros > 0.0 else 0.0
            self._moved = wall
        elif wall - self._moved > self._standstill:
            self._elapsed += wall - max(self._wall, self._moved)
        self._ros, self._wall = ros, wall
        return self._elapsed


class SimulatedClock:
    """Takes the simulated time of a node in a thread of its own, where `use_sim_time` is set.

    The executor of rclpy would wake for each message and look at all that the node has: at 100 Hz that is most of what
    a node costs that has nothing to do. Of what comes between two looks the newest counts.

    Args:
        node: whose clock it is.
    """

    def __init__(self, node: Node) -> None:
        self._over, self._lock = threading.Event(), threading.Lock()
        self._source = node._time_source
        self._inbox: Inbox | None = None
        if self._source._clock_sub is not None:
            subscription = self._source._clock_sub
            # Its events too: waiting for one of them, a waiting executor wakes for each message.
            for waited in (subscription, *subscription.event_handlers):
                waited.callback_group = Unwatched()
            self._inbox = Inbox(subscription)
            vars(node)[_CLOCK] = self
            threading.Thread(target=self._run, name="clock", daemon=True).start()

    def look(self) -> None:
        """Take the newest now.

        Raises:
            InvalidHandle: the node has been destroyed, or takes another clock.
        """
        if self._inbox is not None:
            with self._lock:
                messages = self._inbox.take()
                if messages:
                    self._source.clock_callback(messages[-1])

    def _run(self) -> None:
        while not self._over.wait(_CLOCK_PERIOD):
            try:
                self.look()
            except InvalidHandle:
                return

    def end(self) -> None:
        """Take no more of it; to be called before the node is destroyed."""
        self._over.set()
