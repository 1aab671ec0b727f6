"""Objects of messages as the planner's world: nothing of a shape is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from morphit_interfaces.msg import DistanceShape
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.memory.tracks import Track
from morphit_ros.memory.whole_shape import WholeShape, mesh_of, superovoids_of
from morphit_ros.motion.certificate import solid_distance
from morphit_ros.motion.cloud import cloud_distance
from morphit_ros.motion.world import World
from morphit_ros.perception.scene import LOOSE, ON_TABLE, Scene, SceneStatus, Table
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.ros.core.conversions import (
    array_from_point,
    matrix_from_pose,
    mesh_from_message,
    point_rows,
    seconds_from_stamp,
)
from morphit_ros.ros.distance.messages import objects_from_messages
from morphit_ros.ros.motion.world import solid_of, surroundings
from morphit_ros.ros.scene.whole_shapes import ShapeMessages
from morphit_ros.ros.scene.world_objects import describe_shapes, describe_tracks, is_perceived, message_from_world
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, Point, Sphere
from morphit_ros.superovoid.fits.errors import union_distances
from morphit_ros.superovoid.robots.world import PlacedShape, WorldObject
from morphit_ros.superovoid.shapes.superovoid import Superovoid

POSE = make_transform(matrix_from_rpy((0.4, -0.9, 1.3)), (0.3, -0.2, 0.5))
EGG = Superovoid.from_parameters([0.1, 0.06, 0.2, 0.6, 1.4, 0.2, -0.1])
CORNERS = np.random.default_rng(4).uniform(-0.2, 0.2, (30, 3))


def in_box(points):
    return (np.abs(points) <= [0.05, 0.1, 0.15]).all(axis=1)


def in_cylinder(points):
    return (np.hypot(points[:, 0], points[:, 1]) <= 0.1) & (np.abs(points[:, 2]) <= 0.15)


def in_capsule(points):
    return np.linalg.norm(points - np.clip(points, [0, 0, -0.15], [0, 0, 0.15]), axis=1) <= 0.08


def in_hull(points):
    from scipy.spatial import Delaunay

    return Delaunay(CORNERS).find_simplex(points) >= 0


SHAPES = {
    "box": (Box((0.1, 0.2, 0.3)), in_box),
    "cylinder": (Cylinder(0.1, 0.3), in_cylinder),
    "capsule": (Capsule(0.08, 0.3), in_capsule),
    "sphere": (Sphere(0.12), lambda points: np.linalg.norm(points, axis=1) <= 0.12),
    "superovoid": (EGG, lambda points: EGG.contains(points)),
    "mesh": (ConvexMesh(CORNERS), in_hull),
}


def inside(name: str, count: int = 400) -> np.ndarray:
    """Points of a shape, in its own frame."""
    rng, contains = np.random.default_rng(5), SHAPES[name][1]
    drawn = rng.uniform(-0.3, 0.3, (200_000, 3))
    found = drawn[contains(drawn)]
    assert len(found) > 50
    return found[:count]


@pytest.mark.parametrize("name", SHAPES)
def test_a_solid_contains_its_shape_and_little_more(name):
    shape, contains = SHAPES[name]
    solid = solid_of(name, shape, POSE)
    arrays = World([solid]).arrays_for(())

    def belongs(points):
        moved = transform_points(POSE, points)
        near = np.array([solid_distance(arrays, 0, point, np.inf) <= 0.0 for point in moved])
        return near | solid.contains(moved)

    assert belongs(inside(name)).all()
    drawn = np.random.default_rng(6).uniform(-0.3, 0.3, (3000, 3))
    away = np.array([not contains(point + 0.003 * around).any() for point, around in zip(drawn, _balls(), strict=True)])
    assert not belongs(drawn[away]).any()


def _balls():
    rng = np.random.default_rng(7)
    for _ in range(3000):
        around = rng.normal(size=(60, 3))
        yield np.concatenate([np.zeros((1, 3)), around / np.linalg.norm(around, axis=1)[:, None]])


@pytest.mark.parametrize("name", SHAPES)
def test_spheres_of_a_carried_shape_contain_it(name):
    placed = PlacedShape(SHAPES[name][0], POSE)
    item = WorldObject("thing", make_transform(translation=(0.0, 0.1, 0.0)), (placed,), attached_to="hand")
    (carried,) = surroundings([item], lambda _: np.eye(4)).carried
    assert (carried.name, carried.body.link) == ("thing", "hand")
    points = transform_points(item.T_frame_object @ POSE, inside(name))
    gaps = np.linalg.norm(points[:, None] - carried.body.centers, axis=2) - carried.body.radii
    assert gaps.min(axis=1).max() <= 1e-12


def test_half_spaces_and_points():
    floor = solid_of("floor", HalfSpace(), make_transform(translation=(0.0, 0.0, 0.1)))
    arrays = World([floor]).arrays_for(())
    for height, expected in ((0.3, 0.2), (0.05, -0.05)):
        found = solid_distance(arrays, 0, np.array([2.0, -3.0, height]), np.inf)
        assert found == pytest.approx(expected, abs=1e-9)
    dot = World([solid_of("dot", Point(), POSE)]).arrays_for(())
    assert solid_distance(dot, 0, POSE[:3, 3] + [0.1, 0.0, 0.0], np.inf) == pytest.approx(0.1, abs=1e-6)


def test_frames_many_spheres_and_pairs():
    rng = np.random.default_rng(8)
    centers, radii = rng.uniform(-0.5, 0.5, (100, 3)), rng.uniform(0.01, 0.03, 100)
    shapes = tuple(
        PlacedShape(Sphere(radius), make_transform(translation=center))
        for center, radius in zip(centers, radii, strict=True)
    )
    box = PlacedShape(Box((0.1, 0.1, 0.1)), np.eye(4))
    objects = [
        WorldObject("loose", np.eye(4), (*shapes, box), frame="shelf"),
        WorldObject("box", np.eye(4), (box,)),
    ]  # fmt: skip
    frames = {"": np.eye(4), "shelf": POSE}
    world, carried = surroundings(objects, frames.__getitem__, [frozenset(("hand", "loose"))])
    assert carried == ()
    assert world.names == ("loose", "box", "loose")
    arrays = world.arrays_for(["hand", "arm"])
    assert arrays.allowed.tolist() == [[True, False, True], [False, False, False]]
    placed = transform_points(POSE, centers)
    for point in rng.uniform(-0.5, 0.5, (50, 3)):
        expected = (np.linalg.norm(placed - point, axis=1) - radii).min()
        found = cloud_distance(arrays.cloud, *point, 1.0, -np.inf)
        # Balls that share a part of a cell are one.
        assert expected - 0.012 <= found <= expected + 1e-12
    with pytest.raises(InvalidInputError, match="frame of 'thing'"):
        item = WorldObject("thing", np.eye(4), (box,), frame="elbow", attached_to="hand")
        surroundings([item], frames.__getitem__)


def seen_scene(T_world_table: np.ndarray) -> Scene:
    rng = np.random.default_rng(9)
    block = rng.uniform([-0.05, -0.03, 0.04], [0.05, 0.03, 0.12], (400, 3))
    sheet = rng.uniform([0.2, 0.2, 0.01], [0.3, 0.25, 0.01], (100, 3))
    loose = rng.uniform([-0.3, -0.3, 0.05], [-0.25, -0.25, 0.1], (30, 3))
    table = rng.uniform([-0.4, -0.4, 0.0], [0.4, 0.4, 0.0], (200, 3))
    clouds = [PointCloud(transform_points(T_world_table, points)) for points in (block, sheet, loose, table)]
    labels = np.repeat([0, 1, LOOSE, ON_TABLE], [400, 100, 30, 200])
    return Scene(
        SceneStatus.OK, "", clouds[:2], [], [], 0, Table(T_world_table, np.array([0.8, 0.8]), 0.001),
        PointCloud(np.concatenate([cloud.points for cloud in clouds])), labels, np.eye(4), None,
    )  # fmt: skip


def tracks_of(scene: Scene) -> list[Track]:
    return [Track(number, cloud, 12.5, number) for number, cloud in enumerate(scene.objects)]


def test_objects_have_their_numbers_and_the_time_when_they_were_seen_and_what_is_held_is_no_obstacle():
    scene = seen_scene(np.eye(4))
    block, sheet = scene.objects
    away = PointCloud(block.points + np.array([0.3, 0.0, 0.0]))
    tracks = [
        Track(4, block, 12.5, 0), Track(2, sheet, 12.5, 1), Track(3, away, 9.0, None, "hidden"),
        Track(0, away, 1.0, None, "held", True),
    ]  # fmt: skip
    message = message_from_world(scene, tracks, np.eye(4), "base_link", 12.5)
    stamps = {item.id: seconds_from_stamp(item.header.stamp) for item in message.objects}
    assert stamps == {"table": 0.0, "object_4": 12.5, "object_2": 12.5, "object_3": 9.0, "loose_points": 0.0}
    hull = point_rows(next(item for item in message.objects if item.id == "object_3").shapes[0].vertices)
    assert hull[:, 0].min() > 0.24
    # Others read such objects as before.
    assert len(objects_from_messages(message.objects, message.header.frame_id)) == len(message.objects)
    assert describe_tracks(tracks, [Track(1, sheet, 8.0)], 12.5) == {
        "objects seen": "object_4 object_2",
        "objects unseen": "object_3 (hidden, seen 3.5 s ago), object_0 (held, seen 11.5 s ago)",
        "objects let go of": "object_1",
    }


def test_whole_shapes_stand_for_their_objects_and_hold_what_was_seen_of_them():
    scene, T_base_world = seen_scene(np.eye(4)), make_transform(matrix_from_rpy((0.0, 0.0, 1.0)), (0.1, 0.2, -0.3))
    block = scene.objects[0].points
    pose = make_transform(translation=(0.0, 0.0, 0.08))
    shapes = superovoids_of(block - pose[:3, 3])
    assert shapes is not None
    whole = WholeShape(shapes, mesh_of(shapes), pose, 0.003, 0.004, 0.4, 3, 11.0)
    message = message_from_world(scene, tracks_of(scene), T_base_world, "base_link", 12.5, shapes={0: whole})
    named = {item.id: item for item in message.objects}
    assert sorted(named) == ["loose_points", "object_0", "object_1", "table"]
    item = named["object_0"]
    assert {shape.type for shape in item.shapes} == {DistanceShape.SUPEROVOID} and len(item.shapes) == len(shapes)
    assert named["object_1"].shapes[0].type == DistanceShape.CONVEX_MESH
    assert seconds_from_stamp(item.header.stamp) == 12.5
    # Whoever keeps clear of the world keeps clear of what was seen.
    objects = objects_from_messages([item], message.header.frame_id)
    placed = [
        PlacedSuperovoid(each.shape, objects[0].T_frame_object @ each.T_object_shape) for each in objects[0].shapes
    ]
    assert (union_distances(placed, transform_points(T_base_world, block)) <= 0.0).mean() > 0.95
    world = surroundings(objects, lambda frame: {"base_link": np.eye(4)}[frame]).world
    assert "object_0" in "".join(world.names)
    assert describe_shapes({0: whole}, 12.5) == (
        f"object_0: {len(shapes)} superovoids, seen within 3.0 mm, 40 % assumed, 3 looks, 1.5 s old"
    )


def test_a_whole_shape_is_told_as_it_is_with_its_mesh_its_deviation_and_its_age():
    """Other than in the world, where it is grown so that it holds what was seen."""
    block = seen_scene(np.eye(4)).objects[0].points
    shapes = superovoids_of(block)
    assert shapes is not None
    pose = make_transform(matrix_from_rpy((0.0, 0.0, 0.4)), (0.1, 0.2, 0.3))
    whole = WholeShape(shapes, mesh_of(shapes), pose, 0.003, 0.002, 0.4, 3, 11.0, "of 'mug' 1a2b3c4d")
    messages = ShapeMessages()
    (item,) = messages.message({4: whole}, "world").objects
    told = item.id, item.deviation, item.outside, item.assumed, item.looks, item.known
    assert told == ("object_4", 0.003, 0.002, 0.4, 3, "of 'mug' 1a2b3c4d")
    assert item.header.frame_id == "world" and seconds_from_stamp(item.header.stamp) == 11.0
    np.testing.assert_allclose(matrix_from_pose(item.pose), pose, atol=1e-12)
    (placed, *_), (shape, *_) = shapes, item.shapes
    assert len(item.shapes) == len(shapes) and shape.type == DistanceShape.SUPEROVOID
    assert list(shape.dimensions) == placed.shape.parameters.tolist()
    np.testing.assert_allclose(matrix_from_pose(shape.pose), placed.T_link_shape, atol=1e-12)
    # All of its vertices are on a shape, and the mesh is as large as the shapes together, pointing outwards.
    mesh = mesh_from_message(item.mesh)
    away = [union_distances([each], mesh.vertices) for each in shapes]
    assert np.abs(away).min(axis=0).max() < 1e-5
    assert mesh.volume == pytest.approx(sum(each.shape.volume for each in shapes), rel=0.05)
    # Made once for as long as it is the same.
    (again,) = messages.message({4: replace(whole, seen=12.0)}, "world").objects
    assert again.mesh is item.mesh and seconds_from_stamp(again.header.stamp) == 12.0
    assert messages.message({}, "world").objects == []


def test_what_stands_there_for_good_comes_with_each_scene():
    scene = seen_scene(np.eye(4))
    T_base_world = make_transform(matrix_from_rpy((0.0, 0.0, 1.0)), (0.1, 0.2, -0.3))
    kinds = GeometryKind
    sizes = {kinds.BOX: (0.1, 0.2, 0.3), kinds.CYLINDER: (0.03, 0.6), kinds.SPHERE: (0.05,), kinds.CAPSULE: (0.02, 0.5)}
    fixtures = [Solid(kind.value, kind, POSE, np.array(size)) for kind, size in sizes.items()]
    message = message_from_world(scene, tracks_of(scene), T_base_world, "base_link", 12.5, fixtures)
    names = [solid.name for solid in fixtures]
    assert [item.id for item in message.objects] == [*names, "table", "object_0", "object_1", "loose_points"]
    assert [is_perceived(item.id) for item in message.objects] == [False] * 4 + [True] * 4
    objects = objects_from_messages(message.objects, message.header.frame_id)
    world = surroundings(objects, lambda frame: {"base_link": np.eye(4)}[frame]).world
    for fixture in fixtures:
        solid = world.solids[world.names.index(fixture.name)]
        assert solid.kind is fixture.kind
        np.testing.assert_allclose(solid.dimensions, fixture.dimensions)
        np.testing.assert_allclose(solid.T_world_solid, T_base_world @ POSE, atol=1e-12)


def test_what_is_seen_is_in_the_world_down_to_the_table():
    T_world_table = make_transform(matrix_from_rpy((0.0, 0.02, 0.5)), (0.5, 0.1, 0.02))
    T_base_world = make_transform(matrix_from_rpy((0.0, 0.0, 1.0)), (0.1, 0.2, -0.3))
    scene = seen_scene(T_world_table)
    message = message_from_world(scene, tracks_of(scene), T_base_world, "base_link", 12.5)
    assert message.header.frame_id == "base_link"
    assert [item.id for item in message.objects] == ["table", "object_0", "object_1", "loose_points"]
    objects = objects_from_messages(message.objects, message.header.frame_id)
    world = surroundings(objects, lambda frame: {"base_link": np.eye(4)}[frame]).world
    arrays = world.arrays_for(())
    T_base_table = T_base_world @ T_world_table

    def distance(points, name):
        n = world.names.index(name)
        solid, moved = world.solids[n], transform_points(T_base_table, np.atleast_2d(np.array(points)))
        found = np.array([solid_distance(arrays, n, point, np.inf) for point in moved])
        return np.where(solid.contains(moved), np.minimum(found, 0.0), found)

    # On the table's face, above it, and a hand's breadth beyond what was seen.
    np.testing.assert_allclose(
        distance([[0, 0, 0], [0.1, 0.2, 0.05], [0.45, 0, -0.01]], "table"), [0, 0.05, -0.01], atol=1e-6
    )
    seen = invert_transform(T_world_table)
    for index in (0, 1):
        points = transform_points(seen, scene.objects[index].points)
        assert (distance(points, f"object_{index}") <= 1e-9).all()
        points[:, 2] *= 0.5
        assert (distance(points, f"object_{index}") <= 1e-9).all()
    assert distance([[0.0, 0.0, 0.2]], "object_0")[0] == pytest.approx(0.08, abs=0.01)
    loose = transform_points(T_base_world, scene.cloud.points[scene.labels == LOOSE])
    balls = message.objects[-1].shapes
    centers = np.array([matrix_from_pose(ball.pose)[:3, 3] for ball in balls])
    radii = np.array([ball.dimensions[0] for ball in balls])
    assert (np.linalg.norm(loose[:, None] - centers, axis=2) - radii).min(axis=1).max() <= 1e-6
    assert len(point_rows(message.objects[1].shapes[0].vertices)) < 400
    assert array_from_point(message.objects[0].pose.position).shape == (3,)
