"""The goals of grasp_execution, one at a time: started, watched, shown and counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import ExecuteGrasp, GoHome, Pick, Place, Push, Recover, Release
from morphit_ros.configuration import parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.handling import HandSequence
from morphit_ros.execution.pick import CupLimits, GripperLimits
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.weighing import Scale, effort_scale
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.diagnostics import ERROR, WARN, Diagnostics
from morphit_ros.ros.execution.hand_request import hand_request
from morphit_ros.ros.execution.held_memory import HeldMemory
from morphit_ros.ros.execution.held_object import HeldObject
from morphit_ros.ros.execution.job import ExecutionJob
from morphit_ros.ros.execution.motion_backends import MotionPlanning
from morphit_ros.ros.execution.pick_counts import PickCounts
from morphit_ros.ros.execution.pick_request import GoalReader
from morphit_ros.ros.execution.pick_steps import PickSteps, PickStepsConfig
from morphit_ros.ros.execution.robot_commands import MotionGate
from morphit_ros.ros.execution.robot_watch import RobotWatch
from morphit_ros.ros.execution.wrench_input import WrenchInput

# A job begins when its result is asked for: its client then knows that it was accepted. Few never ask: theirs begins
# after this time [s], in which other goals that came at once have been refused.
_OTHERS_TIME = 0.5
# Services keep ten answers: among so many refusals an acceptance may get lost. Then it has to be asked for, within this
# time [s].
_MANY = 8
_ANSWER_TIME = 2.0
# Refusals further apart than this do not belong together [s].
_FLOOD_TIME = 3.0
# After robot_spheres has let go of what it knew from before its newest shape comes within [s].
_SPHERES_TIME = 1.0
# Actions that do with the hand what no pick does, by their goals.
_HANDLING: dict[type, Any] = {action.Goal: action for action in (Release, Place, Push, GoHome, Recover)}


@dataclass(frozen=True)
class PickJobsConfig(PickStepsConfig):
    """How long a goal waits for others, and what is known at the start."""

    silence_timeout: float = parameter(
        2.0, "Wall time without a joint state after which motion is stopped [s]", minimum=0.1, maximum=60.0
    )
    recall_held: bool = parameter(
        True, "Know from the start what the hand held when this node ended; not where a simulation starts anew"
    )


class PickJobs:
    """Drives the goals of a node by `update`, all in one callback group.

    Args:
        node: owner of topics and clients.
        group: of `update`, of goals and of answers: rclpy loses one that arrives in another thread before the question
            is noted.
        inputs: group of what may arrive meanwhile.
        config: how long a goal waits.
        sequence: settings of the grasp sequence.
        robot, gripper: that are moved.
        commands, planning, watch, reader: of that robot.
        diagnostics: told how each goal ended.

    Attributes:
        is_awaited: whether a client has asked for the result of a goal.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        inputs: CallbackGroup,
        config: PickJobsConfig,
        sequence: SequenceConfig,
        robot: RobotConfiguration,
        gripper: Gripper | SuctionCup,
        commands: MotionGate,
        planning: MotionPlanning,
        watch: RobotWatch,
        reader: GoalReader,
        diagnostics: Diagnostics,
    ) -> None:
        self._node, self._config, self._sequence, self._robot = node, config, sequence, robot
        self._gripper: GripperLimits | CupLimits
        if isinstance(gripper, SuctionCup):
            self._gripper = CupLimits(gripper.bellows_stroke)
        else:
            limits = gripper.aperture_min, gripper.aperture_max, gripper.max_force, gripper.min_force
            self._gripper = GripperLimits(*limits)
        self._commands, self._planning, self._watch, self._reader = commands, planning, watch, reader
        self._diagnostics = diagnostics
        self._states = interfaces.JOB_STATE.publish(node)
        self._steps = PickSteps(node, group, inputs, config, sequence, self._run_sequence, reader.weight_of)
        self._wrench = WrenchInput(node, inputs) if sequence.weigh.source == "wrench" else None
        self._held = HeldObject(node, group, robot)
        self._memory = HeldMemory(node, robot, gripper, sequence, config.recall_held)
        self._known_since: float | None = None
        self._free_motion, self._counts = FreeMotion(), PickCounts()
        self._job: ExecutionJob | None = None
        self._taken = 0.0
        self._refused, self._last_refused = 0, 0.0
        self.is_awaited: Callable[[ServerGoalHandle], bool] = lambda _: True

    @property
    def running(self) -> bool:
        """Whether there is a goal."""
        return self._job is not None

    def note_refusal(self) -> None:
        """A goal was refused."""
        now = monotonic()
        self._refused = 1 + (self._refused if now - self._last_refused < _FLOOD_TIME else 0)
        self._last_refused = now

    def start_execution(self, goal: ServerGoalHandle) -> None:
        """Take a goal of `execute_grasp`."""
        self._job = job = self._job_of(goal, ExecuteGrasp)
        if not self._refuse(job):
            self._run_sequence(job, goal.request)

    def start_pick(self, goal: ServerGoalHandle) -> None:
        """Take a goal of `pick`."""
        self._job = job = self._job_of(goal, Pick)
        if not self._refuse(job):
            self._steps.begin(job)

    def start_handling(self, goal: ServerGoalHandle) -> None:
        """Take a goal of `release`, `place`, `push`, `go_home` or `recover`."""
        self._job = job = self._job_of(goal, _HANDLING[type(goal.request)], HandSequence)
        lost = self._memory.check(self._watch.state)
        if lost:
            self._held.release()
        try:
            request = hand_request(
                goal.request, self._memory, self._reader, self._planning.gripper_pose, self._sequence.lift_height
            )
            job.run_sequence(request, [], self._watch.state, ros_time(self._node))
            if isinstance(goal.request, Recover.Goal):
                held = f"before it: {self._memory.in_words()}" if self._memory.held is not None else ""
                job.remark = f"it was no longer holding the object: {lost}" if lost else held
        except MorphitError as error:
            text = f"{error} (no longer held: {lost})" if lost else str(error)
            job.fail("request", text, ros_time(self._node), FailureMode.BAD_REQUEST)

    def _refuse(self, job: ExecutionJob) -> bool:
        """End a job that would drop what an earlier process has left in the hand, or a place on it."""
        self._memory.check(self._watch.state)
        if not (self._memory.from_disk or self._memory.not_let_go):
            return False
        text = f"{self._memory.in_words()}: place it, release it, or recover with open, before another pick"
        job.fail("request", text, ros_time(self._node), FailureMode.BAD_REQUEST)
        return True

    def _remember(self) -> None:
        """Let others know of what an earlier process has left in the hand, once the fingers have confirmed it."""
        memory = self._memory
        if self._watch.state is None or not memory.from_disk or self._known_since == math.inf:
            return
        if self._known_since is None:
            lost = memory.check(self._watch.state)
            text = f"not held any more: {lost}" if lost else f"{memory.in_words()}: no pick before it is let go of"
            self._diagnostics.report(WARN, text)
            self._known_since = monotonic()
        elif self._held.settled and monotonic() - self._known_since > _SPHERES_TIME:
            self._known_since = math.inf
            self._hold_known()

    def _hold_known(self) -> None:
        """Put what is known to be held into the robot's sphere model."""
        held = self._memory.held
        if held is not None and len(held.points):
            self._held.hold(PointCloud(held.room).transformed(self._robot.T_tip_gripper))

    def cancel(self, reason: str) -> None:
        """End the goal, if there is one."""
        if self._job is not None:
            self._job.cancel(reason, ros_time(self._node))

    def release(self) -> None:
        """Nothing is held any longer."""
        self._held.release()

    def update(self) -> None:
        """Go on as far as possible without waiting."""
        self._watch.look()
        self._held.update()
        self._planning.tell_model(self._held.in_model)
        job = self._job
        if job is None:
            # Of the end of a motion, such as a cancellation that was refused.
            if problem := self._commands.problem():
                self._diagnostics.report(ERROR, problem)
                self._commands.stop()
            self._watch.fault()
            self._remember()
            # What this node holds comes with the robot's newest shape too; the next pick begins by letting go of it.
            if not self._held.in_model:
                self._planning.follow()
            return
        name = self._node.get_fully_qualified_name()
        waited = 0.0 if self.is_awaited(job.goal) else monotonic() - self._taken
        flooded = self._refused >= _MANY
        if flooded and waited > _ANSWER_TIME:
            text = f"its client does not know that it was accepted: {self._refused} other goals came at once"
            job.cancel(text, ros_time(self._node))
        self._look_out(job, ros_time(self._node))
        if waited and (flooded or waited < _OTHERS_TIME) and not job.commanded and not job.finished:
            return
        if job.update(ros_time(self._node), self._watch.state):
            self._states.publish(job.status(name))
        self._held.follow(job)
        if self._memory.follow(job, self._watch.state):
            self._hold_known()
        if job.finished:
            self._job = None
            if job.mode is FailureMode.NOT_EMPTY:
                self._hold_known()
            self._steps.remember(job)
            said = (job.remark, self._steps.problem, self._held.problem, self._memory.problem, self._reader.problem)
            remark = "" if job.failed else "; ".join(filter(None, said))
            status = job.status(name)
            level, text = (WARN, f"{status.message}; {remark}") if remark else (status.level, status.message)
            assert job.mode is not None
            if not isinstance(job.goal.request, tuple(_HANDLING)):
                self._counts.add(job.mode, [record.mode for record in job.records])
            values = {pair.key: pair.value for pair in status.values} | self._counts.values() | self._planning.counts()
            self._diagnostics.report(level, text, values)
            job.finish(remark, self._memory.held is not None)

    def _look_out(self, job: ExecutionJob, now: float) -> None:
        """End a job that the robot, its driver or the client does not let go on."""
        silence = self._watch.silence
        if job.may_move and silence > self._config.silence_timeout:
            text = f"no joint state for {silence:.1f} s of wall time: is the robot's driver running?"
            job.cancel(text, now, FailureMode.ROBOT_FAULT)
        elif job.goal.is_cancel_requested:
            job.cancel("cancelled by the client", now)
        elif said := self._commands.problem() or self._watch.fault() or self._watch.problem:
            # Where the driver says why, all else is its consequence.
            job.cancel(self._watch.problem or said, now, FailureMode.ROBOT_FAULT)
        elif cause := self._commands.blocked():
            job.block(cause, now)

    def _job_of(
        self, goal: ServerGoalHandle, action_type: Any, kind: type[GraspSequence] | type[HandSequence] = GraspSequence
    ) -> ExecutionJob:
        self._taken = monotonic()
        # What has been said of the robot before its client asked: after a pause the goal may be taken first.
        self._watch.look()
        clock = "simulated clock" if self._node.get_clock().ros_time_is_active else "system clock"
        assert self._planning.backend is not None
        backend, robot, base = self._planning.backend, self._robot, self._robot.base_link
        common = backend, robot, self._gripper, self._sequence, clock, self._free_motion
        scale = self._scale() if kind is GraspSequence or action_type is Place else None
        sequence = kind(*common, scale)
        return ExecutionJob(goal, action_type, sequence, self._commands, ros_time(self._node), base)

    def _scale(self) -> Scale | None:
        """What weighs with the robot's present description, None where nothing does; a warning says what is lacking."""
        source, model = self._sequence.weigh.source, self._watch.model
        if source == "none":
            return None
        try:
            if model is None:
                raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "none that fits", "the robot that weighs")
            if self._wrench is not None:
                return self._wrench.scale(model, self._robot)
            return effort_scale(model, self._robot, own_weight=source == "total_efforts")
        except MorphitError as error:
            self._diagnostics.report(WARN, f"nothing is weighed: {error}")
            return None

    def _run_sequence(self, job: ExecutionJob, goal: ExecuteGrasp.Goal) -> None:
        try:
            request, cloud = self._reader.read(goal)
            self._held.expect(cloud, request.candidates)
            self._memory.expect(request, cloud)
            # A pick looks again after a failed attempt; a given grasp has only its neighbours to go on with.
            looks_again = isinstance(job.goal.request, Pick.Goal)
            request = replace(request, regrasps=0 if looks_again else None, recenter=looks_again and not job.last)
            # To read a goal takes a while: joint states have come since.
            job.run_sequence(request, goal.grasps.grasps, self._watch.state, ros_time(self._node))
        except MorphitError as error:
            job.fail("request", str(error), ros_time(self._node), FailureMode.BAD_REQUEST)
