"""Leaves of behaviour trees: an action that is asked for, a look, a condition; each says what it does and why."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from py_trees.behaviour import Behaviour
from py_trees.common import Status
from rclpy.client import Client
from rclpy.task import Future

from morphit_ros.errors import MorphitError
from morphit_ros.ros.core.clocks import Stopwatch
from morphit_ros.ros.execution.asking import Request

# A service that has not answered by then is asked again [s of wall time].
_REPEAT = 5.0


class TaskFailed(MorphitError):
    """A task cannot go on by itself: nothing else of its tree is tried."""


class Do(Behaviour):
    """Something that is done at once.

    Args:
        name: for people.
        work: called at each tick; whether it succeeds, or None while it is not decided.
        why: says why it runs, or failed, after `work`.
    """

    def __init__(self, name: str, work: Callable[[], bool | None], why: Callable[[], str] = str) -> None:
        super().__init__(name)
        self._work, self._why = work, why

    def update(self) -> Status:
        done = self._work()
        self.feedback_message = self._why()
        return Status.RUNNING if done is None else Status.SUCCESS if done else Status.FAILURE


class Channel:
    """One action of another node, for all leaves that ask for it; one at a time.

    Args:
        make: makes the request of two callbacks, for feedback and for the end.
    """

    def __init__(self, make: Callable[[Callable[[Any], None], Callable[[Any, str], None]], Request]) -> None:
        self._leaf: Ask | None = None
        self.request = make(self._on_feedback, self._on_end)

    def ask(self, leaf: Ask, goal: Any) -> None:
        """Ask for `leaf`, which is told what comes of it."""
        self._leaf = leaf
        self.request.ask(goal)

    def _on_feedback(self, message: Any) -> None:
        if self._leaf is not None:
            self._leaf.feedback_message = message.feedback.stage

    def _on_end(self, answer: Any, problem: str) -> None:
        if self._leaf is not None:
            self._leaf.answer = answer, problem


class Ask(Behaviour):
    """An action, from its goal to its result; taken back where the tree goes elsewhere.

    Args:
        name: for people.
        channel: of the action.
        goal: makes the goal.
        take: takes the answer (status and result, or None and why there is none); whether it succeeded, and the reason
            for people. May raise TaskFailed.

    Attributes:
        answer: None until it has come.
    """

    def __init__(
        self, name: str, channel: Channel, goal: Callable[[], Any], take: Callable[[Any, str], tuple[bool, str]]
    ) -> None:
        super().__init__(name)
        self._channel, self._goal, self._take = channel, goal, take
        self.answer: tuple[Any, str] | None = None

    def initialise(self) -> None:
        self.answer = None
        self.feedback_message = ""
        self._channel.ask(self, self._goal())

    def update(self) -> Status:
        if self.answer is None:
            return Status.RUNNING
        done, self.feedback_message = self._take(*self.answer)
        return Status.SUCCESS if done else Status.FAILURE

    def terminate(self, new_status: Status) -> None:
        # Trees stop what does not run as well, and others may ask by the same channel now.
        if new_status is Status.INVALID and self.status is Status.RUNNING:
            self._channel.request.withdraw()


class Look(Behaviour):
    """A service that is called once; waited for until it is there.

    Args:
        name: for people.
        client: calls.
        request: makes the request.
        take: takes the response; whether it is of use, or None to call again.
        watch: measures how long there was nothing of use.
        timeout: longest such time [s].
    """

    def __init__(
        self, name: str, client: Client, request: Callable[[], Any], take: Callable[[Any], bool | None],
        watch: Stopwatch, timeout: float,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._client, self._request, self._take = client, request, take
        self._watch, self._timeout = watch, timeout
        self._future: Future | None = None
        self._asked = 0.0

    def initialise(self) -> None:
        self._future = None
        self._watch.start()

    def update(self) -> Status:
        if self._future is not None and self._future.done():
            answer, self._future = self._future.result(), None
            self.feedback_message = getattr(answer, "message", "")
            done = self._take(answer)
            if done is not None:
                return Status.SUCCESS if done else Status.FAILURE
        if self._watch.elapsed > self._timeout:
            raise TaskFailed(f"{self._client.srv_name}: {self.feedback_message or 'no answer'}")
        # An answer is lost where the server does not know the client's reader yet.
        lost = self._future is not None and monotonic() > self._asked + _REPEAT
        if (self._future is None or lost) and self._client.service_is_ready():
            self._future, self._asked = self._client.call_async(self._request()), monotonic()
        return Status.RUNNING
