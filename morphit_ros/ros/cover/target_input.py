"""Targets of a cover as they come: examined at once, forecast, accepted while motors may turn or kept for then."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

from morphit_interfaces.msg import CoverTarget
from morphit_ros.cover.control.forecast_process import Forecast, ForecastProcess
from morphit_ros.cover.control.supervision import SupervisedController
from morphit_ros.cover.goals.targets import SurfaceTarget
from morphit_ros.errors import MorphitError
from morphit_ros.ros.cover.driver import CommandGate
from morphit_ros.ros.cover.messages import formula_target, target_from_message
from morphit_ros.ros.cover.model import LoadedCover


class TargetInput:
    """Hands targets to a controller, each once it is known how near the cover comes to it.

    Args:
        supervised: takes them.
        gate: open while motors may turn.
        model: whose case may have a target.
        typed: target that counts until one is published, instead of the case's; empty for none.
        frame: in which targets are given.
        forecasts: who knows how near the cover comes; None: targets count at once.
        wake: has the executor call `settle`; called from any thread.

    Attributes:
        refusal: why the latest target was refused, or empty.
        unknown: why it is not known how near the cover comes to its target, or empty.
    """

    def __init__(
        self, supervised: SupervisedController, gate: CommandGate, model: LoadedCover, typed: str, frame: str,
        forecasts: ForecastProcess | None = None, wake: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._supervised, self._gate, self._frame = supervised, gate, frame
        self._forecasts, self._wake = forecasts, wake
        # Waits for an activation.
        self._wanted: _Request | None = None
        # Waits for its forecast.
        self._awaited: _Request | None = None
        self._answers: queue.SimpleQueue[tuple[_Request, Forecast]] = queue.SimpleQueue()
        self.refusal = self.unknown = ""
        if typed:
            self._wanted = _Request(*formula_target(typed, model.cover), "")
        elif model.target is not None:
            # The paper's cases go straight to their targets.
            self._wanted = _Request(model.target, f"target of {model.name}", "direct")

    @property
    def awaited(self) -> str:
        """The target whose forecast is being made, or empty."""
        return self._awaited.name if self._awaited else ""

    def activate(self) -> None:
        """Begin with the target that waits, or anew with the last one.

        Raises:
            MorphitError: it cannot be reached.
        """
        course, request = self._supervised.course, self._wanted or self._awaited
        if request is None and course is not None:
            request = _Request(course.goal, course.name, course.approach)
        if request is None:
            return
        self._accept(request)
        if self._awaited is not None:
            # Where the cover was when the last target counted is no way to go on.
            self._supervised.leave_target()

    def receive(self, message: CoverTarget) -> None:
        """Take a target, or say in `refusal` why not."""
        try:
            target, name = target_from_message(message, self._supervised.cover, self._frame)
            request = _Request(target, name, "")
            if self._gate.is_open:
                self._accept(request)
            else:
                # Where the cover is by then decides whether it can be reached.
                self._supervised.examine(target)
                self._wanted = request
            self.refusal = ""
        except MorphitError as error:
            self._refuse(error)

    def settle(self) -> None:
        """Go to the target whose forecast is there."""
        while not self._answers.empty():
            request, forecast = self._answers.get()
            if request is not self._awaited:
                continue
            self._awaited = None
            if not self._gate.is_open:
                self._wanted = request
                continue
            try:
                self._follow(request, forecast)
            except MorphitError as error:
                self._refuse(error)

    def _accept(self, request: _Request) -> None:
        course = self._supervised.plan(request.target, request.name, time.monotonic(), request.approach)
        if self._forecasts is None:
            self._follow(request, Forecast(None))
        else:
            self._awaited = request
            self._forecasts.ask(
                self._supervised.state, request.target, course.duration, lambda found: self._answer(request, found)
            )
        self._wanted = None

    def _answer(self, request: _Request, forecast: Forecast) -> None:
        self._answers.put((request, forecast))
        self._wake()

    def _follow(self, request: _Request, forecast: Forecast) -> None:
        now = time.monotonic()
        self._supervised.set_target(
            request.target, request.name, now, request.approach, forecast.reach, forecast.detour
        )
        self.unknown = forecast.problem

    def _refuse(self, error: MorphitError) -> None:
        kept = self._supervised.course.description if self._supervised.course else None
        kept = self._wanted.name if self._wanted else kept
        self.refusal = f"target refused, {f'the last one is kept ({kept})' if kept else 'there is none'}: {error}"


@dataclass(frozen=True, eq=False)
class _Request:
    """A target, what to call it, and how to approach it."""

    target: SurfaceTarget
    name: str
    approach: str
