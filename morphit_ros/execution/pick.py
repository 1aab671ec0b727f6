"""What goes into and comes out of the grasp sequence."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.failure import AttemptRecord, FailureMode
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.robot.clearance import ClearanceFunction
from morphit_ros.robot.motion_backend import ObjectObstacle, TableObstacle
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.solids import Solid


class PickStage(enum.Enum):
    """Where a pick is. SET_DOWN, RELEASE and RETREAT come after a failed attempt only."""

    PLAN = "plan"
    OPEN = "open"
    PREGRASP = "pregrasp"
    APPROACH = "approach"
    PROBE = "probe"
    CLOSE = "close"
    CHECK = "check"
    ATTACH = "attach"
    TEST_LIFT = "test_lift"
    LIFT = "lift"
    VERIFY = "verify"
    SET_DOWN = "set_down"
    RELEASE = "release"
    RETREAT = "retreat"
    DONE = "done"


@dataclass(frozen=True)
class GripperLimits:
    """Opening between the pads [m] and closing force [N] that a gripper of fingers is capable of."""

    aperture_min: float
    aperture_max: float
    max_force: float
    min_force: float = 0.0

    def __post_init__(self) -> None:
        values = (self.aperture_min, self.aperture_max, self.max_force, self.min_force)
        ordered = 0.0 <= self.aperture_min < self.aperture_max and 0.0 <= self.min_force <= self.max_force
        if not np.isfinite(values).all() or not ordered or self.max_force == 0.0:
            bound = "0 <= min < max [m], a positive force and a least one up to it [N]"
            raise InvalidInputError("gripper limits", list(values), bound)


@dataclass(frozen=True)
class CupLimits:
    """How far the lip of a suction cup yields along its axis [m]."""

    stroke: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.stroke) and self.stroke > 0.0):
            raise InvalidInputError("cup limits", self.stroke, "a finite stroke above 0 [m]")


@dataclass(frozen=True)
class GraspTarget:
    """A grasp to be executed.

    Attributes:
        T_base_gripper: (4, 4), where the fingers close.
        T_base_pregrasp: (4, 4), where the straight approach begins.
        aperture: opening at contact [m].
        open_aperture: opening during the approach [m].
        pregrasp_positions: arm joint → position at the pre-grasp from where approach and lift are known to go on
            [rad]; tried before any other way to the pre-grasp. None if not known. Not checked against the pose.
        torsion: torque about the pads' normal that they hold at the gripper's full force [N m], None if not known.
        press: of a suction cup: how far it goes on along its axis from the grasp, to press its lip [m].
    """

    T_base_gripper: Array
    T_base_pregrasp: Array
    aperture: float
    open_aperture: float
    pregrasp_positions: Mapping[str, float] | None = None
    torsion: float | None = None
    press: float = 0.0

    def __post_init__(self) -> None:
        check_transform(self.T_base_gripper, "T_base_gripper")
        check_transform(self.T_base_pregrasp, "T_base_pregrasp")
        if not (np.isfinite([self.aperture, self.open_aperture]).all() and 0.0 <= self.aperture <= self.open_aperture):
            raise InvalidInputError(
                "aperture", [self.aperture, self.open_aperture], "0 <= aperture <= open_aperture [m]"
            )
        if self.pregrasp_positions is not None:
            values = list(self.pregrasp_positions.values())
            if not values or not np.isfinite(values).all():
                raise InvalidInputError("pregrasp_positions", values, "finite positions [rad], or None")
        if self.torsion is not None and not (np.isfinite(self.torsion) and self.torsion >= 0.0):
            raise InvalidInputError("torsion", self.torsion, "a finite torque [N m], not negative, or None")
        if not (np.isfinite(self.press) and self.press >= 0.0):
            raise InvalidInputError("press", self.press, "a finite length, not negative [m]")

    def pressed(self, depth: float) -> Array:
        """``T_base_gripper`` (4, 4) so far along the approach behind the grasp [m]."""
        pose = self.T_base_gripper.copy()
        pose[:3, 3] += depth * pose[:3, 2]
        return pose


@dataclass(frozen=True)
class PickRequest:
    """One object to be picked up.

    Attributes:
        candidates: grasps, best first; the first that can be reached is executed.
        target: the object; an obstacle until it is grasped. None if its shape is not known.
        obstacles: what else stands around.
        table: what the object stands on.
        solids: what else is known to be there, in the base frame.
        lift_height: [m], 0 means the configuration's.
        regrasps: further attempts with these candidates, None means the configuration's; 0 for a caller that looks
            and plans again instead. Only where the object cannot have moved is there another one.
        displacement: asked before the approach: how far the object has moved since the grasps were planned [m], None
            if that is not known. Must not wait.
        recenter: end the attempt after the test lift where the weight pulls too far beside the grasp: for a caller
            that plans again with what was weighed.
        clearance: distance function of the open gripper in the base frame. Candidates that it puts closer than
            `min_clearance` [m] to anything, at the grasp or where the approach begins, are not executed.
    """

    candidates: tuple[GraspTarget, ...]
    target: ObjectObstacle | None = None
    obstacles: tuple[ObjectObstacle, ...] = ()
    table: TableObstacle | None = None
    solids: tuple[Solid, ...] = ()
    lift_height: float = 0.0
    regrasps: int | None = None
    displacement: Callable[[], float | None] | None = None
    recenter: bool = False
    clearance: ClearanceFunction | None = None
    min_clearance: float = 0.0

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidInputError("candidates", "none", "at least one grasp", "Plan grasps first.")
        if not (np.isfinite(self.lift_height) and 0.0 <= self.lift_height <= 1.0):
            raise InvalidInputError("lift_height", self.lift_height, "in [0, 1] m")
        if not np.isfinite(self.min_clearance):
            raise InvalidInputError("min_clearance", self.min_clearance, "a finite length [m]")
        if self.regrasps is not None and self.regrasps < 0:
            raise InvalidInputError("regrasps", self.regrasps, "0 or more, or None for the configuration's")

    @property
    def target_names(self) -> tuple[str, ...]:
        """The target's name, if there is one."""
        return (self.target.name,) if self.target is not None else ()

    def lifted(self, grasp: GraspTarget, height: float) -> Array:
        """``T_base_gripper`` (4, 4) of a grasp after a lift [m], away from the table."""
        up = self.table.T_base_table[:3, 2] if self.table is not None else np.array([0.0, 0.0, 1.0])
        pose = grasp.T_base_gripper.copy()
        pose[:3, 3] += height * up
        return pose


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
class SwitchVacuum:
    """Command: run the vacuum of a suction cup, or end it."""

    on: bool


@dataclass(frozen=True)
class StopArm:
    """Command: stop the arm where it is. The gripper keeps what it holds."""


Command = SendTrajectory | CommandGripper | SwitchVacuum | StopArm


@dataclass(frozen=True)
class SequenceUpdate:
    """Progress of a pick.

    Attributes:
        stage: the present one, DONE or the failed one at the end.
        commands: to be sent now, in this order.
        finished, success: success only ever with finished.
        failed_stage: None unless it failed; the stage that the deciding attempt failed in.
        message: on failure the cause; otherwise what is going on.
        durations: stages begun so far, in order, with their time [s]; again for each attempt.
        grasp_index: candidate that is executed, -1 before one is found.
        mode: how it ended, None while it runs.
        attempt: number of the present attempt, from 1.
        attempts: those that have ended.
        ready: it failed, and the hand is open and back where nothing is in its way: another pick may begin.
        load: what was weighed last, None if nothing was.
    """

    stage: PickStage
    commands: tuple[Command, ...] = ()
    finished: bool = False
    success: bool = False
    failed_stage: PickStage | None = None
    message: str = ""
    durations: tuple[tuple[PickStage, float], ...] = ()
    grasp_index: int = -1
    mode: FailureMode | None = None
    attempt: int = 1
    attempts: tuple[AttemptRecord, ...] = ()
    ready: bool = False
    load: Load | None = None
