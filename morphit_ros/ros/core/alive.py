"""That a node lives: each says so on `node_alive`, so that whoever waits for its answer knows of its end."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node

from morphit_ros.bringup.job import JOB_VARIABLE
from morphit_ros.ros.core.heartbeat import ended, is_of_this_machine, own_process
from morphit_ros.ros.core.interfaces import NODE_ALIVE

# Time between two signs of life [s].
PERIOD = 0.2
# A node that took another one's place is heard before all of its services are found; asked too early it does not hear
# the question, while its dead predecessor still counts as there [s].
_SETTLING = 0.5
# Clocks of two machines may differ by this, as `sync_tolerance` and transforms allow for [s]; judged by the quickest of
# the latest signs, of which there have to be so many: the others were late by what network and machines did meanwhile.
CLOCK_BOUND = 0.05
_LATEST, _ENOUGH = 50, 10
# Of as many nodes as a graph may have, between two looks.
_MOST_SIGNS = 500


class LifeSign:
    """Says at 5 Hz that a node lives, from a thread of its own: one whose callbacks compute for long lives, too.

    Args:
        node: whose name is said; services are offered already.
    """

    def __init__(self, node: Node) -> None:
        self._publisher = NODE_ALIVE.publish(node)
        self._message = DiagnosticStatus(
            name=node.get_fully_qualified_name(),
            hardware_id=own_process(),
            values=[KeyValue(key="job", value=os.environ.get(JOB_VARIABLE, "")), KeyValue(key="time")],
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="life sign", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        over = False
        while not over:
            self._message.values[1].value = repr(time())
            try:
                self._publisher.publish(self._message)
            except InvalidHandle:
                # The node was destroyed without having taken its leave.
                return
            over = self._over.wait(PERIOD)

    def end(self) -> None:
        """Say that the node ends; to be called before it is destroyed."""
        self._over.set()
        self._thread.join()
        self._message.level = DiagnosticStatus.STALE
        self._publisher.publish(self._message)


@dataclass
class _Life:
    """Of one node: its process, when that was heard first and last, and whether it has taken its leave.

    Attributes:
        lags: by which its latest signs were behind this machine's clock when they came [s].
    """

    process: str
    first: float
    last: float
    left: bool = False
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))

    def clock_problem(self) -> str:
        """That its machine's clock differs from this one's, empty if it does not or is not known to."""
        lag = min(self.lags) if len(self.lags) >= _ENOUGH else 0.0
        if abs(lag) <= CLOCK_BOUND:
            return ""
        where = f"{abs(lag):.3f} s {'behind' if lag > 0.0 else 'ahead of'} this one's"
        return f"is on a machine whose clock is {where}, at most {CLOCK_BOUND:g} s is allowed: run chrony on both"


class NodeWatch:
    """Knows of nodes by name whether they live. One that was never heard is not known to have ended.

    Where this node belongs to a job, nodes of another job are strangers: nothing is to be asked of them, since whoever
    answers may be another robot. One that was started by hand belongs to no job, and is welcome.

    Args:
        node: subscribes.
        names: of the nodes, without namespace: those of the same namespace are heard.
        timeout: silence after which a node counts as hung or out of reach [s]. Processes of this machine are asked for
            besides: that one has died or is stopped shows at the next look.
        group: of the subscription's callback.
        polled: there is no callback, but `look` is called at least twice a second; nothing is said of clocks then.
    """

    def __init__(
        self,
        node: Node,
        names: Sequence[str],
        timeout: float,
        group: CallbackGroup | None = None,
        polled: bool = False,
    ) -> None:
        self._names, self._timeout = tuple(names), timeout
        self._lives: dict[str, _Life] = {}
        self._replaced: set[str] = set()
        self._job = os.environ.get(JOB_VARIABLE, "")
        # Name → when a node of another job was heard last under it.
        self._strangers: dict[str, float] = {}
        self._inbox = NODE_ALIVE.inbox(node, depth=_MOST_SIGNS) if polled else None
        if not polled:
            NODE_ALIVE.subscribe(node, self._on_sign, group)

    def look(self) -> None:
        """Take in what has been heard, where that is polled."""
        if self._inbox is not None:
            for message in self._inbox.take():
                self._on_sign(message)

    def _on_sign(self, message: DiagnosticStatus) -> None:
        name, now = message.name.rpartition("/")[2], monotonic()
        if name not in self._names:
            return
        job = next((pair.value for pair in message.values if pair.key == "job"), "")
        if self._job and job and job != self._job:
            self._strangers[name] = now if message.level != DiagnosticStatus.STALE else 0.0
            return
        life = self._lives.get(name)
        if life is None or life.process != message.hardware_id:
            self._replaced |= {name} if life is not None else set()
            life = self._lives[name] = _Life(message.hardware_id, now, now)
        life.last, life.left = now, message.level == DiagnosticStatus.STALE
        if self._inbox is None and not is_of_this_machine(life.process):
            with suppress(ValueError):
                life.lags.extend(time() - float(pair.value) for pair in message.values if pair.key == "time")

    def problem(self, name: str) -> str:
        """Why no answer of a node is to be expected, empty if nothing is known against it."""
        if monotonic() - self._strangers.get(name, 0.0) < self._timeout:
            return (
                f"{name} of another job is on this ROS graph: give this job a ROS_DOMAIN_ID or a namespace of its own"
            )
        life = self._lives.get(name)
        if life is None:
            return ""
        silence = monotonic() - life.last
        how = "has ended" if life.left else ended(life.process)
        if not how and silence > self._timeout:
            how = f"has been silent for {silence:.1f} s: it hangs, or cannot be reached"
        how = how or life.clock_problem()
        return how and f"{name} {how}"

    def heard(self, name: str) -> bool:
        """Whether a node has ever been heard, of this job or of none."""
        return name in self._lives

    def settled(self, name: str) -> bool:
        """Whether a node may be asked: nothing is known against it, and it has not just taken a dead one's place."""
        return not self.problem(name) and (
            name not in self._replaced or monotonic() - self._lives[name].first > _SETTLING
        )
