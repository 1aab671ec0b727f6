"""Targets of a cover as they come: examined at once, accepted while motors may turn, kept for then otherwise."""

from __future__ import annotations

import time

from morphit_interfaces.msg import CoverTarget
from morphit_ros.cover.control.supervision import SupervisedController
from morphit_ros.cover.goals.targets import SurfaceTarget
from morphit_ros.errors import MorphitError
from morphit_ros.ros.cover.driver import CommandGate
from morphit_ros.ros.cover.messages import formula_target, target_from_message
from morphit_ros.ros.cover.model import LoadedCover


class TargetInput:
    """Hands targets to a controller.

    Args:
        supervised: takes them.
        gate: open while motors may turn.
        model: whose case may have a target.
        typed: target that counts until one is published, instead of the case's; empty for none.
        frame: in which targets are given.

    Attributes:
        refusal: why the latest target was refused, or empty.
    """

    def __init__(
        self, supervised: SupervisedController, gate: CommandGate, model: LoadedCover, typed: str, frame: str
    ) -> None:
        self._supervised, self._gate, self._frame = supervised, gate, frame
        # Target, what to call it, and how to approach it: waits for an activation.
        self._wanted: tuple[SurfaceTarget, str, str] | None = None
        self.refusal = ""
        if typed:
            self._wanted = *formula_target(typed, model.cover), ""
        elif model.target is not None:
            # The paper's cases go straight to their targets.
            self._wanted = model.target, f"target of {model.name}", "direct"

    def activate(self) -> None:
        """Begin with the target that waits, or anew with the last one.

        Raises:
            MorphitError: it cannot be reached.
        """
        if self._wanted is not None:
            self._accept(*self._wanted)
        else:
            self._supervised.restart_target(time.monotonic())

    def receive(self, message: CoverTarget) -> None:
        """Take a target, or say in `refusal` why not."""
        try:
            target, name = target_from_message(message, self._supervised.cover, self._frame)
            if self._gate.is_open:
                self._accept(target, name, "")
            else:
                # Where the cover is by then decides whether it can be reached.
                self._supervised.examine(target)
                self._wanted = target, name, ""
            self.refusal = ""
        except MorphitError as error:
            kept = self._supervised.course.description if self._supervised.course else None
            kept = self._wanted[1] if self._wanted else kept
            self.refusal = f"target refused, {f'the last one is kept ({kept})' if kept else 'there is none'}: {error}"

    def _accept(self, target: SurfaceTarget, name: str, approach: str) -> None:
        self._supervised.set_target(target, name, time.monotonic(), approach)
        self._wanted = None
