"""Spheres in a running MoveIt: the diff of the planning scene, when it is sent, and robot_spheres as a process."""

import copy
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
from morphit_ros.robot.description import load_robot_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.endpoints import Service
from morphit_ros.ros.spheres.planning_scene import PlanningSceneUpdates, bodies_of, scene_from_bodies, without
from morphit_ros.spheres import LinkSpheres, SphereModel
from morphit_ros.spheres.objects.attachment import AttachedObject, RobotShape

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
        msg.PlanningSceneComponents = stand_in("PlanningSceneComponents", components=0)
        msg.PlanningSceneComponents.ROBOT_STATE_ATTACHED_OBJECTS = 4
        srv.ApplyPlanningScene = SimpleNamespace(Request=stand_in("Request", scene=PlanningScene))
        srv.GetPlanningScene = SimpleNamespace(Request=stand_in("Request", components=msg.PlanningSceneComponents))
        package.msg, package.srv = msg, srv
        for module in (package, msg, srv):
            monkeypatch.setitem(sys.modules, module.__name__, module)


def model(*links, count=2):
    def spheres(name):
        centers = np.arange(3.0 * count).reshape(count, 3) + len(name)
        return LinkSpheres(name, centers, 0.1 * np.arange(1.0, count + 1.0), 0.0, 0.0, "")

    return SphereModel("post", "volume", {name: spheres(name) for name in links})


def bodies(*links, count=2, held=()):
    """The links of a robot, and what it holds on its arm."""
    shape = RobotShape(load_robot_description(DESCRIPTION), model(*links, count=count))
    for name in held:
        shape = shape.attach(AttachedObject(name, "arm", np.array([[0.0, 0.0, 0.4]]), np.array([0.03])))
    return bodies_of(shape, touch_links=["finger"])


def test_every_sphere_is_at_its_place_in_an_object_named_after_its_link(moveit_messages):
    spheres = model("base", "arm", count=3)
    shape = RobotShape(load_robot_description(DESCRIPTION), spheres)
    scene = scene_from_bodies(bodies_of(shape, padding=0.01))
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


def test_links_without_spheres_any_more_get_one_where_nothing_is(moveit_messages):
    # Removed, they would be removed from the allowed collision matrix as well.
    scene = scene_from_bodies(without(bodies("base"), {"base": "base", "arm": "arm"}))
    items = {item.object.id: item for item in scene.robot_state.attached_collision_objects}
    assert list(items) == ["base", "arm"]
    assert len(items["base"].object.primitives) == 2
    assert {item.object.operation for item in items.values()} == {b"\x00"}
    assert not scene.world.collision_objects
    (place,) = items["arm"].object.primitive_poses
    assert np.linalg.norm([place.position.x, place.position.y, place.position.z]) >= 1000.0
    assert list(items["arm"].object.primitives[0].dimensions) == [1e-3]


def test_what_is_held_is_an_object_of_its_own_that_may_touch_what_ours_may(moveit_messages):
    items = {
        item.object.id: item
        for item in scene_from_bodies(bodies("base", "arm", held=["cup"])).robot_state.attached_collision_objects
    }
    assert list(items) == ["base", "arm", "cup"]
    # As of the hand's spheres it would be allowed to touch whatever the SRDF allows the hand.
    assert len(items["arm"].object.primitives) == 2
    cup = items["cup"]
    assert cup.link_name == cup.object.header.frame_id == "arm"
    # By its own name it is known later.
    assert set(cup.touch_links) == {"arm", "finger", "cup"}
    assert [list(solid.dimensions) for solid in cup.object.primitives] == [[0.03]]
    assert cup.object.primitive_poses[0].position.z == 0.4


def test_a_cover_that_is_worn_may_touch_the_links_beside_its_own(moveit_messages):
    touched = {name: body.touched for name, body in bodies("base", "arm", held=["cup", "cover"]).items()}
    assert touched["cover"] == {"arm", "base", "cover"}
    assert touched["cup"] == {"arm", "finger", "cup"}


def test_without_moveit_msgs_the_remedy_is_named(monkeypatch):
    for name in ("moveit_msgs", "moveit_msgs.msg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="ros-jazzy-moveit-msgs"):
        scene_from_bodies(bodies("base"))


class MoveGroup:
    """A node's side of a move_group that can be started again, with MoveIt's answers as PlanningScene gives them.

    It answers with success to a diff whose attached objects it does not take, makes the place of a single solid that of
    its object, puts what is detached into the world, and forgets the pairs of what is removed from there.
    """

    def __init__(self):
        self.ready, self.number, self.takes = True, 0, True
        self.requests, self.futures, self.errors, self.infos = [], [], [], []
        self.start()

    def start(self, *links):
        self.number += 1
        self.known_links = links or ("base", "arm", "tool")
        self.attached, self.world, self.pairs = {}, {}, set(self.known_links)

    # As a node
    def create_client(self, kind, name, **__):
        return SimpleNamespace(service_is_ready=lambda: self.ready, call_async=getattr(self, name))

    def create_timer(self, *_, **__):
        pass

    def get_publishers_info_by_topic(self, topic):
        assert topic == "monitored_planning_scene"
        return [SimpleNamespace(endpoint_gid=[self.number] * 16)] if self.ready else []

    def get_logger(self):
        return SimpleNamespace(info=self.infos.append, error=lambda *words, **_: self.errors.append(words[0]))

    # Its services: what is asked is answered by answer().
    def apply_planning_scene(self, request):
        self.requests.append(request.scene)
        return self.later(lambda: self.apply(request.scene))

    def get_planning_scene(self, request):
        assert request.components.components == 4
        return self.later(self.scene)

    def later(self, response):
        future = Future()
        self.futures.append((future, response))
        return future

    def answer(self, most=100):
        """So many calls, or until nothing is asked any more."""
        while self.futures and most:
            most -= 1
            future, response = self.futures.pop(0)
            future.set_result(response())

    def scene(self):
        state = SimpleNamespace(attached_collision_objects=list(self.attached.values()))
        return SimpleNamespace(scene=SimpleNamespace(robot_state=state))

    def apply(self, scene):
        success = True
        assert scene.is_diff
        assert scene.robot_state.is_diff
        for item in scene.robot_state.attached_collision_objects if self.takes else ():
            name = item.object.id
            if item.object.operation == b"\x00" and item.link_name in self.known_links:
                self.world.pop(name, None)
                self.attached[name] = copy.deepcopy(item)
                if len(item.object.primitives) == 1:
                    kept = self.attached[name].object
                    kept.pose, kept.primitive_poses[0] = kept.primitive_poses[0], kept.pose
            elif item.object.operation == b"\x01" and name in self.attached:
                self.world[name] = self.attached.pop(name)
        for item in scene.world.collision_objects:
            if self.world.pop(item.id, None) is None:
                success = False
            else:
                self.pairs.discard(item.id)
        return SimpleNamespace(success=success)

    def spheres(self):
        """Number of spheres of each link, None for one where nothing is."""

        def count(item):
            far = item.object.pose.position.z < -900.0
            return None if far else len(item.object.primitives)

        return {name: count(item) for name, item in self.attached.items()}


@pytest.fixture
def group(moveit_messages):
    return MoveGroup()


@pytest.fixture
def updates(group):
    return PlanningSceneUpdates(group)


def test_each_change_is_sent_once(group, updates):
    updates.update()
    assert not group.futures
    updates.show("first", bodies("base", "arm"))
    updates.update()
    updates.update()
    assert len(group.futures) == 1
    group.answer()
    updates.update()
    assert not group.futures
    assert len(group.requests) == 1
    assert group.spheres() == {"base": 2, "arm": 2}
    updates.show("second", bodies("base", count=3))
    updates.update()
    group.answer()
    updates.update()
    assert not group.futures
    assert len(group.requests) == 2
    assert group.spheres() == {"base": 3, "arm": None}
    assert len(group.infos) == 2
    assert not group.errors


def test_the_pairs_of_the_srdf_outlive_the_spheres_of_a_link(group, updates):
    for name, links in (("held", ("base", "tool")), ("let go", ("base",)), ("held again", ("base", "tool"))):
        updates.show(name, bodies(*links))
        updates.update()
        group.answer()
        assert group.pairs == {"base", "arm", "tool"}
        assert not group.world
        assert not group.errors
    assert group.spheres() == {"base": 2, "tool": 2}


def test_what_is_held_comes_and_goes_and_another_robot_spheres_knows_it(group, updates):
    updates.show("held", bodies("base", "arm", held=["cup"]))
    updates.update()
    group.answer()
    assert group.spheres() == {"base": 2, "arm": 2, "cup": 1}
    later = PlanningSceneUpdates(group)
    later.show("let go", bodies("base", "arm"))
    later.update()
    group.answer()
    assert group.spheres() == {"base": 2, "arm": 2, "cup": None}
    assert not group.world
    assert not group.errors


@pytest.mark.parametrize("count", [1, 2])
def test_what_move_group_has_already_is_not_sent(group, updates, count):
    updates.show("first", bodies("base", "arm", count=count))
    updates.update()
    group.answer()
    # robot_spheres started again, with the same spheres.
    later = PlanningSceneUpdates(group)
    later.show("first", bodies("base", "arm", count=count))
    later.update()
    group.answer()
    assert len(group.requests) == 1
    assert len(group.infos) == 2


def test_spheres_of_an_earlier_robot_spheres_go(group, updates):
    updates.show("first", bodies("base", "arm"))
    updates.update()
    group.answer()
    later = PlanningSceneUpdates(group)
    later.show("second", bodies("base"))
    later.update()
    group.answer()
    assert group.spheres() == {"base": 2, "arm": None}


def test_objects_of_others_are_left_alone(group, updates, moveit_messages):
    import moveit_msgs.msg as messages

    cup = messages.AttachedCollisionObject(link_name="arm")
    cup.object.id = "cup"
    group.attached["cup"] = cup
    updates.show("first", bodies("base"))
    updates.update()
    group.answer()
    (scene,) = group.requests
    assert [item.object.id for item in scene.robot_state.attached_collision_objects] == ["base"]
    assert group.attached["cup"] is cup


@pytest.mark.parametrize("change", ["center", "radius", "solid", "detached"])
def test_what_differs_in_move_group_is_sent_again(group, updates, change):
    updates.show("first", bodies("base"))
    updates.update()
    group.answer()
    solid = group.attached["base"].object
    if change == "center":
        solid.primitive_poses[1].position.y += 1e-3
    elif change == "radius":
        solid.primitives[1].dimensions = [solid.primitives[1].dimensions[0] + 1e-3]
    elif change == "solid":
        solid.primitives[1].type = SolidPrimitive.BOX
    else:
        group.world["base"] = group.attached.pop("base")
    # A display that was started, say.
    group.number += 1
    updates.update()
    group.answer()
    assert len(group.requests) == 2
    assert not group.world
    np.testing.assert_allclose(
        [list(item.dimensions) for item in group.attached["base"].object.primitives], [[0.1], [0.2]]
    )


def test_a_change_during_a_request_is_sent_too(group, updates):
    updates.show("first", bodies("base"))
    updates.update()
    updates.show("second", bodies("base", count=5))
    updates.update()
    group.answer()
    updates.update()
    assert group.spheres() == {"base": 5}
    # The first was overtaken before it was sent.
    assert len(group.requests) == 1
    assert not group.futures


def test_a_change_while_a_diff_is_on_its_way_waits_for_it(group, updates):
    updates.show("first", bodies("base"))
    updates.update()
    group.answer()
    updates.show("second", bodies("base", count=5))
    updates.update()
    group.answer(1)
    assert len(group.requests) == 2
    # Asked now, move_group could still tell of the first, and then take the second.
    updates.show("as the first", bodies("base"))
    updates.update()
    group.futures.reverse()
    group.answer()
    updates.update()
    group.answer()
    assert group.spheres() == {"base": 2}


@pytest.mark.parametrize("seen", [True, False])
def test_a_move_group_that_is_started_again_gets_the_spheres(group, updates, seen):
    updates.show("first", bodies("base", "arm"))
    updates.update()
    group.answer()
    if seen:
        group.ready = False
        updates.update()
        group.ready = True
    group.start()
    updates.show("second", bodies("base"))
    updates.update()
    group.answer()
    assert len(group.requests) == 2
    # It never had any of the arm.
    assert group.spheres() == {"base": 2}


def test_the_move_group_of_another_robot_is_reported(group, updates):
    # MoveIt says success.
    group.start("base")
    updates.show("first", bodies("base", "arm"))
    updates.update()
    group.answer()
    (error,) = group.errors
    assert "did not take the spheres of arm" in error
    assert not group.infos


def test_a_refusal_is_reported_and_a_lost_answer_asked_for_again(group, updates, monkeypatch):
    from morphit_ros.ros.spheres import planning_scene as module

    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    updates.show("first", bodies("base"))
    group.takes = False
    updates.update()
    group.answer()
    updates.update()
    assert len(group.requests) == 1
    assert "did not take the spheres of base" in group.errors[0]
    now[0] += 6.0
    group.takes = True
    updates.update()
    # No answer at all.
    group.futures.clear()
    now[0] += 6.0
    updates.update()
    group.answer()
    assert len(group.requests) == 2
    assert group.spheres() == {"base": 2}
    now[0] += 6.0
    updates.update()
    group.answer()
    assert len(group.requests) == 2
    assert len(group.infos) == 1


def test_spheres_that_somebody_detached_come_back(group, updates, monkeypatch):
    from morphit_ros.ros.spheres import planning_scene as module

    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    updates.show("first", bodies("base", "arm"))
    updates.update()
    group.answer()
    group.world["arm"] = group.attached.pop("arm")
    updates.update()
    assert not group.futures
    now[0] += 6.0
    updates.update()
    group.answer()
    assert group.spheres() == {"base": 2, "arm": 2}
    assert not group.world
    assert group.pairs == {"base", "arm", "tool"}


@pytest.mark.ros
def test_robot_spheres_sends_a_new_diff_after_a_fit(graph):
    services = pytest.importorskip("moveit_msgs.srv", reason="needs moveit_msgs")
    from morphit_interfaces.action import FitSpheres

    scenes = []

    def apply(request, response):
        scenes.append(request.scene)
        response.success = True
        return response

    def answer(request, response):
        for scene in scenes:
            response.scene.robot_state.attached_collision_objects = scene.robot_state.attached_collision_objects
        return response

    Service("apply_planning_scene", services.ApplyPlanningScene, "of move_group").serve(graph.node, apply)
    Service("get_planning_scene", services.GetPlanningScene, "of move_group").serve(graph.node, answer)
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
