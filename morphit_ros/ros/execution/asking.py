"""Asking for a motion: whoever does shows meanwhile that it lives, and takes the request back when it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from rclpy.action.client import ClientGoalHandle
from rclpy.node import Node
from rclpy.task import Future

from morphit_ros.configuration import Config, parameter
from morphit_ros.ros.core.alive import NodeWatch
from morphit_ros.ros.core.clocks import Stopwatch, steady_timer
from morphit_ros.ros.core.endpoints import Action, Service, new_goal_id
from morphit_ros.ros.core.heartbeat import Heartbeat

# Who moves the arm, without its namespace.
SERVER = "grasp_execution"
_PERIOD = 0.5
# After which a question that nobody answers is asked again [s of wall time].
_ANSWER_TIME = 5.0


@dataclass(frozen=True)
class AskingConfig(Config):
    """How long is waited for whom."""

    server_timeout: float = parameter(
        180.0, "Longest wait for the nodes; their first start compiles [s]", minimum=1.0, maximum=600.0
    )
    timeout: float = parameter(
        180.0,
        "Longest time from the request to its end [s]; simulated where the clock is, as long as that goes on",
        minimum=1.0,
        maximum=3600.0,
    )
    node_timeout: float = parameter(
        1.0,
        "Silence of grasp_execution after which its result is not waited for; that its process has died is known at "
        "once [s of wall time]",
        minimum=0.5,
        maximum=60.0,
    )


class Request:
    """A goal of a server: asked for when the servers are there, until it is accepted; then followed to its end.

    Servers are waited for in wall time. One whose answer to a goal does not come within 5 s may have sent it before it
    had found this client, and rclpy waits for such an answer for good: the goal is taken back and asked for anew. What
    the robot takes is counted by its clock, which may be slow; one that stands still does not hold up whoever watches
    it.

    Args:
        node: asks; has the methods `end_motion` and `motion_ended` of this object as its own.
        action: that is asked for.
        config: times.
        on_feedback: called with each feedback message.
        on_end: called once a goal, with the answer (status and result), or None and why there is none.
        needed: further servers that must be there first; nothing is asked of them.
        lives: knows whether the server lives; None: its own, with the timeout of `config`.
        heart: beats while the goal runs: whoever asked for a motion and dies ends it; None: its own.
        server: name of the node that has the action, without its namespace.
    """

    def __init__(
        self,
        node: Node,
        action: Action,
        config: AskingConfig,
        on_feedback: Callable[[Any], None],
        on_end: Callable[[Any, str], None],
        needed: Sequence[Action | Service] = (),
        lives: NodeWatch | None = None,
        heart: Heartbeat | None = None,
        server: str = SERVER,
    ) -> None:
        self._config, self._server = config, server
        self._name, self._logger = action.name, node.get_logger()
        self._on_feedback, self._on_end = on_feedback, on_end
        self._client = action.call(node)
        self._ready = {action.name: self._client.server_is_ready}
        for other in needed:
            client = other.call(node)
            self._ready[other.name] = client.service_is_ready if isinstance(other, Service) else client.server_is_ready
        self._moving = Stopwatch(node)
        self._begin(None)
        self._lives = lives or NodeWatch(node, (server,), config.node_timeout)
        self._heart = heart or Heartbeat(node)
        self._timer = steady_timer(node, _PERIOD, self._check)
        self._timer.cancel()

    def _begin(self, goal: Any) -> None:
        self._message, self._started = goal, monotonic()
        # Ended: the answer has come, or is not waited for any longer.
        self._asked = self._answered = self._ended = self._unwanted = False
        self._sent, self._sent_at = new_goal_id(), monotonic()
        self._goal: ClientGoalHandle | None = None
        self._cancel: Future | None = None

    def ask(self, goal: Any) -> None:
        """Ask for this as soon as that can be; after the end of the goal before."""
        self._begin(goal)
        self._timer.reset()
        if not self._missing():
            self._check()

    @property
    def running(self) -> bool:
        """Whether something was asked for that has not ended."""
        return self._message is not None and not self._ended

    def withdraw(self) -> None:
        """Take the request back, however far it has come; its end is told as ever."""
        if not self.running:
            return
        self._unwanted = True
        if self._goal is not None:
            self._cancel = self._goal.cancel_goal_async()
        elif not self._asked:
            self._end(None, "taken back before it was accepted")

    def _check(self) -> None:
        elapsed, config = monotonic() - self._started, self._config
        if cause := self._lives.problem(self._server):
            self._end(None, cause)
        elif not self._asked and elapsed > config.server_timeout:
            missing = ", ".join(self._missing()) or f"a {self._server} that is active and has nothing else to do"
            self._end(None, f"not there within {config.server_timeout:g} s: {missing}")
        elif self._message is not None and not self._asked and not self._missing():
            self._send()
        elif self._asked and self._goal is None and monotonic() - self._sent_at > _ANSWER_TIME:
            self._send_again()
        elif self._asked and self._moving.elapsed > config.timeout:
            self._end(None, f"no result within {config.timeout:g} s")

    def _send(self) -> None:
        self._asked = True
        self._sent, self._sent_at = new_goal_id(), monotonic()
        self._moving.start()
        self._client.send_goal_async(
            self._message, feedback_callback=self._on_feedback, goal_uuid=self._sent
        ).add_done_callback(partial(self._on_answer, self._sent))

    def _send_again(self) -> None:
        self._logger.warning(
            f"{self._name}: no answer within {_ANSWER_TIME:g} s, the goal is taken back and asked for anew"
        )
        self._client.take_back(self._sent)
        self._asked = False
        if self._unwanted:
            self._end(None, "taken back before it was accepted")
        else:
            self._send()

    def _missing(self) -> list[str]:
        """Names of the servers that are not there."""
        return [name for name, ready in self._ready.items() if not ready()]

    def _on_answer(self, sent: Any, future: Future) -> None:
        goal = future.result()
        if sent is not self._sent or self._ended:
            # Nobody waits for it any longer.
            if goal.accepted:
                goal.cancel_goal_async()
            return
        if not goal.accepted:
            # Not active yet; `_check` asks again until the time is up.
            self._asked = False
            if self._unwanted:
                self._end(None, "taken back before it was accepted")
            return
        self._moving.start()
        self._goal = goal
        self._heart.start()
        goal.get_result_async().add_done_callback(partial(self._on_result, goal))
        if self._unwanted:
            self._cancel = goal.cancel_goal_async()

    def _on_result(self, goal: ClientGoalHandle, future: Future) -> None:
        # Not of a goal that was given up for another.
        if goal is self._goal:
            self._end(future.result(), "")

    def _end(self, answer: Any, problem: str) -> None:
        self._answered |= answer is not None
        if not self._ended:
            self._ended = True
            self._heart.stop()
            self._timer.cancel()
            self._on_end(answer, problem)

    def end_motion(self) -> None:
        """Whoever asked for a motion and goes away takes the request back."""
        if self._goal is not None and not self._answered:
            self._cancel = self._goal.cancel_goal_async()
        self._heart.stop()

    def motion_ended(self) -> bool:
        """Whether that has been heard."""
        return self._cancel is None or self._cancel.done()
