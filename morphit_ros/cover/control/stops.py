"""Why the motors of a cover stand still, and what ends that."""

from __future__ import annotations

from enum import Enum

from morphit_ros.cover.control.controller import StepStatus


class WayBack(Enum):
    """What ends a stop."""

    STATES = "valid states"
    TARGET = "a new target"
    ACTIVATION = "a new activation"


class Stop(Enum):
    """Why motors stand still, and what ends that."""

    NO_STATE = "no state yet", WayBack.STATES
    STALE = "states have stopped", WayBack.STATES
    BAD_STATE = "inconsistent state", WayBack.STATES
    OVERRUN = "commands came too late", WayBack.STATES
    NO_TARGET = "no target yet", WayBack.TARGET
    TARGET = "target out of reach", WayBack.TARGET
    RANK_DROP = "singular configuration", WayBack.ACTIVATION
    MOTORS_SINGULAR = "motors do not span the motions", WayBack.ACTIVATION
    QP_FAILED = "quadratic programme failed", WayBack.ACTIVATION
    BAD_RATES = "rates that are not finite", WayBack.ACTIVATION
    FAULT = "internal error", WayBack.ACTIVATION

    def __init__(self, text: str, way_back: WayBack) -> None:
        self.text = text
        self.way_back = way_back


# What a step without a command means.
STOP_OF_STEP = {
    StepStatus.TARGET_NOT_FINITE: Stop.TARGET,
    StepStatus.GAP: Stop.BAD_STATE,
    StepStatus.RANK_DROP: Stop.RANK_DROP,
    StepStatus.MOTORS_SINGULAR: Stop.MOTORS_SINGULAR,
    StepStatus.QP_FAILED: Stop.QP_FAILED,
}
