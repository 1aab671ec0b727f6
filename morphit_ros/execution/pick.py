"""What goes into and comes out of the grasp sequence."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.motion import ObjectObstacle, TableObstacle
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.robot.motion_types import Trajectory


class Stage(enum.Enum):
    """Where a pick is."""

    PLAN = "plan"
    OPEN = "open"
    PREGRASP = "pregrasp"
    APPROACH = "approach"
    CLOSE = "close"
    CHECK = "check"
    ATTACH = "attach"
    LIFT = "lift"
    VERIFY = "verify"
    DONE = "done"


@dataclass(frozen=True)
class GripperLimits:
    """Opening between the pads [m] and closing force [N] that a gripper is capable of."""

    aperture_min: float
    aperture_max: float
    max_force: float

    def __post_init__(self) -> None:
        values = (self.aperture_min, self.aperture_max, self.max_force)
        if not np.isfinite(values).all() or not 0.0 <= self.aperture_min < self.aperture_max or self.max_force <= 0.0:
            raise InvalidInputError("gripper limits", list(values), "0 <= min < max [m] and a positive force [N]")


@dataclass(frozen=True)
class GraspTarget:
    """A grasp to be executed.

    Attributes:
        T_base_gripper: (4, 4), where the fingers close.
        T_base_pregrasp: (4, 4), where the straight approach begins.
        aperture: opening at contact [m].
        open_aperture: opening during the approach [m].
    """

    T_base_gripper: Array
    T_base_pregrasp: Array
    aperture: float
    open_aperture: float

    def __post_init__(self) -> None:
        check_transform(self.T_base_gripper, "T_base_gripper")
        check_transform(self.T_base_pregrasp, "T_base_pregrasp")
        if not (np.isfinite([self.aperture, self.open_aperture]).all() and 0.0 <= self.aperture <= self.open_aperture):
            raise InvalidInputError(
                "aperture", [self.aperture, self.open_aperture], "0 <= aperture <= open_aperture [m]"
            )


@dataclass(frozen=True)
class PickRequest:
    """One object to be picked up.

    Attributes:
        candidates: grasps, best first; the first that can be reached is executed.
        target: the object; an obstacle until it is grasped. None if its shape is not known.
        obstacles: what else stands around.
        table: what the object stands on.
        lift_height: [m], 0 means the configuration's.
    """

    candidates: tuple[GraspTarget, ...]
    target: ObjectObstacle | None = None
    obstacles: tuple[ObjectObstacle, ...] = ()
    table: TableObstacle | None = None
    lift_height: float = 0.0

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidInputError("candidates", "none", "at least one grasp", "Plan grasps first.")
        if not (np.isfinite(self.lift_height) and 0.0 <= self.lift_height <= 1.0):
            raise InvalidInputError("lift_height", self.lift_height, "in [0, 1] m")


@dataclass(frozen=True)
class SendTrajectory:
    """Command: move the arm, replacing what it does."""

    trajectory: Trajectory


@dataclass(frozen=True)
class CommandGripper:
    """Command: move the fingers to an aperture [m] with at most this force [N]."""

    aperture: float
    max_effort: float


@dataclass(frozen=True)
class Stop:
    """Command: stop the arm where it is. The gripper keeps what it holds."""


Command = SendTrajectory | CommandGripper | Stop


@dataclass(frozen=True)
class SequenceUpdate:
    """Progress of a pick.

    Attributes:
        stage: the present one, DONE or the failed one at the end.
        commands: to be sent now, in this order.
        finished, success: success only ever with finished.
        failed_stage: None unless it failed.
        message: on failure the cause; otherwise what is going on.
        durations: stages begun so far, in order, with their time [s].
        grasp_index: candidate that is executed, -1 before one is found.
    """

    stage: Stage
    commands: tuple[Command, ...] = ()
    finished: bool = False
    success: bool = False
    failed_stage: Stage | None = None
    message: str = ""
    durations: tuple[tuple[Stage, float], ...] = ()
    grasp_index: int = -1
