"""Picks with a suction cup on a robot in memory: pressed on, sensed, lost, let go of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import OBJECT_LOST, FailureMode
from morphit_ros.execution.handling import HandRequest, HandSequence, HandStage
from morphit_ros.execution.pick import (
    CommandGripper,
    CupLimits,
    GraspTarget,
    PickRequest,
    PickStage,
    SendTrajectory,
    SequenceUpdate,
    StopArm,
    SwitchVacuum,
)
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import MotionResult, MotionStatus
from morphit_ros.robot.motion_types import JointState, Trajectory

PERIOD = 0.02
ROBOT = RobotConfiguration.load("ur3e_cup")
CUP = CupLimits(0.008)
CONFIG = SequenceConfig()
# The lip looks down, so that pressing lowers it.
DOWN = np.diag([1.0, -1.0, -1.0])


class Backend:
    """Poses are joint positions: x, y, z are those of the first three joints, a second a motion."""

    def __init__(self) -> None:
        self.lines: list[float] = []

    def _motion(self, start, pose) -> MotionResult:
        first = np.array([start[name] for name in ROBOT.arm_joints])
        rows = np.array([first, np.concatenate([pose[:3, 3], first[3:]])])
        return MotionResult(
            MotionStatus.SUCCEEDED, Trajectory(ROBOT.arm_joints, np.array([0.0, 1.0]), rows, np.zeros_like(rows))
        )

    def set_world(self, table, objects, solids=()) -> None: ...

    def plan_to_pose(self, start, T_base_gripper) -> MotionResult:
        return self._motion(start, T_base_gripper)

    def plan_to_joints(self, start, goal) -> MotionResult:
        return self._motion(start, make_transform(translation=[goal[name] for name in ROBOT.arm_joints[:3]]))

    def plan_straight(self, start, T_base_gripper, speed, allow_contact=()) -> MotionResult:
        self.lines.append(round(float(T_base_gripper[2, 3]), 5))
        return self._motion(start, T_base_gripper)

    def attach(self, object_name, T_base_gripper) -> None: ...

    def detach(self, object_name) -> None: ...


@dataclass
class Robot:
    """An arm that follows exactly; its cup has vacuum once it is pressed to `seals` with the pump on."""

    seals: float
    now: float = 10.0
    arm: np.ndarray = field(default_factory=lambda: np.array([0.3, 0.0, 0.3, 0.0, 0.0, 0.0]))
    pump: bool = False
    sealed: bool = False
    blind: bool = False
    stuck: bool = False
    said: list[object] = field(default_factory=list)
    _trajectory: Trajectory | None = None
    _begin: float = 0.0

    def take(self, commands) -> None:
        self.said += commands
        for command in commands:
            assert not isinstance(command, CommandGripper)
            if isinstance(command, SendTrajectory):
                self._trajectory, self._begin = command.trajectory, self.now
            elif isinstance(command, StopArm):
                self._trajectory = None
            elif isinstance(command, SwitchVacuum):
                self.pump = command.on

    def step(self) -> JointState:
        self.now += PERIOD
        before = self.arm
        if self._trajectory is not None:
            self.arm = self._trajectory.sample(self.now - self._begin)
        self.sealed = self.stuck or (self.pump and (self.sealed or self.arm[2] <= self.seals + 1e-9))
        return JointState(
            ROBOT.arm_joints, self.arm, (self.arm - before) / PERIOD, self.now,
            vacuum=None if self.blind else self.sealed,
        )  # fmt: skip


def request(press: float = 0.003) -> PickRequest:
    grasp, pregrasp = (make_transform(DOWN, (0.3, 0.0, z)) for z in (0.1, 0.2))
    return PickRequest((GraspTarget(grasp, pregrasp, 0.0, 0.0, press=press),), regrasps=0)


def run(
    robot: Robot, wanted: PickRequest, disturb: Callable[[Robot, SequenceUpdate], None] = lambda *_: None
) -> tuple[SequenceUpdate, list[PickStage], Backend]:
    backend = Backend()
    sequence = GraspSequence(backend, ROBOT, CUP, CONFIG, free_motion=FreeMotion())
    sequence.start(wanted, robot.step(), robot.now)
    stages: list[PickStage] = []
    for _ in range(3000):
        update = sequence.update(robot.now, robot.step())
        robot.take(update.commands)
        disturb(robot, update)
        if not stages or stages[-1] is not update.stage:
            stages.append(update.stage)
        if update.finished:
            return update, stages, backend
    raise AssertionError("the pick does not end")


def switched(robot: Robot) -> list[bool]:
    return [command.on for command in robot.said if isinstance(command, SwitchVacuum)]


def test_the_cup_is_pressed_as_far_as_the_grasp_says_and_eases_once_there_is_vacuum() -> None:
    robot = Robot(seals=0.1 - 0.003)
    update, stages, backend = run(robot, request(0.003))
    assert update.success, update.message
    assert stages == [
        PickStage.PLAN, PickStage.OPEN, PickStage.PREGRASP, PickStage.APPROACH, PickStage.CLOSE, PickStage.ATTACH,
        PickStage.TEST_LIFT, PickStage.LIFT, PickStage.VERIFY, PickStage.DONE,
    ]  # fmt: skip
    # Approach and lift are planned first; then pressed, back, test lift, lift.
    assert backend.lines == [0.1, 0.3, 0.097, 0.1, 0.13, 0.3]
    assert switched(robot) == [False, True]
    assert robot.sealed


@pytest.mark.parametrize(
    ("seals", "lines"), [(0.0955, [0.097, 0.0955, 0.1]), (0.094, [0.097, 0.0955, 0.094, 0.1])], ids=["once", "twice"]
)
def test_without_vacuum_the_cup_is_pressed_further(seals: float, lines: list[float]) -> None:
    update, _, backend = run(Robot(seals=seals), request(0.003))
    assert update.success, update.message
    assert backend.lines[2:-2] == lines


def test_what_does_not_seal_within_the_stroke_is_given_up_and_left() -> None:
    robot = Robot(seals=0.0)
    update, stages, backend = run(robot, request(0.006))
    assert update.mode is FailureMode.NO_VACUUM
    assert not update.success
    assert update.ready
    assert "does not seal: no vacuum within 0.5 s, pressed on by 8.0 mm" in update.message
    assert min(backend.lines) == pytest.approx(0.1 - CUP.stroke)
    assert stages[-3:] == [PickStage.RELEASE, PickStage.RETREAT, PickStage.CLOSE]
    assert switched(robot) == [False, True, False]
    assert robot.arm[2] == pytest.approx(0.2, abs=2e-3)


@pytest.mark.parametrize("stage", [PickStage.TEST_LIFT, PickStage.LIFT, PickStage.VERIFY])
def test_vacuum_that_is_lost_while_holding_stops_the_arm_and_is_told(stage: PickStage) -> None:
    robot = Robot(seals=0.097)
    lost_at: list[float] = []

    def disturb(robot: Robot, update: SequenceUpdate) -> None:
        if update.stage is stage:
            robot.seals, robot.sealed = -1.0, False
            lost_at.append(robot.now)

    update, stages, _ = run(robot, request(), disturb)
    assert update.mode is FailureMode.LOST
    assert update.failed_stage is stage
    assert OBJECT_LOST in update.message
    assert "no vacuum" in update.message
    stops = [index for index, command in enumerate(robot.said) if isinstance(command, StopArm)]
    assert stops
    assert robot.said[stops[0] + 1 :].count(SwitchVacuum(False)) == 1
    assert PickStage.SET_DOWN not in stages


def test_a_flicker_of_the_vacuum_switch_is_no_loss() -> None:
    robot = Robot(seals=0.097)

    def disturb(robot: Robot, update: SequenceUpdate) -> None:
        robot.blind = update.stage is PickStage.LIFT and int(robot.now / PERIOD) % 10 < 2

    assert run(robot, request(), disturb)[0].success


def test_a_cup_of_which_nothing_is_heard_and_one_that_cannot_let_go_are_faults() -> None:
    update, _, _ = run(Robot(seals=0.097, blind=True), request())
    assert update.mode is FailureMode.ROBOT_FAULT
    assert "nothing tells whether the cup has vacuum" in update.message
    update, _, _ = run(Robot(seals=0.097, stuck=True), request())
    assert update.mode is FailureMode.ROBOT_FAULT
    assert "still senses vacuum" in update.message


def test_releasing_lets_air_in() -> None:
    robot = Robot(seals=0.3, pump=True, sealed=True)
    sequence = HandSequence(Backend(), ROBOT, CUP, CONFIG, "system clock", FreeMotion())
    wanted = HandRequest((HandStage.RELEASE,), lambda positions: make_transform(DOWN, (0.3, 0.0, 0.3)))
    sequence.start(wanted, robot.step(), robot.now)
    for _ in range(200):
        update = sequence.update(robot.now, robot.step())
        robot.take(update.commands)
        if update.finished:
            break
    assert update.success
    assert switched(robot) == [False]
    assert not robot.sealed


def test_limits_and_presses_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"stroke above 0"):
        CupLimits(0.0)
    with pytest.raises(InvalidInputError, match=r"press.*-0\.001.*not negative"):
        replace(request().candidates[0], press=-0.001)
