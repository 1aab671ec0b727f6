"""Executes grasps and whole picks. A lifecycle node: it moves the robot only while it is active."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import String

from morphit_interfaces.action import ExecuteGrasp, Pick
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.execution.contact_watch import FreeMotion
from morphit_ros.execution.failure import FailureMode
from morphit_ros.execution.pick import GripperLimits
from morphit_ros.execution.sequence import GraspSequence
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import joint_state_from_message
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.frames import BaseFrame, BaseFrameConfig
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.held_object import HeldObject
from morphit_ros.ros.execution.job import ExecutionJob
from morphit_ros.ros.execution.motion_backends import MotionConfig, embedded_backend, moveit_backend
from morphit_ros.ros.execution.object_clearance import ExecutedClearanceConfig, object_clearance
from morphit_ros.ros.execution.object_watch import ObjectWatch
from morphit_ros.ros.execution.pick_counts import PickCounts
from morphit_ros.ros.execution.pick_request import clouds_in_base, object_in_base, pick_request
from morphit_ros.ros.execution.pick_steps import PickSteps
from morphit_ros.ros.execution.robot_commands import CommandConfig, MotionGate, make_robot_commands
from morphit_ros.ros.execution.robot_watch import RobotWatch


@dataclass(frozen=True)
class GraspExecutionConfig(Config):
    """What the node adds to the grasp sequence."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    backend: str = parameter(
        "embedded", "Motion planning: embedded (RoboPlan) or moveit", choices=("embedded", "moveit")
    )
    moveit_parameters: str = parameter("", "With backend moveit: YAML file with all of MoveIt's parameters, merged")
    world_frame: str = parameter("world", "Frame of the grasps, unless they come in the robot's base link")
    seed: int = parameter(0, "Seed of motion planning", minimum=0, maximum=2**31 - 1)
    autostart: bool = parameter(False, "Configure and activate by itself once its inputs are there")
    update_rate: float = parameter(50.0, "Rate of the grasp sequence in wall time [Hz]", minimum=5.0, maximum=500.0)
    request_timeout: float = parameter(90.0, "Longest wait for perception or planning [s]", minimum=0.1, maximum=600.0)
    max_age: float = parameter(120.0, "Oldest grasps that are executed, by their stamp [s]", minimum=1.0, maximum=1e6)
    see_timeout: float = parameter(
        5.0,
        "A failed segmentation is repeated with newer clouds for this long [s of wall time]",
        minimum=0.0,
        maximum=60.0,
    )
    silence_timeout: float = parameter(
        2.0, "Wall time without a joint state after which motion is stopped [s]", minimum=0.1, maximum=60.0
    )
    sight_timeout: float = parameter(
        3.0, "Objects seen longer ago do not tell whether the object moved [s]", minimum=0.1, maximum=60.0
    )


CONFIGS = (GraspExecutionConfig, SequenceConfig, MotionConfig, CommandConfig, BaseFrameConfig, ExecutedClearanceConfig)


class GraspExecution(LifecycleNodeMixin, Node):
    """Actions `execute_grasp` and `pick`."""

    def __init__(self) -> None:
        Node.__init__(self, "grasp_execution")
        # Transitions, goals and the sequence share a group: no motion is sent after a deactivation. Planning there
        # takes up to seconds, but nothing moves meanwhile. Answers to what the sequence asks come in that group too:
        # rclpy loses an answer that arrives in another thread before the question is noted. The clock arrives in
        # the default group and joint states in their own, so that neither is held up. (LifecycleNode has one group.)
        self._work = MutuallyExclusiveCallbackGroup()
        inputs = MutuallyExclusiveCallbackGroup()
        LifecycleNodeMixin.__init__(self, callback_group=self._work)
        configs = declare_configs(self, CONFIGS)
        self._config, self._sequence_config, self._motion_config, command_config, base_config, self._clearance = configs
        if command_config.command_interface == "actions":
            # Gripper drivers finish one goal before the next: the probe is one command there.
            probe = replace(self._sequence_config.probe, speed=0.0)
            self._sequence_config = replace(self._sequence_config, probe=probe)
        self._robot = RobotConfiguration.load(self._config.robot)
        self._gripper_shape = gripper = Gripper.load(self._robot.gripper)
        self._gripper = GripperLimits(gripper.aperture_min, gripper.aperture_max, gripper.max_force, gripper.min_force)
        self._base = BaseFrame(self, self._config.world_frame, base_config)
        self._commands = MotionGate(make_robot_commands(self, command_config, self._robot, self._work))
        self._diagnostics = Diagnostics(self)
        self._job_state = self.create_publisher(
            interfaces.JOB_STATE.type, interfaces.JOB_STATE.name, interfaces.JOB_STATE.quality.profile()
        )
        self._sphere_description = self._planned_description = self._refused_description = ""
        self._state: JointState | None = None
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._state_arrival = self._steady.now()
        self._backend = None
        self._job: ExecutionJob | None = None
        for topic, callback in (
            (interfaces.JOINT_STATES, self._on_joint_state),
            (interfaces.SPHERE_DESCRIPTION, self._on_description),
        ):
            self.create_subscription(topic.type, topic.name, callback, topic.quality.profile(), callback_group=inputs)
        self._steps = PickSteps(
            self, self._work, self._config.request_timeout, self._config.see_timeout, self._sequence_config, self._now,
            self._run_sequence,
        )  # fmt: skip
        self._objects = ObjectWatch(self, inputs, self._config.sight_timeout, self._now)
        self._free_motion, self._counts = FreeMotion(), PickCounts()
        self._held = HeldObject(self, self._work, self._robot)
        self._described = RobotWatch(self, inputs, self._robot)
        self._servers = [
            ActionServer(
                self, action.type, action.name, _settled_by_job, goal_callback=self._on_goal,
                handle_accepted_callback=start, cancel_callback=lambda _: CancelResponse.ACCEPT,
                callback_group=self._work,
            )
            for action, start in (
                (interfaces.EXECUTE_GRASP, self._start_execution),
                (interfaces.PICK, self._start_pick),
            )
        ]  # fmt: skip
        self.create_timer(1.0 / self._config.update_rate, self._tick, callback_group=self._work, clock=self._steady)
        self._autostart = (
            self.create_timer(0.5, self._start_when_ready, callback_group=self._work, clock=self._steady)
            if self._config.autostart else None
        )  # fmt: skip

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        return super().on_configure(state) if self._make_backend() else TransitionCallbackReturn.FAILURE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._described.check()
            if self._state is None:
                raise InvalidInputError(interfaces.JOINT_STATES.name, "nothing yet", "a joint state")
            self._commands.open()
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"not activated: {error}")
            return TransitionCallbackReturn.FAILURE
        self._diagnostics.report(OK, f"active: {self._robot.name} may move")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._halt("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._held.release()
        self._close_backend()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._halt("shut down")
        self._close_backend()
        return super().on_shutdown(state)

    def end_motion(self) -> None:
        """The process ends: stop the robot, and let nothing through that is still being planned."""
        self._commands.close()

    def motion_ended(self) -> bool:
        """Whether the stop has reached the robot."""
        return self._commands.settled()

    def _start_when_ready(self) -> None:
        needs_description = self._config.backend == "embedded"
        if (needs_description and not self._sphere_description) or self._state is None:
            return
        if self._backend is None and self.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            return  # said why; tried again
        if self.trigger_activate() == TransitionCallbackReturn.SUCCESS:
            self._autostart.cancel()

    def _make_backend(self) -> bool:
        try:
            self._described.check()
            if self._sphere_description:
                self._robot.check_description(load_robot_description(self._sphere_description))
            if self._config.backend == "moveit":
                backend = moveit_backend(self._config.moveit_parameters, self._robot, self._motion_config.moveit)
            else:
                backend = embedded_backend(
                    self._sphere_description, self._robot, self._motion_config.embedded, self._config.seed
                )
        except MorphitError as error:
            kept = " (the last one is kept)" if self._backend is not None else ""
            self._diagnostics.report(ERROR, f"no motion planning for this robot{kept}: {error}")
            return False
        self._close_backend()
        self._backend, self._planned_description = backend, self._sphere_description
        return True

    def _halt(self, reason: str) -> None:
        if self._job is not None and self._commands.is_open:
            self._job.cancel(reason, self._now())
        self._commands.close()

    def _close_backend(self) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None

    def destroy_node(self) -> None:
        self._close_backend()
        super().destroy_node()

    # Inputs

    def _on_joint_state(self, message: JointStateMsg) -> None:
        try:
            self._state = joint_state_from_message(message)
            self._state_arrival = self._steady.now()
        except MorphitError as error:
            self._diagnostics.report(WARN, f"joint state ignored: {error}")

    def _on_description(self, message: String) -> None:
        self._sphere_description = message.data

    def _on_goal(self, _request: object) -> GoalResponse:
        reason = self._described.problem
        if self._commands.is_open and self._job is None and not reason:
            return GoalResponse.ACCEPT
        reason = reason or ("another is running" if self._commands.is_open else "not active")
        self.get_logger().warning(f"goal refused: {reason}", throttle_duration_sec=10.0)
        return GoalResponse.REJECT

    # Jobs

    def _start_execution(self, goal: ServerGoalHandle) -> None:
        job = ExecutionJob(goal, ExecuteGrasp, self._make_sequence(), self._commands, self._now())
        self._run_sequence(job, goal.request)
        self._job = job

    def _start_pick(self, goal: ServerGoalHandle) -> None:
        self._job = ExecutionJob(goal, Pick, self._make_sequence(), self._commands, self._now())
        self._steps.begin(self._job)

    def _run_sequence(self, job: ExecutionJob, goal: ExecuteGrasp.Goal) -> None:
        try:
            T_world_base = self._base.T_world_base(self._robot.base_link)
            frames = T_world_base, self._config.world_frame, self._robot.base_link
            request = pick_request(goal, *frames, self._now() - self._config.max_age, self._described.reaches)
            self._held.expect(object_in_base(goal, *frames), request.candidates)
            # A pick looks again after a failed attempt; a given grasp has only its neighbours to go on with.
            regrasps = 0 if isinstance(job.goal.request, Pick.Goal) else None
            moved = self._objects.displacement_of(goal.object)
            table = None if request.table is None else request.table.T_base_table
            clouds = clouds_in_base(goal, *frames) if self._clearance.clearance != "points" else []
            clear = object_clearance(self._clearance, self._gripper_shape, clouds, table)
            request = replace(
                request, regrasps=regrasps, displacement=moved, clearance=clear,
                min_clearance=self._clearance.min_clearance,
            )  # fmt: skip
            job.run_sequence(request, goal.grasps.grasps, self._state, self._now())
        except MorphitError as error:
            job.fail("request", str(error), self._now(), FailureMode.BAD_REQUEST)

    def _tick(self) -> None:
        self._held.update()
        job = self._job
        if job is None:
            if self._config.backend == "embedded" and self._backend is not None:
                self._follow_description()
            return
        silence = (self._steady.now() - self._state_arrival).nanoseconds * 1e-9
        if job.may_move and silence > self._config.silence_timeout:
            text = f"no joint state for {silence:.1f} s of wall time: is the robot's driver running?"
            job.cancel(text, self._now(), FailureMode.ROBOT_FAULT)
        elif job.goal.is_cancel_requested:
            job.cancel("cancelled by the client", self._now())
        elif problem := self._commands.problem():
            job.cancel(problem, self._now(), FailureMode.ROBOT_FAULT)
        elif cause := self._commands.blocked():
            job.block(cause, self._now())
        if job.update(self._now(), self._state):
            self._job_state.publish(job.status(self.get_fully_qualified_name()))
        self._held.follow(job)
        if job.finished:
            self._job = None
            remark = "" if job.failed else self._held.problem
            status = job.status(self.get_fully_qualified_name())
            level, text = (WARN, f"{status.message}; {remark}") if remark else (status.level, status.message)
            self._counts.add(job.mode, [record.mode for record in job.records])
            values = {pair.key: pair.value for pair in status.values} | self._counts.values()
            self._diagnostics.report(level, text, values)
            job.finish(remark)

    def _follow_description(self) -> None:
        """Plan with the newest shape of the robot: refitted, or with something attached.

        What this node holds comes with that shape too, and the next pick begins by letting go of it.
        """
        if self._held.in_model:
            return
        if self._sphere_description not in (self._planned_description, self._refused_description):
            self._refused_description = self._sphere_description
            self._make_backend()

    def _now(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def _make_sequence(self) -> GraspSequence:
        clock = "simulated clock" if self.get_clock().ros_time_is_active else "system clock"
        return GraspSequence(self._backend, self._robot, self._gripper, self._sequence_config, clock, self._free_motion)


def _settled_by_job(_goal: ServerGoalHandle) -> None:
    raise RuntimeError("goals are settled by ExecutionJob.finish")


def main(args: list[str] | None = None) -> None:
    run_node(GraspExecution, args, threads=4)


if __name__ == "__main__":
    main()
