"""The grasp sequence: plan, open, pre-grasp, approach, close, check, attach, lift, verify.

A state machine without threads or sleeping: whoever drives it calls `update` with the time and the
latest joint state, some 50 times a second, and sends the commands that come back. Planning happens
inside `update`, which then takes as long as the motion backend needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.motion import MotionBackend, MotionResult, MotionStatus
from morphit_ros.execution.pick import (
    Command,
    CommandGripper,
    GraspTarget,
    GripperLimits,
    PickRequest,
    SendTrajectory,
    SequenceUpdate,
    Stage,
    Stop,
)
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.supervision import ApertureWatch, StateWatch, TrajectoryWatch
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import JointState, Trajectory

# Begins the cause of a failure after which nothing is held any longer.
OBJECT_LOST = "the object was lost"


class _PickFailed(Exception):
    """Ends the present pick; its text is the cause."""


class GraspSequence:
    """Executes one pick at a time.

    Args:
        backend: plans the motions; belongs to the sequence while a pick runs.
        robot: names of joints.
        gripper: what the gripper is capable of.
        config: speeds, tolerances, time limits.
        clock: name of the clock of `now`, for messages.
    """

    def __init__(
        self,
        backend: MotionBackend,
        robot: RobotConfiguration,
        gripper: GripperLimits,
        config: SequenceConfig | None = None,
        clock: str = "system clock",
    ) -> None:
        self._backend = backend
        self._robot = robot
        self._gripper = gripper
        self._config = config or SequenceConfig()
        self._clock = clock
        self._request: PickRequest | None = None
        self._steps: dict[Stage, Callable[[float], tuple[Command, ...]]] = {
            Stage.PLAN: self._plan,
            Stage.OPEN: self._open,
            Stage.PREGRASP: lambda now: self._move(now, self._pregrasp, Stage.APPROACH),
            Stage.APPROACH: lambda now: self._move(now, self._approach, Stage.CLOSE),
            Stage.CLOSE: self._close,
            Stage.CHECK: self._check,
            Stage.ATTACH: self._attach,
            Stage.LIFT: self._lift,
            Stage.VERIFY: self._verify,
        }

    @property
    def active(self) -> bool:
        """Whether a pick is running."""
        return self._request is not None and self._final is None

    def start(self, request: PickRequest, state: JointState | None, now: float) -> None:
        """Begin a pick; nothing moves before `update`.

        Raises:
            InvalidInputError: a pick is running already.
        """
        if self.active:
            raise InvalidInputError("start", "a pick is running", "an idle sequence", "Cancel it or wait for its end.")
        self._request = request
        self._final: SequenceUpdate | None = None
        self._stage = Stage.PLAN
        self._begin = now
        self._durations: list[tuple[Stage, float]] = []
        self._last_now = now
        self._index = 0
        self._chosen = -1
        self._rejected: list[str] = []
        self._message = ""
        self._watch: TrajectoryWatch | None = None
        self._commanded: float | None = None
        self._grasped = 0.0
        self._pregrasp: Trajectory | None = None
        self._approach: Trajectory | None = None
        self._lift_motion: Trajectory | None = None
        self._world_set = False
        self._state = StateWatch((*self._robot.arm_joints, *self._robot.finger_joints), self._config, self._clock)
        self._problem = self._state.check(now, state) if state is not None else ""

    def update(self, now: float, state: JointState | None) -> SequenceUpdate:
        """Look at the robot and go on.

        Args:
            now: time [s] by the clock that joint states are stamped with.
            state: the latest joint state, None if there is none since the last call.

        Returns:
            What to send and how far it is. After the end: the same end again, without commands.

        Raises:
            InvalidInputError: no pick was started.
        """
        if self._request is None:
            raise InvalidInputError("update", "no pick", "a pick begun with start()")
        if self._final is not None:
            return self._final
        problem = self._problem or self._state.check(now, state)
        self._last_now = max(now, self._last_now)
        if problem:
            return self._fail(problem)
        try:
            commands = self._steps[self._stage](now)
        except _PickFailed as failure:
            return self._fail(str(failure))
        except (MorphitError, RuntimeError) as error:
            return self._fail(f"the motion backend failed: {error}")
        if self._stage is Stage.DONE:
            return self._end(SequenceUpdate(Stage.DONE, commands, True, True, message=self._message))
        return self._report(SequenceUpdate(self._stage, commands, message=self._message))

    def cancel(self, reason: str) -> SequenceUpdate:
        """End the pick and stop the arm. After the end: the same end again, without commands.

        Raises:
            InvalidInputError: no pick was started.
        """
        if self._request is None:
            raise InvalidInputError("cancel", "no pick", "a pick begun with start()")
        return self._final if self._final is not None else self._fail(f"cancelled: {reason}")

    # Stages. Each is called until it moves on; motions are planned in one call and sent in a later
    # one, so that the time of planning does not count as time of moving.

    def _plan(self, now: float) -> tuple[Command, ...]:
        assert self._request is not None
        if not self._world_set:
            target = (self._request.target,) if self._request.target is not None else ()
            self._backend.set_world(self._request.table, (*target, *self._request.obstacles))
            self._world_set = True
        candidates = self._request.candidates
        if self._chosen >= 0:
            # One call later, so that the time of planning counts for this stage.
            self._enter(Stage.OPEN, now)
            return ()
        problem = self._plan_candidate(candidates[self._index])
        if not problem:
            self._chosen = self._index
            self._message = f"grasp {self._index + 1} of {len(candidates)} can be reached"
            return ()
        self._rejected.append(f"grasp {self._index + 1}: {problem}")
        self._index += 1
        if self._index == len(candidates):
            shown = "; ".join(self._rejected[:5]) + ("; …" if len(self._rejected) > 5 else "")
            raise _PickFailed(f"none of {len(candidates)} grasps can be reached: {shown}")
        return ()

    def _plan_candidate(self, grasp: GraspTarget) -> str:
        """Plan all motions of a grasp before any is made; the reason if one is impossible."""
        limit = self._gripper.aperture_max
        if grasp.open_aperture > limit + self._config.open_tolerance:
            return f"needs {1000 * grasp.open_aperture:.0f} mm, the gripper opens {1000 * limit:.0f} mm"
        allowed = self._target_names()
        start = self._with_aperture(self._state.positions, grasp.open_aperture)
        pregrasp = self._backend.plan_to_pose(start, grasp.T_base_pregrasp)
        if pregrasp.status is MotionStatus.START_IN_COLLISION:
            raise _PickFailed(_reason("pre-grasp", pregrasp))
        if pregrasp.trajectory is None:
            return _reason("pre-grasp", pregrasp)
        start = _at_end(start, pregrasp.trajectory)
        approach = self._backend.plan_straight(start, grasp.T_base_gripper, self._config.approach_speed, allowed)
        if approach.trajectory is None:
            return _reason("approach", approach)
        start = self._with_aperture(_at_end(start, approach.trajectory), grasp.aperture)
        lift = self._backend.plan_straight(start, self._lifted(grasp), self._config.lift_speed, allowed)
        if lift.trajectory is None:
            return _reason("lift", lift)
        self._pregrasp, self._approach = pregrasp.trajectory, approach.trajectory
        return ""

    def _open(self, now: float) -> tuple[Command, ...]:
        aperture = self._aperture()
        if self._commanded is None:
            self._commanded = min(self._grasp.open_aperture, self._gripper.aperture_max)
            return (CommandGripper(self._commanded, self._effort),)
        if abs(aperture - self._commanded) <= self._config.open_tolerance:
            self._enter(Stage.PREGRASP, now)
        elif now - self._begin > self._config.gripper_timeout:
            wanted, actual = 1000 * self._commanded, 1000 * aperture
            raise _PickFailed(f"the gripper does not respond: sent to {wanted:.1f} mm, it is at {actual:.1f} mm")
        return ()

    def _move(self, now: float, trajectory: Trajectory | None, following: Stage) -> tuple[Command, ...]:
        assert trajectory is not None
        if self._watch is None:
            self._watch = TrajectoryWatch(trajectory, now, self._config)
            _, problem = self._watch.check(now, self._state)
            if problem:
                raise _PickFailed(f"the arm moved since the motion was planned: {problem}")
            return (SendTrajectory(trajectory),)
        arrived, problem = self._watch.check(now, self._state)
        if problem:
            raise _PickFailed(problem)
        if arrived:
            self._enter(following, now)
        return ()

    def _close(self, now: float) -> tuple[Command, ...]:
        aperture = self._aperture()
        if self._commanded is None:
            self._commanded = max(self._gripper.aperture_min, self._grasp.aperture - self._config.close_bias)
            self._opened = aperture
            self._fingers = ApertureWatch(self._config)
            return (CommandGripper(self._commanded, self._effort),)
        late = now - self._begin > self._config.gripper_timeout
        # An object that fills the opening stops the fingers at once, but its clearance lets them move a little.
        least = min(1e-3, 0.5 * (self._opened - self._grasp.aperture))
        if self._opened - aperture < least:
            if late:
                wanted, actual = 1000 * self._commanded, 1000 * aperture
                raise _PickFailed(f"the gripper does not respond: sent to {wanted:.1f} mm, it is at {actual:.1f} mm")
            return ()
        if self._fingers.at_rest(now, aperture):
            self._enter(Stage.CHECK, now)
        elif late:
            raise _PickFailed(f"the fingers still move after {self._config.gripper_timeout:.1f} s")
        return ()

    def _check(self, now: float) -> tuple[Command, ...]:
        aperture, goal = (
            self._aperture(),
            max(self._gripper.aperture_min, self._grasp.aperture - self._config.close_bias),
        )
        if aperture <= goal + self._config.stall_margin:
            raise _PickFailed(f"closed on nothing: the fingers went all the way to {1000 * aperture:.1f} mm")
        self._grasped = aperture
        self._message = f"holding something {1000 * aperture:.1f} mm wide"
        self._enter(Stage.ATTACH, now)
        return ()

    def _attach(self, now: float) -> tuple[Command, ...]:
        for name in self._target_names():
            self._backend.attach(name, self._grasp.T_base_gripper)
        self._enter(Stage.LIFT, now)
        return ()

    def _lift(self, now: float) -> tuple[Command, ...]:
        self._check_held()
        if self._lift_motion is None:
            self._lift_motion = self._plan_lift()
            return ()
        return self._move(now, self._lift_motion, Stage.VERIFY)

    def _plan_lift(self) -> Trajectory:
        """Straight up, else slower, else by any path."""
        start, goal, speed = self._state.positions, self._lifted(self._grasp), self._config.lift_speed
        first = self._backend.plan_straight(start, goal, speed)
        if first.trajectory is not None:
            return first.trajectory
        slower = self._backend.plan_straight(start, goal, 0.5 * speed)
        if slower.trajectory is not None:
            return slower.trajectory
        other = self._backend.plan_to_pose(start, goal)
        if other.trajectory is not None:
            return other.trajectory
        raise _PickFailed(f"{_reason('straight lift', first)}; {_reason('any other path', other)}")

    def _verify(self, now: float) -> tuple[Command, ...]:
        self._check_held()
        if now - self._begin >= self._config.hold_time:
            self._message = f"lifted and held for {now - self._begin:.1f} s"
            self._enter(Stage.DONE, now)
        return ()

    def _check_held(self) -> None:
        aperture = self._aperture()
        if self._grasped - aperture > self._config.slip_margin:
            before, after = 1000 * self._grasped, 1000 * aperture
            raise _PickFailed(f"{OBJECT_LOST}: the fingers closed from {before:.1f} to {after:.1f} mm")

    # Parts of the stages.

    @property
    def _grasp(self) -> GraspTarget:
        assert self._request is not None
        return self._request.candidates[self._chosen]

    @property
    def _effort(self) -> float:
        return self._config.max_effort or self._gripper.max_force

    def _aperture(self) -> float:
        return float(self._state.values(self._robot.finger_joints).sum())

    def _with_aperture(self, positions: dict[str, float], aperture: float) -> dict[str, float]:
        fingers = self._robot.finger_joints
        return {**positions, **dict.fromkeys(fingers, min(aperture, self._gripper.aperture_max) / len(fingers))}

    def _target_names(self) -> tuple[str, ...]:
        assert self._request is not None
        return (self._request.target.name,) if self._request.target is not None else ()

    def _lifted(self, grasp: GraspTarget) -> Array:
        assert self._request is not None
        table = self._request.table
        up = table.T_base_table[:3, 2] if table is not None else np.array([0.0, 0.0, 1.0])
        pose = grasp.T_base_gripper.copy()
        pose[:3, 3] += (self._request.lift_height or self._config.lift_height) * up
        return pose

    def _enter(self, stage: Stage, now: float) -> None:
        self._durations.append((self._stage, now - self._begin))
        self._stage, self._begin = stage, now
        self._watch = None
        self._commanded = None

    def _fail(self, message: str) -> SequenceUpdate:
        self._durations.append((self._stage, self._last_now - self._begin))
        return self._end(SequenceUpdate(self._stage, (Stop(),), True, False, self._stage, message))

    def _end(self, update: SequenceUpdate) -> SequenceUpdate:
        end = self._report(update)
        # Commands are given once: whoever asks again gets the same end without them.
        self._final = replace(end, commands=())
        return end

    def _report(self, update: SequenceUpdate) -> SequenceUpdate:
        running = () if update.finished else ((self._stage, self._last_now - self._begin),)
        return replace(update, durations=(*self._durations, *running), grasp_index=self._chosen)


def _at_end(positions: dict[str, float], trajectory: Trajectory) -> dict[str, float]:
    """The positions after a trajectory."""
    return {**positions, **dict(zip(trajectory.joint_names, trajectory.positions[-1].tolist(), strict=True))}


def _reason(motion: str, result: MotionResult) -> str:
    return f"{motion}: {result.status.value}" + (f" ({result.message})" if result.message else "")
