"""robot_spheres as a process: a description in, spheres out; the last good model survives every mistake."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import String
from visualization_msgs.msg import Marker

from morphit_interfaces.action import FitSpheres
from morphit_interfaces.srv import AttachObject
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros import interfaces
from morphit_ros.ros.conversions import message_from_cloud
from morphit_ros.ros.sphere_messages import link_spheres_from_message

pytestmark = pytest.mark.ros
# Rough and quick: how good a fit is, is tested without ROS.
QUICK = {"count": 4, "iterations": 10, "rounds": 0, "interior_samples": 200, "surface_samples": 200}
DESCRIPTION = """<robot name="post">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="arm"><collision><geometry><cylinder radius="0.03" length="0.3"/></geometry></collision></link>
  <link name="tip"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
  <joint name="end" type="fixed"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.15"/></joint>
</robot>"""


class Node:
    """A running robot_spheres with what it publishes."""

    def __init__(self, graph, **parameters):
        self.graph = graph
        self.models = graph.latest(interfaces.SPHERE_MODEL)
        self.descriptions = graph.latest(interfaces.SPHERE_DESCRIPTION)
        self.markers = graph.latest(interfaces.SPHERE_MARKERS)
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)
        self.process = graph.start("robot_spheres", **{**QUICK, **parameters})

    def model(self, count):
        """Link → centres and radii of the latest of `count` models."""
        self.graph.wait_until(
            lambda: min(map(len, (self.models, self.descriptions, self.markers))) >= count, what=f"model {count}"
        )
        return link_spheres_from_message(self.models[-1])

    def wait_for_error(self, words):
        def reported():
            statuses = [status for message in self.diagnostics for status in message.status]
            return next((s for s in statuses if s.level == DiagnosticStatus.ERROR and words in s.message), None)

        return self.graph.wait_until(reported, what=f"an error with {words!r}")

    def fit(self, feedback=None, **request):
        return self.graph.send_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(**request), feedback=feedback)

    def attach(self, cloud=None, **request):
        if cloud is not None:
            request["cloud"] = message_from_cloud(cloud)
        return self.graph.call(interfaces.ATTACH_OBJECT, AttachObject.Request(**request))


@pytest.fixture
def post(graph):
    """The node with the small robot, described by text."""
    node = Node(graph, robot_description=DESCRIPTION)
    node.model(1)
    return node


def spheres_of(urdf):
    """Link → radii of the collision spheres of a URDF; fails on any other collision geometry."""
    radii = {}
    for link in ElementTree.fromstring(urdf).findall("link"):
        shapes = [geometry[0] for geometry in link.findall("collision/geometry")]
        assert {shape.tag for shape in shapes} <= {"sphere"}
        if shapes:
            radii[link.get("name")] = [float(shape.get("radius")) for shape in shapes]
    return radii


def block(frame="tip", count=400):
    points = np.random.default_rng(0).uniform(-0.02, 0.02, (count, 3))
    return PointCloud(points, frame=frame)


def test_a_robot_by_name_becomes_spheres(graph):
    received = graph.latest(interfaces.ROBOT_DESCRIPTION)
    node = Node(graph, robot="panda", padding=0.01)
    links = node.model(1)
    assert {f"panda_link{number}" for number in range(8)} <= set(links)
    # One collision mesh a link of the arm: exactly `count` spheres each.
    assert all(len(links[f"panda_link{number}"][1]) == QUICK["count"] for number in range(8))
    graph.wait_until(lambda: received, what="the robot's description")
    assert 'name="panda"' in received[-1].data
    described = spheres_of(node.descriptions[-1].data)
    assert set(described) == set(links)
    for link, (_, radii) in links.items():
        # The model has the fitted spheres, the description for planning the padded ones.
        np.testing.assert_allclose(sorted(described[link]), np.sort(radii) + 0.01, atol=1e-6)
    drawn = [marker for marker in node.markers[-1].markers if marker.action == Marker.ADD]
    assert len(drawn) == sum(len(radii) for _, radii in links.values())
    assert {marker.header.frame_id for marker in drawn} == set(links)
    assert node.models[-1].content_hash
    assert node.models[-1].robot_name == "panda"


def test_a_broken_description_leaves_the_last_model(graph):
    node = Node(graph)
    node.process.wait_for_line("waiting for robot_description")
    descriptions = graph.publisher(interfaces.ROBOT_DESCRIPTION)
    descriptions.publish(String(data=DESCRIPTION))
    good = node.model(1)
    assert set(good) == {"base", "arm"}
    for broken, words in (
        (DESCRIPTION[:150], "the last model is kept"),
        (DESCRIPTION.replace('<box size="0.2 0.2 0.1"/>', '<mesh filename="file:///nowhere/base.stl"/>'), "base.stl"),
    ):
        descriptions.publish(String(data=broken))
        node.wait_for_error(words)
    # Still there, and as it was.
    accepted, status, result = node.fit(links=["base"], seed=0)
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    np.testing.assert_array_equal(link_spheres_from_message(result.model)["arm"][1], good["arm"][1])
    # And the next good one is taken.
    descriptions.publish(String(data=DESCRIPTION.replace('name="post"', 'name="pole"')))
    graph.wait_until(lambda: node.models[-1].robot_name == "pole", what="the model of the next description")


def test_one_link_is_fitted_again(post):
    before = post.model(1)
    seen = []
    accepted, status, result = post.fit(lambda message: seen.append(message.feedback), links=["arm"], count=2, seed=3)
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED
    assert result.success
    assert [(f.link, f.done, f.total) for f in seen] == [("arm", 0, 1), ("arm", 1, 1)]
    after = link_spheres_from_message(result.model)
    assert len(after["arm"][1]) == 2
    for old, new in zip(before["base"], after["base"], strict=True):
        np.testing.assert_array_equal(new, old)
    latched = post.model(2)
    np.testing.assert_array_equal(latched["arm"][0], after["arm"][0])
    assert post.models[-1].content_hash != post.models[0].content_hash


def test_bad_requests_to_fit_are_named(post):
    for fields, words in (
        ({"links": ["elbow"]}, ["elbow", "base"]),
        ({"variant": "tight"}, ["tight", "balanced"]),
        ({"count": 100_000}, ["count", "2000"]),
        ({"seed": -1}, ["seed", "-1"]),
    ):
        accepted, status, result = post.fit(**fields)
        assert accepted
        assert status == GoalStatus.STATUS_ABORTED
        assert not result.success
        for word in words:
            assert word in result.message
    assert len(post.models) == 1


def test_fitting_needs_a_description(graph):
    node = Node(graph)
    _, status, result = node.fit()
    assert status == GoalStatus.STATUS_ABORTED
    assert "robot_description" in result.message
    response = node.attach(block(), object_id="mug", link_name="tip")
    assert not response.success
    assert "robot_description" in response.message


def test_an_object_is_attached_and_detached(post):
    response = post.attach(block(), object_id="mug", link_name="tip", sphere_count=5)
    assert response.success, response.message
    centers, radii = post.model(2)["tip"]
    assert len(radii) == 5
    assert np.abs(centers).max() < 0.03
    again = post.attach(block(), object_id="mug", link_name="tip")
    assert not again.success
    assert "mug" in again.message
    response = post.attach(object_id="mug", detach=True)
    assert response.success, response.message
    assert "tip" not in post.model(3)
    response = post.attach(object_id="mug", detach=True)
    assert not response.success
    assert "mug" in response.message


def test_objects_that_cannot_be_attached_are_named(post):
    for cloud, fields, words in (
        (block(frame="world"), {}, ["world", "tip"]),
        (block(), {"link_name": "elbow"}, ["elbow", "base"]),
        (block(), {"object_id": ""}, ["object_id"]),
        (PointCloud(np.zeros((0, 3)), frame="tip"), {}, ["point"]),
        (PointCloud(np.full((50, 3), np.nan), frame="tip"), {}, ["point"]),
        (block(), {"sphere_count": 1_000_000}, ["1000000", "1000"]),
    ):
        response = post.attach(cloud, **{"object_id": "mug", "link_name": "tip", **fields})
        assert not response.success
        for word in words:
            assert word in response.message
    assert len(post.models) == 1
    # The node is as good as before.
    assert post.attach(block(), object_id="mug", link_name="tip", sphere_count=5).success


def test_another_robot_keeps_only_what_it_can_carry(graph):
    node = Node(graph)
    node.process.wait_for_line("waiting for robot_description")
    descriptions = graph.publisher(interfaces.ROBOT_DESCRIPTION)
    descriptions.publish(String(data=DESCRIPTION))
    node.model(1)
    for link in ("tip", "arm"):
        assert node.attach(block(link), object_id=link, link_name=link, sphere_count=5).success
    descriptions.publish(String(data=DESCRIPTION.replace('"tip"', '"end_of_arm"').replace('"post"', '"pole"')))
    graph.wait_until(lambda: node.models[-1].robot_name == "pole", what="the model of the other robot")
    links = link_spheres_from_message(node.models[-1])
    assert "tip" not in links
    assert len(links["arm"][1]) > 5
    assert not node.attach(object_id="tip", detach=True).success
