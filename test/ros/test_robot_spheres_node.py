"""robot_spheres as a process: a description in, spheres out; the last good model survives every mistake."""

import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point, Pose
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import String
from visualization_msgs.msg import Marker

from morphit_interfaces.action import FitSpheres
from morphit_interfaces.msg import CoverState
from morphit_interfaces.srv import AttachObject, DetachObject
from morphit_ros.budgets import MOST_MESSAGE_FACES
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import flat_state
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.nodes.robot_spheres import RobotSpheres
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import message_from_cloud
from morphit_ros.ros.cover.messages import description_text
from morphit_ros.ros.spheres.fit_requests import FitRequests, _FitGivenUp
from morphit_ros.ros.spheres.messages import link_spheres_from_message

pytestmark = pytest.mark.ros
# Rough and quick: how good a fit is, is tested without ROS.
QUICK = {"count": 4, "iterations": 10, "starts": 1, "rounds": 0, "interior_samples": 200, "surface_samples": 200}
# Slow enough to be interrupted.
SLOW = [
    "iterations=4000", "rounds=60", "patience=60", "starts=4", "interior_samples=4000", "surface_samples=4000",
]  # fmt: skip
SLOWER = [*SLOW, "primitive_count=20"]
SET_PARAMETERS = interfaces.Service("robot_spheres/set_parameters", SetParameters, "of every node")
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

    def set(self, **parameters):
        """Set parameters while the node runs: whether each was taken, and the reason if not."""
        named = [Parameter(name.replace("__", "."), value=value) for name, value in parameters.items()]
        request = SetParameters.Request(parameters=[parameter.to_parameter_msg() for parameter in named])
        return self.graph.call(SET_PARAMETERS, request).results

    def wait_for_model(self, accepts, what):
        return self.graph.wait_until(lambda: next((m for m in self.models[::-1] if accepts(m)), None), what=what)

    def fit(self, feedback=None, **request):
        return self.graph.send_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(**request), feedback=feedback)

    def attach(self, cloud=None, **request):
        if cloud is not None:
            request["cloud"] = message_from_cloud(cloud)
        return self.graph.call(interfaces.ATTACH_OBJECT, AttachObject.Request(**request))

    def detach(self, name):
        return self.graph.call(interfaces.DETACH_OBJECT, DetachObject.Request(object_id=name))


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
    post.graph.wait_until(lambda: seen, what="feedback")
    assert [(f.link, f.done, f.total) for f in seen] == [("arm", 1, 1)]
    after = link_spheres_from_message(result.model)
    assert len(after["arm"][1]) == 2
    for old, new in zip(before["base"], after["base"], strict=True):
        np.testing.assert_array_equal(new, old)
    latched = post.model(2)
    np.testing.assert_array_equal(latched["arm"][0], after["arm"][0])
    assert post.models[-1].content_hash != post.models[0].content_hash


def test_bad_requests_to_fit_are_named(post):
    for fields, words in (
        ({"settings": ["weights.surfaces=1.0"]}, ["weights.surfaces", "weights.surface"]),
        ({"settings": ["weights.surface=high"]}, ["weights.surface", "high"]),
        ({"settings": ["cover"]}, ["cover", "name=value"]),
        ({"links": ["elbow"]}, ["elbow", "base"]),
        ({"links": ["tip"]}, ["tip", "geometry"]),
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


def counts(model):
    """Spheres of each link, and of what is attached."""
    return [len(link.spheres) for link in model.links]


def hashes(node):
    """Content hash in the latest message of each topic."""
    described = re.search(r"<!-- sphere_model (\w+) -->", node.descriptions[-1].data).group(1)
    return {described, node.models[-1].content_hash, node.markers[-1].markers[0].text}


def assert_consistent(node):
    """The latest messages of all topics show the same spheres."""
    node.graph.wait_until(lambda: len(hashes(node)) == 1, what="the same content hash on all topics")
    described, links = spheres_of(node.descriptions[-1].data), link_spheres_from_message(node.models[-1])
    for link, radii in described.items():
        np.testing.assert_allclose(sorted(radii), np.sort(links[link][1]), atol=1e-6)


def test_variants_are_switched_while_it_runs(post):
    first = post.models[-1]
    assert first.variant == "balanced"
    assert post.set(variant="volume")[0].successful
    volume = post.wait_for_model(lambda m: m.variant == "volume", "the other variant")
    assert volume.content_hash != first.content_hash
    assert_consistent(post)
    # Back to what was fitted before: the same spheres.
    assert post.set(variant="balanced")[0].successful
    post.graph.wait_until(lambda: post.models[-1].content_hash == first.content_hash, what="the first variant")
    assert_consistent(post)
    assert post.models[-1].links == first.links
    # Many changes in a row: the last one wins, and what is published belongs together.
    for variant in ("volume", "surface", "balanced", "surface", "volume", "balanced", "surface"):
        assert post.set(variant=variant)[0].successful
    post.wait_for_model(lambda m: m.variant == "surface", "the last variant")
    post.graph.wait_until(lambda: post.models[-1].variant == "surface", what="the last variant at the end")
    assert_consistent(post)
    # An object that is carried stays so.
    assert post.attach(block(), object_id="mug", link_name="tip", sphere_count=5).success
    post.set(variant="volume")
    post.graph.wait_until(lambda: post.models[-1].variant == "volume", what="the variant with an object")
    assert [link.object_id for link in post.models[-1].links] == ["", "", "mug"]
    post.graph.wait_until(lambda: len(hashes(post)) == 1, what="the same content hash on all topics")
    assert post.models[-1].content_hash != volume.content_hash


def test_parameters_that_cannot_be_are_refused_with_the_reason(post):
    for parameters, words in (
        ({"variant": "tight"}, ["variant", "tight", "balanced"]),
        ({"count": 0}, ["count", "0"]),
        ({"weights__surface": "much"}, ["weights.surface"]),
        ({"padding": 0.01}, ["padding"]),
    ):
        result = post.set(**parameters)[0]
        assert not result.successful
        for word in words:
            assert word in result.reason
    assert len(post.models) == 1
    assert post.set(count=2)[0].successful
    post.wait_for_model(lambda m: counts(m) == [2, 2], "the model with fewer spheres")


def test_free_weights_by_action(post):
    _, _, usual = post.fit(links=["arm"])
    _, status, free = post.fit(links=["arm"], settings=["weights.coverage=0.0", "weights.boundary=1e4"])
    assert status == GoalStatus.STATUS_SUCCEEDED
    usual, free = (link_spheres_from_message(result.model)["arm"] for result in (usual, free))
    assert not np.allclose(usual[1], free[1])


def test_a_cancelled_fit_leaves_the_last_model(post):
    handle = post.graph.start_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(count=150, settings=SLOW))
    assert handle.accepted
    # Attaching does not wait for it.
    assert post.attach(block(), object_id="mug", link_name="tip", sphere_count=5).success
    cancelled = handle.cancel_goal_async()
    post.graph.wait_until(cancelled.done, what="the answer to cancelling")
    assert cancelled.result().goals_canceling
    status, result = post.graph.result(handle)
    assert status == GoalStatus.STATUS_CANCELED
    assert "last model is kept" in result.message
    assert not result.success
    # As good as before.
    assert post.fit(count=3)[1] == GoalStatus.STATUS_SUCCEEDED
    post.wait_for_model(lambda m: counts(m) == [3, 3, 5], "the next fit")
    # Nothing came in between but what was attached.
    assert all(counts(model) in ([4, 4], [4, 4, 5], [3, 3, 5]) for model in post.models)


def test_a_goal_that_is_cancelled_while_it_waits_is_not_executed(post):
    running = post.graph.start_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(count=150, settings=SLOWER))
    waiting = post.graph.start_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(count=3))
    assert running.accepted
    assert waiting.accepted
    for handle in (waiting, running):
        cancelled = handle.cancel_goal_async()
        post.graph.wait_until(cancelled.done, what="the answer to cancelling")
        assert cancelled.result().goals_canceling
    for handle in (running, waiting):
        status, result = post.graph.result(handle)
        assert status == GoalStatus.STATUS_CANCELED
        assert "last model is kept" in result.message
    assert len(post.models) == 1


def test_parameters_set_with_a_description_that_fails_hold_for_the_last_model(graph, tmp_path):
    node = Node(graph)
    node.process.wait_for_line("waiting for robot_description")
    descriptions = graph.publisher(interfaces.ROBOT_DESCRIPTION)
    descriptions.publish(String(data=DESCRIPTION))
    node.model(1)
    # Both come while the worker is busy, so that it takes them together.
    busy = graph.start_goal(interfaces.FIT_SPHERES, FitSpheres.Goal(count=150, settings=SLOWER))
    mesh = tmp_path / "base.stl"
    mesh.write_text("no mesh")
    broken = DESCRIPTION.replace('<box size="0.2 0.2 0.1"/>', f'<mesh filename="file://{mesh}"/>')
    descriptions.publish(String(data=broken))
    assert node.set(count=2)[0].successful
    assert graph.result(busy)[0] == GoalStatus.STATUS_SUCCEEDED
    node.wait_for_error("base.stl")
    node.wait_for_model(lambda m: counts(m) == [2, 2], "the last robot, newly fitted")
    # A description that is refused without other parameters leaves what a goal has made.
    assert node.fit(count=3, links=["arm"])[1] == GoalStatus.STATUS_SUCCEEDED
    node.wait_for_model(lambda m: counts(m) == [2, 3], "the goal's model")
    node.diagnostics.clear()
    descriptions.publish(String(data=broken.replace('"post"', '"pole"')))
    node.wait_for_error("base.stl")
    seen = len(node.models)
    assert node.set(count=2)[0].successful
    # Not the one of before.
    graph.wait_until(lambda: len(node.models) > seen, what="a model with the parameters again")
    # The topic keeps the newest model only: that of the first goal may be replaced before it is seen.
    assert [counts(model) for model in node.models if counts(model) != [20, 20]] == [[4, 4], [2, 2], [2, 3], [2, 2]]


@pytest.mark.parametrize("changed", [False, True])
def test_parameters_are_followed_after_a_refused_description_if_they_changed(changed):
    def refuse(*_):
        raise InvalidInputError("description", "bad", "good")

    asked = []
    spheres = SimpleNamespace(
        _newest="bad", _refused=None, _followed="balanced", _config=SimpleNamespace(seed=0),
        _settings=SimpleNamespace(value="volume" if changed else "balanced"),
        _adaptive=SimpleNamespace(shape=SimpleNamespace(description="good"), describe=refuse),
        _diagnostics=SimpleNamespace(report=lambda *_: None),
        _requests=SimpleNamespace(follow=lambda: asked.append("again")),
        _is_settled=lambda description: RobotSpheres._is_settled(spheres, description),
    )  # fmt: skip
    RobotSpheres._follow(spheres, None, None)
    assert asked == (["again"] if changed else [])
    # The next time the last robot is meant, and a failure is no reason to begin again.
    spheres._adaptive.adapt = lambda *_, **__: refuse()
    asked.clear()
    RobotSpheres._follow(spheres, None, None)
    assert not asked


class WorkerOnCall:
    """Instead of the node that FitRequests works for: its guard condition is triggered by the test."""

    def create_guard_condition(self, work, callback_group):
        self.work = work
        return self

    def trigger(self):
        pass


class FakeGoal:
    """Accepted; `settled` is how it ended."""

    request = FitSpheres.Goal()
    settled = ""

    def __init__(self, cancelled):
        self.is_cancel_requested = cancelled

    def publish_feedback(self, feedback):
        pass

    def execute(self, end):
        self.result = end(self)

    def succeed(self):
        self.settled = "succeeded"

    def canceled(self):
        self.settled = "cancelled"


def test_goals_are_settled_in_order_and_cancelled_ones_are_not_begun():
    begun, worker = [], WorkerOnCall()

    def fit(goal, _progress, check):
        begun.append(goal)
        # The second one is cancelled while the first is being fitted, the fourth at the end of its own fit.
        goals[1].is_cancel_requested = True
        goals[3].is_cancel_requested = goal is goals[3]
        check()
        return FitSpheres.Result(success=True)

    requests = FitRequests(worker, lambda *_: None, fit)
    goals = [FakeGoal(False) for _ in range(4)]
    for goal in goals:
        requests.add(goal)
    worker.work()
    assert begun == [goals[0], goals[2], goals[3]]
    assert [goal.settled for goal in goals] == ["succeeded", "cancelled", "succeeded", "cancelled"]
    assert "last model is kept" in goals[1].result.message


@pytest.mark.parametrize("known", [False, True])
def test_a_change_that_is_overtaken_at_its_end_is_not_taken(known):
    """Back to a variant that was fitted before, when the fit of the other one has just finished its last link."""
    followed, worker = [], WorkerOnCall()
    spheres = SimpleNamespace(
        _settings=SimpleNamespace(value="volume"), _config=SimpleNamespace(seed=0), _newest="the robot",
        _is_settled=lambda _: True,
    )  # fmt: skip

    def switch(_config, _seed):
        # The shape is locked now; the worker may have waited for this moment to take its fit.
        with pytest.raises(_FitGivenUp):
            checks[0]()
        return "a shape" if known else None

    def follow(_progress, check):
        checks.append(check)
        if spheres._settings.value == "volume":
            spheres._settings.value = "balanced"
            RobotSpheres._on_settings(spheres)
        check()
        followed.append(spheres._settings.value)

    checks = []
    spheres._adaptive = SimpleNamespace(switch=switch)
    spheres._requests = FitRequests(worker, follow, None)
    spheres._requests.follow()
    worker.work()
    assert followed == ([] if known else ["balanced"])


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
    response = post.detach("mug")
    assert response.success, response.message
    assert "tip" not in post.model(3)
    response = post.detach("mug")
    assert not response.success
    assert "mug" in response.message


def mesh_message(mesh):
    return Mesh(
        vertices=[Point(x=x, y=y, z=z) for x, y, z in mesh.vertices.tolist()],
        triangles=[MeshTriangle(vertex_indices=face) for face in mesh.faces.astype(np.uint32)],
    )


def test_a_mesh_is_attached_where_its_pose_says(post):
    pose = Pose(position=Point(z=0.1))
    # A quarter turn about y: the box's long side along x points along -z of the tip.
    pose.orientation.w = pose.orientation.y = np.sqrt(0.5)
    box = mesh_message(box_mesh([0.2, 0.04, 0.04]))
    response = post.attach(mesh=box, pose=pose, object_id="bar", link_name="tip", sphere_count=10)
    assert response.success, response.message
    centers, radii = post.model(2)["tip"]
    assert response.content_hash == post.models[-1].content_hash
    assert len(radii) == 10
    for end in ([0.0, 0.0, 0.2], [0.0, 0.0, 0.0], [0.02, 0.02, 0.2], [-0.02, 0.02, 0.0]):
        assert (np.linalg.norm(centers - end, axis=1) <= radii + 1e-9).any()
    assert np.abs(centers[:, :2]).max() < 0.02
    assert not post.attach(mesh=box, cloud=block(), object_id="both", link_name="tip").success
    assert not post.attach(mesh=Mesh(vertices=box.vertices), object_id="corners", link_name="tip").success
    # A cloud in a frame of its own, placed by the pose.
    response = post.attach(block(frame=""), pose=Pose(position=Point(x=1.0)), object_id="far", link_name="tip")
    assert response.success, response.message
    assert post.model(3)["tip"][0][10:, 0].min() > 0.9


def test_objects_that_cannot_be_attached_are_named(post):
    corner = MeshTriangle(vertex_indices=np.array([0, 1, 7], dtype=np.uint32))
    for cloud, fields, words in (
        (None, {}, ["neither"]),
        (None, {"mesh": Mesh(vertices=[Point()] * 3, triangles=[corner])}, ["index 7"]),
        (None, {"mesh": Mesh(vertices=[Point()] * 8, triangles=[corner])}, ["area"]),
        (block(), {"pose": Pose(position=Point(x=0.1))}, ["pose", "identity"]),
        (block(frame=""), {"pose": Pose(position=Point(x=np.nan))}, ["position"]),
        (block(frame="world"), {}, ["world", "tip"]),
        (block(), {"link_name": "elbow"}, ["elbow", "base"]),
        (block(), {"object_id": ""}, ["object_id"]),
        (PointCloud(np.zeros((0, 3)), frame="tip"), {}, ["point"]),
        (PointCloud(np.full((50, 3), np.nan), frame="tip"), {}, ["point"]),
        (block(), {"sphere_count": 1_000_000}, ["1000000", "1000"]),
        (PointCloud(np.full((50, 3), 3e38), frame="tip"), {}, ["3e+38", "1e+12"]),
        (None, {"mesh": Mesh(vertices=[Point()] * 3, triangles=[corner] * (MOST_MESSAGE_FACES + 1))}, ["triangles"]),
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
    assert not node.detach("tip").success


class Worn:
    """A cover as cover_control publishes it, flat but for what a test does with its plates."""

    def __init__(self, graph):
        self.cover = Cover(2, 2, 0.05, (0,)).with_motors(np.array([[0, 2]]))
        self.positions = flat_state(self.cover).positions(self.cover)
        self.rotations = np.tile(np.eye(3), (4, 1, 1))
        self._states = graph.publisher(interfaces.COVER_STATE)
        self.describe = graph.publisher(interfaces.COVER_DESCRIPTION).publish

    def description(self):
        return String(data=description_text(self.cover, flat_state(self.cover)))

    def publish(self, positions=None):
        places = self.positions if positions is None else positions
        self._states.publish(CoverState(positions=places.ravel().tolist(), rotations=self.rotations.ravel().tolist()))


def worn(message):
    return next((link for link in message.links if link.object_id == "cover"), None)


def test_the_cover_that_a_link_wears_is_a_part_of_the_robot(graph):
    pose = [0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    node = Node(graph, robot_description=DESCRIPTION, **{"cover.link": "tip", "cover.pose": pose, "cover.period": 0.05})
    node.model(1)
    cover = Worn(graph)
    cover.describe(cover.description())

    def published_until(accepts, what, positions=None):
        def told():
            cover.publish(positions)
            return next((m for m in node.models[::-1] if worn(m) is not None and accepts(worn(m))), None)

        return graph.wait_until(told, what=what)

    first = worn(published_until(lambda _: True, "the plates"))
    # Two by two spheres a plate, on the link that carries the tip, 0.15 m up.
    assert first.link_name == "arm" and len(first.spheres) == 16
    places = np.array([[sphere.center.x, sphere.center.y, sphere.center.z] for sphere in first.spheres])
    middles = places.reshape(4, 4, 3).mean(axis=1)
    np.testing.assert_allclose(middles, cover.positions + np.array([0.1, 0.0, 0.15]), atol=1e-9)
    assert first.spheres[0].radius == pytest.approx(np.linalg.norm([0.0125, 0.0125, 0.0025]) + 0.01)
    assert spheres_of(node.descriptions[-1].data)["arm"]
    # Within the tolerance nothing changes, not even after many periods; a broken state is told, and nothing lost.
    up = np.array([0.0, 0.0, 0.01])
    known, nearly, far = len(node.models), cover.positions + 0.8 * up, cover.positions + 5.0 * up
    broken = cover.positions.copy()
    broken[1, 1] = np.nan
    graph.wait_until(lambda: cover.publish(broken) or _said(node, "not finite"), what="the refusal")
    shares = iter(np.linspace(0.0, 1.0, 30))

    def rises():
        share = next(shares, None)
        if share is not None:
            cover.publish(cover.positions + share * (nearly - cover.positions))
        return share is None

    graph.wait_until(rises, what="thirty states on the way up")
    assert len(node.models) == known
    moved = worn(published_until(lambda link: link.spheres[0].center.z > places[0, 2] + 0.04, "moved plates", far))
    assert moved.spheres[0].center.z == pytest.approx(places[0, 2] + 0.05)
    # What moved so fast may go on, until it is seen to rest.
    assert moved.spheres[0].radius > first.spheres[0].radius + 0.005
    up_there = moved.spheres[0].center

    def rests(link):
        return (link.spheres[0].center, link.spheres[0].radius) == (up_there, first.spheres[0].radius)

    moved = worn(published_until(rests, "plates at rest", far))
    assert len(node.models) == known + 2
    # What a hand takes is there besides.
    assert node.attach(block(), object_id="thing", link_name="tip").success
    both = node.wait_for_model(lambda m: {link.object_id for link in m.links} == {"", "cover", "thing"}, "both")
    assert worn(both) == moved


def _said(node, words):
    statuses = [status for message in node.diagnostics for status in message.status]
    return any(words in status.message for status in statuses)


def test_a_pose_of_a_cover_that_is_none_ends_the_node(graph):
    process = graph.start("robot_spheres", **{**QUICK, "cover.link": "tip", "cover.pose": [0.0] * 7})
    assert process.wait() != 0
    assert "cover.pose" in process.output
