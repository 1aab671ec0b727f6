"""The dead-man gate between planner and controller: the only node of a job that moves the arm, and all that it does."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.execution.command_check import CommandCheck, CommandLimits, braked, time_along
from morphit_ros.execution.dead_man import DeadManConfig, DeadManGate, Order, Phase
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.motion_types import JointState, Trajectory
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time, steady_timer, take_clock
from morphit_ros.ros.core.conversions import trajectory_from_message
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics, diagnostic_status
from morphit_ros.ros.core.heartbeat import ended, own_process
from morphit_ros.ros.core.parameters import declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.execution.robot_commands import CommandConfig, make_robot_commands
from morphit_ros.ros.execution.robot_watch import RobotWatch

# An arm that lags behind its trajectory still moves after its end; it rests when it has not moved for so long [s].
_LAG = 0.3
# Faster than this it moves [rad/s].
_REST_SPEED = 0.02
# Joint states no older than this say where the arm is [s].
_FRESH = 0.05
# A gate that did not run for so long has been given up, and the arm been stopped past it; as long again what it hears
# is of before [s].
_SLEPT = 0.25
# Between two looks at the joint states by themselves [s].
_STATE_PERIOD = 0.1


@dataclass(frozen=True)
class MotionGateConfig(Config):
    """Whose commands pass, and how often the gate looks."""

    robot: str = parameter("panda", "Robot: a name in config/robots or a YAML file")
    commander: str = parameter("grasp_execution", "Name of the node that commands; other heartbeats are of its clients")
    period: float = parameter(0.008, "Time between two looks [s]", minimum=0.001, maximum=0.1)


CONFIGS = (MotionGateConfig, DeadManConfig, CommandLimits, CommandConfig)


class TrajectoryGate(Node):
    """Checks each trajectory, passes it on, and brakes the arm when somebody falls silent who must be heard."""

    def __init__(self) -> None:
        super().__init__("motion_gate")
        self._config, times, self._limits, commands = declare_configs(self, CONFIGS)
        self._robot = RobotConfiguration.load(self._config.robot)
        self._stop_time = times.stop_time
        self._gate = DeadManGate(times)
        self._controller = make_robot_commands(self, commands, self._robot, None, ("arm",))
        self._check: CommandCheck | None = None
        self._checked: KinematicModel | None = None
        self._stamp, self._moved = -1.0, 0.0
        self._looked, self._woken = monotonic(), -1e9
        # Whether the arm follows, or was stopped by, what did not come from here.
        self._overruled = False
        # Wall time, and the time along the trajectory then, as long as the clock could be believed.
        self._progress = 0.0, 0.0
        self._place: Array | None = None
        self._trajectory: Trajectory | None = None
        # When the controller was sent it, and how far it had fallen behind before.
        self._begin = self._held_up = 0.0
        # Name of who beats → its process.
        self._processes: dict[str, str] = {}
        self._number = self._blocked = self._said = ""
        self._process = own_process()
        self._diagnostics = Diagnostics(self)
        self._out = interfaces.GATE_STATE.publish(self)
        driven = commands.command_interface == "actions"
        # Each look ends with the newest; between, if looks take long, that they still come.
        self._watch = RobotWatch(
            self, None, self._robot, self._on_state, self._gate.refuse_state, driven, _STATE_PERIOD
        )
        interfaces.HEARTBEAT.subscribe(self, self._on_heartbeat)
        interfaces.GATED_TRAJECTORY.subscribe(self, self._on_trajectory)
        if not driven:
            interfaces.JOINT_TRAJECTORY.subscribe(self, self._on_passed)
        steady_timer(self, self._config.period, self._look)

    def _on_state(self, state: JointState) -> None:
        if self._watch.implausible:
            self._do(self._gate.fault(self._watch.implausible))
        elif set(self._robot.arm_joints) <= set(state.names) and state.stamp != self._stamp:
            self._gate.hear_state()
            place = np.array([state.positions[state.names.index(name)] for name in self._robot.arm_joints])
            far = np.abs(place - self._place).max() if self._place is not None else 0.0
            if far > _REST_SPEED * abs(state.stamp - self._stamp):
                self._moved = ros_time(self)
            self._place, self._stamp = place, state.stamp

    def _on_heartbeat(self, message: DiagnosticStatus) -> None:
        if message.level == DiagnosticStatus.STALE:
            self._processes.pop(message.name, None)
            self._gate.leave(message.name)
            return
        self._processes[message.name] = message.hardware_id
        if message.name.rpartition("/")[2] == self._config.commander:
            self._gate.hear_commander(message.name)
        else:
            self._gate.hear_client(message.name)

    def _on_trajectory(self, message: JointTrajectory) -> None:
        self._number = message.header.frame_id
        self._tick()
        problem, trajectory = "", None
        try:
            trajectory = trajectory_from_message(message)
        except MorphitError as error:
            problem = str(error)
        if trajectory is None and not problem:
            # Not before: how the arm was kept from following is to be read for as long as the reason is.
            self._blocked = ""
            self._do(self._gate.stop())
            return
        if trajectory is not None:
            problem = self._why_not(trajectory)
        order = self._gate.command(problem and f"refused: {problem}", trajectory.duration if trajectory else 0.0)
        if order is Order.FORWARD:
            assert trajectory is not None
            # The gate and the robot count from the same moment, however long the command is on its way.
            self._begin, self._held_up, self._overruled = ros_time(self), self._watch.driver.held_up, False
            self._trajectory = replace(trajectory, start=self._begin)
        self._do(order)

    def _on_passed(self, message: JointTrajectory) -> None:
        """What the controller was sent, by whom ever."""
        if message.header.frame_id != self.get_fully_qualified_name():
            self._overruled = True
            what = "moves" if message.points else "stops"
            who = message.header.frame_id or "somebody else"
            self._do(self._gate.fault(f"{who} {what} the arm past this gate, by {interfaces.JOINT_TRAJECTORY.name}"))

    def _why_not(self, trajectory: Trajectory) -> str:
        if cause := self._watch.problem or self._lacking() or self._watch.implausible:
            return cause
        assert self._check is not None
        assert self._watch.arm is not None
        under_way = None
        if self._gate.phase is Phase.MOVING and self._trajectory is not None and not self._overruled:
            # Whoever renews a motion while it is followed goes on from where the arm is on it.
            late = self._watch.driver.held_up - self._held_up
            under_way = self._trajectory, ros_time(self) - self._begin - late
        return self._check.problem(trajectory, self._watch.arm.as_dict(), under_way)

    def _lacking(self) -> str:
        """What has not come yet; empty if everything has."""
        try:
            self._controller.check_ready()
            self._watch.check_state()
        except MorphitError as error:
            return str(error)
        if self._watch.arm is None:
            return f"no joint state of {', '.join(self._robot.arm_joints)} has come"
        if self._watch.model is not None and self._watch.model is not self._checked:
            # A description that comes later may have other limits.
            self._checked = self._watch.model
            self._check = CommandCheck(self._watch.model, self._robot, self._limits)
        return "" if self._check is not None else f"no {interfaces.ROBOT_DESCRIPTION.name} has come"

    def _look(self) -> None:
        self._tick()
        # What the driver says is over some time: an arm at rest need not be stopped for it, and no command passes.
        said = self._watch.driver.problem if self._gate.phase is Phase.MOVING else ""
        if cause := self._watch.misfit or said:
            self._do(self._gate.fault(cause))
        self._blocked = (blocked := self._controller.blocked()) or self._blocked
        if cause := blocked or self._controller.problem():
            # It has given up, or follows somebody else: one more trajectory would move the arm on from where it holds.
            self._overruled = True
            if self._gate.phase is Phase.BRAKING:
                self._controller.stop()
            self._do(self._gate.fault(cause))
        self._tell()
        # Last: after a look that was late, the next one knows what was waiting behind it.
        self._watch.look()

    def _tick(self) -> None:
        take_clock(self)
        last, self._looked = self._looked, monotonic()
        if self._looked - last > _SLEPT:
            self._woken = self._looked
        for name, process in tuple(self._processes.items()):
            if cause := ended(process):
                del self._processes[name]
                self._do(self._gate.lose(name, cause))
        now = ros_time(self)
        # The end is where the arm rests, not where it should: a scaled controller takes longer.
        late = self._watch.driver.held_up - self._held_up
        order = self._gate.tick(self._looked, now, math.inf if 0.0 <= now - self._moved < _LAG else late)
        if self._gate.phase is Phase.MOVING:
            self._progress = self._looked, now - self._begin - late
        self._do(order)

    def _do(self, order: Order) -> None:
        if order is Order.FORWARD and self._trajectory is not None:
            self._controller.send(self._trajectory)
        elif order is Order.BRAKE and (self._overruled or self._has_slept()):
            # On its path the arm would move on from where it has been stopped.
            self._controller.stop()
        elif order is Order.STOP:
            self._controller.stop()
        elif order is Order.BRAKE and self._trajectory is not None:
            try:
                self._brake(self._trajectory)
            except Exception:
                # Whatever it is, the arm must not go on.
                self._controller.stop()
                raise

    def _has_slept(self) -> bool:
        # Perhaps since the beginning of this very look.
        return self._looked - self._woken < _SLEPT or monotonic() - self._looked > _SLEPT

    def _brake(self, trajectory: Trajectory) -> None:
        """Slow down along the trajectory, from where the arm is on it."""
        state, now, gate = self._watch.arm, ros_time(self), self._gate
        elapsed = now - self._begin - (self._watch.driver.held_up - self._held_up)
        if gate.clock_lost:
            elapsed = self._progress[1] + monotonic() - self._progress[0]
        known = state is not None and self._watch.silence < _FRESH and not self._watch.implausible
        positions = state.as_dict() if state is not None and known else {}
        measured = np.array([positions[name] for name in trajectory.joint_names]) if positions else None
        assert self._check is not None
        limits = self._check.accelerations(trajectory.joint_names)
        brake = braked(trajectory, time_along(trajectory, elapsed, measured), self._stop_time, limits)
        # Without a start it is followed as it comes, whatever the controller's clock says.
        self._controller.send(replace(brake, start=0.0 if gate.clock_lost else now))
        gate.brake_for(brake.duration)

    def _tell(self) -> None:
        gate, missing = self._gate, self._lacking()
        level = ERROR if gate.reason else WARN if missing else OK
        problem = gate.reason or missing or self._watch.problem
        text = problem or gate.phase.value
        values = {"phase": gate.phase.value, "command": self._number, "blocked": self._blocked}
        state = diagnostic_status(self.get_fully_qualified_name(), level, text, values)
        state.hardware_id = self._process
        self._out.publish(state)
        if problem != self._said:
            self._said = problem
            level = WARN if problem and level == OK else level
            self._diagnostics.report(level, f"stopped: {gate.reason}" if gate.reason else problem or "ready")

    def end_motion(self) -> None:
        """The process ends: brake."""
        self._do(self._gate.fault("motion_gate ends"))

    def motion_ended(self) -> bool:
        """Whether the arm has been told, and has had the time to."""
        self._tick()
        return self._gate.phase is not Phase.BRAKING and self._controller.settled()


def main(args: list[str] | None = None) -> None:
    # No frozen process may keep the brake waiting.
    run_node(TrajectoryGate, args, threads=1, datagrams=True)


if __name__ == "__main__":
    main()
