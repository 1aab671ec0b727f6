"""What motion_gate tells the controller, callback by callback: the node itself, without a graph around it."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from morphit_ros.execution.dead_man import Phase
from morphit_ros.nodes import motion_gate
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.motion_types import JointState, Trajectory
from morphit_ros.ros.core.conversions import message_from_trajectory
from morphit_ros.ros.execution import robot_watch

pytestmark = pytest.mark.ros
PANDA = RobotConfiguration.load("panda")
COMMANDER = "/grasp_execution"


class Controller:
    """Notes what it is told, and says what a test has it say."""

    def __init__(self):
        self.told, self.says, self.in_the_way = [], "", ""

    def check_ready(self):
        pass

    def send(self, trajectory):
        self.told.append(trajectory)

    def stop(self):
        self.told.append("stop")

    def settled(self):
        return True

    def problem(self):
        said, self.says = self.says, ""
        return said

    def blocked(self):
        said, self.in_the_way = self.in_the_way, ""
        return said


class Bench:
    """A gate whose callbacks are called by hand, at times that are given: `now` [s], by the wall and by the robot."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        for module in (motion_gate, robot_watch):
            monkeypatch.setattr(module, "monotonic", lambda: self.now)
        monkeypatch.setattr(motion_gate, "ros_time", lambda _: self.now)
        self.controller, self.states = Controller(), []
        monkeypatch.setattr(motion_gate, "make_robot_commands", lambda *_: self.controller)
        self.gate = motion_gate.TrajectoryGate()
        monkeypatch.setattr(self.gate._out, "publish", self.states.append, raising=False)
        self.describe(lambda text: text)
        self.place = PANDA.home.copy()
        self.live(looks=2)

    def describe(self, change):
        text = load_robot_description(PANDA.description).xml
        self.gate._watch._on_description(String(data=change(text)))

    def report(self, names, positions):
        self.gate._watch._on_joint_state(
            JointState(tuple(names), np.asarray(positions, float), np.zeros(len(names)), self.now)
        )

    def live(self, looks=1):
        """Everybody is heard, and the gate looks."""
        for _ in range(looks):
            self.now += 0.005
            self.gate._on_heartbeat(DiagnosticStatus(name=COMMANDER))
            self.report(PANDA.arm_joints, self.place)
            self.gate._look()

    def command(self, trajectory):
        self.live(looks=2)
        message = message_from_trajectory(trajectory) if trajectory is not None else JointTrajectory()
        self.gate._on_trajectory(message)

    def phase(self):
        return self.gate._gate.phase

    def reason(self):
        return self.gate._gate.reason

    def move(self):
        """An arm on its way."""
        self.command(smooth())
        assert self.phase() is Phase.MOVING, self.reason()
        self.go_on()
        del self.controller.told[:]

    def go_on(self, duration=0.1):
        """The arm follows for a time."""
        end = self.now + duration
        while self.now < end:
            trajectory = self.gate._trajectory
            self.place = trajectory.sample(self.now - trajectory.start)
            self.live()

    def rest(self):
        end = self.now + 0.4
        while self.phase() is Phase.BRAKING and self.now < end:
            self.live()


@pytest.fixture
def bench(ros_environment, monkeypatch):
    made = Bench(monkeypatch)
    yield made
    made.gate.destroy_node()


def smooth(duration=0.5, distance=0.1, rows=51):
    times = np.linspace(0.0, duration, rows)
    s = times / duration
    way = distance * np.eye(7)[0]
    rates = 30.0 * s**2 * (1.0 - s) ** 2 / duration
    share = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    return Trajectory(PANDA.arm_joints, times, PANDA.home + share[:, None] * way, rates[:, None] * way)


def test_silence_brakes_on_the_path_and_stops_after_it(bench):
    bench.move()
    end = bench.now + 1.0
    while bench.phase() is not Phase.STOPPED and bench.now < end:
        bench.report(PANDA.arm_joints, bench.place)
        bench.gate._look()
        bench.now += 0.005
    brake, stop = bench.controller.told
    assert stop == "stop"
    assert "no heartbeat of /grasp_execution" in bench.reason()
    np.testing.assert_array_equal(brake.velocities[-1], 0.0)
    assert PANDA.home[0] < brake.positions[0, 0] < PANDA.home[0] + 0.1
    assert bench.states[-1].level == DiagnosticStatus.ERROR


@pytest.mark.parametrize("word", ["says", "in_the_way"])
def test_a_controller_that_has_given_up_is_sent_no_other_trajectory(bench, word):
    """It holds the arm, at an obstacle perhaps, or follows somebody else by now: a brake would move the arm on."""
    bench.move()
    setattr(bench.controller, word, "the controller aborted the trajectory")
    bench.live()
    bench.rest()
    assert set(bench.controller.told) == {"stop"}
    assert bench.phase() is Phase.STOPPED
    assert "aborted" in bench.reason()
    assert bool(bench.gate._blocked) is (word == "in_the_way")


def test_a_controller_that_refuses_to_brake_is_stopped_at_once(bench):
    bench.move()
    bench.gate._do(bench.gate._gate.fault("off the rails"))
    assert bench.phase() is Phase.BRAKING
    bench.controller.says = "the controller refused the trajectory"
    bench.gate._look()
    assert bench.controller.told[-1] == "stop"
    assert bench.reason() == "off the rails"


def test_a_gripper_that_reports_on_its_own_is_not_in_the_way(bench):
    fingers = PANDA.finger_joints
    bench.live()
    bench.report(fingers, np.full(len(fingers), 0.02))
    bench.gate._on_trajectory(message_from_trajectory(smooth()))
    assert bench.phase() is Phase.MOVING, bench.reason()
    bench.go_on()
    bench.report(fingers, np.full(len(fingers), 0.02))
    bench.gate._do(bench.gate._gate.fault("off the rails"))
    assert isinstance(bench.controller.told[-1], Trajectory)


def test_a_jump_between_two_reports_of_the_gripper_is_seen(bench):
    fingers = PANDA.finger_joints
    bench.move()
    bench.report(fingers, np.full(len(fingers), 0.02))
    bench.report(PANDA.arm_joints, bench.place + 0.5 * np.eye(7)[3])
    assert "panda_joint4 is reported to have jumped" in bench.reason()


def test_reports_of_the_gripper_alone_are_no_news_of_the_arm(bench):
    bench.move()
    end = bench.now + 0.3
    while bench.phase() is Phase.MOVING and bench.now < end:
        bench.gate._on_heartbeat(DiagnosticStatus(name=COMMANDER))
        bench.report(PANDA.finger_joints, np.full(len(PANDA.finger_joints), 0.02))
        bench.gate._look()
        bench.now += 0.005
    assert "no joint state that can be used" in bench.reason()


def test_the_newest_description_sets_the_limits(bench):
    bench.command(smooth(1.0))
    assert bench.phase() is Phase.MOVING
    bench.command(None)
    bench.describe(lambda text: text.replace('velocity="2.175"', 'velocity="0.05"'))
    bench.command(smooth(1.0))
    assert "the velocity of panda_joint1" in bench.reason()


def test_an_error_in_braking_stops_the_arm(bench, monkeypatch):
    bench.move()

    def fail(*_):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(motion_gate, "braked", fail)
    with pytest.raises(ZeroDivisionError):
        bench.gate._do(bench.gate._gate.fault("off the rails"))
    assert bench.controller.told == ["stop"]


def test_a_foreign_command_stops_and_does_not_brake(bench):
    bench.move()
    bench.gate._on_passed(message_from_trajectory(replace(smooth(), start=0.0)))
    assert bench.controller.told == ["stop"]
    assert "moves the arm past this gate" in bench.reason()


def test_what_it_sent_itself_is_not_foreign(bench):
    bench.move()
    own = message_from_trajectory(smooth())
    own.header.frame_id = bench.gate.get_fully_qualified_name()
    bench.gate._on_passed(own)
    assert bench.phase() is Phase.MOVING


def test_the_commanders_stop_passes_at_once_and_is_answered(bench):
    bench.move()
    bench.command(None)
    assert bench.controller.told == ["stop"]
    assert bench.phase() is Phase.RESTING
    assert bench.reason() == ""


def test_a_client_that_takes_its_leave_is_not_missed(bench):
    bench.gate._on_heartbeat(DiagnosticStatus(name="/client"))
    bench.gate._on_heartbeat(DiagnosticStatus(name="/client", level=DiagnosticStatus.STALE))
    bench.move()
    bench.go_on()
    assert bench.phase() is Phase.MOVING


def test_an_arm_that_lags_is_watched_until_it_rests(bench):
    """Its trajectory has ended, it has not: silence counts."""
    bench.command(smooth(0.3))
    bench.go_on(0.2)
    end = bench.now + 0.3
    while bench.now < end:
        bench.place = bench.place + 1e-3 * np.eye(7)[0]
        bench.live()
    assert bench.phase() is Phase.MOVING
    end = bench.now + 0.5
    while bench.now < end:
        bench.live()
    assert bench.phase() is Phase.RESTING


def test_a_process_that_the_kernel_knows_dead_is_not_waited_for(bench, monkeypatch):
    bench.move()
    monkeypatch.setattr(motion_gate, "ended", lambda process: "has died" if process == "" else "")
    bench.gate._look()
    assert bench.reason() == "/grasp_execution has died"
    assert isinstance(bench.controller.told[-1], Trajectory)


@pytest.mark.parametrize(("pause", "brakes"), [(0.05, True), (0.3, False)])
def test_a_gate_that_slept_stops_and_does_not_brake(bench, pause, brakes):
    bench.move()
    bench.now += pause
    bench.gate._tick()
    bench.gate._do(bench.gate._gate.fault("off the rails"))
    assert isinstance(bench.controller.told[0], Trajectory) is brakes


def test_what_the_driver_says_brakes_an_arm_that_moves(bench, monkeypatch):
    bench.move()
    monkeypatch.setattr(type(bench.gate._watch.driver), "problem", "the robot is in a protective stop")
    bench.live()
    assert bench.phase() is Phase.BRAKING
    assert bench.reason() == "the robot is in a protective stop"
    bench.rest()
    bench.command(None)
    bench.command(smooth())
    assert bench.reason() == "refused: the robot is in a protective stop"
    monkeypatch.setattr(type(bench.gate._watch.driver), "problem", "")
    bench.command(None)
    bench.place = PANDA.home.copy()
    bench.now += 0.5
    bench.command(smooth())
    assert bench.phase() is Phase.MOVING, bench.reason()


def test_the_controllers_own_stop_waits_until_the_brake_has_ended(bench):
    """Stopped before, the arm would be asked for more than its joints can do."""
    quick = smooth(1.0, 1.0)
    bench.command(quick)
    bench.go_on(0.5)
    assert bench.phase() is Phase.MOVING, bench.reason()
    bench.gate._do(bench.gate._gate.fault("off the rails"))
    begin, brake = bench.now, bench.controller.told[-1]
    assert brake.duration > 0.05
    while bench.controller.told[-1] != "stop":
        bench.live()
        assert bench.now < begin + 0.5
    assert bench.now - begin == pytest.approx(brake.duration, abs=0.006)
    assert bench.now - begin >= brake.duration


def test_who_was_overruled_once_brakes_again_on_the_next_path(bench):
    bench.move()
    bench.gate._on_passed(JointTrajectory())
    bench.rest()
    bench.command(None)
    bench.place = PANDA.home.copy()
    bench.now += 0.5
    bench.live(looks=100)
    bench.move()
    bench.gate._do(bench.gate._gate.fault("off the rails"))
    assert isinstance(bench.controller.told[-1], Trajectory)


def test_a_gate_that_ends_brakes_first_and_waits_for_it(bench):
    bench.move()
    bench.gate.end_motion()
    assert isinstance(bench.controller.told[-1], Trajectory)
    assert not bench.gate.motion_ended()
    bench.rest()
    assert bench.gate.motion_ended()
    assert bench.controller.told[-1] == "stop"


def test_how_an_arm_was_kept_from_its_path_is_said_until_the_commander_has_stopped(bench):
    bench.move()
    bench.controller.in_the_way = "joint 2 is off its path"
    bench.live()
    bench.rest()
    for _ in range(50):
        bench.live()
    assert {pair.key: pair.value for pair in bench.states[-1].values}["blocked"] == "joint 2 is off its path"
    bench.command(None)
    bench.live()
    assert {pair.key: pair.value for pair in bench.states[-1].values}["blocked"] == ""


def test_a_gate_that_was_frozen_in_the_middle_of_a_look_does_not_brake(bench, monkeypatch):
    bench.move()

    def wakes_after_half_a_second(_):
        bench.now += 0.5
        return "has died"

    monkeypatch.setattr(motion_gate, "ended", wakes_after_half_a_second)
    bench.gate._look()
    assert bench.controller.told == ["stop"]
