"""Executes grasps and whole picks. A lifecycle node: it moves the robot only while it is active."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.action import GoalResponse
from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup
from rclpy.lifecycle import LifecycleNodeMixin, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.grasping.suction.cup import load_gripper
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.autostart import Autostart
from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.diagnostics import ACTIVE, ERROR, OK, STATE, WARN, Diagnostics
from morphit_ros.ros.core.endpoints import result_is_awaited
from morphit_ros.ros.core.frames import BaseFrameConfig
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.motion_backends import MotionPlanning, MotionPlanningConfig
from morphit_ros.ros.execution.object_clearance import ExecutedClearanceConfig, known_hand
from morphit_ros.ros.execution.pick_jobs import PickJobs, PickJobsConfig
from morphit_ros.ros.execution.pick_request import GoalConfig, GoalReader
from morphit_ros.ros.execution.robot_commands import (
    CommandConfig,
    GatedCommands,
    MotionGate,
    RobotCommands,
    make_robot_commands,
)
from morphit_ros.ros.execution.robot_watch import RobotWatch

# Between two looks at the joint states where nothing else asks for them [s].
_STATE_PERIOD = 0.1


@dataclass(frozen=True)
class GraspExecutionConfig(Config):
    """What the node adds to the grasp sequence."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    autostart: bool = parameter(False, "Configure and activate by itself once its inputs are there")
    gate: bool = parameter(False, "Send trajectories to motion_gate instead of the robot's controller")
    update_rate: float = parameter(50.0, "Rate of the grasp sequence in wall time [Hz]", minimum=5.0, maximum=500.0)


CONFIGS = (
    GraspExecutionConfig, GoalConfig, PickJobsConfig, SequenceConfig, MotionPlanningConfig, CommandConfig,
    BaseFrameConfig, ExecutedClearanceConfig,
)  # fmt: skip


class GraspExecution(LifecycleNodeMixin, Node):
    """Actions `execute_grasp` and `pick`, `release`, `place`, `push`, `go_home` and `recover`."""

    def __init__(self) -> None:
        Node.__init__(self, "grasp_execution")
        # Transitions, goals and the sequence share a group: no motion is sent after a deactivation. Planning there
        # takes up to seconds, but nothing moves meanwhile. Answers to what the sequence asks come in that group too:
        # rclpy loses an answer that arrives in another thread before the question is noted. The clock arrives in
        # a thread and joint states in a group of their own, so that neither is held up. (LifecycleNode has one group.)
        work, inputs = MutuallyExclusiveCallbackGroup(), MutuallyExclusiveCallbackGroup()
        LifecycleNodeMixin.__init__(self, callback_group=work)
        config, goals, jobs, sequence, motion, commands, base, clearance = declare_configs(self, CONFIGS)
        self._robot = robot = RobotConfiguration.load(config.robot)
        gripper = load_gripper(robot.gripper)
        self._commands = MotionGate(self._make_commands(config.gate, commands, work))
        self._diagnostics = Diagnostics(self)
        # The sequence takes the newest itself; between, that they still come.
        driven = commands.command_interface == "actions"
        self._watch = RobotWatch(self, inputs, robot, driven=driven, period=_STATE_PERIOD)
        self._planning = MotionPlanning(self, inputs, motion, robot, self._watch, self._diagnostics)
        reader = GoalReader(
            self, inputs, goals, clearance, base, robot.base_link, gripper, self._watch.reaches,
            known_hand(clearance, config.robot),
        )  # fmt: skip
        self._jobs = PickJobs(
            self, work, inputs, jobs, commands.probed(sequence), robot, gripper, self._commands, self._planning,
            self._watch, reader, self._diagnostics,
        )  # fmt: skip
        self._servers = [
            interfaces.EXECUTE_GRASP.take(self, self._jobs.start_execution, self._on_goal, work),
            interfaces.PICK.take(self, self._jobs.start_pick, self._on_goal, work),
            *(
                action.take(self, self._jobs.start_handling, self._on_hand_goal, work)
                for action in (
                    interfaces.RELEASE,
                    interfaces.PLACE,
                    interfaces.PUSH,
                    interfaces.GO_HOME,
                    interfaces.RECOVER,
                )
            ),
        ]
        self._jobs.is_awaited = lambda goal: any(result_is_awaited(server, goal) for server in self._servers)
        steady_timer(self, 1.0 / config.update_rate, self._jobs.update, work)
        self._autostart = Autostart(self, self._is_ready, work) if config.autostart else None

    def _make_commands(self, gated: bool, config: CommandConfig, work: CallbackGroup) -> RobotCommands:
        if not gated:
            return make_robot_commands(self, config, self._robot, work)
        hand = make_robot_commands(self, config, self._robot, work, ("gripper",))
        return GatedCommands(self, hand, work, config.gate_timeout)

    def _is_ready(self) -> bool:
        lacking = [] if self._planning.ready else [interfaces.SPHERE_DESCRIPTION.name]
        lacking += [] if self._watch.state is not None else [interfaces.JOINT_STATES.name]
        if lacking:
            self._diagnostics.report(WARN, f"not active: waiting for {', '.join(lacking)}")
        return not lacking

    def _on_hand_goal(self, _request: object) -> GoalResponse:
        # What speaks against the robot is told to whoever wants to recover from it.
        return self._answer("")

    def _on_goal(self, _request: object) -> GoalResponse:
        return self._answer(self._watch.problem)

    def _answer(self, reason: str) -> GoalResponse:
        if self._commands.is_open and not self._jobs.running and not reason:
            return GoalResponse.ACCEPT
        reason = reason or ("another is running" if self._commands.is_open else "not active")
        self._jobs.note_refusal()
        self.get_logger().warning(f"goal refused: {reason}", throttle_duration_sec=10.0)
        return GoalResponse.REJECT

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        return super().on_configure(state) if self._planning.renew() else TransitionCallbackReturn.FAILURE

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            self._watch.check()
            self._watch.check_state()
            self._commands.open()
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"not activated: {error}")
            return TransitionCallbackReturn.FAILURE
        lacking = self._watch.not_reported()
        text = f"active: {self._robot.name} may move"
        self._diagnostics.report(WARN if lacking else OK, f"{text}; {lacking}" if lacking else text, {STATE: ACTIVE})
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._halt("deactivated")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._jobs.release()
        self._planning.close()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._halt("shut down")
        self._planning.close()
        return super().on_shutdown(state)

    def _halt(self, reason: str) -> None:
        if self._commands.is_open:
            self._jobs.cancel(reason)
        self._commands.close()

    def end_motion(self) -> None:
        """The process ends: stop the robot, and let nothing through that is still being planned."""
        self._commands.close()

    def motion_ended(self) -> bool:
        """Whether the stop has reached the robot."""
        return self._commands.settled()

    def destroy_node(self) -> None:
        self._planning.close()
        super().destroy_node()


def main(args: list[str] | None = None) -> None:
    # No frozen process may keep a stop waiting, and this one, frozen, no driver.
    run_node(GraspExecution, args, threads=4, datagrams=True)


if __name__ == "__main__":
    main()
