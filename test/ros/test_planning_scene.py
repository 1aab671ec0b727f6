"""Spheres in a running MoveIt: the diff of the planning scene, when it is sent, and robot_spheres as a process."""

import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Pose
from rclpy.task import Future
from shape_msgs.msg import SolidPrimitive
from std_msgs.msg import Header

from morphit_ros.errors import MissingDependencyError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import Service
from morphit_ros.ros.spheres.planning_scene import PlanningSceneUpdates, scene_from_model
from morphit_ros.spheres import LinkSpheres, SphereModel

DESCRIPTION = """<robot name="post">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="arm"><collision><geometry><cylinder radius="0.03" length="0.3"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
</robot>"""
# Rough and quick.
QUICK = {"count": 4, "iterations": 10, "starts": 1, "rounds": 0, "interior_samples": 200, "surface_samples": 200}


def stand_in(kind, **fields):
    """A message of moveit_msgs as far as it is used here: fields have the types of their defaults."""

    def fill(self, **given):
        assert set(given) <= set(fields), f"{kind} has no {set(given) - set(fields)}"
        for name, default in fields.items():
            setattr(self, name, given.get(name, default() if callable(default) else default))

    return type(kind, (), {"__init__": fill})


CollisionObject = stand_in(
    "CollisionObject", id="", header=Header, pose=Pose, operation=b"\x00", primitives=list, primitive_poses=list
)
CollisionObject.ADD, CollisionObject.REMOVE = b"\x00", b"\x01"
AttachedCollisionObject = stand_in("AttachedCollisionObject", link_name="", touch_links=list, object=CollisionObject)
RobotState = stand_in("RobotState", is_diff=False, attached_collision_objects=list)
World = stand_in("PlanningSceneWorld", collision_objects=list)
Matrix = stand_in("AllowedCollisionMatrix", entry_names=list)
PlanningScene = stand_in(
    "PlanningScene", is_diff=False, robot_state=RobotState, world=World, allowed_collision_matrix=Matrix
)


@pytest.fixture
def moveit_messages(monkeypatch):
    """The real package where it is installed, else stand-ins."""
    try:
        import moveit_msgs.msg  # noqa: F401
    except ImportError:
        package, msg, srv = (types.ModuleType(name) for name in ("moveit_msgs", "moveit_msgs.msg", "moveit_msgs.srv"))
        for kind in (CollisionObject, AttachedCollisionObject, PlanningScene):
            setattr(msg, kind.__name__, kind)
        srv.ApplyPlanningScene = SimpleNamespace(Request=stand_in("Request", scene=PlanningScene))
        package.msg, package.srv = msg, srv
        for module in (package, msg, srv):
            monkeypatch.setitem(sys.modules, module.__name__, module)


def model(*links, count=2):
    def spheres(name):
        centers = np.arange(3.0 * count).reshape(count, 3) + len(name)
        return LinkSpheres(name, centers, 0.1 * np.arange(1.0, count + 1.0), 0.0, 0.0, "")

    return SphereModel("post", "volume", {name: spheres(name) for name in links})


def test_every_sphere_is_at_its_place_in_an_object_named_after_its_link(moveit_messages):
    spheres = model("base", "arm", count=3)
    scene = scene_from_model(spheres, padding=0.01)
    assert scene.is_diff
    assert scene.robot_state.is_diff
    # A matrix in a diff would replace the SRDF's.
    assert not scene.allowed_collision_matrix.entry_names
    assert not scene.world.collision_objects
    items = scene.robot_state.attached_collision_objects
    assert [item.object.id for item in items] == ["base", "arm"]
    for item in items:
        link = spheres.links[item.object.id]
        assert item.link_name == item.object.header.frame_id == link.link
        # The link itself, whose geometry is inside; other pairs are the SRDF's, which knows them by these names.
        assert list(item.touch_links) == [link.link]
        assert item.object.operation == b"\x00"
        assert item.object.pose.orientation.w == 1.0
        assert {solid.type for solid in item.object.primitives} == {SolidPrimitive.SPHERE}
        radii = [list(solid.dimensions) for solid in item.object.primitives]
        np.testing.assert_allclose(radii, link.radii[:, None] + 0.01)
        places = [(pose.position.x, pose.position.y, pose.position.z) for pose in item.object.primitive_poses]
        np.testing.assert_array_equal(places, link.centers)
        assert {pose.orientation.w for pose in item.object.primitive_poses} == {1.0}


def test_links_without_spheres_any_more_are_detached_and_removed(moveit_messages):
    scene = scene_from_model(model("base"), gone=["arm"])
    detached = scene.robot_state.attached_collision_objects[-1]
    # Detaching puts an object into the world, so it has to go from there too.
    for item in (detached.object, scene.world.collision_objects[0]):
        assert (item.id, item.operation) == ("arm", b"\x01")
    assert detached.link_name == "arm"


def test_without_moveit_msgs_the_remedy_is_named(monkeypatch):
    for name in ("moveit_msgs", "moveit_msgs.msg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="ros-jazzy-moveit-msgs"):
        scene_from_model(model("base"))


class MoveGroup:
    """A node's side of a move_group that can be started again."""

    def __init__(self):
        self.ready, self.number = True, 0
        self.requests, self.futures, self.errors = [], [], []

    # As a node
    def create_client(self, *_, **__):
        return self

    def create_timer(self, *_, **__):
        pass

    def get_publishers_info_by_topic(self, topic):
        assert topic == "monitored_planning_scene"
        return [SimpleNamespace(endpoint_gid=[self.number] * 16)] if self.ready else []

    def get_logger(self):
        return SimpleNamespace(info=lambda *_: None, error=lambda *words, **_: self.errors.append(words[0]))

    # As a client
    def service_is_ready(self):
        return self.ready

    def call_async(self, request):
        self.requests.append(request.scene)
        self.futures.append(Future())
        return self.futures[-1]

    def answer(self, success=True):
        self.futures[-1].set_result(SimpleNamespace(success=success))

    def links(self):
        return [item.object.id for item in self.requests[-1].robot_state.attached_collision_objects]


@pytest.fixture
def group(moveit_messages):
    return MoveGroup()


@pytest.fixture
def updates(group):
    return PlanningSceneUpdates(group, 0.0)


def test_each_change_is_sent_once(group, updates):
    updates.update()
    assert not group.requests
    updates.show("first", model("base", "arm"))
    updates.update()
    updates.update()
    group.answer()
    updates.update()
    assert len(group.requests) == 1
    updates.show("second", model("base"))
    updates.update()
    group.answer()
    updates.update()
    assert len(group.requests) == 2
    assert group.links() == ["base", "arm"]
    assert [item.id for item in group.requests[-1].world.collision_objects] == ["arm"]


def test_a_change_during_a_request_is_sent_too(group, updates):
    updates.show("first", model("base"))
    updates.update()
    updates.show("second", model("base", count=5))
    updates.update()
    assert len(group.requests[-1].robot_state.attached_collision_objects[0].object.primitives) == 5
    group.futures[1].set_result(SimpleNamespace(success=True))
    group.futures[0].set_result(SimpleNamespace(success=True))
    updates.update()
    assert len(group.requests) == 2


@pytest.mark.parametrize("seen", [True, False])
def test_a_move_group_that_is_started_again_gets_the_spheres(group, updates, seen):
    updates.show("first", model("base", "arm"))
    updates.update()
    group.answer()
    if seen:
        group.ready = False
        updates.update()
        group.ready = True
    group.number += 1
    updates.show("second", model("base"))
    updates.update()
    assert len(group.requests) == 2
    # It never had any of the arm.
    assert group.links() == ["base"]


def test_a_refusal_is_reported_and_a_lost_answer_asked_for_again(group, updates, monkeypatch):
    from morphit_ros.ros.spheres import planning_scene as module

    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    updates.show("first", model("base"))
    updates.update()
    group.answer(success=False)
    updates.update()
    assert len(group.requests) == 1
    assert "refused" in group.errors[0]
    now[0] += 6.0
    updates.update()
    assert len(group.requests) == 2
    # No answer at all.
    now[0] += 6.0
    updates.update()
    group.answer()
    now[0] += 6.0
    updates.update()
    assert len(group.requests) == 3


@pytest.mark.ros
def test_robot_spheres_sends_a_new_diff_after_a_fit(graph):
    services = pytest.importorskip("moveit_msgs.srv", reason="needs moveit_msgs")
    from morphit_interfaces.action import FitSpheres

    scenes = []

    def apply(request, response):
        scenes.append(request.scene)
        response.success = True
        return response

    service = Service("apply_planning_scene", services.ApplyPlanningScene, "of move_group")
    service.serve(graph.node, apply)
    graph.start("robot_spheres", robot_description=DESCRIPTION, planning_scene=True, **QUICK)
    graph.wait_until(lambda: scenes, what="a diff with the first fit")

    def counts():
        items = scenes[-1].robot_state.attached_collision_objects
        return {item.link_name: len(item.object.primitives) for item in items}

    first = counts()
    assert set(first) == {"base", "arm"}
    goal = FitSpheres.Goal(count=6)
    accepted, _, result = graph.send_goal(interfaces.FIT_SPHERES, goal)
    assert accepted
    assert result.success, result.message
    graph.wait_until(lambda: len(scenes) > 1, what="a diff with the second fit")
    fitted = {link.link_name: len(link.spheres) for link in result.model.links}
    assert counts() == fitted != first


@pytest.mark.ros
def test_robot_spheres_ends_without_moveit_msgs(graph):
    try:
        import moveit_msgs  # noqa: F401
    except ImportError:
        process = graph.start("robot_spheres", planning_scene=True)
        assert process.wait() == 2
        assert "ros-jazzy-moveit-msgs" in process.output
    else:
        pytest.skip("moveit_msgs is installed")
