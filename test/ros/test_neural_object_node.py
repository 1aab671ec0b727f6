"""neural_object as a process: builds, inertia, predicted pushes, identification, and clear refusals."""

import importlib
import math
import re
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
sys.path.insert(0, str(Path(__file__).parent))

from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Inertia, Point, Pose, Vector3
from scenes import BOX_SIZE, object_cloud
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from morphit_interfaces.action import BuildNeuralObject
from morphit_interfaces.msg import MaterialRegion, PusherMotion, TablePlane
from morphit_interfaces.srv import EstimateInertia, Identify, SimulatePush
from morphit_ros.geometry.archive import write_archive
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.learning.field_file import save_field
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.objects.prediction import predict_push
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher
from morphit_ros.neural.objects.warm_up import warm_up
from morphit_ros.neural.views.cloud_views import views_of_cloud
from morphit_ros.neural.views.recording import Recording, save_recording
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, matrix_from_pose, pose_from_matrix
from morphit_ros.ros.neural.messages import motion_from_message
from morphit_ros.ros.scene.messages import message_from_object, message_from_objects

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[2]
SIZE = np.array([0.10, 0.06, 0.04])
VOLUME = float(np.prod(SIZE))
PUSH_TIMES, PUSH_WAY = [0.0, 0.5], np.array([[-0.07, 0.01, 0.0], [-0.03, 0.01, 0.0]])
POINTS = 300


class Node:
    """A running neural_object with what it publishes."""

    def __init__(self, graph, folder):
        self.graph, self.folder = graph, folder
        self.objects = graph.latest(interfaces.NEURAL_OBJECT)
        self.markers = graph.latest(interfaces.NEURAL_MARKERS)
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)
        self.process = graph.start("neural_object", contact_points=POINTS, recording_frame="world")
        # Beside the node from its start: both take seconds to start.
        self.viewer = graph.start("web_viewer", scene="neural", port=0)
        self.box = folder / "box.npz"
        save_field(BoxField(SIZE), self.box)
        # As answers say it: the topic may come later. Empty: another one, or not known.
        self._in_use, self._box_hash = "", ""

    def forget(self):
        """Another object came into use than by the methods here."""
        self._in_use = ""

    def build(self, **named):
        """Status and result of a goal."""
        accepted, status, result = self.graph.send_goal(interfaces.BUILD_NEURAL_OBJECT, BuildNeuralObject.Goal(**named))
        assert accepted
        self._in_use = result.object.content_hash
        return status, result

    def build_box(self):
        status, result = self.build(source=BuildNeuralObject.Goal.FIELD, path=str(self.box), name="box", density=500.0)
        assert status == GoalStatus.STATUS_SUCCEEDED, result.message
        self._box_hash = result.object.content_hash
        return result

    def use_box(self):
        """Build the box unless it is the object in use."""
        if not self._in_use or self._in_use != self._box_hash:
            self.build_box()
            self.graph.wait_until(
                lambda: self.objects and self.objects[-1].content_hash == self._box_hash, what="the box on its topic"
            )

    def estimate(self, **named):
        if named.get("keep"):
            self.forget()
        return self.graph.call(interfaces.ESTIMATE_INERTIA, EstimateInertia.Request(**named))

    def simulate(self, **named):
        return self.graph.call(interfaces.SIMULATE_PUSH, SimulatePush.Request(**named))

    def identify(self, **named):
        if named.get("keep"):
            self.forget()
        return self.graph.call(interfaces.IDENTIFY, Identify.Request(**named))


@pytest.fixture(scope="module")
def node(shared_graph, tmp_path_factory):
    # On a fresh machine kernels take longer to compile than a node is waited for; the node loads them then.
    warm_up()
    return Node(shared_graph, tmp_path_factory.mktemp("neural"))


@pytest.fixture
def box(node):
    """The node with the box of one material in use."""
    node.use_box()
    return node


def pusher(**changes):
    fields = {
        "radius": 0.01, "times": PUSH_TIMES, "positions": [Point(x=p[0], y=p[1], z=p[2]) for p in PUSH_WAY], **changes
    }  # fmt: skip
    return PusherMotion(**fields)


def region(center, size, density, frame=""):
    item = MaterialRegion(header=Header(frame_id=frame), size=Vector3(x=size[0], y=size[1], z=size[2]), density=density)
    item.pose.position.x, item.pose.position.y, item.pose.position.z = center
    return item


def test_before_anything_is_built_services_say_what_to_do(node):
    for answer in (node.estimate(), node.simulate(duration=1.0), node.identify()):
        assert not answer.success
        assert "build_neural_object" in answer.message


def test_a_saved_field_becomes_an_object_with_its_inertia(node):
    result = node.build_box()
    assert result.success
    mass = 500.0 * VOLUME
    inertia = result.object.inertia
    assert inertia.m == pytest.approx(mass, rel=2e-3)
    assert [inertia.com.x, inertia.com.y, inertia.com.z] == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)
    squares = SIZE**2
    truth = mass / 12.0 * (squares.sum() - squares)
    assert [inertia.ixx, inertia.iyy, inertia.izz] == pytest.approx(truth, rel=5e-3)
    assert result.object.header.frame_id == "world"
    assert (result.object.mass_from, result.object.total_mass_from) == ("uniform", "materials")
    assert math.isnan(result.object.friction)
    node.graph.wait_until(lambda: node.objects and node.objects[-1].name == "box", what="the object on its topic")
    assert node.objects[-1].content_hash == result.object.content_hash

    node.graph.wait_until(lambda: node.markers, what="markers")
    kinds = {marker.ns: marker for marker in node.markers[-1].markers if marker.action != Marker.DELETEALL}
    assert {"surface", "center_of_mass", "inertia"} <= set(kinds)
    ellipsoid = kinds["inertia"].scale
    # A box and an ellipsoid of the same inertia: full axes are sqrt(5/3) of the sides.
    scales = sorted([ellipsoid.x, ellipsoid.y, ellipsoid.z])
    assert scales == pytest.approx(sorted(SIZE * math.sqrt(5.0 / 3.0)), rel=5e-3)


def test_mass_and_materials_change_the_answer_and_the_object_only_if_it_is_kept(box):
    weighed = box.estimate(mass=0.24)
    assert weighed.success, weighed.message
    assert weighed.inertia.m == pytest.approx(0.24)
    assert weighed.total_mass_from == "given"
    # A fifth of the length is ten times as dense.
    head = region((0.04, 0.0, 0.0), (0.02, 0.1, 0.1), 5000.0, "world")
    answer = box.estimate(materials=[head])
    assert answer.success, answer.message
    assert (answer.mass_from, answer.total_mass_from) == ("materials", "materials")
    assert answer.inertia.m == pytest.approx(VOLUME * (0.2 * 5000.0 + 0.8 * 500.0), rel=0.01)
    assert answer.inertia.com.x == pytest.approx((0.2 * 5000 * 0.04 - 0.8 * 500 * 0.01) / 1400.0, abs=5e-4)
    assert answer.center_of_mass_std < 1e-3
    assert box.estimate().inertia.m == pytest.approx(500.0 * VOLUME, rel=2e-3)
    assert box.estimate(materials=[head], keep=True).success
    assert box.estimate().inertia.com.x == pytest.approx(answer.inertia.com.x, abs=1e-9)
    box.graph.wait_until(lambda: box.objects[-1].mass_from == "materials", what="the kept object on its topic")


def test_a_mass_that_nobody_gave_is_said_to_be_assumed_until_somebody_does(node):
    status, result = node.build(source=BuildNeuralObject.Goal.FIELD, path=str(node.box), name="guess")
    assert status == GoalStatus.STATUS_SUCCEEDED, result.message
    assert result.object.total_mass_from == "assumed"
    assert "kg (assumed)" in result.message
    for told, source in (({"mass": 0.3}, "given"), ({"density": 700.0}, "materials")):
        answer = node.estimate(name="guess", keep=True, **told)
        assert answer.success, answer.message
        assert answer.total_mass_from == source
        node.graph.wait_until(
            lambda source=source: node.objects and node.objects[-1].total_mass_from == source,
            what=f"the object's mass on its topic as {source}",
        )


def test_a_push_is_predicted_as_the_core_predicts_it_and_drawn(box):
    before = len(box.markers)
    answer = box.simulate(pusher=pusher(), duration=0.8)
    assert answer.success, answer.message
    assert len(answer.times) == len(answer.poses)
    assert answer.times[-1] == pytest.approx(0.8)
    assert answer.friction == pytest.approx(PredictionConfig().friction)
    known = know_object(BoxField(SIZE), 500.0)
    driven = Pusher(0.01, np.array(PUSH_TIMES), PUSH_WAY, 0.0, np.zeros((2, 3)))
    scene = PushScene(known, carrying_table(known, np.eye(4)), driven, PredictionConfig(contact_points=POINTS))
    expected = predict_push(scene, np.eye(4), 0.8).poses[-1]
    assert matrix_from_pose(answer.poses[-1]) == pytest.approx(expected, abs=1e-9)
    assert answer.poses[-1].position.x > 0.02
    assert abs(answer.final_twist.linear.x) < 1e-3

    def drawn():
        names = {marker.ns for marker in box.markers[-1].markers}
        return len(box.markers) > before and "motion" in names

    box.graph.wait_until(drawn, what="the predicted motion as markers")
    assert answer.message == ""
    assert "between contact points" in box.simulate(pusher=pusher(radius=0.005), duration=0.1).message
    # Let go above a table that is lower, it falls onto it.
    table = TablePlane(found=True, header=Header(frame_id="world"))
    table.pose.position.z, table.size.x, table.size.y = -0.03, 1.0, 1.0
    fallen = box.simulate(duration=0.5, table=table)
    assert fallen.success, fallen.message
    assert fallen.poses[-1].position.z == pytest.approx(-0.01, abs=0.003)


def test_the_browser_view_shows_object_motion_and_state(box):
    pytest.importorskip("viser", reason="needs the browser view")
    viewer = box.viewer
    url = viewer.wait_for_line("view at http://").rpartition("view at ")[2].strip()
    assert url.startswith(("http://127.0.0.1:", "http://localhost:"))
    with urllib.request.urlopen(url, timeout=20.0) as reply:
        assert reply.status == 200
    motions = box.graph.latest(interfaces.NEURAL_MOTION)
    assert box.simulate(pusher=pusher(), duration=0.8).success

    def shown():
        # The latest motion of before comes first.
        times = motion_from_message(motions[-1])[0] if motions else ()
        return len(times) and times[-1] == pytest.approx(0.8, abs=1e-6)

    box.graph.wait_until(shown, what="the predicted motion on its topic")
    times, poses = motion_from_message(motions[-1])
    assert times[0] == 0.0
    assert poses[-1][0, 3] > 0.02
    # A new object has not moved yet.
    box.build_box()
    box.graph.wait_until(lambda: not motions[-1].points, what="the motion to be cleared")
    assert viewer.stop() == 0
    assert "not shown" not in viewer.output


def observed(friction, center, steps=20):
    """A push as somebody saw it: times, poses, of an object that slides and turns otherwise than the node's."""
    known = know_object(BoxField(SIZE), 500.0)
    names = ("center_of_mass_x", "center_of_mass_y", "friction")
    known = known.identified(dict(zip(names, (*center, friction), strict=True)), {})
    driven = Pusher(0.01, np.array(PUSH_TIMES), PUSH_WAY, 0.0, np.zeros((2, 3)))
    config = PredictionConfig(contact_points=POINTS)
    motion = predict_push(PushScene(known, carrying_table(known, np.eye(4)), driven, config), np.eye(4), 0.6)
    rows = np.linspace(0, len(motion.times) - 1, steps).round().astype(int)
    return motion.times[rows].tolist(), [pose_from_matrix(motion.poses[row]) for row in rows]


def test_where_the_mass_is_follows_from_a_push(box):
    times, poses = observed(0.3, (0.02, -0.01))
    answer = box.identify(
        times=times, poses=poses, pusher=pusher(), parameters=["center_of_mass_x", "center_of_mass_y"], keep=True
    )
    assert answer.success, answer.message
    assert list(answer.determined) == [True, True]
    assert list(answer.values) == pytest.approx([0.02, -0.01], abs=5e-4)
    assert answer.rms_position < 1e-4
    kept = box.estimate()
    assert kept.mass_from == "identified"
    assert kept.inertia.com.x == pytest.approx(answer.values[0])
    # A driven pusher moves any mass alike: that is said, and the value stays what it was.
    mass = box.identify(times=times, poses=poses, pusher=pusher(), parameters=["mass"])
    assert mass.success
    assert list(mass.determined) == [False]
    assert "mass" in mass.message
    assert mass.values[0] == pytest.approx(500.0 * VOLUME, rel=2e-3)


def test_a_motion_that_tells_nothing_is_answered_with_the_uncertainty(box):
    # Three looks at an object that rests.
    answer = box.identify(times=[0.0, 0.1, 0.2], poses=[Pose()] * 3, keep=True)
    assert answer.success, answer.message
    assert list(answer.determined) == [False]
    assert answer.standard_deviations[0] > 10.0
    assert "friction" in answer.message
    assert answer.values[0] == pytest.approx(PredictionConfig().friction)
    assert box.estimate().mass_from == "uniform"


RAISED = TablePlane(found=True, header=Header(frame_id="world"), size=Vector3(x=1.0, y=1.0))
RAISED.pose.position.z = 0.02
NAN_TRACK = [Pose(), Pose(position=Point(x=math.nan)), Pose()]


@pytest.mark.parametrize(
    ("ask", "request_", "words"),
    [
        ("estimate", {"name": "mug"}, "'box'"),
        ("estimate", {"mass": -1.0}, "mass"),
        ("estimate", {"density": math.nan}, "density"),
        ("estimate", {"materials": [region((1.0, 0.0, 0.0), (0.1, 0.1, 0.1), 1.0)]}, "no part of the object"),
        ("estimate", {"materials": [region((0.0, 0.0, 0.0), (0.1, 0.0, 0.1), 1.0)]}, "materials[0]"),
        ("estimate", {"materials": [region((0.0, 0.0, 0.0), (0.1, 0.1, 0.1), 1.0, "base")]}, "frame"),
        ("simulate", {"name": "mug", "duration": 1.0}, "'box'"),
        ("simulate", {}, "duration"),
        ("simulate", {"duration": -1.0}, "duration"),
        ("simulate", {"duration": 1e6}, "duration"),
        ("simulate", {"duration": 1.0, "mass": -2.0}, "mass"),
        ("simulate", {"duration": 1.0, "friction": math.nan}, "friction"),
        ("simulate", {"duration": 1.0, "friction": -0.3}, "-1 for the object's own"),
        ("simulate", {"duration": 1.0, "friction": 5.0}, "0 to 2"),
        ("simulate", {"duration": 1.0, "table": RAISED}, "Move the body out by at least"),
        ("simulate", {"duration": 1.0, "header": Header(frame_id="base")}, "'world'"),
        ("simulate", {"pusher": pusher(radius=-0.1)}, "radius"),
        ("simulate", {"pusher": pusher(times=[0.5, 0.0])}, "increasing"),
        ("simulate", {"pusher": pusher(times=[0.0])}, "as many"),
        ("simulate", {"pusher": pusher(positions=[Point(), Point(x=1.0)])}, "deep"),
        ("simulate", {"pusher": pusher(times=[0.0, 0.01])}, "got 4 m/s, expected at most 2.5 m/s"),
        ("identify", {}, "track"),
        ("identify", {"name": "mug"}, "'box'"),
        ("identify", {"times": [0.0, 0.1], "poses": [Pose()] * 2}, "got 2 values, expected 3 or more"),
        ("identify", {"times": [0.0, 0.1, 0.2], "poses": NAN_TRACK}, "poses[1]"),
        ("identify", {"times": [0.0, 0.2, 0.1], "poses": [Pose()] * 3}, "increasing"),
        ("identify", {"times": [0.0, 0.1, 0.2], "poses": [Pose()] * 3, "parameters": ["colour"]}, "'colour'"),
        ("identify", {"times": [0.0, 0.1, 0.2], "poses": [Pose()] * 3, "position_noise": -1.0}, "position_noise"),
    ],
)
def test_refusals_say_why_and_change_nothing(node, ask, request_, words):
    node.use_box()
    answer = getattr(node, ask)(**request_)
    assert not answer.success
    assert words in answer.message
    assert getattr(answer, "inertia", Inertia()) == Inertia()


# Around the box, so that each side is seen.
EYES = [np.array([0.5 + x, y, 0.5]) for x, y in ((0.6, 0.1), (-0.1, 0.6), (-0.6, -0.1), (0.1, -0.6))]


ENDLESS = ["method=network", "iterations=100000", "resolution=32"]


def goal_for(cloud, eyes, **named):
    """A goal with a segmented object and its scene."""
    item = message_from_object(cloud, 0, header("world", 5.0))
    scene = message_from_objects([], None, header("world", 5.0), viewpoints=eyes)
    return {"object": item, "scene": scene, "name": "carton", **named}


def test_an_object_is_built_from_its_cloud_and_the_places_of_the_cameras(node):
    node.forget()
    stages = []
    accepted, status, result = node.graph.send_goal(
        interfaces.BUILD_NEURAL_OBJECT,
        BuildNeuralObject.Goal(**goal_for(object_cloud(), EYES, mass=0.3, settings=["resolution=48"])),
        feedback=lambda message: stages.append(message.feedback.stage),
    )
    assert accepted
    assert status == GoalStatus.STATUS_SUCCEEDED, result.message
    described = result.object
    assert (described.name, described.source, described.header.frame_id) == ("carton", "objects", "world")
    assert described.header.stamp.sec == 5
    assert described.inertia.m == pytest.approx(0.3)
    # To two nodes of the grid.
    assert [described.size.x, described.size.y, described.size.z] == pytest.approx(BOX_SIZE, abs=2 * 0.12 / 48)
    answer = node.estimate(name="carton")
    # Each camera sees one side too flat to measure it.
    assert described.volume == pytest.approx(BOX_SIZE.prod(), rel=0.06)
    center = [answer.center_of_mass.x, answer.center_of_mass.y, answer.center_of_mass.z]
    assert center == pytest.approx([0.5, 0.0, BOX_SIZE[2] / 2.0], abs=0.003)
    node.graph.wait_until(lambda: "learning" in stages, what="the feedback of learning")
    assert stages[0] == "reading"


def fill(message, fields):
    """Set fields of a message as the command line of ROS does; fails for one that there is not, or of another type."""
    kinds = message.get_fields_and_field_types()
    for name, value in fields.items():
        if isinstance(value, dict):
            value = fill(getattr(message, name), value)
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            package, kind = kinds[name].removeprefix("sequence<").removesuffix(">").split("/")
            value = [fill(getattr(importlib.import_module(f"{package}.msg"), kind)(), item) for item in value]
        assert name in kinds, f"{type(message).__name__} has no {name}"
        held = getattr(message, name)
        # The numbers of an array are as good as whole ones.
        assert not isinstance(held, (bool, int, float, str)) or type(value) is type(held), f"{name}: {value!r}"
        setattr(message, name, value)
    return message


def test_the_command_lines_of_the_documentation_have_the_fields_of_the_interfaces():
    text = (ROOT / "docs/neural/node.md").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r'^ros2 (?:action send_goal|service call) .*/(\w+) (\w+)/(\w+)/(\w+) +"(.*)"$', text, re.M)
    assert {line[0] for line in lines} == {"build_neural_object", "estimate_inertia", "simulate_push", "identify"}
    for _, package, folder, kind, fields in lines:
        interface = getattr(importlib.import_module(f"{package}.{folder}"), kind)
        fill(interface.Goal() if folder == "action" else interface.Request(), yaml.safe_load(fields))
    with pytest.raises(AssertionError, match="1 cm"):
        fill(SimulatePush.Request(), {"pusher": {"radius": "1 cm"}})


def test_the_client_of_the_documentation_does_what_it_says(node):
    (script,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/neural/node.md").read_text(encoding="utf-8"), re.S)
    cloud = object_cloud()
    # In the recording's own frame, so that the object lies at its middle.
    middle = 0.5 * (cloud.points.min(axis=0) + cloud.points.max(axis=0))
    depths = views_of_cloud(cloud.points - middle, cloud.normals, np.array(EYES) - middle, 64)
    save_recording(Recording(depths=depths), node.folder / "seen.npz")
    (node.folder / "client.py").write_text(script, encoding="utf-8")
    node.forget()
    client = node.graph.run([sys.executable, str(node.folder / "client.py"), str(node.folder / "seen.npz")])
    assert client.wait() == 0, client.output
    assert "'part' built: 0.4 kg" in client.output
    moved = float(re.search(r"moves by ([-\d.]+)", client.output)[1])
    assert 30.0 < moved < 60.0
    friction = float(re.search(r"friction ([\d.]+)", client.output)[1])
    assert friction == pytest.approx(0.3, abs=0.01)


def test_services_are_answered_during_a_build_which_can_be_cancelled(box):
    stages = []
    handle = box.graph.start_goal(
        interfaces.BUILD_NEURAL_OBJECT, BuildNeuralObject.Goal(**goal_for(object_cloud(), EYES, settings=ENDLESS)),
        feedback=lambda message: stages.append((message.feedback.stage, message.feedback.loss)),
    )  # fmt: skip
    assert handle.accepted
    box.graph.wait_until(lambda: [loss for stage, loss in stages if stage == "learning"], what="learning")
    assert box.estimate(name="box").success
    waiting = box.graph.start_goal(
        interfaces.BUILD_NEURAL_OBJECT, BuildNeuralObject.Goal(source=BuildNeuralObject.Goal.FIELD, path=str(box.box))
    )
    # This one's turn comes.
    field = BuildNeuralObject.Goal(source=BuildNeuralObject.Goal.FIELD, path=str(box.box), name="next", density=700.0)
    third = box.graph.start_goal(interfaces.BUILD_NEURAL_OBJECT, field)
    box.forget()
    for goal in (waiting, handle):
        box.graph.wait_until(goal.cancel_goal_async().done, what="the answer to the cancel request")
    for goal in (handle, waiting):
        status, result = box.graph.result(goal)
        assert status == GoalStatus.STATUS_CANCELED
        assert "'box' stays in use" in result.message
        assert result.object.name == "box"
    status, result = box.graph.result(third)
    assert status == GoalStatus.STATUS_SUCCEEDED, result.message
    assert box.estimate(name="next").success


def _without_poses(folder):
    pictures = np.zeros((2, 8, 8, 3), np.uint8)
    arrays = {"images.rgb": pictures, "images.intrinsics": np.tile([8.0, 8.0, 4.0, 4.0], (2, 1))}
    write_archive(folder / "no_poses.npz", "recording of views", 1, {}, arrays)


def _one_image(folder):
    intrinsics = np.array([[8.0, 8.0, 4.0, 4.0]])
    arrays = {"rgb": np.zeros((1, 8, 8, 3), np.uint8), "intrinsics": intrinsics, "T_world_camera": np.eye(4)[None]}
    arrays["masks"] = np.pad(np.ones((1, 4, 4), np.bool_), ((0, 0), (2, 2), (2, 2)))
    named = {f"images.{name}": array for name, array in arrays.items()}
    write_archive(folder / "one_image.npz", "recording of views", 1, {}, named)


def _cut_off(folder):
    (folder / "cut_off.npz").write_bytes((folder / "box.npz").read_bytes()[:-200])


def _changed(folder):
    content = bytearray((folder / "box.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (folder / "changed.npz").write_bytes(bytes(content))


def _empty(folder):
    write_archive(folder / "empty.npz", "recording of views", 1, {}, {})


def _text(folder):
    (folder / "notes.npz").write_text("no field", encoding="utf-8")


RECORDING, FIELD = BuildNeuralObject.Goal.RECORDING, BuildNeuralObject.Goal.FIELD
FAR = region((9.0, 0.0, 0.0), (0.1, 0.1, 0.1), 1.0)
BARE = PointCloud(object_cloud().points, None, frame="world")


@pytest.mark.parametrize(
    ("make", "goal", "words"),
    [
        (None, {}, "objects: got nothing yet"),
        (None, {"source": 7}, "RECORDING 1"),
        (None, {"source": FIELD}, "path"),
        (None, {"source": RECORDING, "path": "nowhere.npz"}, "nowhere.npz"),
        (_without_poses, {"source": RECORDING, "path": "no_poses.npz"}, "T_world_camera"),
        (_empty, {"source": RECORDING, "path": "empty.npz"}, "images"),
        (_one_image, {"source": RECORDING, "path": "one_image.npz"}, "two"),
        (_text, {"source": FIELD, "path": "notes.npz"}, "notes.npz"),
        (_cut_off, {"source": FIELD, "path": "cut_off.npz"}, "cut_off.npz"),
        (_changed, {"source": FIELD, "path": "changed.npz"}, "changed.npz"),
        (None, {"source": RECORDING, "path": "box.npz"}, "of kind 'density field'"),
        (None, {"source": RECORDING, "path": "box.npz", "settings": ["from=sound"]}, "images or depth"),
        (None, {"source": FIELD, "path": "box.npz", "mass": -1.0}, "mass"),
        (None, {"source": FIELD, "path": "box.npz", "settings": ["resolution=48"]}, "settings"),
        (None, {"source": FIELD, "path": "box.npz", "settings": ["threshold=silhouettes"]}, "pictures of the object"),
        (None, goal_for(object_cloud(), []), "viewpoints"),
        (None, goal_for(object_cloud(), EYES[:1]), "two cameras"),
        (None, goal_for(BARE, EYES), "no normals"),
        (None, goal_for(object_cloud(), EYES, settings=["colour=red"]), "colour"),
        (None, goal_for(object_cloud(), EYES, seed=-1), "seed"),
        (None, goal_for(object_cloud(), EYES, use_table=True), "no table is known"),
        (None, {"source": FIELD, "path": "box.npz", "materials": [FAR]}, "no part"),
    ],
)
def test_a_build_that_cannot_be_says_why_and_keeps_the_last_object(node, make, goal, words):
    node.use_box()
    if make is not None:
        make(node.folder)
    if "path" in goal:
        goal = {**goal, "path": str(node.folder / goal["path"])}
    status, result = node.build(**goal)
    assert status == GoalStatus.STATUS_ABORTED
    assert words in result.message
    assert "'box' stays in use" in result.message
    assert node.estimate(name="box").success


def test_ends_cleanly_in_the_middle_of_a_build(node):
    stages = []
    handle = node.graph.start_goal(
        interfaces.BUILD_NEURAL_OBJECT, BuildNeuralObject.Goal(**goal_for(object_cloud(), EYES, settings=ENDLESS)),
        feedback=lambda message: stages.append(message.feedback.stage),
    )  # fmt: skip
    assert handle.accepted
    node.graph.wait_until(lambda: "learning" in stages, what="learning")
    assert node.process.stop() == 0
