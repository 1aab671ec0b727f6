"""superovoid_distance as a process: distances as services, objects, markers, and clear refusals."""

import math

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import Marker

from morphit_interfaces.msg import BodyDistance, DistanceShape, WorldObject, WorldObjectArray
from morphit_interfaces.srv import MinDistance, RobotDistance, UpdateWorld
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.diagnostics import Diagnostics

pytestmark = pytest.mark.ros
DESCRIPTION = """<robot name="post">
  <link name="base"/><link name="arm"/><link name="tip"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="tip"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 0 1"/><limit lower="0" upper="1" velocity="1" effort="1"/></joint>
</robot>"""
MODEL = """robot: post
links:
  base: {superovoids: [{semi_axes: [0.1, 0.1, 0.1], xyz: [0, 0, 0], quat_xyzw: [0, 0, 0, 1]}]}
  arm: {superovoids: [{semi_axes: [0.05, 0.05, 0.05], xyz: [0, 0, 0], quat_xyzw: [0, 0, 0, 1]}]}
  tip: {superovoids: [{semi_axes: [0.05, 0.05, 0.05], xyz: [0, 0, 0], quat_xyzw: [0, 0, 0, 1]}]}
"""
HOME = JointState(name=["slide", "turn", "of another robot"], position=[0.1, 0.0, 9.0])


def box(name, x, **named):
    item = WorldObject(id=name, shapes=[DistanceShape(type=DistanceShape.BOX, dimensions=[0.1, 0.1, 0.1])], **named)
    item.pose.position.x = x
    return item


class Client:
    def __init__(self, graph):
        self.graph = graph
        self.diagnostics = graph.latest(interfaces.DIAGNOSTICS)

    def distance(self, *states, **named):
        return self.graph.call(interfaces.ROBOT_DISTANCE, RobotDistance.Request(joint_states=list(states), **named))

    def update(self, **named):
        return self.graph.call(interfaces.UPDATE_WORLD, UpdateWorld.Request(**named))

    def wait_for_status(self, level, words):
        def reported():
            statuses = [status for message in self.diagnostics for status in message.status]
            return next((s for s in statuses if s.level == level and words in s.message), None)

        return self.graph.wait_until(reported, what=f"a status with {words!r}")


@pytest.fixture
def parameters(tmp_path):
    model = tmp_path / "post.yaml"
    model.write_text(MODEL, encoding="utf-8")
    return {"robot_description": DESCRIPTION, "model": model}


@pytest.fixture
def post(graph, parameters):
    graph.start("superovoid_distance", **parameters)
    return Client(graph)


def test_distances_of_states_to_itself_and_to_objects(graph, post):
    markers = graph.latest(interfaces.SUPEROVOID_MARKERS)
    segments = graph.latest(interfaces.DISTANCE_MARKERS)
    models = graph.latest(interfaces.SUPEROVOID_MODEL)
    answer = post.distance(HOME, compute_gradient=True)
    assert answer.success, answer.message
    assert answer.header.frame_id == "base"
    (state,) = answer.states
    nearest = state.minimum_distance
    # Neighbours may touch without an SRDF, so only base and tip are left: 0.9 m apart, less both radii.
    assert list(nearest.link_names) == ["base", "tip"]
    assert nearest.distance == pytest.approx(0.75, abs=1e-9)
    assert nearest.certified
    assert not state.collision
    assert nearest.nearest_points[0].z == pytest.approx(0.1)
    assert nearest.nearest_points[1].z == pytest.approx(0.85)
    assert nearest.normal.z == pytest.approx(1.0)
    gradient = dict(zip(answer.joint_names, nearest.gradient, strict=True))
    assert gradient["slide"] == pytest.approx(1.0)
    assert gradient["turn"] == pytest.approx(0.0, abs=1e-9)

    assert list(post.update(objects=[box("far", 2.0), box("near", 0.3)]).ids) == ["far", "near"]
    low = JointState(name=["turn", "slide"], position=[1.5, 0.0])
    answer = post.distance(HOME, low, type=RobotDistance.Request.SINGLE, self_distance=False)
    assert len(answer.states) == 2
    assert [len(item.distances) for item in answer.states] == [6, 6]
    first = answer.states[0].minimum_distance
    assert list(first.link_names) == ["base", "near"]
    assert list(first.body_types) == [BodyDistance.ROBOT_LINK, BodyDistance.WORLD_OBJECT]
    assert first.distance == pytest.approx(0.15, abs=1e-9)
    distances = [item.distance for item in answer.states[0].distances]
    assert distances == sorted(distances)
    # For one request: the near one is the tool now, and the far one is left out.
    tool = box("near", 0.0, attached_to="tip")
    answer = post.distance(HOME, objects=[tool], world=RobotDistance.Request.WORLD_REPLACE, type=1)
    assert {tuple(item.link_names) for item in answer.states[0].distances} == {
        ("base", "tip"), ("base", "near"), ("arm", "near"),
    }  # fmt: skip
    assert {item.body_types[1] for item in answer.states[0].distances} == {0, BodyDistance.ROBOT_ATTACHED}
    nothing = post.distance(HOME, distance_threshold=0.01).states[0]
    assert math.isinf(nothing.minimum_distance.distance)
    assert list(nothing.minimum_distance.link_names) == ["", ""]

    graph.wait_until(lambda: markers and len(markers[-1].markers) == 6, what="links and objects as markers")
    assert {m.type for m in markers[-1].markers[1:]} == {Marker.TRIANGLE_LIST}
    assert {m.header.frame_id for m in markers[-1].markers[1:]} == {"base", "arm", "tip"}
    graph.wait_until(lambda: segments, what="closest points as markers")
    (model,) = graph.wait_until(lambda: models, what="the superovoids themselves")
    assert (model.robot_name, model.header.frame_id) == ("post", "base")
    assert [link.link_name for link in model.links] == ["base", "arm", "tip"]
    post.wait_for_status(DiagnosticStatus.OK, "3 superovoids on 3 links of post, 2 objects")


def test_the_current_state_has_to_be_up_to_date(graph, post):
    answer = post.distance()
    assert not answer.success
    assert "nothing of 'turn'" in answer.message
    states = graph.publisher(interfaces.JOINT_STATES)

    def publish(age=0.0, **positions):
        message = JointState(name=list(positions), position=list(positions.values()))
        message.header.stamp = (graph.node.get_clock().now() - rclpy_duration(age)).to_msg()
        states.publish(message)

    def answered():
        # Arm and gripper publish on their own.
        publish(turn=0.0)
        publish(slide=0.2)
        answer = post.distance()
        return answer if answer.success else None

    answer = graph.wait_until(answered, what="a distance of the current state")
    assert answer.states[0].minimum_distance.distance == pytest.approx(0.85, abs=1e-9)
    completed = post.distance(JointState(name=["slide"], position=[0.3]), complete_states=True)
    # That may have taken longer than the state is valid.
    assert completed.success or "s old" in completed.message
    assert "no position of turn" in post.distance(JointState(name=["slide"], position=[0.3])).message

    def refused(words, age):
        def ask():
            publish(age, turn=0.0, slide=0.2)
            message = post.distance().message
            return message if words in message else None

        return graph.wait_until(ask, what=words)

    assert "use_sim_time" in refused("s old", 20.0)
    assert "use_sim_time" in refused("ahead of this clock", -20.0)


def rclpy_duration(seconds):
    from rclpy.duration import Duration

    return Duration(seconds=seconds)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"joint_states": [JointState(name=["turn"], position=[0.0])]}, "no position of slide"),
        ({"joint_states": [JointState(name=["turn"])]}, "joint_states[0]"),
        ({"joint_states": [HOME], "group": "arm"}, "SRDF"),
        ({"joint_states": [HOME], "pair_links_1": ["tip"], "pair_links_2": ["leg"]}, "leg"),
        ({"joint_states": [HOME], "objects": [box("tip", 1.0)]}, "no name of a link"),
        ({"joint_states": [HOME], "world": 7}, "WORLD_REPLACE"),
        ({"joint_states": [HOME], "type": 9}, "GLOBAL"),
    ],
)
def test_refusals_say_why(post, request_, words):
    answer = post.graph.call(interfaces.ROBOT_DISTANCE, RobotDistance.Request(**request_))
    assert not answer.success
    assert words in answer.message
    assert post.distance(HOME).success


def test_the_topic_of_objects_replaces_them_all_also_before_the_robot_is_known(graph, parameters):
    worlds = graph.node.create_publisher(
        interfaces.WORLD_OBJECTS.type, interfaces.WORLD_OBJECTS.name, interfaces.WORLD_OBJECTS.quality.profile()
    )
    worlds.publish(WorldObjectArray(objects=[box("early", 0.3)]))
    graph.start("superovoid_distance", model=parameters["model"])
    client = Client(graph)
    client.wait_for_status(DiagnosticStatus.WARN, "waiting for robot_description")
    refused = client.distance(HOME)
    assert "robot_description: got nothing yet" in refused.message
    shapes = [DistanceShape(type=DistanceShape.SPHERE, dimensions=[0.1])]
    apart = graph.call(interfaces.MIN_DISTANCE, MinDistance.Request(first=shapes, second=shapes))
    assert apart.success
    assert apart.distances[0] == pytest.approx(-0.2)

    descriptions = graph.publisher(interfaces.ROBOT_DESCRIPTION)
    descriptions.publish(String(data=DESCRIPTION))
    client.wait_for_status(DiagnosticStatus.OK, "1 objects")
    assert list(client.distance(HOME).states[0].minimum_distance.link_names) == ["base", "early"]
    worlds.publish(WorldObjectArray(objects=[box("late", 0.4), box("later", 0.5)]))
    client.wait_for_status(DiagnosticStatus.OK, "2 objects")
    assert list(client.update(remove=["late"]).ids) == ["later"]
    assert "late" in client.update(remove=["late"]).message
    bad = box("bad", 0.0)
    bad.header.frame_id = "nowhere"
    worlds.publish(WorldObjectArray(objects=[bad]))
    client.wait_for_status(DiagnosticStatus.ERROR, "the last objects are kept")
    assert list(client.update().ids) == ["later"]
    descriptions.publish(String(data=DESCRIPTION[:100]))
    client.wait_for_status(DiagnosticStatus.ERROR, "the last robot is kept")
    assert client.distance(HOME).success


def test_a_robot_without_superovoids_is_refused_with_the_way_to_fit_them(graph):
    process = graph.start("superovoid_distance", robot_description=DESCRIPTION)
    assert process.wait() == 2
    assert "morphit superovoid fit" in process.output


def test_the_known_robots_have_superovoids(graph):
    graph.start("superovoid_distance", robot="panda")
    client = Client(graph)
    names = [f"panda_joint{number}" for number in range(1, 8)] + ["panda_finger_joint1"]
    ready = JointState(name=names, position=[0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785, 0.02])
    answer = client.distance(ready, group="arm")
    assert answer.success, answer.message
    assert answer.states[0].minimum_distance.certified
    assert not answer.states[0].collision


def test_ends_cleanly(graph, parameters):
    process = graph.start("superovoid_distance", **parameters)
    process.wait_for_line("3 superovoids")
    assert process.stop() == 0


def test_an_answer_does_not_wait_for_drawings(graph, parameters, monkeypatch):
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.ros.distance import server as module

    drawn = []
    draw = module.superovoid_items
    monkeypatch.setattr(module, "superovoid_items", lambda links, *rest: drawn.append(len(links)) or draw(links, *rest))
    server = module.DistanceServer(
        graph.node, module.DistanceServerConfig(model=str(parameters["model"])), "", Diagnostics(graph.node)
    )
    server.set_robot(load_robot_description(DESCRIPTION))
    markers = graph.latest(interfaces.SUPEROVOID_MARKERS)
    graph.wait_until(lambda: markers, what="links as markers")
    # The links once, and no object.
    assert drawn == [3, 0]
    server.update_world(UpdateWorld.Request(objects=[box("near", 0.3)]), UpdateWorld.Response())
    assert drawn == [3, 0]
    graph.wait_until(lambda: len(markers[-1].markers) == 5, what="links and the object as markers")
    assert drawn == [3, 0, 0]
