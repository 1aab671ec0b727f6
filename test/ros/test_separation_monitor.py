"""separation_monitor as a process: a simulated arm that is driven at an object, and everything that may fall silent."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from morphit_interfaces.msg import DistanceShape, LinkSpheres, Sphere, SphereModel, WorldObject, WorldObjectArray
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core import interfaces
from morphit_ros.superovoid.distances.min_distance import min_distance
from morphit_ros.superovoid.distances.primitives import Box
from morphit_ros.superovoid.shapes.superovoid import Superovoid

pytestmark = [pytest.mark.ros, pytest.mark.alone]
DESCRIPTION = """<robot name="post">
  <link name="base"/><link name="arm"/><link name="tip"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="0.5" effort="1"/></joint>
</robot>"""
MODEL = """robot: post
links:
  base: {superovoids: [{semi_axes: [0.1, 0.1, 0.1], xyz: [0, 0, 0], quat_xyzw: [0, 0, 0, 1]}]}
  tip: {superovoids: [{semi_axes: [0.05, 0.05, 0.05], xyz: [0, 0, 0], quat_xyzw: [0, 0, 0, 1]}]}
"""
SEPARATION, PERIOD = 0.03, 0.004


class Arm:
    """Two joints that follow the velocities that come, as a controller would, and the client that commands them."""

    def __init__(self, graph):
        self.graph, self.positions = graph, np.array([0.0, 0.1])
        self.commands = graph.latest(interfaces.VELOCITY_COMMANDS)
        self.nearest = graph.latest(interfaces.SEPARATION)
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)
        self.states = graph.publisher(interfaces.JOINT_STATES)
        self.wanted = graph.publisher(interfaces.WANTED_VELOCITIES)
        self.path = []

    def run(self, cycles, wanted=None, states=True):
        """Follow the commands for so many periods. The arm waits for the node, so that load does not matter."""
        for _ in range(cycles):
            if states:
                message = JointState(name=["turn", "slide"], position=self.positions.tolist())
                message.header.stamp = self.graph.node.get_clock().now().to_msg()
                self.states.publish(message)
            if wanted is not None:
                self.wanted.publish(Float64MultiArray(data=wanted))
            count = len(self.commands)
            self.graph.wait_until(lambda count=count: len(self.commands) >= count + 2, what="two commands")
            if states:
                self.positions = self.positions + PERIOD * np.array(self.commands[-1].data)
                self.path.append(self.positions)

    def statuses(self):
        return [status for message in self.diagnostics for status in message.status]


@pytest.fixture
def arm(graph, tmp_path):
    model = tmp_path / "post.yaml"
    model.write_text(MODEL, encoding="utf-8")
    process = graph.start(
        "separation_monitor",
        robot_description=DESCRIPTION,
        model=model,
        world_separation=SEPARATION,
        tracking_error=0.02,
        reaction_time=0.4,
        command_timeout=0.4,
        diagnostics_period=0.1,
    )
    arm = Arm(graph)
    arm.process = process
    graph.wait_until(lambda: arm.statuses(), what="a first report")
    return arm


def gap(positions):
    """Distance of the tip from the box that stands in its way, computed apart from the node."""
    T = KinematicModel(DESCRIPTION).forward_kinematics(dict(zip(("turn", "slide"), positions, strict=True)))["tip"]
    place = np.eye(4)
    place[:3, 3] = [0.5, 0.0, 0.6]
    return min_distance(Superovoid.sphere(0.05), T, Box((0.2, 0.2, 0.2)), place).distance


def box_message():
    item = WorldObject(id="box", shapes=[DistanceShape(type=DistanceShape.BOX, dimensions=[0.2, 0.2, 0.2])])
    item.pose.position.x, item.pose.position.z, item.pose.orientation.w = 0.5, 0.6, 1.0
    message = WorldObjectArray(objects=[item])
    message.header.frame_id = "base"
    return message


def test_an_arm_that_is_driven_at_an_object_stops_before_it(graph, arm):
    graph.publisher(interfaces.WORLD_OBJECTS).publish(box_message())
    arm.run(450, [0.8, 0.0])
    gaps = [gap(positions) for positions in arm.path[::3]]
    assert min(gaps) >= SEPARATION - 1e-6
    # It came near, and says what it is near to.
    assert gaps[-1] < SEPARATION + 0.05
    assert arm.path[-1][0] > 0.4
    graph.wait_until(lambda: arm.nearest and "box" in arm.nearest[-1].link_names, what="the nearest pair")
    assert arm.nearest[-1].distance == pytest.approx(gap(arm.positions), abs=5e-3)
    # The way back is free.
    before = arm.positions[0]
    arm.run(150, [-0.5, 0.0])
    assert arm.positions[0] < before - 0.1


def test_who_falls_silent_stops_the_arm(graph, arm):
    def stands():
        return list(arm.commands[-1].data) == [0.0, 0.0]

    arm.run(80, [0.3, 0.05])
    assert max(command.data[0] for command in arm.commands) == pytest.approx(0.3, abs=1e-6)
    # The client.
    while not stands():
        arm.run(10)
    # The driver: whatever is wanted.
    before = arm.positions[0]
    arm.run(80, [0.3, 0.05])
    assert arm.positions[0] > before + 0.01
    while not stands():
        arm.run(10, [0.3, 0.05], states=False)

    def reported():
        return any(s.level == DiagnosticStatus.ERROR and "joint_states" in s.message for s in arm.statuses())

    graph.wait_until(reported, what="the report that joint states are old")


@pytest.mark.parametrize("data", [[0.1], [0.1, math.nan]])
def test_a_broken_command_is_refused_and_nothing_moves(graph, arm, data):
    arm.run(20, [0.0, 0.0])
    arm.run(40, data)
    assert list(arm.commands[-1].data) == [0.0, 0.0]

    def reported():
        return any("2 finite numbers, of turn, slide" in s.message for s in arm.statuses())

    graph.wait_until(reported, what="the refusal")


def test_a_node_that_ends_stops_the_arm(graph, arm):
    arm.run(60, [0.3, 0.05])
    assert arm.positions[0] > 0.0
    assert arm.process.stop() == 0
    graph.wait_until(lambda: list(arm.commands[-1].data) == [0.0, 0.0], what="a last command of zero")


def stick(length=0.2):
    """The sphere model of an arm that holds a stick of this length beyond its tip."""
    spheres = [Sphere(radius=0.02) for _ in range(11)]
    for index, each in enumerate(spheres):
        each.center.z = 0.1 * length * index
    return SphereModel(content_hash="stick", links=[LinkSpheres(link_name="tip", object_id="stick", spheres=spheres)])


def test_what_the_arm_holds_stops_before_an_object_too(graph, arm):
    """A box that the tip cannot reach, but a stick in its hand."""
    message = box_message()
    message.objects[0].pose.position.x = 0.65
    graph.publisher(interfaces.WORLD_OBJECTS).publish(message)
    models = graph.publisher(interfaces.SPHERE_MODEL)
    models.publish(stick())
    arm.run(600, [0.8, 0.0])
    kinematics, place = KinematicModel(DESCRIPTION), np.eye(4)
    place[:3, 3] = [0.65, 0.0, 0.6]

    def held_gap(positions):
        end = kinematics.forward_kinematics(dict(zip(("turn", "slide"), positions, strict=True)))["tip"]
        end[:3, 3] += 0.2 * end[:3, 2]
        return min_distance(Superovoid.sphere(0.02), end, Box((0.2, 0.2, 0.2)), place).distance

    assert SEPARATION - 1e-6 <= min(held_gap(positions) for positions in arm.path[::3]) < SEPARATION + 0.05
    assert set(arm.nearest[-1].link_names) == {"stick", "box"}
    assert arm.nearest[-1].distance == pytest.approx(held_gap(arm.positions), abs=5e-3)
    # With nothing in its hand it goes on.
    stopped = arm.positions[0]
    models.publish(SphereModel(content_hash="nothing"))
    arm.run(200, [0.8, 0.0])
    assert arm.positions[0] > stopped + 0.1


def test_what_never_moves_against_the_robot_is_no_nearest_pair(graph, arm):
    """The base stands on the table for ever, which says nothing of how near the arm is to anything."""
    message = box_message()
    table = WorldObject(id="table", shapes=[DistanceShape(type=DistanceShape.BOX, dimensions=[2.0, 2.0, 0.1])])
    table.pose.position.z, table.pose.orientation.w = -0.12, 1.0
    message.objects.append(table)
    graph.publisher(interfaces.WORLD_OBJECTS).publish(message)
    graph.wait_until(
        lambda: (arm.nearest and "box" in arm.nearest[-1].link_names) or arm.run(5, [0.8, 0.0]), what="the box"
    )
    assert set(arm.nearest[-1].link_names) == {"tip", "box"}
