"""Goals of execute_grasp as requests: frames, other things, and arm positions that may be another robot's."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Pose
from rclpy.node import Node

from morphit_interfaces.action import ExecuteGrasp, Push
from morphit_interfaces.msg import DistanceShape, GraspArray, WorldObject, WorldObjectArray
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.ros.core import conversions
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.frames import BaseFrameConfig
from morphit_ros.ros.execution.object_clearance import ExecutedClearanceConfig
from morphit_ros.ros.execution.pick_request import GoalConfig, GoalFrames, GoalReader, GoalScene, pick_request
from morphit_ros.ros.grasping.messages import grasp_from_message, message_from_grasp
from morphit_ros.ros.scene import messages
from morphit_ros.ros.scene.messages import TablePatch, message_from_objects, message_from_table

JOINTS = ("shoulder", "elbow")
T_WORLD_BASE = make_transform(translation=[0.0, 0.0, 1.0])


def goal(positions=(0.25, -0.5), **fields):
    pose = make_transform(translation=[0.5, 0.0, 1.0])
    before = make_transform(translation=[0.5, 0.0, 1.125])
    grasp = Grasp(pose, before, 0.04, 0.06, 1.0, {}, np.zeros((0, 3)), np.zeros(0, dtype=np.int64), confidence=0.5)
    message = message_from_grasp(grasp, header("world"), positions)
    assert grasp_from_message(message).confidence == 0.5
    array = GraspArray(header=header("world"), arm_joints=list(JOINTS), grasps=[message])
    return ExecuteGrasp.Goal(grasps=array, **fields)


def request(wanted, reaches=lambda pose, positions: True):
    return pick_request(wanted, GoalScene.read(wanted, GoalFrames(T_WORLD_BASE, "world", "base")), 0.0, reaches)


def test_positions_of_the_pregrasp_are_asked_for_at_its_pose_in_the_base():
    asked = []

    def reaches(pose, positions):
        asked.append((pose[:3, 3].tolist(), dict(positions)))
        return True

    (candidate,) = request(goal(), reaches).candidates
    assert candidate.pregrasp_positions == {"shoulder": 0.25, "elbow": -0.5}
    assert asked == [([0.5, 0.0, 0.125], {"shoulder": 0.25, "elbow": -0.5})]


def test_positions_of_another_robot_are_left_out():
    (candidate,) = request(goal(), lambda pose, positions: False).candidates
    assert candidate.pregrasp_positions is None
    (candidate,) = request(goal(positions=())).candidates
    assert candidate.pregrasp_positions is None


@pytest.mark.parametrize("positions", [(0.1,), (0.1, 0.2, 0.3), (0.1, np.nan)])
def test_broken_positions_are_refused(positions):
    with pytest.raises(InvalidInputError, match="pregrasp_positions"):
        request(goal(positions=positions))


def test_what_is_grasped_bulges_as_little_as_what_lies_beside_it():
    """A plate of 40 spheres would be 20 mm deep in all its neighbours, and no lift could begin."""
    flat = np.random.default_rng(0).uniform([0.4, -0.12, 1.0], [0.64, 0.12, 1.004], (4000, 3))
    scene = message_from_objects([PointCloud(flat, frame="world")], 0, header("world"))
    target = request(goal(object=scene.objects[0], scene=scene)).target
    assert float(np.median(target.radii)) < 0.009


def test_everything_else_that_was_seen_is_an_obstacle_in_the_base():
    rng = np.random.default_rng(0)
    places = np.array([[0.5, 0.0, 1.0], [0.5, 0.25, 1.0], [0.5, 0.5, 1.0]])
    clouds = [PointCloud(rng.uniform(0.0, 0.05, (50, 3)) + place, frame="world") for place in places]
    loose = np.array([[0.75, 0.0, 1.25]])
    scene = message_from_objects(clouds, 1, header("world"), obstacles=loose)
    wanted = goal(scene=scene, object=scene.objects[1])
    found = request(wanted)
    assert found.target.name == "target"
    assert [item.name for item in found.obstacles] == ["object 0", "object 2", "points of no object"]
    np.testing.assert_allclose(found.obstacles[-1].centers, [[0.75, 0.0, 0.25]], atol=1e-6)
    for cloud, item in zip((clouds[0], clouds[2]), found.obstacles[:2], strict=True):
        points = cloud.points - [0.0, 0.0, 1.0]
        distances = np.linalg.norm(points[:, None] - item.centers[None], axis=2) - item.radii
        assert distances.min(axis=1).max() <= 1e-6
    assert request(goal()).obstacles == ()
    scene.header.frame_id = "map"
    with pytest.raises(InvalidInputError, match="map"):
        request(goal(scene=scene, object=scene.objects[1]))


@pytest.fixture
def reader(ros_environment):
    """A reader of goals that keeps the gripper clear of superovoids and watches the object: all that clouds are for."""
    node = Node("reader")
    base = BaseFrameConfig(base_xyz=(0.0, 0.0, 1.0))
    clearance = ExecutedClearanceConfig(clearance="superovoids")
    gripper = Gripper.load("franka_hand")
    yield GoalReader(node, None, GoalConfig(), clearance, base, "base", gripper, lambda pose, positions: True)
    node.destroy_node()


def test_a_reader_knows_the_open_hand(reader):
    centers, sizes = reader.open_hand(0.06)
    assert centers.shape == sizes.shape and centers.shape[1] == 3
    # No further than it opens.
    assert np.ptp(reader.open_hand(1.0)[0][:, 1]) == pytest.approx(np.ptp(reader.open_hand(0.08)[0][:, 1]))
    assert np.ptp(reader.open_hand(1.0)[0][:, 1]) > np.ptp(centers[:, 1])


def test_each_cloud_of_a_goal_is_read_once(reader, monkeypatch):
    rng = np.random.default_rng(0)
    places = np.array([[0.5, 0.0, 1.0], [0.5, 0.25, 1.0]])
    clouds = [PointCloud(rng.uniform(0.0, 0.05, (50, 3)) + place, frame="world") for place in places]
    scene = message_from_objects(clouds, 1, header("world"), obstacles=np.array([[0.75, 0.0, 1.25]]))
    read = []

    def counted(message):
        read.append(message.width)
        return conversions.cloud_from_message(message)

    monkeypatch.setattr(messages, "cloud_from_message", counted)
    found, target = reader.read(goal(scene=scene, object=scene.objects[1]))
    assert sorted(read) == [1, 50, 50]
    np.testing.assert_allclose(target.points, clouds[1].points - [0.0, 0.0, 1.0], atol=1e-6)
    assert [item.name for item in found.obstacles] == ["object 0", "points of no object"]
    assert found.displacement() is None
    # The object's superovoid lies around it, in the base frame.
    assert found.clearance(make_transform(translation=target.points.mean(axis=0)), 0.04) < 0.0
    assert found.clearance(make_transform(translation=[0.0, 0.0, 2.0]), 0.04) > 1.0


def world_objects(*objects, frame="world"):
    return WorldObjectArray(header=header(frame), objects=list(objects))


def post(name="post", radius=0.05, **fields):
    shape = DistanceShape(type=DistanceShape.CAPSULE, dimensions=[0.5, radius], pose=Pose())
    pose = conversions.pose_from_matrix(make_transform(translation=[0.5, 0.25, 1.25]))
    return WorldObject(id=name, pose=pose, shapes=[shape], **fields)


def seen():
    """A goal with an object: the reader measures clearance to it."""
    points = np.random.default_rng(0).uniform([0.5, 0.0, 1.0], [0.55, 0.05, 1.05], (50, 3))
    scene = message_from_objects([PointCloud(points, frame="world")], 0, header("world"))
    return goal(scene=scene, object=scene.objects[0])


def test_what_else_is_in_the_world_is_kept_clear_of(reader):
    """In the base frame; what perception names comes with goals, what is attached with the robot."""
    assert reader.read(seen())[0].solids == ()
    perceived = [post(name) for name in ("table", "object_0", "object_12", "loose_points")]
    reader._world._on_world(world_objects(*perceived, post("hand", attached_to="hand")))
    assert reader.read(seen())[0].solids == ()
    named_alike = [post("object_lamp"), post("object_")]
    reader._world._on_world(world_objects(*perceived, post(), *named_alike))
    found = reader.read(seen())[0].solids
    assert [solid.name for solid in found] == ["post", "object_lamp", "object_"]
    np.testing.assert_allclose(found[0].T_world_solid[:3, 3], [0.5, 0.25, 0.25])
    np.testing.assert_allclose(found[0].dimensions, [0.05, 0.5])
    assert [solid.name for solid in reader.solids()] == [solid.name for solid in found]
    reader._world._on_world(world_objects())
    assert reader.solids() == ()


def test_a_world_that_cannot_be_read_leaves_the_last_one(reader):
    reader._world._on_world(world_objects(post()))
    reader._world._on_world(world_objects(post(radius=-1.0)))
    assert [solid.name for solid in reader.solids()] == ["post"]
    assert "kept" in reader.problem and "post" in reader.problem
    reader._world._on_world(world_objects(post(), frame="base"))
    assert reader.problem == ""
    np.testing.assert_allclose(reader.solids()[0].T_world_solid[:3, 3], [0.5, 0.25, 1.25])
    # A frame that nobody knows is said when a goal needs it.
    reader._world._on_world(world_objects(post(), frame="map"))
    with pytest.raises(InvalidInputError, match=r"object 'post' of the world.*map"):
        reader.read(seen())


def test_nothing_is_pushed_towards_what_is_known_to_stand_there(reader):
    """Perception leaves its points out: without it, most room would be where a wall stands."""
    table = message_from_table(
        TablePatch(make_transform(translation=[0.525, 0.025, 1.0]), np.ones(2)), 0.001, header("world")
    )
    wanted = seen()
    aside = np.random.default_rng(0).uniform([0.3, -0.1, 1.0], [0.42, 0.15, 1.1], (500, 3))
    scene = message_from_objects(
        [PointCloud(np.asarray(aside), frame="world")], None, header("world"), obstacles=np.array([[0.3, 0.0, 1.0]])
    )
    push = Push.Goal(object=wanted.object, scene=scene, table=table)
    push.object.id = 7

    def ahead():
        return [float((way.end - way.start)[0, 3]) for way in reader.pushes(push)[0]]

    assert ahead()[0] > 0.05
    shape = DistanceShape(type=DistanceShape.BOX, dimensions=[0.01, 0.5, 0.3], pose=Pose())
    wall = conversions.pose_from_matrix(make_transform(translation=[0.58, 0.025, 1.15]))
    reader._world._on_world(world_objects(WorldObject(id="wall", pose=wall, shapes=[shape])))
    assert abs(ahead()[0]) < 0.05
