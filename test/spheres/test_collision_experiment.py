"""Outcomes of spheres against obstacles, and the truth by Coal, on cases whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.spheres.collision_experiment import (
    ObstacleShape,
    Outcomes,
    count_outcomes,
    random_link_poses,
    random_obstacles,
    sphere_hits,
)
from morphit_bench.spheres.collision_truth import mesh_hits, mesh_self_hits
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import GeometryKind

SLIDER = """<robot name="slider"><link name="base"/><link name="cart"/>
<joint name="rail" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-2" upper="3" effort="1" velocity="1"/></joint></robot>"""


def at(*translation: float, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> np.ndarray:
    return make_transform(matrix_from_rpy(rpy), translation or None)


def ball(*center: float, radius: float = 0.1) -> ObstacleShape:
    return ObstacleShape(GeometryKind.SPHERE, at(*center), np.array([radius]))


def one_sphere(radius: float) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((1, 3)), np.array([radius])


@pytest.mark.parametrize(
    ("kind", "dimensions", "reach"),
    [
        (GeometryKind.SPHERE, [0.3], 0.3),
        (GeometryKind.BOX, [0.6, 0.2, 0.2], 0.3),
        # Its axis is turned onto x below.
        (GeometryKind.CYLINDER, [0.1, 0.6], 0.3),
    ],
)
@pytest.mark.parametrize("gap", [-1e-6, 1e-6])
def test_a_sphere_touches_a_turned_solid_exactly_at_its_surface(kind, dimensions, reach, gap):
    turn = (0.0, np.pi / 2, 0.0) if kind is GeometryKind.CYLINDER else (0.0, 0.0, 0.0)
    T_world_scene = at(0.4, -0.7, 0.2, rpy=(0.3, 1.1, -2.0))
    obstacle = ObstacleShape(kind, T_world_scene @ at(rpy=turn), np.array(dimensions))
    pose = T_world_scene @ at(reach + 0.05 + gap, 0.0, 0.0)
    hits = sphere_hits({"a": one_sphere(0.05)}, {"a": pose[None]}, [obstacle])
    assert hits.shape == (1, 1, 1)
    assert hits.all() == (gap < 0.0)


def test_distances_to_edges_and_corners_are_not_those_of_the_box_around_them():
    cube = ObstacleShape(GeometryKind.BOX, np.eye(4), np.array([2.0, 2.0, 2.0]))
    drum = ObstacleShape(GeometryKind.CYLINDER, np.eye(4), np.array([1.0, 2.0]))
    corner, rim = np.full(3, 1.0 + 0.1 / np.sqrt(3)), np.array([np.sqrt(0.5), np.sqrt(0.5), 1.0]) * 1.0
    rim = rim + 0.1 * np.array([0.5, 0.5, np.sqrt(0.5)])
    for obstacle, center in ((cube, corner), (drum, rim)):
        poses = {"a": at(*center)[None]}
        assert not sphere_hits({"a": one_sphere(0.0999)}, poses, [obstacle]).any()
        assert sphere_hits({"a": one_sphere(0.1001)}, poses, [obstacle]).all()


def test_hits_name_configuration_obstacle_and_link():
    poses = {"a": np.array([at(), at(1.0, 0.0, 0.0)]), "b": np.array([at(0.0, 1.0, 0.0), at(0.0, 2.0, 0.0)])}
    spheres = {"a": (np.array([[0.0, 0, 0], [0.0, 0, 0.5]]), np.array([0.1, 0.1])), "b": one_sphere(0.1)}
    obstacles = [ball(1.0, 0.0, 0.5), ball(0.0, 1.0, 0.0), ball(5.0, 0.0, 0.0)]
    expected = np.zeros((2, 3, 2), dtype=bool)
    expected[1, 0, 0] = expected[0, 1, 1] = True
    np.testing.assert_array_equal(sphere_hits(spheres, poses, obstacles), expected)


def test_meshes_and_their_own_spheres_agree_with_the_analytic_answer():
    rng = np.random.default_rng(0)
    obstacles = random_obstacles(60, (-0.4,) * 3, (0.4,) * 3, (0.02, 0.1), rng)
    centers = rng.uniform(-0.3, 0.3, (40, 3))
    poses = {"a": np.array([at(*center, rpy=tuple(rng.uniform(-3, 3, 3))) for center in centers])}
    truth = mesh_hits({"a": [sphere_mesh(0.15, 96)]}, poses, obstacles)
    # The mesh is inscribed: between its inner and its outer radius lies what may differ.
    inner = sphere_hits({"a": one_sphere(0.15 * np.cos(np.pi / 96) ** 2)}, poses, obstacles)
    outer = sphere_hits({"a": one_sphere(0.15)}, poses, obstacles)
    assert (inner <= truth).all()
    assert (truth <= outer).all()
    assert 100 < truth.sum() < truth.size - 100
    assert (outer ^ inner).sum() < 0.01 * truth.size


def test_an_obstacle_wholly_inside_a_mesh_and_a_mesh_wholly_inside_an_obstacle_collide():
    hollow = {"a": [box_mesh((1.0, 1.0, 1.0))]}
    obstacles = [ball(0.1, 0.2, 0.3, radius=0.05), ball(2.0, 0.0, 0.0), ball(0.0, 0.0, 0.0, radius=3.0)]
    for obstacle, expected in zip(obstacles, (True, False, True), strict=True):
        assert mesh_hits(hollow, {"a": np.eye(4)[None]}, [obstacle]).all() == expected


def test_a_link_of_several_meshes_is_their_union():
    pieces = [box_mesh((0.2, 0.2, 0.2)), box_mesh((0.2, 0.2, 0.2)).transformed(at(1.0, 0.0, 0.0))]
    T_world_link = at(0.0, 3.0, 0.0, rpy=(0.0, 0.0, np.pi / 2))
    where = transform_points(T_world_link, [[-0.2, 0, 0], [1.2, 0, 0], [0.5, 0, 0]])
    obstacles = [ball(*point, radius=0.15) for point in where]
    hits = mesh_hits({"a": pieces}, {"a": T_world_link[None]}, obstacles)
    np.testing.assert_array_equal(hits[0, :, 0], [True, True, False])


def test_links_touch_each_other_unless_the_pair_is_skipped():
    meshes = {"a": [box_mesh((1.0, 1.0, 1.0))], "b": [sphere_mesh(0.1), box_mesh((0.2, 0.2, 2.0))]}
    poses = {"a": np.broadcast_to(np.eye(4), (3, 4, 4)), "b": np.array([at(0.61, 0, 0), at(0.59, 0, 0), at(0, 0, 1.6)])}
    np.testing.assert_array_equal(mesh_self_hits(meshes, poses, ()), [False, True, False])
    assert not mesh_self_hits(meshes, poses, {frozenset(("b", "a"))}).any()


def test_hits_depend_on_relative_poses_only():
    rng = np.random.default_rng(1)
    obstacles = random_obstacles(30, (-0.5,) * 3, (0.5,) * 3, (0.05, 0.2), rng)
    poses = {"a": np.array([at(*rng.uniform(-0.5, 0.5, 3)) for _ in range(20)])}
    T_other_world = at(1.0, -2.0, 0.5, rpy=(0.4, -0.9, 2.2))
    moved = [ObstacleShape(o.kind, T_other_world @ o.T_world_obstacle, o.dimensions) for o in obstacles]
    spheres, meshes = {"a": one_sphere(0.1)}, {"a": [box_mesh((0.1, 0.3, 0.2))]}
    away = {"a": T_other_world @ poses["a"]}
    np.testing.assert_array_equal(sphere_hits(spheres, poses, obstacles), sphere_hits(spheres, away, moved))
    np.testing.assert_array_equal(mesh_hits(meshes, poses, obstacles), mesh_hits(meshes, away, moved))


def test_outcomes_are_counted_and_their_rates_are_of_what_is_true():
    truth = np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool)
    found = np.array([1, 0, 0, 1, 0, 0, 0], dtype=bool)
    outcomes = count_outcomes(found, truth)
    assert outcomes == Outcomes(true_positives=1, false_positives=1, true_negatives=3, false_negatives=2)
    assert outcomes.false_positive_rate == 0.25
    assert outcomes.false_negative_rate == pytest.approx(2.0 / 3.0)
    assert np.isnan(count_outcomes(truth[:0], truth[:0]).false_positive_rate)


def test_random_obstacles_keep_their_bounds_and_their_seed():
    obstacles = random_obstacles(300, (-1, 0, 2), (1, 0.5, 3), (0.1, 0.2), np.random.default_rng(3))
    positions = np.array([o.T_world_obstacle[:3, 3] for o in obstacles])
    assert (positions >= [-1, 0, 2]).all() and (positions <= [1, 0.5, 3]).all()
    np.testing.assert_allclose(positions.mean(axis=0), [0, 0.25, 2.5], atol=0.1)
    assert [o.kind for o in obstacles].count(GeometryKind.BOX) == 100
    for obstacle in obstacles:
        halves = obstacle.dimensions * (0.5 if obstacle.kind is GeometryKind.BOX else 1.0)
        if obstacle.kind is GeometryKind.CYLINDER:
            halves = obstacle.dimensions * [1.0, 0.5]
        assert (halves >= 0.1).all() and (halves <= 0.2).all()
    axes = np.array([o.T_world_obstacle[:3, 2] for o in obstacles])
    np.testing.assert_allclose(axes.mean(axis=0), 0.0, atol=0.15)
    again = random_obstacles(300, (-1, 0, 2), (1, 0.5, 3), (0.1, 0.2), np.random.default_rng(3))
    assert all((a.T_world_obstacle == b.T_world_obstacle).all() for a, b in zip(obstacles, again, strict=True))


def test_random_poses_fill_the_joint_range():
    poses = random_link_poses(KinematicModel(SLIDER), ["cart", "base"], 500, np.random.default_rng(0))
    assert list(poses) == ["cart", "base"]
    x = poses["cart"][:, 0, 3]
    assert x.min() < -1.9 and x.max() > 2.9 and (x >= -2.0).all() and (x <= 3.0).all()
    np.testing.assert_array_equal(poses["base"], np.broadcast_to(np.eye(4), (500, 4, 4)))


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="kind"):
        ObstacleShape(GeometryKind.MESH, np.eye(4), np.array([1.0]))
    for dimensions in ([1.0, 1.0], [0.0, 1.0, 1.0], [np.nan, 1.0, 1.0]):
        with pytest.raises(InvalidInputError, match="dimensions"):
            ObstacleShape(GeometryKind.BOX, np.eye(4), np.array(dimensions))
    with pytest.raises(InvalidInputError, match="T_world_obstacle"):
        ObstacleShape(GeometryKind.SPHERE, np.zeros((4, 4)), np.array([1.0]))
    poses, rng = {"a": np.eye(4)[None]}, np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"spheres.*none of a"):
        sphere_hits({}, poses, [ball(0, 0, 0)])
    with pytest.raises(InvalidInputError, match="radii"):
        sphere_hits({"a": (np.zeros((1, 3)), np.ones(2))}, poses, [ball(0, 0, 0)])
    with pytest.raises(InvalidInputError, match=r"meshes.*none of a"):
        mesh_hits({"a": []}, poses, [ball(0, 0, 0)])
    with pytest.raises(InvalidInputError, match="found"):
        count_outcomes(np.zeros(2, dtype=bool), np.zeros(3, dtype=bool))
    with pytest.raises(InvalidInputError, match="count"):
        random_obstacles(0, (0,) * 3, (1,) * 3, (0.1, 0.2), rng)
    with pytest.raises(InvalidInputError, match="sizes"):
        random_obstacles(1, (0,) * 3, (1,) * 3, (0.2, 0.1), rng)
    with pytest.raises(InvalidInputError, match="link"):
        random_link_poses(KinematicModel(SLIDER), ["arm"], 1, rng)


def test_no_obstacles_is_no_hit():
    poses = {"a": np.eye(4)[None]}
    assert sphere_hits({"a": one_sphere(1.0)}, poses, []).shape == (1, 0, 1)
    assert mesh_hits({"a": [box_mesh((1, 1, 1))]}, poses, []).shape == (1, 0, 1)


def test_obstacles_in_the_frame_of_a_link_are_those_of_the_world():
    T_world_link = at(0.3, 0.1, -0.2, rpy=(1.0, 0.2, 0.5))
    obstacle = ball(0.35, 0.1, -0.2)
    seen = ObstacleShape(obstacle.kind, invert_transform(T_world_link) @ obstacle.T_world_obstacle, obstacle.dimensions)
    for radius, expected in ((0.02, True), (0.2, True), (1e-4, True)):
        spheres = {"a": (np.array([[0.05, 0.0, 0.0]]), np.array([radius]))}
        world = sphere_hits(spheres, {"a": T_world_link[None]}, [obstacle])
        link = sphere_hits(spheres, {"a": np.eye(4)[None]}, [seen])
        assert world.all() == link.all() == expected


def test_a_triangle_without_area_touches_nothing_that_its_mesh_does_not() -> None:
    box = box_mesh((0.1, 0.1, 0.1))
    corners = np.array([[0.02, 0.01, 0.05], [0.03, 0.01, 0.05], [0.04, 0.01, 0.05]])
    count = len(box.vertices)
    flat = TriangleMesh(
        np.concatenate([box.vertices, corners]), np.concatenate([box.faces, [[count, count + 1, count + 2]]])
    )
    spheres = [
        ObstacleShape(GeometryKind.SPHERE, make_transform(translation=(0.0, 0.0, height)), np.array([0.08]))
        for height in (0.14, 0.12)
    ]
    hits = mesh_hits({"a": [flat]}, {"a": np.eye(4)[None]}, spheres)
    assert hits[0, :, 0].tolist() == [False, True]
