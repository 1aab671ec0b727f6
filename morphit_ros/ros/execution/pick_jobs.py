"""The goals of execute_grasp and pick, one at a time: started, watched, shown and counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import ExecuteGrasp, Pick
from morphit_ros.configuration import parameter
from morphit_ros.errors import MorphitError
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.pick import GripperLimits
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.diagnostics import WARN, Diagnostics
from morphit_ros.ros.execution.held_object import HeldObject
from morphit_ros.ros.execution.job import ExecutionJob
from morphit_ros.ros.execution.motion_backends import MotionPlanning
from morphit_ros.ros.execution.pick_counts import PickCounts
from morphit_ros.ros.execution.pick_request import GoalReader
from morphit_ros.ros.execution.pick_steps import PickSteps, PickStepsConfig
from morphit_ros.ros.execution.robot_commands import MotionGate
from morphit_ros.ros.execution.robot_watch import RobotWatch


@dataclass(frozen=True)
class PickJobsConfig(PickStepsConfig):
    """How long a goal waits for others."""

    silence_timeout: float = parameter(
        2.0, "Wall time without a joint state after which motion is stopped [s]", minimum=0.1, maximum=60.0
    )


class PickJobs:
    """Drives the goals of a node by `update`, all in one callback group.

    Args:
        node: owner of topics and clients.
        group: of `update`, of goals and of answers: rclpy loses one that arrives in another thread before the question
            is noted.
        config: how long a goal waits.
        sequence: settings of the grasp sequence.
        robot, gripper: that are moved.
        commands, planning, watch, reader: of that robot.
        diagnostics: told how each goal ended.
    """

    def __init__(
        self,
        node: Node,
        group: CallbackGroup,
        config: PickJobsConfig,
        sequence: SequenceConfig,
        robot: RobotConfiguration,
        gripper: Gripper,
        commands: MotionGate,
        planning: MotionPlanning,
        watch: RobotWatch,
        reader: GoalReader,
        diagnostics: Diagnostics,
    ) -> None:
        self._node, self._config, self._sequence, self._robot = node, config, sequence, robot
        self._gripper = GripperLimits(gripper.aperture_min, gripper.aperture_max, gripper.max_force, gripper.min_force)
        self._commands, self._planning, self._watch, self._reader = commands, planning, watch, reader
        self._diagnostics = diagnostics
        self._states = interfaces.JOB_STATE.publish(node)
        self._steps = PickSteps(node, group, config, sequence, self._run_sequence)
        self._held = HeldObject(node, group, robot)
        self._free_motion, self._counts = FreeMotion(), PickCounts()
        self._job: ExecutionJob | None = None

    @property
    def running(self) -> bool:
        """Whether there is a goal."""
        return self._job is not None

    def start_execution(self, goal: ServerGoalHandle) -> None:
        """Take a goal of `execute_grasp`."""
        job = self._job_of(goal, ExecuteGrasp)
        self._run_sequence(job, goal.request)
        self._job = job

    def start_pick(self, goal: ServerGoalHandle) -> None:
        """Take a goal of `pick`."""
        self._job = self._job_of(goal, Pick)
        self._steps.begin(self._job)

    def cancel(self, reason: str) -> None:
        """End the goal, if there is one."""
        if self._job is not None:
            self._job.cancel(reason, ros_time(self._node))

    def release(self) -> None:
        """Nothing is held any longer."""
        self._held.release()

    def update(self) -> None:
        """Go on as far as possible without waiting."""
        self._held.update()
        job = self._job
        if job is None:
            # What this node holds comes with the robot's newest shape too; the next pick begins by letting go of it.
            if not self._held.in_model:
                self._planning.follow()
            return
        name = self._node.get_fully_qualified_name()
        self._look_out(job, ros_time(self._node))
        if job.update(ros_time(self._node), self._watch.state):
            self._states.publish(job.status(name))
        self._held.follow(job)
        if job.finished:
            self._job = None
            remark = "" if job.failed else self._held.problem
            status = job.status(name)
            level, text = (WARN, f"{status.message}; {remark}") if remark else (status.level, status.message)
            assert job.mode is not None
            self._counts.add(job.mode, [record.mode for record in job.records])
            values = {pair.key: pair.value for pair in status.values} | self._counts.values()
            self._diagnostics.report(level, text, values)
            job.finish(remark)

    def _look_out(self, job: ExecutionJob, now: float) -> None:
        """End a job that the robot, its driver or the client does not let go on."""
        silence = self._watch.silence
        if job.may_move and silence > self._config.silence_timeout:
            text = f"no joint state for {silence:.1f} s of wall time: is the robot's driver running?"
            job.cancel(text, now, FailureMode.ROBOT_FAULT)
        elif job.goal.is_cancel_requested:
            job.cancel("cancelled by the client", now)
        elif problem := self._commands.problem():
            job.cancel(problem, now, FailureMode.ROBOT_FAULT)
        elif cause := self._commands.blocked():
            job.block(cause, now)

    def _job_of(self, goal: ServerGoalHandle, action_type: type[ExecuteGrasp] | type[Pick]) -> ExecutionJob:
        clock = "simulated clock" if self._node.get_clock().ros_time_is_active else "system clock"
        assert self._planning.backend is not None
        sequence = GraspSequence(
            self._planning.backend, self._robot, self._gripper, self._sequence, clock, self._free_motion
        )
        return ExecutionJob(goal, action_type, sequence, self._commands, ros_time(self._node))

    def _run_sequence(self, job: ExecutionJob, goal: ExecuteGrasp.Goal) -> None:
        try:
            request, cloud = self._reader.read(goal)
            self._held.expect(cloud, request.candidates)
            # A pick looks again after a failed attempt; a given grasp has only its neighbours to go on with.
            request = replace(request, regrasps=0 if isinstance(job.goal.request, Pick.Goal) else None)
            # To read a goal takes a while: joint states have come since.
            job.run_sequence(request, goal.grasps.grasps, self._watch.state, ros_time(self._node))
        except MorphitError as error:
            job.fail("request", str(error), ros_time(self._node), FailureMode.BAD_REQUEST)
