"""motion_gate between grasp_execution and a robot that follows exactly: what stops the arm, and what is said."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from fake_robot import FakeRobot
from rclpy.time import Time
from std_msgs.msg import String
from test_grasp_execution_node import Cell, goal_for, panda_xml, spherized_panda, top_grasp
from trajectory_msgs.msg import JointTrajectory

from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_trajectory
from morphit_ros.ros.core.heartbeat import own_process

__all__ = ["spherized_panda"]
pytestmark = [pytest.mark.ros, pytest.mark.alone]
# The fake robot and the test share one thread: joint states come late where the machine is loaded.
LENIENT = {"state_timeout": 0.5, "heartbeat_timeout": 0.5, "clock_timeout": 0.5, "start_tolerance": 0.05}
PANDA = RobotConfiguration.load("panda")
# Of an arm that the gate stops: far less than what is left of the motion [s].
SOON = 1.0


class GatedCell(Cell):
    """A cell whose trajectories pass the gate."""

    def __init__(self, graph, description, **gate):
        self.gate_states = graph.latest(interfaces.GATE_STATE, depth=100)
        self.gate = graph.start("motion_gate", **{**LENIENT, **gate})
        super().__init__(graph, description, autostart=True, gate=True, gate_timeout=0.5)
        self.published = graph.publisher(interfaces.ROBOT_DESCRIPTION)
        self.published.publish(String(data=panda_xml()))
        self.wait_for_report("may move")

    @property
    def reason(self):
        """Why the gate has stopped the arm, empty if it has not."""
        errors = [state.message for state in self.gate_states if state.level == DiagnosticStatus.ERROR]
        return errors[-1] if errors else ""

    def await_rest(self):
        """Wait until the gate has stopped the arm; how long that took [s]."""
        begin = time.monotonic()
        self.graph.wait_until(lambda: self.reason and not self.robot.moving, what="the stop")
        return time.monotonic() - begin

    def assert_still(self):
        """The arm stays where it is."""
        place, end = self.robot.arm.copy(), time.monotonic() + 0.3
        self.graph.wait_until(lambda: time.monotonic() > end)
        np.testing.assert_array_equal(self.robot.arm, place)


@pytest.fixture
def cell(graph, spherized_panda):
    return GatedCell(graph, spherized_panda)


def test_a_grasp_passes_the_gate(cell):
    _, _, result = cell.execute(goal_for(top_grasp()))
    assert result.success, f"{result.message}; the gate: {cell.reason}"
    assert cell.reason == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_the_arm_rests_when_its_commander_does_not_live(cell, number):
    cell.start_moving()
    os.kill(cell.process._process.pid, number)
    try:
        assert cell.await_rest() < SOON
        assert "/grasp_execution has died" in cell.reason or "/grasp_execution is stopped" in cell.reason
        # The brake, unless the gate came late itself, and the stop behind it.
        assert cell.robot.trajectories <= 2
        cell.assert_still()
    finally:
        cell.process._process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "motion_gate has died"), (signal.SIGSTOP, "motion_gate is stopped")],
    ids=["killed", "frozen"],
)  # fmt: skip
def test_the_arm_rests_when_the_gate_does_not_live(cell, number, words):
    handle = cell.start_moving()
    os.kill(cell.gate._process.pid, number)
    try:
        begin = time.monotonic()
        cell.graph.wait_until(lambda: not cell.robot.moving, what="the stop")
        assert time.monotonic() - begin < SOON
        _, result = cell.graph.result(handle)
        assert not result.success
        assert words in result.message
    finally:
        cell.gate._process.send_signal(signal.SIGCONT)


def test_nobody_can_be_kept_waiting_by_who_moves_the_arm(cell):
    # In shared memory all that write to a process that was frozen with a lock in its hands wait for a second.
    for process in (cell.gate, cell.process):
        assert "/dev/shm/fastrtps" not in Path(f"/proc/{process._process.pid}/maps").read_text()


def test_a_gate_of_another_machine_is_known_dead_by_its_silence(graph, spherized_panda):
    state = DiagnosticStatus(name="/motion_gate", message="moving")
    cell = Cell(graph, spherized_panda, autostart=True, gate=True, gate_timeout=0.5)
    out, states = graph.publisher(interfaces.JOINT_TRAJECTORY), graph.publisher(interfaces.GATE_STATE)

    def pass_on(trajectory):
        state.values = [
            KeyValue(key=key, value=value)
            for key, value in (("phase", "moving"), ("command", trajectory.header.frame_id))
        ]
        out.publish(trajectory)

    graph.node.create_subscription(JointTrajectory, interfaces.GATED_TRAJECTORY.name, pass_on, 10)
    timer = graph.node.create_timer(0.01, lambda: states.publish(state))
    cell.wait_for_report("may move")
    handle = cell.start_moving()
    timer.cancel()
    begin = time.monotonic()
    graph.wait_until(lambda: not cell.robot.moving, what="the stop")
    assert 0.3 < time.monotonic() - begin < 0.5 + SOON
    assert "motion_gate has been silent for 0.5" in graph.result(handle)[1].message


def test_a_client_that_falls_silent_ends_its_pick(cell):
    heart = cell.graph.publisher(interfaces.HEARTBEAT)
    timer = cell.graph.node.create_timer(0.02, lambda: heart.publish(DiagnosticStatus(name="/client")))
    handle = cell.start_moving()
    timer.cancel()
    assert cell.await_rest() < SOON + LENIENT["heartbeat_timeout"]
    _, result = cell.graph.result(handle)
    assert not result.success
    assert "no heartbeat of the client /client" in result.message
    assert result.failure_mode == "robot_fault"


def moved_by_a_turn(arm):
    return arm + 2.0 * np.pi * np.eye(7)[0]


def swapped(arm):
    return arm[[1, 0, *range(2, 7)]]


@pytest.mark.parametrize(
    ("report", "words"),
    [(moved_by_a_turn, "panda_joint1 at 6."), (swapped, "is reported to have jumped by 0.")],
    ids=["a turn", "swapped"],
)
def test_a_place_where_the_arm_cannot_be_is_no_beginning(cell, report, words):
    handle = cell.start_moving()
    cell.robot.report = report
    assert cell.await_rest() < SOON
    assert words in cell.reason
    _, result = cell.graph.result(handle)
    assert words in result.message
    assert result.failure_mode == "robot_fault"
    # At most the brake: no retreat from there.
    assert cell.robot.trajectories <= 2
    cell.assert_still()


def test_silence_of_the_robot_is_named(cell):
    handle = cell.start_moving()
    cell.robot.silent = True
    assert cell.await_rest() < SOON + LENIENT["state_timeout"]
    _, result = cell.graph.result(handle)
    assert "no joint state that can be used for" in result.message


def no_numbers(message):
    message.position[2] = np.nan


def too_few(message):
    message.position = message.position[:-1]


@pytest.mark.parametrize(
    ("spoil", "words"), [(no_numbers, "finite positions"), (too_few, "one for each of 9 names")], ids=["NaN", "too few"]
)
def test_joint_states_that_cannot_be_used_are_named(cell, spoil, words):
    handle = cell.start_moving()
    cell.robot.spoil = spoil
    assert cell.await_rest() < LENIENT["state_timeout"]
    assert "no joint state that can be used for" in cell.reason
    assert words in cell.reason
    _, result = cell.graph.result(handle)
    assert words in result.message
    cell.assert_still()


def simulate_time(graph, stopped=lambda: False, ahead=lambda: 0.0):
    """A clock from now on, which stands still while it is told to, and is ahead by what it is told [s]."""
    ticks = graph.node.create_publisher(
        interfaces.CLOCK.type, interfaces.CLOCK.name, interfaces.CLOCK.quality.profile()
    )
    begin = time.monotonic()

    def tick():
        if not stopped():
            now = Time(seconds=100.0 + time.monotonic() - begin + ahead())
            ticks.publish(interfaces.CLOCK.type(clock=now.to_msg()))

    graph.node.create_timer(0.01, tick)


def test_a_gate_that_wakes_does_not_brake_along_an_old_command(graph):
    simulate_time(graph)
    commander = Commander(graph, use_sim_time=True)
    robot = commander.robot
    # A client that dies while the gate sleeps.
    client = subprocess.Popen(["sleep", "60"])
    beat = DiagnosticStatus(name="/client", hardware_id=f"{own_process().rpartition(' ')[0]} {client.pid}")
    heart = graph.publisher(interfaces.HEARTBEAT)
    graph.node.create_timer(0.02, lambda: heart.publish(beat))
    assert commander.ask(smooth([0.3, *[0.0] * 6], 2.0)) == "moving"
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.05, what="a place on the way")
    os.kill(commander.gate._process.pid, signal.SIGSTOP)
    try:
        stop = graph.publisher(interfaces.JOINT_TRAJECTORY)
        stop.publish(JointTrajectory())
        graph.wait_until(lambda: not robot.moving, what="the stop past the gate")
        client.kill()
        client.wait()
        end, place = time.monotonic() + 0.5, robot.arm.copy()
        graph.wait_until(lambda: time.monotonic() > end)
    finally:
        commander.gate._process.send_signal(signal.SIGCONT)
    graph.wait_until(lambda: commander.states[-1].level == DiagnosticStatus.ERROR, what="the gate's word")
    end = time.monotonic() + 0.3
    graph.wait_until(lambda: time.monotonic() > end)
    # Not even for a moment.
    assert robot.trajectories == 1
    np.testing.assert_array_equal(robot.arm, place)


@pytest.mark.parametrize("jump", [-10.0, 10.0], ids=["back", "forwards"])
def test_a_clock_that_jumps_brakes_the_arm_where_it_is(graph, jump):
    ahead = 0.0
    simulate_time(graph, ahead=lambda: ahead)
    commander = Commander(graph, use_sim_time=True)
    robot = commander.robot
    assert commander.ask(smooth([0.3, *[0.0] * 6], 2.0)) == "moving"
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.1, what="a place on the way")
    ahead, places = jump, [robot.arm[0]]

    def at_rest():
        places.append(robot.arm[0])
        return commander.states[-1].level == DiagnosticStatus.ERROR and not robot.moving

    graph.wait_until(at_rest, what="the stop")
    assert "the clock jumped by" in commander.states[-1].message
    # Neither back to the beginning, where the trajectory is at that time, nor on to its end.
    assert np.diff(places).min() > -0.01
    assert np.diff(places).max() < 0.05
    assert places[-1] - PANDA.home[0] < 0.25


def test_a_clock_that_stands_still_stops_the_arm(graph):
    stopped = False
    simulate_time(graph, lambda: stopped)
    commander = Commander(graph, use_sim_time=True)
    assert commander.ask(smooth([0.3, *[0.0] * 6], 2.0)) == "moving"
    graph.wait_until(lambda: commander.robot.moving, what="the motion")
    stopped = True
    graph.wait_until(lambda: not commander.robot.moving, what="the stop")
    assert "the clock stands still for" in commander.states[-1].message
    assert commander.robot.arm[0] - PANDA.home[0] < 0.28


def test_another_robot_in_mid_motion_stops_the_pick(cell):
    handle = cell.start_moving()
    cell.published.publish(String(data=panda_xml().replace("panda_joint3", "another_joint3")))
    assert cell.await_rest() < SOON
    _, result = cell.graph.result(handle)
    assert "robot_description does not fit the robot's file" in result.message


@pytest.mark.parametrize("stop", [True, False], ids=["stopped", "moved"])
def test_an_arm_that_somebody_else_commands_is_not_moved_any_further(cell, stop):
    handle = cell.start_moving()
    cell.graph.wait_until(lambda: np.abs(cell.robot.arm - PANDA.home).max() > 0.05, what="a place on the way")
    other = smooth([0.1, *[0.0] * 6], 3.0)
    message = JointTrajectory() if stop else message_from_trajectory(other)
    cell.graph.publisher(interfaces.JOINT_TRAJECTORY).publish(message)
    assert cell.await_rest() < SOON
    words = f"somebody else {'stops' if stop else 'moves'} the arm past this gate"
    assert words in cell.reason
    _, result = cell.graph.result(handle)
    assert words in result.message
    # No way back, no second attempt: who has stopped an arm does not want it to go on by itself.
    assert result.failure_mode == "robot_fault"
    cell.assert_still()


def test_an_arm_whose_speed_is_scaled_is_watched_to_its_end(graph):
    """The slider of a teach pendant stretches trajectories without telling anybody."""
    commander = Commander(graph)
    trajectory = smooth([0.3, *[0.0] * 6], 1.0)
    assert commander.ask(trajectory) == "moving"
    robot = commander.robot
    graph.wait_until(lambda: robot.trajectories == 1, what="the motion")
    slow = Trajectory(trajectory.joint_names, 4.0 * trajectory.times, trajectory.positions, trajectory.velocities / 4.0)
    robot._trajectory = slow
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.2, what="what is after the planned end")
    assert commander.states[-1].message == "moving"
    commander.silent = True
    graph.wait_until(lambda: not robot.moving, what="the stop")
    assert "no heartbeat of /grasp_execution" in commander.states[-1].message
    assert robot.arm[0] - PANDA.home[0] < 0.28


class Commander:
    """Commands the gate without grasp_execution, and beats as it would."""

    def __init__(self, graph, **gate):
        self.graph, self.states = graph, graph.latest(interfaces.GATE_STATE, depth=100)
        self.robot = FakeRobot(graph)
        self.gate = graph.start("motion_gate", **LENIENT, tool_speed=0.6, **gate)
        graph.publisher(interfaces.ROBOT_DESCRIPTION).publish(String(data=panda_xml()))
        heart = graph.publisher(interfaces.HEARTBEAT)
        self.silent = False
        graph.node.create_timer(0.02, lambda: self.silent or heart.publish(DiagnosticStatus(name="/grasp_execution")))
        self.out = graph.publisher(interfaces.GATED_TRAJECTORY)
        self.number = 0
        self.graph.wait_until(lambda: self.states and self.states[-1].message == "resting", what="a gate that is ready")

    def ask(self, trajectory):
        """What the gate says of a trajectory, or of a stop."""
        self.number += 1
        message = message_from_trajectory(trajectory) if trajectory is not None else JointTrajectory()
        message.header.frame_id = str(self.number)
        self.out.publish(message)
        answered = {"command": str(self.number)}.items()
        return self.graph.wait_until(
            lambda: next(
                (s.message for s in self.states if answered <= {p.key: p.value for p in s.values}.items()), None
            ),
            what="an answer of the gate",
        )


def smooth(distances, duration, rows=200):
    """A minimum-jerk motion from home by distances (7,) [rad]."""
    times = np.linspace(0.0, duration, rows)
    s = times / duration
    share = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    positions = PANDA.home + share[:, None] * np.asarray(distances)
    return Trajectory(PANDA.arm_joints, times, positions, np.gradient(positions, times, axis=0))


def test_what_the_arm_must_not_do_is_refused_with_its_reason(graph):
    commander = Commander(graph)
    turn = [0.3, *[0.0] * 6]
    away = smooth(turn, 2.0)
    away = Trajectory(away.joint_names, away.times, away.positions + 0.2, away.velocities)
    coarse = Trajectory(
        PANDA.arm_joints, np.array([0.0, 0.001, 0.002, 1.0]), np.array([PANDA.home] * 4), np.zeros((4, 7))
    )
    coarse.velocities[1] = 0.0028 * np.eye(7)[0]
    for trajectory, words in (
        (smooth([3.2, *[0.0] * 6], 6.0), "beyond its limits"),
        (away, "is 0.2 rad from where the arm is"),
        (smooth([2.0, *[0.0] * 6], 1.0), "the velocity of panda_joint1"),
        (smooth([0.3, *[0.0] * 6], 0.32), "the acceleration of panda_joint1"),
        (coarse, "the jerk of panda_joint1"),
        (smooth([0.0, 1.4, 0.0, 1.5, 0.0, 0.0, 0.0], 1.35), "the gripper would move at"),
    ):
        said = commander.ask(trajectory)
        assert said.startswith("refused: "), said
        assert words in said
        # Not before a stop is anything taken again.
        assert commander.ask(smooth(turn, 2.0)) == said
        assert commander.ask(None) == "resting"
    assert commander.robot.trajectories == 0
    assert commander.ask(smooth(turn, 2.0)) == "moving"
    graph.wait_until(lambda: commander.robot.trajectories == 1 and not commander.robot.moving, what="the motion's end")
    assert commander.robot.arm[0] == pytest.approx(PANDA.home[0] + 0.3)
