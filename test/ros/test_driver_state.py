"""A driver that says why its robot must not be moved: the arm stops with that reason, goals wait until it is gone."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from std_msgs.msg import Bool, Float64, String
from test_grasp_execution_node import Cell, goal_for, panda_xml, spherized_panda, top_grasp
from test_motion_gate import PANDA, Commander, smooth

from morphit_ros.errors import MissingDependencyError
from morphit_ros.resources import resource
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import Quality
from morphit_ros.ros.execution import driver_state
from morphit_ros.ros.execution.driver_state import DriverState

__all__ = ["spherized_panda"]
pytestmark = [pytest.mark.ros, pytest.mark.alone]
# Those of ur_robot_driver whose types are installed wherever ROS is.
RUNNING = interfaces.Topic("io_and_status_controller/robot_program_running", Bool, Quality.LATCHED, "")
SCALING = interfaces.Topic("speed_scaling_state_broadcaster/speed_scaling", Float64, Quality.STREAM, "")
STOPPED = "the robot's program is not running"


@pytest.fixture
def robot_file(tmp_path):
    """A Panda whose driver says what a UR's does."""
    text = resource("config/robots/panda.yaml").read_text().split("driver_state:")[0]
    path = tmp_path / "panda.yaml"
    path.write_text(f"{text}driver_state: {{program_running: {RUNNING.name}, speed_scaling: {SCALING.name}}}\n")
    return path


def test_a_pick_fails_with_what_the_driver_says_and_goals_are_refused_until_it_is_gone(
    graph, spherized_panda, robot_file
):
    cell = Cell(graph, spherized_panda, autostart=True, gate=True, robot=robot_file)
    graph.start(
        "motion_gate", robot=robot_file, state_timeout=0.5, heartbeat_timeout=0.5, clock_timeout=0.5,
        start_tolerance=0.05,
    )  # fmt: skip
    graph.publisher(interfaces.ROBOT_DESCRIPTION).publish(String(data=panda_xml()))
    cell.wait_for_report("may move")
    states = graph.latest(interfaces.GATE_STATE)
    running = graph.publisher(RUNNING)
    running.publish(Bool(data=True))
    handle = cell.start_moving()
    running.publish(Bool(data=False))
    graph.wait_until(lambda: not cell.robot.moving, timeout=1.0, what="the stop")
    _, result = graph.result(handle)
    assert not result.success
    assert result.failure_mode == "robot_fault"
    assert STOPPED in result.message
    graph.wait_until(lambda: STOPPED in states[-1].message, what="the gate's word of it")
    moved = cell.robot.trajectories
    accepted, _, _ = cell.execute(goal_for(top_grasp()))
    assert not accepted
    running.publish(Bool(data=True))
    graph.wait_until(lambda: STOPPED not in states[-1].message, what="the end of it")
    graph.wait_until(lambda: cell.execute(goal_for(top_grasp()))[0], what="an accepted goal")
    assert cell.robot.trajectories > moved


def test_the_gate_alone_stops_the_arm_and_passes_nothing_meanwhile(graph, robot_file):
    commander = Commander(graph, robot=robot_file)
    running = graph.publisher(RUNNING)
    running.publish(Bool(data=True))
    assert commander.ask(smooth([0.3, *[0.0] * 6], 3.0)) == "moving"
    robot = commander.robot
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.05, what="the motion")
    running.publish(Bool(data=False))
    graph.wait_until(lambda: not robot.moving, timeout=1.0, what="the stop")
    assert robot.arm[0] - PANDA.home[0] < 0.25
    graph.wait_until(lambda: STOPPED in commander.states[-1].message, what="the reason")
    for _ in range(2):
        assert STOPPED in commander.ask(None)
        assert STOPPED in commander.ask(smooth([0.1, *[0.0] * 6], 3.0))
    assert robot.trajectories == 2, "the motion and its braking"
    running.publish(Bool(data=True))
    commander.ask(None)
    graph.wait_until(lambda: commander.states[-1].message == "resting", what="the end of it")


def test_an_arm_that_is_held_up_is_watched_until_it_has_arrived(graph, robot_file):
    commander = Commander(graph, robot=robot_file)
    scaling = graph.publisher(SCALING)
    robot, away = commander.robot, [0.3, *[0.0] * 6]
    graph.node.create_timer(0.02, lambda: scaling.publish(Float64(data=robot.scale)))
    robot.scale = 100.0
    trajectory = smooth(away, 1.0)
    assert commander.ask(trajectory) == "moving"
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.02, what="the motion")
    # The slider at zero for longer than the whole motion, and than the gate waits for an arm that rests.
    robot.scale = 0.0
    held = robot.arm.copy()
    begin = graph.node.get_clock().now().nanoseconds
    graph.wait_until(lambda: graph.node.get_clock().now().nanoseconds - begin > 2.5e9, what="time")
    assert abs(robot.arm - held).max() < 0.05
    assert commander.states[-1].message == "moving"
    robot.scale = 15.0
    graph.wait_until(lambda: robot.arm[0] - PANDA.home[0] > 0.15, what="what is after the planned end")
    assert commander.states[-1].message == "moving"
    commander.silent = True
    graph.wait_until(lambda: not robot.moving, what="the stop")
    assert "no heartbeat of /grasp_execution" in commander.states[-1].message
    assert robot.arm[0] - PANDA.home[0] < 0.29


def test_a_grasp_at_reduced_speed_is_not_off_its_trajectory(graph, spherized_panda, robot_file):
    scale = 30.0
    cell = Cell(graph, spherized_panda, autostart=True, robot=robot_file, tracking_delay=1.0, tracking_bound=0.2)
    cell.wait_for_report("may move")
    scaling = graph.publisher(SCALING)
    cell.robot.scale = scale
    graph.node.create_timer(0.02, lambda: scaling.publish(Float64(data=scale)))
    accepted, _, result = graph.send_goal(interfaces.EXECUTE_GRASP, goal_for(top_grasp()), timeout=120.0)
    assert accepted
    assert result.success, result.message


class FakeNode:
    """Takes subscriptions and lets messages come."""

    def __init__(self):
        self.topics = {}

    def create_subscription(self, message_type, topic, callback, profile, callback_group=None, raw=False):
        assert raw
        self.topics[topic] = callback


@pytest.fixture
def stand_ins(monkeypatch):
    """Message packages of the drivers, with types of the same fields."""
    for package, names in {
        "ur_dashboard_msgs": ("SafetyMode", "RobotMode"),
        "franka_msgs": ("FrankaRobotState",),
    }.items():
        types = {name: type(name, (SimpleNamespace,), {}) for name in names}
        monkeypatch.setitem(sys.modules, f"{package}.msg", SimpleNamespace(**types))
    monkeypatch.setattr(driver_state, "deserialize_message", lambda raw, _: raw)


def test_a_ur_is_followed_on_its_topics_and_what_says_more_comes_first(stand_ins):
    node = FakeNode()
    driver = DriverState(node, None, RobotConfiguration.load("ur5e_hande"), driven=True)
    controller = "io_and_status_controller"
    assert set(node.topics) == {
        f"{controller}/safety_mode", f"{controller}/robot_mode", f"{controller}/robot_program_running",
        "speed_scaling_state_broadcaster/speed_scaling",
    }  # fmt: skip
    assert driver.problem == ""
    assert driver.silent() == list(node.topics)
    node.topics[f"{controller}/robot_program_running"](Bool(data=False))
    assert STOPPED in driver.problem
    node.topics[f"{controller}/safety_mode"](SimpleNamespace(mode=3))
    assert driver.problem == "the robot is in a protective stop"
    node.topics[f"{controller}/safety_mode"](SimpleNamespace(mode=1))
    node.topics[f"{controller}/robot_mode"](SimpleNamespace(mode=5))
    assert "idle" in driver.problem
    node.topics[f"{controller}/robot_mode"](SimpleNamespace(mode=7))
    node.topics[f"{controller}/robot_program_running"](Bool(data=True))
    assert driver.problem == ""


def test_a_franka_is_followed(stand_ins):
    node = FakeNode()
    driver = DriverState(node, None, PANDA, driven=True)
    (receive,) = node.topics.values()
    errors = SimpleNamespace(joint_reflex=True, get_fields_and_field_types=lambda: {"joint_reflex": "boolean"})
    receive(SimpleNamespace(robot_mode=4, current_errors=errors, last_motion_errors=errors))
    assert driver.problem == "the robot is in a reflex: joint_reflex"
    assert driver.silent() == []


def test_a_missing_message_package_is_named_where_a_driver_moves_the_robot():
    with pytest.raises(MissingDependencyError, match=r"ur_dashboard_msgs.*ros-jazzy-ur-dashboard-msgs"):
        DriverState(FakeNode(), None, RobotConfiguration.load("ur3e_hande"), driven=True)
    node = FakeNode()
    DriverState(node, None, RobotConfiguration.load("ur3e_hande"), driven=False)
    # In the simulation it is done without.
    assert set(node.topics) == {RUNNING.name, SCALING.name}
