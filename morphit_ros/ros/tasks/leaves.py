"""Leaves for the trees of one node: actions of `grasp_execution`, looks, and waiting for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence as Rows
from functools import partial
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.composites import Sequence
from py_trees.decorators import FailureIsSuccess
from rclpy.node import Node
from std_msgs.msg import Float64

from morphit_interfaces.action import Recover
from morphit_interfaces.srv import Segment
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.clocks import Stopwatch
from morphit_ros.ros.core.endpoints import Action, Service
from morphit_ros.ros.core.heartbeat import Heartbeat
from morphit_ros.ros.execution.asking import SERVER, AskingConfig, Request
from morphit_ros.ros.tasks.behaviours import Ask, Channel, Do, Look, TaskFailed

# The arm is held up by somebody near if its speed is scaled to less than this [%].
_HELD_UP = 1.0


class Leaves:
    """Makes leaves that share clients, the watch over the server and the heart.

    Args:
        node: asks.
        times: how long is waited.
        actions: that leaves may ask for, with what else must be there for each.
    """

    def __init__(self, node: Node, times: AskingConfig, actions: Mapping[Action, Rows[Action | Service]]) -> None:
        self._node, self._times = node, times
        lives, heart = NodeWatch(node, (SERVER,), times.node_timeout), Heartbeat(node)
        self._channels = {
            action: Channel(partial(_request, node, action, times, needed, lives, heart))
            for action, needed in actions.items()
        }
        self._segment = interfaces.SEGMENT.call(node)
        self._silence = Stopwatch(node)
        self._percent = 100.0
        interfaces.SPEED_SCALING.subscribe(node, self._on_scaling)

    def _on_scaling(self, message: Float64) -> None:
        self._percent = message.data

    @property
    def held_up(self) -> bool:
        """Whether the arm stands because somebody is near."""
        return self._percent < _HELD_UP

    @property
    def running(self) -> bool:
        """Whether anything that was asked for has not ended."""
        return any(channel.request.running for channel in self._channels.values())

    def end_motion(self) -> None:
        """Take back what was asked for: the process ends."""
        for channel in self._channels.values():
            channel.request.end_motion()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return all(channel.request.motion_ended() for channel in self._channels.values())

    def ask(
        self, name: str, action: Action, goal: Callable[[], Any], take: Callable[[Any, str], tuple[bool, str]]
    ) -> Ask:
        """An action; arguments as of `Ask`."""
        return Ask(name, self._channels[action], goal, take)

    def look(self, name: str, take: Callable[[Any], bool | None]) -> Look:
        """A segmentation of what is seen now; `take` as of `Look`."""
        return Look(name, self._segment, Segment.Request, take, self._silence, self._times.server_timeout)

    def wait_for_people(self) -> Do:
        """Until nobody is near."""
        return Do("nobody near", lambda: None if self.held_up else True,
                  lambda: "somebody is near: the arm waits" if self.held_up else "")  # fmt: skip

    def rise(self) -> Ask:
        """Up and home, open, after a push that failed on its way: the hand may be anywhere, and something in it."""
        return self.ask("up", interfaces.RECOVER, lambda: Recover.Goal(open=True), _risen)


def _request(
    node: Node, action: Action, times: AskingConfig, needed: Rows[Action | Service], lives: NodeWatch,
    heart: Heartbeat, on_feedback: Callable[[Any], None], on_end: Callable[[Any, str], None],
) -> Request:  # fmt: skip
    return Request(node, action, times, on_feedback, on_end, needed, lives, heart)


def result_of(answer: Any, problem: str) -> Any:
    """The result of an answer.

    Raises:
        TaskFailed: there is none.
    """
    if answer is None:
        raise TaskFailed(problem)
    return answer.result


def tried(name: str, children: Rows[Behaviour]) -> Behaviour:
    """Children one after the other; where one fails the rest is left out, and the next look says what is to be done."""
    return FailureIsSuccess(name, Sequence(name, memory=True, children=list(children)))


def _risen(answer: Any, problem: str) -> tuple[bool, str]:
    result = result_of(answer, problem)
    if not result.success:
        raise TaskFailed(f"could not get up after a push, {result.failed_stage}: {result.message}")
    return True, ""
