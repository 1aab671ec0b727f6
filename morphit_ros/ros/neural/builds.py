"""Builds of neural objects that wait for their turn: one worker makes them, and each can be given up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter

from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import BuildNeuralObject
from morphit_interfaces.msg import NeuralObject
from morphit_ros.errors import MorphitError
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.neural.messages import PlacedObject, message_from_object
from morphit_ros.ros.neural.sources import Progress

BUILD_STAGE, BUILD_SHARE = "build: stage", "build: share done"
"""Keys of the node's diagnostics while a build is under way."""

# Feedback comes no oftener [s].
_FEEDBACK_PERIOD = 0.1


class _BuildGivenUp(Exception):
    """Ends a build that nobody wants any more."""


class NeuralBuilds:
    """Makes one goal after the other, in their order, beside the services.

    Args:
        node: owner of the worker's callback.
        build: makes the object of a goal and says its loss; calls the given progress now and then, which raises to end
            a build that was cancelled.
        take: uses an object from now on.
        kept: the object in use, None if there is none.
        report: told what became of each goal: (good, words).
    """

    def __init__(
        self,
        node: Node,
        build: Callable[[BuildNeuralObject.Goal, Progress], tuple[PlacedObject, float]],
        take: Callable[[PlacedObject], None],
        kept: Callable[[], PlacedObject | None],
        report: Callable[[bool, str], None],
    ) -> None:
        self._build, self._take, self._kept, self._report = build, take, kept, report
        self._goals: deque[ServerGoalHandle] = deque()
        self.stage, self.share = "", 0.0
        self._wake = node.create_guard_condition(self._work, callback_group=MutuallyExclusiveCallbackGroup())

    @property
    def waiting(self) -> int:
        """Goals that wait for their turn."""
        return len(self._goals)

    def add(self, goal: ServerGoalHandle) -> None:
        """Take an accepted goal."""
        self._goals.append(goal)
        self._wake.trigger()

    def _work(self) -> None:
        while self._goals:
            self._settle(self._goals.popleft())

    def _settle(self, goal: ServerGoalHandle) -> None:
        start = perf_counter()
        told = -_FEEDBACK_PERIOD

        def progress(stage: str, share: float, loss: float = float("nan")) -> None:
            nonlocal told
            if goal.is_cancel_requested:
                raise _BuildGivenUp
            now = perf_counter()
            if stage != self.stage or now - told >= _FEEDBACK_PERIOD:
                told, self.stage, self.share = now, stage, float(share)
                goal.publish_feedback(BuildNeuralObject.Feedback(stage=stage, progress=float(share), loss=float(loss)))

        try:
            # It may have been cancelled while it waited for its turn.
            progress("reading", 0.0)
            placed, loss = self._build(goal.request, progress)
            progress("inertia", 1.0, loss)
            self._take(placed)
            known = placed.known.inertia
            mass = f"{known.mass:.3g} kg ({placed.known.total_source.value})"
            words = f"'{placed.name}' built: {mass}, centre of mass ± {1e3 * known.center_error:.1f} mm."
            result = self._result(True, f"{words} {placed.doubts}".strip(), loss)
        except _BuildGivenUp:
            result = self._result(False, "cancelled")
        except MorphitError as error:
            result = self._result(False, str(error))
        self.stage = ""
        result.build_time = perf_counter() - start
        self._report(result.success or goal.is_cancel_requested, result.message)
        settle(goal, result)

    def _result(self, success: bool, message: str, loss: float = float("nan")) -> BuildNeuralObject.Result:
        kept = self._kept()
        if not success:
            message += f"; '{kept.name}' stays in use" if kept is not None else "; there is no object yet"
        described = NeuralObject() if kept is None else message_from_object(kept)
        return BuildNeuralObject.Result(success=success, message=message, object=described, loss=loss)
