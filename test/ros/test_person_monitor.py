"""person_monitor as a process: an arm on its trajectory, people who come and go, and who falls silent."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from test_separation_monitor import DESCRIPTION, MODEL, stick

from morphit_interfaces.msg import DistanceShape, SphereModel, WorldObject, WorldObjectArray
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_trajectory

pytestmark = [pytest.mark.ros, pytest.mark.alone]
NAMES = ("turn", "slide")


class Scene:
    """Publishes where the arm is and who is near, as often as it is asked what came of it."""

    def __init__(self, graph, model):
        self.graph, self.positions, self.people, self.tracked = graph, [0.0, 0.1], [], True
        self.process = graph.start(
            "person_monitor", robot_description=DESCRIPTION, model=model, reaction_time=0.5, tracking_error=0.02,
            period=0.02, people_timeout=0.5, person_separation=0.1, person_speed=0.2,
        )  # fmt: skip
        self.scales = graph.latest(interfaces.SPEED_SCALE)
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)
        self.beats = graph.latest(interfaces.HEARTBEAT)
        self.states = graph.publisher(interfaces.JOINT_STATES)
        self.tracker = graph.publisher(interfaces.PEOPLE)
        self.trajectories = graph.publisher(interfaces.JOINT_TRAJECTORY)

    def tell(self):
        state = JointState(name=list(NAMES), position=self.positions)
        state.header.stamp = self.graph.node.get_clock().now().to_msg()
        self.states.publish(state)
        if self.tracked:
            message = WorldObjectArray()
            for number, (x, y) in enumerate(self.people):
                shape = DistanceShape(type=DistanceShape.CAPSULE, dimensions=[1.0, 0.2])
                person = WorldObject(id=f"person_{number}", shapes=[shape])
                person.pose.position.x, person.pose.position.y, person.pose.position.z = x, y, 0.5
                person.pose.orientation.w = 1.0
                message.objects.append(person)
            self.tracker.publish(message)

    def wait_for(self, is_so, what):
        """Keep telling until a scale that is published from now on is as wanted."""
        self.scales.clear()

        self.wait_until(lambda: any(is_so(message.data) for message in self.scales), what)

    def wait_until(self, condition, what):
        """Keep telling until a condition holds."""
        self.graph.wait_until(lambda: (self.tell(), condition())[1], what=what)

    def reasons(self):
        return [status.message for message in self.diagnostics for status in message.status]


@pytest.fixture
def scene(graph, tmp_path):
    model = tmp_path / "post.yaml"
    model.write_text(MODEL, encoding="utf-8")
    return Scene(graph, model)


def test_an_arm_may_go_while_nobody_is_near_and_stands_while_somebody_is(scene):
    scene.wait_for(lambda scale: scale == 100.0, "full speed")
    # Whoever holds an arm up must be missed when it dies.
    scene.wait_until(lambda: scene.beats, "a heartbeat")
    scene.people = [(0.5, 0.0)]
    scene.wait_for(lambda scale: scale == 0.0, "a stop")
    scene.wait_until(lambda: any("the arm waits" in text for text in scene.reasons()), "the reason")
    scene.people = []
    scene.wait_for(lambda scale: scale == 100.0, "full speed again")


def test_people_are_kept_from_what_the_arm_holds(scene):
    scene.positions = [1.5, 0.1]
    # Far from the tip at 0.4 m, and near the end of a stick of half a metre in its hand.
    scene.people = [(1.2, 0.0)]
    scene.wait_for(lambda scale: scale == 100.0, "full speed")
    models = scene.graph.publisher(interfaces.SPHERE_MODEL)
    models.publish(stick(0.5))
    scene.wait_for(lambda scale: scale == 0.0, "a stop")
    models.publish(SphereModel(content_hash="nothing"))
    scene.wait_for(lambda scale: scale == 100.0, "full speed again")


def test_who_falls_silent_stops_the_arm_with_the_reason(scene):
    scene.wait_for(lambda scale: scale == 100.0, "full speed")
    scene.tracked = False
    scene.wait_for(lambda scale: scale == 0.0, "a stop")
    scene.wait_until(lambda: any("people: got nothing for" in text for text in scene.reasons()), "the reason")
    scene.tracked = True
    scene.wait_for(lambda scale: scale == 100.0, "full speed again")


def test_a_path_towards_somebody_is_followed_more_slowly_and_not_to_its_end(scene):
    """The tip swings down towards a person; the nearer, the slower, and it stands before it is too near."""
    scene.wait_for(lambda scale: scale == 100.0, "full speed")
    times = np.linspace(0.0, 4.0, 41)
    share = times / 4.0
    positions = np.stack([1.4 * share**2 * (3.0 - 2.0 * share), np.full_like(times, 0.1)], axis=1)
    velocities = np.stack([1.4 * 6.0 * share * (1.0 - share) / 4.0, np.zeros_like(times)], axis=1)
    trajectory = Trajectory(NAMES, times, positions, velocities)
    # Where the tip would go to, well away from where it is.
    scene.people = [(0.85, 0.0)]
    scene.trajectories.publish(message_from_trajectory(trajectory))
    scene.wait_for(lambda scale: scale > 0.0, "its begin")
    time, scales = 0.0, []
    while time < 4.0 and not (scales and scales[-1] == 0.0):
        scene.scales.clear()
        scene.positions = trajectory.sample(time).tolist()
        scene.wait_until(lambda: scene.scales, "a scale")
        scales.append(scene.scales[-1].data)
        time += 0.02 * scales[-1] / 100.0
    assert 0.3 < time < 3.0 and scales[-1] == 0.0 and max(scales) == 100.0
    angle = trajectory.sample(time)[0]
    tip = np.array([0.4 * np.sin(angle), 0.5 + 0.4 * np.cos(angle)])
    assert 0.85 - 0.2 - 0.05 - tip[0] > 0.1, "0.1 m at least, and what the person can walk meanwhile"
    scene.people = []
    scene.wait_for(lambda scale: scale > 0.0, "that it goes on")


def test_a_trajectory_of_another_robot_is_held_up(scene):
    scene.wait_for(lambda scale: scale == 100.0, "full speed")
    other = Trajectory(("elbow",), np.array([0.0, 1.0]), np.zeros((2, 1)), np.zeros((2, 1)))
    scene.trajectories.publish(message_from_trajectory(other))
    scene.wait_for(lambda scale: scale == 0.0, "a stop")
    scene.trajectories.publish(message_from_trajectory(None))
    scene.wait_for(lambda scale: scale == 100.0, "full speed again")


def test_where_nobody_follows_the_scale_that_is_an_error(graph, tmp_path):
    model = tmp_path / "post.yaml"
    model.write_text(MODEL, encoding="utf-8")
    graph.start("person_monitor", robot_description=DESCRIPTION, model=model)
    reports = graph.latest(interfaces.DIAGNOSTICS)

    def told():
        said = [status for message in reports for status in message.status]
        return any("slowed for nobody" in status.message and status.level == DiagnosticStatus.ERROR for status in said)

    graph.wait_until(told, what="the error")
