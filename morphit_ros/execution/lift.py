"""Steps with something in the hand: a test lift, the lift, holding still, while it is watched that it is held."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_ros.execution.arm_and_hand import ArmAndHand, SequenceStep
from morphit_ros.execution.candidates import reason
from morphit_ros.execution.failure import FailureMode, PickFailed
from morphit_ros.execution.moves import FollowTrajectory
from morphit_ros.execution.pick import Command
from morphit_ros.execution.weighing import LEAST_READINGS, Load, Scale
from morphit_ros.geometry.transforms import Array


class WhileHolding:
    """Another step, as long as the object is held: `check` is asked with the time before each update of it."""

    def __init__(self, step: SequenceStep, check: Callable[[float], None]) -> None:
        self._step, self._check = step, check

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        self._check(now)
        return self._step.update(now)


class HoldStill:
    """Waits [s]."""

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._begin: float | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        self._begin = now if self._begin is None else self._begin
        return (), now - self._begin >= self._duration


class AndThen:
    """One step after another."""

    def __init__(self, first: SequenceStep, then: SequenceStep) -> None:
        self._step, self._then = first, [then]

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        commands, done = self._step.update(now)
        if done and self._then:
            self._step, done = self._then.pop(), False
        return commands, done


class Weigh:
    """Holds still for a while, and reads the hand's load once the arm has swung out.

    For longer where the robot has spoken too seldom for that, up to three times as long.

    Args:
        robot: whose arm.
        duration: of holding still [s].
        tell: called at the end with what was weighed, None where nothing was; may raise PickFailed. Not given for an
            empty hand, which later loads are compared with.
        before: what the hand carried when it was read for the comparison; weighed is what is left of it.
    """

    # For this part of the time the arm may still swing.
    _SETTLING = 0.45
    # So many times the duration at most, waiting for readings.
    _PATIENCE = 3.0

    def __init__(
        self,
        robot: ArmAndHand,
        duration: float,
        tell: Callable[[Load | None], None] | None = None,
        before: Load | None = None,
    ) -> None:
        self._robot, self._tell, self._before = robot, tell, before
        self._settle, self._hold = HoldStill(self._SETTLING * duration), HoldStill(duration)
        self._longest = HoldStill(self._PATIENCE * duration)
        self._readings: list[Array] = []
        self._read = -np.inf

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        robot, scale = self._robot, self._robot.scale
        commands, done = self._hold.update(now)
        reading = None if scale is None else scale.read(robot.state)
        # The same state may be looked at several times: it is one reading, with one noise.
        fresh = robot.state.stamp > self._read
        if self._settle.update(now)[1] and reading is not None and robot.resting and fresh:
            self._readings.append(reading)
            self._read = robot.state.stamp
        # A robot that reports nothing to weigh by is not waited for.
        enough = reading is None or len(self._readings) >= LEAST_READINGS
        done = self._longest.update(now)[1] or (done and enough)
        if done and scale is not None and self._tell is None:
            scale.tare(self._readings, robot.state.positions)
        elif done and self._tell is not None:
            self._tell(None if scale is None else self._weighed(scale))
        return commands, done

    def _weighed(self, scale: Scale) -> Load | None:
        readings, positions = self._readings, self._robot.state.positions
        if self._before is None:
            return scale.load(readings, positions)
        return scale.left(self._before, readings, positions)


class TestLift:
    """A few centimetres up and a look at the fingers; what slips now can be set down.

    Left out where no straight way leads there: the lift knows other ways.

    Args:
        robot: whose arm.
        T_base_goal: (4, 4) pose of the gripper at the top.
        look: what follows there, under the eyes of the slip watch.
    """

    __test__ = False  # no test case

    def __init__(self, robot: ArmAndHand, T_base_goal: Array, look: SequenceStep) -> None:
        self._robot, self._goal, self._look = robot, T_base_goal, look
        self._follow: FollowTrajectory | None = None
        self._arrived = False

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._arrived:
            return self._look.update(now)
        if self._follow is None:
            robot = self._robot
            result = robot.backend.plan_straight(robot.state.positions, self._goal, robot.config.lift_speed)
            if result.trajectory is None:
                return (), True
            # Sent in the next update, so that the time of planning does not count as time of moving.
            self._follow = FollowTrajectory(robot, result.trajectory)
            return (), False
        commands, self._arrived = self._follow.update(now)
        return commands, False


class Lift:
    """Straight up, else slower, else by any path."""

    def __init__(self, robot: ArmAndHand, T_base_goal: Array) -> None:
        self._robot, self._goal = robot, T_base_goal
        self._follow: FollowTrajectory | None = None

    def update(self, now: float) -> tuple[tuple[Command, ...], bool]:
        if self._follow is None:
            self._follow = self._planned()
            return (), False
        return self._follow.update(now)

    def _planned(self) -> FollowTrajectory:
        backend, start, speed = self._robot.backend, self._robot.state.positions, self._robot.config.lift_speed
        first = backend.plan_straight(start, self._goal, speed)
        result = first
        if result.trajectory is None:
            result = backend.plan_straight(start, self._goal, 0.5 * speed)
        if result.trajectory is None:
            result = backend.plan_to_pose(start, self._goal)
        if result.trajectory is None:
            causes = f"{reason('straight lift', first)}; {reason('any other path', result)}"
            raise PickFailed(FailureMode.NOT_LIFTED, causes)
        return FollowTrajectory(self._robot, result.trajectory)
