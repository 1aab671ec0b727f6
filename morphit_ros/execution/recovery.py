"""What follows a failed attempt: set down what slips, open, go back the way that the hand came.

Where the object has fallen out of the lifted hand there is no way back, for it may lie there: the hand goes up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from morphit_ros.execution.arm_and_hand import ArmAndHand, SequenceStep
from morphit_ros.execution.attempt import Attempt
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.fingers import AwaitRest
from morphit_ros.execution.moves import GoStraight, Retrace
from morphit_ros.execution.pick import Command, PickStage, StopArm
from morphit_ros.execution.suction import let_go

_Part = tuple[PickStage, Callable[[], SequenceStep]]
# Fingers that lose an object pass the bound of slip on their way: so long they show which it is [s].
_SLIDE_TIME = 0.5


class Recovery:
    """Stage by stage to an open hand with nothing around it.

    Args:
        robot: arm and hand.
        attempt: the one that failed.
        mode: how.
    """

    def __init__(self, robot: ArmAndHand, attempt: Attempt, mode: FailureMode) -> None:
        self._robot, self._attempt = robot, attempt
        self._release: _Part = (PickStage.RELEASE, self._let_go)
        self._up: _Part = (PickStage.RETREAT, lambda: GoStraight(robot, attempt.top, attempt.target_names))
        self._steps = self._planned(mode)
        self._step: SequenceStep | None = None
        self.lost = mode is FailureMode.LOST

    @property
    def stage(self) -> PickStage:
        """The present one, DONE at the end."""
        return self._steps[0][0] if self._steps else PickStage.DONE

    def update(self, now: float) -> tuple[Command, ...]:
        """Go on.

        Raises:
            PickFailed: the recovery failed too.
        """
        if not self._steps:
            return ()
        if self.stage is PickStage.SET_DOWN and self._attempt.holds_nothing():
            # Fallen meanwhile: nothing is left to be set down.
            self.lost = True
            self._steps, self._step = [self._release, self._up], None
            return (StopArm(),)
        if self._step is None:
            self._step = self._steps[0][1]()
        commands, done = self._step.update(now)
        if done:
            self._steps, self._step = self._steps[1:], None
        return commands

    def _planned(self, mode: FailureMode) -> list[_Part]:
        if mode is FailureMode.OBJECT_MOVED:
            return []
        if mode is FailureMode.LOST:
            return [self._release, self._up]
        if mode is FailureMode.CONTACT_PREGRASP:
            return self._back(PickStage.RETREAT, PickStage.PREGRASP)
        if mode is FailureMode.CONTACT_APPROACH:
            return self._back(PickStage.RETREAT, PickStage.APPROACH)
        set_down = self._back(PickStage.SET_DOWN, PickStage.TEST_LIFT, PickStage.LIFT)
        if mode is FailureMode.SLIPPED:
            set_down.insert(0, (PickStage.SET_DOWN, lambda: AwaitRest(self._robot, _SLIDE_TIME)))
        return [*set_down, self._release, *self._back(PickStage.RETREAT, PickStage.APPROACH)]

    def _let_go(self) -> SequenceStep:
        self._attempt.detach()
        return let_go(self._robot, self._attempt.grasp.open_aperture)

    def _back(self, stage: PickStage, *gone: PickStage) -> list[_Part]:
        landing = stage is PickStage.SET_DOWN
        way = self._attempt.way_of(*gone)
        return [(stage, partial(Retrace, self._robot, path, landing)) for path in way]
