"""The grasp sequence: attempts at picking, recovery after a failed one, another attempt where that makes sense.

A state machine without threads or sleeping: whoever drives it calls `update` with the time and the latest joint
state, some 50 times a second, and sends the commands that come back. Planning happens inside `update`, which then
takes as long as the motion backend needs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.arm_and_hand import ArmAndHand
from morphit_ros.execution.attempt import Attempt
from morphit_ros.execution.candidates import is_near
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import OBJECT_LOST, AttemptRecord, FailureMode, PickFailed
from morphit_ros.execution.pick import (
    Command,
    CupLimits,
    GripperLimits,
    PickRequest,
    PickStage,
    SequenceUpdate,
    StopArm,
)
from morphit_ros.execution.recovery import Recovery
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Scale
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_backend import MotionBackend
from morphit_ros.robot.motion_types import JointState

_CONTACTS = {PickStage.PREGRASP: FailureMode.CONTACT_PREGRASP, PickStage.APPROACH: FailureMode.CONTACT_APPROACH}


class GraspSequence:
    """Executes one pick at a time.

    Args:
        backend: plans the motions; belongs to the sequence while a pick runs.
        robot: names of joints.
        gripper: what the gripper is capable of.
        config: speeds, tolerances, time limits.
        clock: name of the clock of `now`, for messages.
        free_motion: what earlier picks have shown of motions without contact; learned from here on if None.
        scale: weighs what is lifted; None: nothing is weighed.
    """

    def __init__(
        self,
        backend: MotionBackend,
        robot: RobotConfiguration,
        gripper: GripperLimits | CupLimits,
        config: SequenceConfig | None = None,
        clock: str = "system clock",
        free_motion: FreeMotion | None = None,
        scale: Scale | None = None,
    ) -> None:
        self._backend, self._robot, self._gripper = backend, robot, gripper
        self._config = config or SequenceConfig()
        self._clock = clock
        self._free_motion, self._scale = free_motion or FreeMotion(), scale
        self._request: PickRequest | None = None
        self._final: SequenceUpdate | None = None

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
        self._request, self._final = request, None
        self._arm = ArmAndHand(
            self._backend, self._robot, self._gripper, self._config, self._clock, self._free_motion, self._scale
        )
        self._attempt = Attempt(self._arm, request, range(len(request.candidates)))
        self._recovery: Recovery | None = None
        self._failed_stage = PickStage.PLAN
        self._records: list[AttemptRecord] = []
        self._stage, self._begin, self._last_now = PickStage.PLAN, now, now
        self._durations: list[tuple[PickStage, float]] = []
        self._problem = self._arm.state.check(now, state) if state is not None else ""

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
        problem = self._problem or self._arm.state.check(now, state)
        self._last_now = max(now, self._last_now)
        try:
            if problem:
                raise PickFailed(FailureMode.ROBOT_FAULT, problem)
            if self._recovery is not None:
                return self._recover(self._recovery)
            commands = self._attempt.update(now)
        except PickFailed as failure:
            return self._take_failure(failure)
        except (MorphitError, RuntimeError) as error:
            return self._take_failure(PickFailed(FailureMode.ROBOT_FAULT, f"the motion backend failed: {error}"))
        return self._go_on(commands)

    def cancel(self, reason: str, mode: FailureMode = FailureMode.CANCELLED) -> SequenceUpdate:
        """End the pick and stop the arm. After the end: the same end again, without commands.

        Args:
            reason: for the message.
            mode: how it is counted.

        Raises:
            InvalidInputError: no pick was started.
        """
        if self._request is None:
            raise InvalidInputError("cancel", "no pick", "a pick begun with start()")
        if self._final is not None:
            return self._final
        return self._take_failure(PickFailed(mode, f"cancelled: {reason}"))

    def block(self, cause: str) -> SequenceUpdate:
        """The robot itself has given up following its trajectory, because something kept it from doing so.

        On the way to the object that is an unexpected contact.

        Raises:
            InvalidInputError: no pick was started.
        """
        if self._request is None:
            raise InvalidInputError("block", "no pick", "a pick begun with start()")
        if self._final is not None:
            return self._final
        return self._take_failure(PickFailed(_CONTACTS.get(self._stage, FailureMode.ROBOT_FAULT), cause))

    def _go_on(self, commands: tuple[Command, ...]) -> SequenceUpdate:
        self._enter(self._attempt.stage)
        message = self._attempt.message
        if self._stage is not PickStage.DONE:
            return self._report(SequenceUpdate(self._stage, commands, message=message))
        message = f"lifted and held for {self._durations[-1][1]:.1f} s"
        if self._attempt.load is not None:
            message += f": {self._attempt.load}"
        self._record(FailureMode.SUCCESS, PickStage.DONE, message)
        return self._end(
            SequenceUpdate(PickStage.DONE, commands, True, True, message=message, mode=FailureMode.SUCCESS)
        )

    def _take_failure(self, failure: PickFailed) -> SequenceUpdate:
        """Note it, and recover from it where the robot can."""
        if self._recovery is not None:
            last = self._records[-1]
            return self._fail(last.mode, f"{last.message}; then in {self._stage.value}: {failure}", stop=True)
        if failure.mode is FailureMode.UNREACHABLE and self._records:
            # The attempt before decides how this pick is counted: this one has not begun.
            return self._fail(self._records[-1].mode, f"{self._records[-1].message}; {failure}", ready=True)
        self._failed_stage = self._stage
        self._record(failure.mode, self._stage, str(failure))
        if not failure.mode.recoverable:
            return self._fail(failure.mode, str(failure), stop=True)
        self._recovery = Recovery(self._arm, self._attempt, failure.mode)
        if self._recovery.stage is PickStage.DONE:
            return self._after_recovery((StopArm(),))
        self._enter(self._recovery.stage)
        return self._report(SequenceUpdate(self._stage, (StopArm(),), message=str(failure)))

    def _recover(self, recovery: Recovery) -> SequenceUpdate:
        commands = recovery.update(self._last_now)
        last = self._records[-1]
        if recovery.lost and last.mode is FailureMode.SLIPPED:
            last = replace(last, mode=FailureMode.LOST, message=f"{OBJECT_LOST}: {last.message}")
            self._records[-1] = last
        if recovery.stage is PickStage.DONE:
            return self._after_recovery(commands)
        self._enter(recovery.stage)
        return self._report(SequenceUpdate(self._stage, commands, message=last.message))

    def _after_recovery(self, commands: tuple[Command, ...]) -> SequenceUpdate:
        """Try the next candidate where the object must be where it was; otherwise the end."""
        assert self._request is not None
        last = self._records[-1]
        allowed = self._config.regrasps if self._request.regrasps is None else self._request.regrasps
        if len(self._records) > allowed:
            return self._fail(last.mode, last.message, commands, ready=True)
        if last.mode is not FailureMode.CLOSED_ON_NOTHING or self._attempt.touched:
            text = f"{last.message}; not tried again: the object may have moved, look and plan anew"
            return self._fail(last.mode, text, commands, ready=True)
        others = self._other_candidates()
        if not others:
            text = f"{last.message}; no other grasp differs from those that failed"
            return self._fail(last.mode, text, commands, ready=True)
        self._recovery = None
        self._attempt = Attempt(self._arm, self._request, others)
        self._enter(PickStage.PLAN)
        return self._report(SequenceUpdate(self._stage, commands, message=f"again, after: {last.message}"))

    def _other_candidates(self) -> list[int]:
        """Candidates behind the failed one and unlike all that failed."""
        assert self._request is not None
        candidates, config = self._request.candidates, self._config
        # Turned about its axis a cup is the same.
        near = config.regrasp_distance, config.regrasp_angle if self._arm.cup is None else np.pi
        failed = [candidates[record.grasp_index].T_base_gripper for record in self._records]
        return [
            index
            for index in range(self._records[-1].grasp_index + 1, len(candidates))
            if not any(is_near(candidates[index].T_base_gripper, pose, *near) for pose in failed)
        ]

    def _record(self, mode: FailureMode, stage: PickStage, message: str) -> None:
        self._records.append(AttemptRecord(mode, self._attempt.grasp_index, stage.value, message))

    def _enter(self, stage: PickStage) -> None:
        if stage is not self._stage:
            self._durations.append((self._stage, self._last_now - self._begin))
            self._stage, self._begin = stage, self._last_now

    def _fail(
        self,
        mode: FailureMode,
        message: str,
        commands: tuple[Command, ...] = (),
        stop: bool = False,
        ready: bool = False,
    ) -> SequenceUpdate:
        self._durations.append((self._stage, self._last_now - self._begin))
        given = (*commands, StopArm()) if stop else commands
        return self._end(
            SequenceUpdate(self._failed_stage, given, True, False, self._failed_stage, message, mode=mode, ready=ready)
        )

    def _end(self, update: SequenceUpdate) -> SequenceUpdate:
        end = self._report(update)
        # Commands are given once: whoever asks again gets the same end without them.
        self._final = replace(end, commands=())
        return end

    def _report(self, update: SequenceUpdate) -> SequenceUpdate:
        running = () if update.finished else ((self._stage, self._last_now - self._begin),)
        ended = len(self._records)
        return replace(
            update,
            durations=(*self._durations, *running),
            grasp_index=self._attempt.grasp_index,
            attempt=max(1, ended) if update.finished or self._recovery is not None else ended + 1,
            attempts=tuple(self._records),
            load=self._attempt.load,
        )
