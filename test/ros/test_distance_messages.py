"""Messages of superovoid_distance: shapes, objects, requests and answers, and what is refused with which words."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from morphit_interfaces.msg import DistanceShape, WorldObject, WorldObjectArray
from morphit_interfaces.srv import MinDistance, RobotDistance
from morphit_ros.display.drawings.distances import shape_mesh, superovoid_items
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.robot.description import load_robot_description
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core.conversions import matrix_from_pose
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.messages import (
    answer_min_distance,
    matrices_from_poses,
    message_from_model,
    message_from_state_distances,
    objects_from_messages,
    request_from_message,
    shape_from_message,
    states_from_messages,
)
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    Point as PointShape,
    Sphere,
)
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import RobotDistance as RobotModel
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.robots.world import CollisionWorld
from morphit_ros.superovoid.shapes.superovoid import Superovoid

CORNERS = [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]


def shape(kind, *dimensions, x=0.0):
    message = DistanceShape(type=kind, dimensions=[float(number) for number in dimensions])
    message.pose.position.x = x
    return message


def tetrahedron():
    return DistanceShape(type=DistanceShape.CONVEX_MESH, vertices=[Point(x=x, y=y, z=z) for x, y, z in CORNERS])


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (shape(0, 1, 2, 3), Superovoid.ellipsoid((1.0, 2.0, 3.0))),
        (shape(0, 1, 2, 3, 0.5, 0.6), Superovoid((1.0, 2.0, 3.0), (0.5, 0.6))),
        (shape(0, 1, 2, 3, 0.5, 0.6, 0.1, 0.2), Superovoid((1.0, 2.0, 3.0), (0.5, 0.6), (0.1, 0.2))),
        (shape(1), PointShape()),
        (shape(2, 0.3), Sphere(0.3)),
        # Height before radius, as of the cylinder of shape_msgs/SolidPrimitive.
        (shape(3, 0.5, 0.1), Capsule(radius=0.1, length=0.5)),
        (shape(4, 1, 2, 3), Box((1.0, 2.0, 3.0))),
        (shape(5, 0.4, 0.1), Cylinder(radius=0.1, length=0.4)),
        (shape(6), HalfSpace()),
    ],
)
def test_shapes(message, expected):
    assert shape_from_message(message) == expected


def test_a_mesh_is_its_hull():
    mesh = shape_from_message(tetrahedron())
    assert isinstance(mesh, ConvexMesh)
    np.testing.assert_array_equal(mesh.vertices, CORNERS)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (shape(9), "shape type"),
        (shape(0, 1, 2), "SUPEROVOID: dimensions: got 2 numbers, expected 3 or 5 or 7"),
        (shape(0, 1, 2, 3, 2.5, 1), "squareness"),
        (shape(2, -1), "radius"),
        (shape(4, 1, 2, math.nan), "sides"),
        (shape(6, 1), "HALF_SPACE"),
        (DistanceShape(type=DistanceShape.CONVEX_MESH), "points"),
    ],
)
def test_bad_shapes_are_refused(message, words):
    with pytest.raises(InvalidInputError, match=words):
        shape_from_message(message)


def test_poses_all_at_once_are_those_one_by_one():
    rng = np.random.default_rng(0)
    poses = [
        Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=a, y=b, z=c, w=d))
        for x, y, z, a, b, c, d in rng.normal(size=(5, 7)).tolist()
    ]
    np.testing.assert_allclose(matrices_from_poses(poses), [matrix_from_pose(pose) for pose in poses], atol=1e-15)
    assert matrices_from_poses([]).shape == (0, 4, 4)
    with pytest.raises(InvalidInputError, match="pose 1"):
        matrices_from_poses([Pose(), Pose(orientation=Quaternion(w=0.0))])
    with pytest.raises(InvalidInputError, match="pose 0"):
        matrices_from_poses([Pose(position=Point(x=math.inf))])


def test_objects_have_the_frame_of_their_array_unless_attached():
    array = WorldObjectArray(
        objects=[
            WorldObject(id="a", shapes=[shape(2, 0.1, x=0.5)]),
            WorldObject(id="b", shapes=[shape(2, 0.1)], attached_to="hand", touch_links=["finger"]),
            WorldObject(id="c", shapes=[shape(2, 0.1)]),
        ]
    )
    array.header.frame_id = "world"
    array.objects[2].header.frame_id = "table"
    first, attached, third = objects_from_messages(array.objects, array.header.frame_id)
    assert [item.frame for item in (first, attached, third)] == ["world", "", "table"]
    assert first.shapes[0].T_object_shape[0, 3] == 0.5
    assert attached.attached_to == "hand"
    assert attached.touch_links == {"finger"}


def test_a_bad_object_is_named():
    fine = WorldObject(id="plate", shapes=[shape(2, 0.1)])
    with pytest.raises(InvalidInputError, match="object 'cup': radius"):
        objects_from_messages([fine, WorldObject(id="cup", shapes=[shape(2, 0.0)])])
    with pytest.raises(InvalidInputError, match="object 'cup': pose 1"):
        objects_from_messages([fine, WorldObject(id="cup", shapes=[shape(2, 0.1, x=math.nan)])])
    with pytest.raises(InvalidInputError, match="object 'cup'"):
        objects_from_messages([fine, WorldObject(id="cup")])
    with pytest.raises(InvalidInputError, match="object id"):
        objects_from_messages([WorldObject(shapes=[shape(2, 0.1)])])


def test_requests_and_states():
    message = RobotDistance.Request(
        type=RobotDistance.Request.LIMITED, pair_links_1=["a"], pair_links_2=["b"], compute_gradient=True
    )
    request = request_from_message(message)
    assert request.type is DistanceType.LIMITED
    assert request.pairs == (("a", "b"),)
    assert request.gradient
    assert request.self_distance
    assert request.signed_distance
    message.pair_links_2 = []
    with pytest.raises(InvalidInputError, match="pair_links_1, pair_links_2: got 1 and 0 names"):
        request_from_message(message)
    assert states_from_messages([JointState(name=["j"], position=[0.5])]) == [{"j": 0.5}]
    with pytest.raises(InvalidInputError, match=r"joint_states\[1\]"):
        states_from_messages([JointState(), JointState(name=["j"])])


def test_the_numbers_are_those_of_moveit():
    # collision_detection::DistanceRequestTypes and BodyTypes of MoveIt 2.12, which the plugin casts to these.
    names = RobotDistance.Request
    assert [names.GLOBAL, names.SINGLE, names.LIMITED, names.ALL] == [0, 1, 2, 3]


def answered(first, second, **named):
    response = MinDistance.Response()
    count = answer_min_distance(MinDistance.Request(first=first, second=second, **named), response)
    return count, response


def test_distances_pair_by_pair_and_one_against_many():
    spheres = [shape(2, 0.1, x=x) for x in (0.5, 1.0, 0.05)]
    count, response = answered([shape(0, 0.1, 0.1, 0.1)], spheres)
    assert count == 3
    np.testing.assert_allclose(response.distances, [0.3, 0.8, -0.15], atol=1e-12)
    np.testing.assert_allclose(response.lower_bounds, response.distances, atol=1e-7)
    assert all(response.certified)
    assert list(response.status) == ["certified"] * 3
    assert [point.x for point in response.nearest_points_1] == pytest.approx([0.1] * 3)
    assert [point.x for point in response.nearest_points_2] == pytest.approx([0.4, 0.9, -0.05])
    assert [normal.x for normal in response.normals] == pytest.approx([1.0] * 3)
    _, both = answered(spheres[:2], spheres[1:], enable_signed_distance=False)
    np.testing.assert_allclose(both.distances, [0.3, 0.75], atol=1e-12)
    _, touching = answered([spheres[0]], [spheres[0]], enable_signed_distance=False)
    assert list(touching.distances) == [0.0]
    _, near = answered([spheres[2]], spheres, distance_threshold=0.4)
    assert list(near.status) == ["certified", "beyond", "certified"]
    assert math.isnan(near.nearest_points_1[1].x)
    assert 0.4 < near.distances[1] <= 0.75 + 1e-12


@pytest.mark.parametrize("method", ["implicit", "parametric"])
def test_the_published_solvers_can_be_chosen(method):
    pytest.importorskip(f"morphit_bench.superovoid.{method}")
    _, response = answered([shape(0, 0.1, 0.2, 0.1)], [shape(0, 0.1, 0.1, 0.3, x=0.5)], method=method)
    assert response.distances[0] == pytest.approx(0.3, abs=1e-5)


@pytest.mark.parametrize(
    ("first", "second", "named", "words"),
    [
        ([], [shape(1)], {}, "0 and 1 shapes"),
        ([shape(1)] * 2, [shape(1)] * 3, {}, "2 and 3 shapes"),
        ([shape(6)], [shape(6)], {}, "half-space"),
        ([shape(1)], [shape(2, 0.1)], {"method": "newton"}, "method"),
    ],
)
def test_bad_pairs_are_refused(first, second, named, words):
    with pytest.raises(InvalidInputError, match=words):
        answered(first, second, **named)


@pytest.mark.parametrize(
    ("message", "volume"),
    [
        (shape(0, 0.1, 0.2, 0.3), 4 / 3 * math.pi * 0.006),
        (shape(2, 0.1), 4 / 3 * math.pi * 0.001),
        (shape(3, 0.2, 0.1), math.pi * 0.002 + 4 / 3 * math.pi * 0.001),
        (shape(4, 0.1, 0.2, 0.3), 0.006),
        (tetrahedron(), 1 / 6),
    ],
)
def test_shapes_are_drawn_with_faces_outwards(message, volume):
    mesh = shape_mesh(shape_from_message(message), 0.001)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    assert (a * np.cross(b, c)).sum() / 6 == pytest.approx(volume, rel=0.05)


def test_markers_are_one_list_for_each_link_and_object():
    links = {"arm": [PlacedSuperovoid(Superovoid.sphere(0.1), np.eye(4))]}
    items = [
        WorldObject(id="floor", shapes=[shape(6)]),
        WorldObject(id="tool", shapes=[shape(1), shape(2, 0.1)], attached_to="arm"),
    ]
    drawn = superovoid_items(links, CollisionWorld.of(objects_from_messages(items)), "base", 0.01, 0.5)
    clear, arm, floor, tool = marker_array(drawn, Header()).markers
    assert clear.action == Marker.DELETEALL
    assert [m.header.frame_id for m in (arm, floor, tool)] == ["arm", "base", "arm"]
    assert {m.type for m in (arm, floor, tool)} == {Marker.TRIANGLE_LIST}
    assert all(len(m.points) % 3 == 0 and m.points for m in (arm, floor, tool))


def test_a_model_is_the_same_by_message_and_known_by_its_hash():
    shapes = (Superovoid((0.1, 0.2, 0.3), (0.5, 1.5), (0.1, -0.2)), Superovoid.sphere(0.05))
    poses = [
        make_transform(matrix_from_rotation_vector(turn), [0.1, -0.2, 0.3]) for turn in ([0.4, 0.0, 0.5], [0, 0.7, 0])
    ]
    pieces = tuple(PlacedSuperovoid(*piece) for piece in zip(shapes, poses, strict=True))
    model = RobotSuperovoids("post", {"arm": LinkSuperovoids("arm", pieces)})
    message = message_from_model(model, Header(frame_id="base"))
    (link,) = message.links
    assert (message.robot_name, message.header.frame_id, link.link_name) == ("post", "base", "arm")
    assert tuple(shape_from_message(item) for item in link.shapes) == shapes
    for item, pose in zip(link.shapes, poses, strict=True):
        np.testing.assert_allclose(matrix_from_pose(item.pose), pose, atol=1e-12)
    same = RobotSuperovoids("post", {"arm": LinkSuperovoids("arm", pieces, deviation=(0.0, 0.1))})
    assert message.content_hash == model.content_hash == same.content_hash
    others = [
        RobotSuperovoids("pole", model.links),
        RobotSuperovoids("post", {"leg": LinkSuperovoids("leg", pieces)}),
        RobotSuperovoids("post", {"arm": LinkSuperovoids("arm", pieces[::-1])}),
        RobotSuperovoids("post", {"arm": LinkSuperovoids("arm", pieces[:1])}),
        RobotSuperovoids("post", {"arm": LinkSuperovoids("arm", (PlacedSuperovoid(shapes[0], poses[1]), pieces[1]))}),
    ]
    assert len({message.content_hash, *(other.content_hash for other in others)}) == 6


def test_bounds_of_the_links_are_passed_on():
    """NaN for single pairs of shapes, of which nothing is proven."""
    urdf = (
        "<robot name='r'><link name='a'/><link name='b'/><joint name='j' type='prismatic'><parent link='a'/>"
        "<child link='b'/><axis xyz='1 0 0'/><limit lower='0' upper='2' effort='1' velocity='1'/></joint></robot>"
    )
    ball = PlacedSuperovoid(Superovoid.sphere(0.1), np.eye(4))
    links = {name: LinkSuperovoids(name, (ball,), deviation=(0.01, 0.02)) for name in ("a", "b")}
    robot = RobotModel(links, KinematicModel(load_robot_description(urdf)))
    for kind, expected in ((DistanceType.GLOBAL, (0.28, 0.34)), (DistanceType.ALL, (np.nan, np.nan))):
        (state,) = robot.compute([{"j": 0.5}], RobotDistanceRequest(kind, ignore_semantics=True))
        message = message_from_state_distances(state)
        np.testing.assert_allclose(message.minimum_distance.robot_bounds, expected, atol=1e-9)
