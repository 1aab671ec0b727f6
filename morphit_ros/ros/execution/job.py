"""A running goal of grasp_execution: what it waits for, its grasp sequence, its timeline and its result.

Driven by `update` from a timer. Coroutines would read as well, but rclpy polls a waiting one without pause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped
from rclpy.action.server import ServerGoalHandle
from rclpy.task import Future

from morphit_interfaces.action import ExecuteGrasp, GoHome, Pick, Place, Push, Recover, Release
from morphit_interfaces.msg import SegmentedObject
from morphit_ros.execution.failure import AttemptRecord, FailureMode, PickOutcome
from morphit_ros.execution.handling import HandSequence, HandUpdate
from morphit_ros.execution.pick import CommandGripper, SendTrajectory, SequenceUpdate, StopArm, SwitchVacuum
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.weighing import Load
from morphit_ros.geometry.transforms import Array
from morphit_ros.memory.library import Recognition
from morphit_ros.memory.look import Look
from morphit_ros.memory.thing import Lesson, Weight
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.conversions import matrix_from_pose, point_from_array
from morphit_ros.ros.core.diagnostics import ERROR, OK, diagnostic_status
from morphit_ros.ros.execution.robot_commands import MotionGate

# A success in a word.
_DONE = {
    ExecuteGrasp: "picked", Pick: "picked", Release: "released", Place: "placed", GoHome: "at home",
    Push: "pushed", Recover: "recovered",
}  # fmt: skip


class JobFailed(Exception):
    """The job cannot go on.

    Args:
        stage: where it ended.
        message: the cause and the remedy.
        mode: how it is counted.
    """

    def __init__(self, stage: str, message: str, mode: FailureMode) -> None:
        self.stage = stage
        self.message = message
        self.mode = mode
        super().__init__(f"{stage}: {message}")


@dataclass(frozen=True)
class _Awaited:
    """Something that is waited for. The deadline is wall time: a simulated clock may have stopped."""

    stage: str
    is_there: Callable[[], bool]
    go_on: Callable[[], None]
    deadline: float
    remedy: str
    mode: FailureMode
    lost: Callable[[], str]


class ExecutionJob:
    """One goal of grasp_execution.

    Args:
        goal: accepted goal; finished by `finish`.
        action_type: its type; of its result and feedback those fields are filled that it has.
        sequence: not started yet.
        commands: takes what the sequence wants the robot to do.
        now: ROS time [s].
        base_link: frame of what is weighed.
    """

    def __init__(
        self,
        goal: ServerGoalHandle,
        action_type: Any,
        sequence: GraspSequence | HandSequence,
        commands: MotionGate,
        now: float,
        base_link: str,
    ) -> None:
        self.goal, self._base_link = goal, base_link
        self._sequence = sequence
        self._commands = commands
        self._action_type = action_type
        self._started = self._stage_started = now
        self._stage = ""
        # Stage and whether the goal is over, at the last update.
        self._told = "", False
        self._durations: dict[str, float] = {}
        self._awaited: _Awaited | None = None
        self._result: Any = None
        self._grasps: list[Any] = []
        self._grasp_index = -1
        self._ended: list[AttemptRecord] = []
        self._records: tuple[AttemptRecord, ...] = ()
        self._look_again: Callable[[], None] | None = None
        self._attempts = 1
        # What was weighed last, and whether that was in the present attempt; the object that this is about as it was
        # seen before it; what earlier ones have weighed, in the object's frame.
        self.load: Load | None = None
        self.weighed_now = False
        self.target: SegmentedObject | None = None
        self.weighed: Weight | None = None
        self._attempt = 1
        # (4, 4) of grasps that failed, in the frame of the object, those of earlier jobs first, and how many these are;
        # how many jobs have put the object off.
        self.failed_poses: list[Array] = []
        self.failed_before = self.put_off = 0
        # Whether the object was pushed to where it may have a grasp.
        self.pushed = False
        # The last look at the object, and the known thing that it shows; None without a library.
        self.look: Look | None = None
        self.known: Recognition | None = None
        self.mode: FailureMode | None = None
        self.commanded = False
        self.remark = ""

    @property
    def finished(self) -> bool:
        return self._result is not None

    @property
    def failed(self) -> bool:
        """Whether it has ended without success."""
        return self.finished and not self._result.success

    @property
    def message(self) -> str:
        """The cause of a failure, empty before."""
        return self._result.message if self.failed else ""

    @property
    def put_down(self) -> Array | None:
        """``T_base_gripper`` (4, 4) where the hand has let go of what it put down; None if it put nothing down."""
        return self._sequence.put_down if isinstance(self._sequence, HandSequence) else None

    @property
    def stage(self) -> str:
        """The present one, or the last one."""
        return self._stage

    @property
    def grasp_index(self) -> int:
        """The candidate that is executed, -1 before one is found."""
        return self._grasp_index

    @property
    def records(self) -> list[AttemptRecord]:
        """The attempts that have ended."""
        return [*self._ended, *self._records]

    @property
    def failed_grasps(self) -> list[Array]:
        """(4, 4) of all grasps that failed by the end of the job, in the frame of the object."""
        # Without a record of the present attempt nothing was tried since the last look.
        return [*self.failed_poses, *self._executed_pose] if self.failed and self._records else self.failed_poses

    @property
    def lesson(self) -> Lesson:
        """What the job has taught of its object by its end, but for a weight that was not moved to its frame yet."""
        own = self.failed_grasps[self.failed_before :]
        # Of an object that came to lie otherwise the first ones are not known any more.
        tried = zip(own, self.records[-len(own) :], strict=False)
        failed = [pose for pose, record in tried if record.mode.outcome is PickOutcome.MISGRASP]
        return Lesson(self.weighed, () if self.failed else tuple(self._executed_pose), tuple(failed))

    @property
    def last(self) -> bool:
        """Whether no other attempt follows the present one."""
        return self._look_again is None or len(self._ended) + 1 >= self._attempts

    @property
    def may_move(self) -> bool:
        """Whether the sequence runs."""
        return self._sequence.active

    def wait_for(
        self,
        stage: str,
        is_there: Callable[[], bool],
        go_on: Callable[[], None],
        timeout: float,
        remedy: str,
        now: float,
        mode: FailureMode,
        lost: Callable[[], str] = str,
    ) -> None:
        """Call `go_on`, which may raise JobFailed, once `is_there`; fail after `timeout` of wall time [s].

        Fail at once where `lost` says why it will never be there.
        """
        if stage != self._stage:
            self._enter(stage, now)
        self._awaited = _Awaited(stage, is_there, go_on, monotonic() + timeout, remedy, mode, lost)

    def ask(
        self,
        stage: str,
        future: Future,
        on_answer: Callable[[Any], None],
        timeout: float,
        now: float,
        mode: FailureMode,
        lost: Callable[[], str] = str,
    ) -> None:
        """Wait for the answer of another node; `on_answer` gets it and may raise JobFailed. `lost` as of `wait_for`."""

        def take_answer() -> None:
            if future.exception() is not None:
                raise JobFailed(stage, str(future.exception()), mode)
            on_answer(future.result())

        remedy = f"no answer within {timeout:g} s: is its node still running?"
        self.wait_for(stage, future.done, take_answer, timeout, remedy, now, mode, lost)

    def look_again(self, look: Callable[[], None], regrasps: int) -> None:
        """After a failed attempt that leaves the hand open and free, call `look` instead of ending.

        Args:
            look: begins with perception and leads to `run_sequence` once more.
            regrasps: how often at most.
        """
        self._look_again, self._attempts = look, 1 + regrasps

    def run_sequence(self, request: Any, grasps: list[Any], state: JointState | None, now: float) -> None:
        """Start the sequence with its request; of the candidates of a PickRequest `grasps` are the messages."""
        self._grasps = grasps
        self._sequence.start(request, state, now)

    def update(self, now: float, state: JointState | None) -> bool:
        """Go on as far as possible without waiting; True if stage or outcome changed since the last call."""
        try:
            if self._awaited is not None:
                self._look(self._awaited)
            elif self._sequence.active:
                self._follow(self._sequence.update(now, state), now)
        except JobFailed as failure:
            self.fail(failure.stage, failure.message, now, failure.mode)
        before, self._told = self._told, (self._stage, self.finished)
        return before != self._told

    def _look(self, awaited: _Awaited) -> None:
        if awaited.is_there():
            self._awaited = None
            awaited.go_on()
        elif cause := awaited.lost():
            raise JobFailed(awaited.stage, cause, awaited.mode)
        elif monotonic() > awaited.deadline:
            raise JobFailed(awaited.stage, awaited.remedy, awaited.mode)

    def _follow(self, update: SequenceUpdate | HandUpdate, now: float) -> None:
        for command in update.commands:
            self.commanded = True
            if isinstance(command, SendTrajectory):
                self._commands.send(command.trajectory)
            elif isinstance(command, CommandGripper):
                self._commands.grip(command.aperture, command.max_effort)
            elif isinstance(command, SwitchVacuum):
                self._commands.switch_vacuum(command.on)
            elif isinstance(command, StopArm):
                self._commands.stop()
        self._grasp_index, self._records = update.grasp_index, update.attempts
        if isinstance(update, SequenceUpdate) and update.load is not None:
            self.load, self.weighed_now = update.load, True
        self._attempt = len(self._ended) + update.attempt
        if update.success:
            self._conclude(now, FailureMode.SUCCESS, success=True)
        elif update.failed_stage is None:
            if update.stage.value != self._stage:
                self._enter(update.stage.value, now)
        elif update.ready and self._look_again is not None and len(self.records) < self._attempts:
            self._start_anew(self._look_again)
        else:
            assert update.mode is not None
            self.fail(update.failed_stage.value, update.message, now, update.mode)

    def _start_anew(self, look: Callable[[], None]) -> None:
        self.failed_poses += self._executed_pose
        self._ended, self._records = self.records, ()
        self._attempt = len(self._ended) + 1
        look()

    @property
    def _executed_pose(self) -> list[Array]:
        """(4, 4) of the grasp that is, or was, executed; none before one is found."""
        executed = 0 <= self._grasp_index < len(self._grasps)
        return [matrix_from_pose(self._grasps[self._grasp_index].pose)] if executed else []

    def fail(self, stage: str, message: str, now: float, mode: FailureMode) -> None:
        """End without success. What no attempt came to is counted by the attempt before."""
        if self._ended and not self._records:
            mode = self._ended[-1].mode
            message = f"{message}; before: {self._ended[-1].message}"
        self._conclude(now, mode, success=False, failed_stage=stage, message=message)

    def cancel(self, reason: str, now: float, mode: FailureMode = FailureMode.CANCELLED) -> None:
        """Stop whatever runs; the outcome is a failure with this reason."""
        self._look_again = None
        if self._sequence.active:
            self._follow(self._sequence.cancel(reason, mode), now)
        else:
            self.fail(self._stage or "request", reason, now, mode)

    def block(self, cause: str, now: float) -> None:
        """The robot has given up following its trajectory."""
        if self._sequence.active:
            self._follow(self._sequence.block(cause), now)

    def _enter(self, stage: str, now: float) -> None:
        self._leave_stage(now)
        self._stage, self._stage_started = stage, now
        fields = {"stage": stage, "elapsed": now - self._started, "attempt": self._attempt}
        self.goal.publish_feedback(_filled(self._action_type.Feedback, fields))

    def _leave_stage(self, now: float) -> None:
        if self._stage:
            spent = self._durations.get(self._stage, 0.0)
            self._durations[self._stage] = spent + max(0.0, now - self._stage_started)

    def _conclude(self, now: float, mode: FailureMode, **outcome: Any) -> None:
        if self.finished:
            return
        self._leave_stage(now)
        self.mode = mode
        fields: dict[str, Any] = {
            "stages": list(self._durations), "durations": list(self._durations.values()), "outcome": mode.outcome.value,
            "failure_mode": mode.value, "attempts": len(self.records),
            "attempt_modes": [record.mode.value for record in self.records], "grasp_index": self._grasp_index,
            **outcome,
        }  # fmt: skip
        if 0 <= self._grasp_index < len(self._grasps):
            fields["grasp"] = self._grasps[self._grasp_index]
        if self.load is not None:
            fields |= load_fields(self.load, self._base_link)
        self._awaited = None
        self._result = _filled(self._action_type.Result, fields)

    def finish(self, remark: str = "", holding: bool = False) -> None:
        """Answer the client.

        Args:
            remark: message of a success: what went wrong besides.
            holding: whether the hand holds something, for actions that say so.
        """
        if self._result.success:
            self._result.message = remark
        if hasattr(self._result, "holding"):
            self._result.holding = holding

        def settle(goal: ServerGoalHandle) -> Any:
            if goal.is_cancel_requested:
                goal.canceled()
            elif self._result.success:
                goal.succeed()
            else:
                goal.abort()
            return self._result

        self.goal.execute(settle)

    def status(self, name: str) -> DiagnosticStatus:
        """The stage, or the outcome, with the durations so far [s]."""
        if not self.finished:
            return diagnostic_status(name, OK, self._stage, self._durations)
        result = self._result
        text = _DONE[self._action_type] if result.success else f"failed in {result.failed_stage}: {result.message}"
        return diagnostic_status(name, OK if result.success else ERROR, text, self._durations)


def load_fields(load: Load, base_link: str) -> dict[str, Any]:
    """What was weighed, as the fields of a result."""
    center = PointStamped(point=point_from_array(load.on_vertical))
    center.header.frame_id = base_link
    return {
        "mass": load.mass, "mass_deviation": load.mass_deviation, "center_of_mass": center,
        "center_deviation": load.center_deviation,
    }  # fmt: skip


def _filled(message_type: Any, fields: dict[str, Any]) -> Any:
    """A message with those of the fields that it has."""
    known = message_type.get_fields_and_field_types()
    return message_type(**{name: value for name, value in fields.items() if name in known})
