"""How a pick ends: the DISF paper's three outcomes, and our finer reasons underneath."""

from __future__ import annotations

import enum
from dataclasses import dataclass

# Begins the cause of a failure after which nothing is held any longer.
OBJECT_LOST = "the object was lost"


class PickOutcome(enum.Enum):
    """What the DISF paper counts, and what it does not: a pick that never reached the object."""

    SUCCESS = "success"
    CONTACT_ABORT = "contact_abort"
    MISGRASP = "misgrasp"
    NOT_EXECUTED = "not_executed"


class FailureMode(enum.Enum):
    """Why an attempt ended; `outcome` is the paper's count."""

    SUCCESS = "success"
    BAD_REQUEST = "bad_request"
    NO_SCENE = "no_scene"
    NO_GRASP = "no_grasp"
    PUT_OFF = "put_off"
    UNREACHABLE = "unreachable"
    OBJECT_MOVED = "object_moved"
    CONTACT_PREGRASP = "contact_pregrasp"
    CONTACT_APPROACH = "contact_approach"
    PROBE_TOO_WIDE = "probe_too_wide"
    PROBE_TOO_NARROW = "probe_too_narrow"
    CLOSED_ON_NOTHING = "closed_on_nothing"
    NO_VACUUM = "no_vacuum"
    NOT_LIFTED = "not_lifted"
    OFF_CENTER = "off_center"
    TURNED = "turned"
    SLIPPED = "slipped"
    LOST = "lost"
    NOT_EMPTY = "not_empty"
    ROBOT_FAULT = "robot_fault"
    CANCELLED = "cancelled"

    @property
    def outcome(self) -> PickOutcome:
        """The paper's count that this belongs to."""
        return _OUTCOMES.get(self, PickOutcome.NOT_EXECUTED)

    @property
    def recoverable(self) -> bool:
        """Whether the robot works as it should, so that it may open, retreat and try again."""
        return self.outcome in (PickOutcome.CONTACT_ABORT, PickOutcome.MISGRASP) or self is FailureMode.OBJECT_MOVED


_OUTCOMES = {
    FailureMode.SUCCESS: PickOutcome.SUCCESS,
    FailureMode.CONTACT_PREGRASP: PickOutcome.CONTACT_ABORT,
    FailureMode.CONTACT_APPROACH: PickOutcome.CONTACT_ABORT,
    FailureMode.PROBE_TOO_WIDE: PickOutcome.MISGRASP,
    FailureMode.PROBE_TOO_NARROW: PickOutcome.MISGRASP,
    FailureMode.CLOSED_ON_NOTHING: PickOutcome.MISGRASP,
    FailureMode.NO_VACUUM: PickOutcome.MISGRASP,
    FailureMode.NOT_LIFTED: PickOutcome.MISGRASP,
    FailureMode.OFF_CENTER: PickOutcome.MISGRASP,
    FailureMode.TURNED: PickOutcome.MISGRASP,
    FailureMode.SLIPPED: PickOutcome.MISGRASP,
    FailureMode.LOST: PickOutcome.MISGRASP,
}


class PickFailed(Exception):
    """Ends the present attempt; its text is the cause."""

    def __init__(self, mode: FailureMode, message: str) -> None:
        self.mode = mode
        super().__init__(message)


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt that has ended.

    Attributes:
        mode: how.
        grasp_index: the candidate that was executed, -1 if none was found.
        stage: value of the stage that it ended in.
        message: the cause.
    """

    mode: FailureMode
    grasp_index: int
    stage: str
    message: str
