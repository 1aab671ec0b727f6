"""Completion: known centres of mass and hidden surfaces of partly seen solids, moved scenes, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import (
    make_transform,
    matrix_from_rotation_vector,
    matrix_from_rpy,
    transform_points,
    transform_vectors,
)
from morphit_ros.grasping import PlannerConfig
from morphit_ros.grasping.completion import (
    AutoCompletion,
    CompletedShape,
    HullCompletion,
    MirrorCompletion,
    RevolutionCompletion,
    TableExtrusion,
)
from morphit_ros.grasping.completion.mirror import MirrorPlane, reflect_points, reflect_vectors
from morphit_ros.grasping.scene import prepare_scene

TABLE = SupportPlane(np.eye(4))
EYE = np.array([0.5, 0.0, 0.45])
MOTION = make_transform(matrix_from_rotation_vector((0.4, -0.9, 1.3)), (0.4, -0.2, 0.7))


def seen_from(mesh: TriangleMesh, eye: np.ndarray, count: int = 6000, noise: float = 0.0) -> PointCloud:
    """Points of a convex mesh on z = 0 that face the eye."""
    rng = np.random.default_rng(0)
    points, normals = sample_surface(mesh, count, rng)
    points = points - [0.0, 0.0, mesh.bounds[0][2]]
    visible = np.einsum("ij,ij->i", eye - points, normals) > 0.2 * np.linalg.norm(eye - points, axis=1)
    visible &= points[:, 2] > 0.004
    return PointCloud(points[visible] + rng.normal(0.0, noise, (visible.sum(), 3)), normals[visible])


SOLIDS = {
    "box": (box_mesh([0.05, 0.08, 0.10]), 0.05),
    "cylinder": (cylinder_mesh(0.03, 0.10), 0.05),
    "ball": (sphere_mesh(0.03), 0.03),
}


@pytest.mark.parametrize("viewpoints", [None, EYE[None]])
@pytest.mark.parametrize("name", SOLIDS)
def test_one_view_gives_the_centre_of_mass(name, viewpoints):
    mesh, height = SOLIDS[name]
    cloud = seen_from(mesh, EYE, noise=5e-4)
    shape = AutoCompletion(viewpoints)(cloud.points, cloud.normals, TABLE)
    truth = np.array([0.0, 0.0, height])
    assert np.linalg.norm(shape.center_of_mass - truth) < 0.005
    # The points' own centroid is far off: this is what completion is for.
    assert np.linalg.norm(cloud.points.mean(axis=0) - truth) > 0.008
    assert 0.4 < shape.confidence <= 1.0


@pytest.mark.parametrize("name", ["cylinder", "ball"])
@pytest.mark.parametrize("table", [TABLE, None])
def test_turned_points_lie_on_the_true_surface(name, table):
    mesh, height = SOLIDS[name]
    cloud = seen_from(mesh, EYE)
    completion = RevolutionCompletion(EYE[None])
    assert completion.fit(cloud.points, cloud.normals, table).supported
    shape = completion(cloud.points, cloud.normals, table)
    hidden = shape.points[shape.points[:, 0] < -0.012]
    normals = shape.normals[shape.points[:, 0] < -0.012]
    assert len(hidden) > 30
    radial = hidden - [0.0, 0.0, height] if name == "ball" else hidden * [1.0, 1.0, 0.0]
    # Below what segmentation leaves at the table the profile is continued in a straight line.
    np.testing.assert_allclose(np.linalg.norm(radial, axis=1), 0.03, atol=4e-3)
    outward = radial / np.linalg.norm(radial, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", outward, normals).min() > 0.85


def test_lying_cylinder_has_a_level_axis():
    mesh = cylinder_mesh(0.02, 0.12).transformed(make_transform(matrix_from_rpy((np.pi / 2, 0.0, 0.7))))
    cloud = seen_from(mesh, EYE)
    fit = RevolutionCompletion().fit(cloud.points, cloud.normals, TABLE)
    assert fit.supported
    assert abs(fit.T_world_axis[2, 2]) < 0.03
    shape = RevolutionCompletion().complete(cloud.points, cloud.normals, TABLE, fit)
    np.testing.assert_allclose(shape.center_of_mass, [0.0, 0.0, 0.02], atol=4e-3)


def test_box_is_no_solid_of_revolution():
    cloud = seen_from(SOLIDS["box"][0], EYE)
    fit = RevolutionCompletion().fit(cloud.points, cloud.normals, TABLE)
    assert fit is None or not fit.supported


def test_open_cup_is_hollow():
    rng = np.random.default_rng(0)
    outer, outer_normals = sample_surface(cylinder_mesh(0.04, 0.1), 5000, rng)
    inner, inner_normals = sample_surface(cylinder_mesh(0.036, 0.1), 5000, rng)
    sides, walls = np.abs(outer_normals[:, 2]) < 0.5, np.abs(inner_normals[:, 2]) < 0.5
    floor = inner_normals[:, 2] < -0.5
    points = np.vstack([outer[sides], inner[walls], inner[floor] + np.array([0.0, 0.0, 0.004])]) + np.array(
        [0.0, 0.0, 0.05]
    )
    normals = np.vstack([outer_normals[sides], -inner_normals[walls], -inner_normals[floor]])
    shape = RevolutionCompletion()(points, normals, TABLE)
    wall, base = (0.04**2 - 0.036**2) * 0.1, 0.04**2 * 0.004
    truth = (wall * 0.05 + base * 0.002) / (wall + base)
    assert shape.center_of_mass[2] == pytest.approx(truth, abs=4e-3)
    # A solid cylinder's would be half way up.
    assert shape.center_of_mass[2] < 0.047


def test_mirrored_points_lie_on_the_hidden_faces():
    # Seen from the front and above: the face at the back is a mirror image of the front.
    mesh = box_mesh([0.06, 0.10, 0.08])
    cloud = seen_from(mesh, EYE)
    completion = MirrorCompletion(EYE[None])
    planes = completion.planes(cloud.points, cloud.normals, TABLE)
    assert any(abs(plane.normal[0]) > 0.99 and abs(plane.offset) < 0.004 for plane in planes)
    shape = completion.complete(cloud.points, cloud.normals, TABLE, planes)
    back = shape.points[shape.normals[:, 0] < -0.9]
    assert len(back) > 100
    np.testing.assert_allclose(back[:, 0], -0.03, atol=7e-3)
    assert not (shape.points[:, 2] < -1e-9).any()


def test_mirroring_twice_changes_nothing():
    points = np.random.default_rng(0).normal(size=(50, 3))
    plane = MirrorPlane(np.array([0.6, 0.8, 0.0]), 0.3, 1.0, 0.0)
    mirrored = reflect_points(points, plane)
    np.testing.assert_allclose(0.5 * (points + mirrored) @ plane.normal, 0.3)
    np.testing.assert_allclose(reflect_points(mirrored, plane), points)
    np.testing.assert_allclose(reflect_vectors(reflect_vectors(points, plane), plane), points)


def test_mirror_claims_nothing_where_the_camera_looked_through():
    # An L seen whole from above, its own mirror image about neither axis.
    arms = [
        box_mesh([0.12, 0.03, 0.03]),
        box_mesh([0.03, 0.09, 0.03]).transformed(make_transform(None, (0.045, 0.06, 0))),
    ]
    cloud = seen_from(concatenate_meshes(arms), np.array([0.02, 0.03, 0.6]))
    for eye in (np.array([[0.02, 0.03, 0.6]]), None):
        shape = AutoCompletion(eye)(cloud.points, cloud.normals, TABLE)
        missing = (shape.points[:, 0] < 0.02) & (shape.points[:, 1] > 0.03)
        assert missing.sum() == 0


def test_air_under_an_overhang_is_not_filled():
    post = box_mesh([0.02, 0.04, 0.06]).transformed(make_transform(None, (0.0, 0.0, 0.03)))
    bar = box_mesh([0.10, 0.04, 0.02]).transformed(make_transform(None, (0.0, 0.0, 0.07)))
    eyes = np.array([[0.0, 0.6, 0.25], [0.0, -0.6, 0.25]])
    mesh = concatenate_meshes([post, bar])
    cloud = PointCloud(np.empty((0, 3)), np.empty((0, 3)))
    for eye in eyes:
        part = seen_from(mesh, eye)
        cloud = PointCloud(np.vstack([cloud.points, part.points]), np.vstack([cloud.normals, part.normals]))
    truth = (0.02 * 0.06 * 0.03 + 0.10 * 0.02 * 0.07) / (0.02 * 0.06 + 0.10 * 0.02)
    filled = TableExtrusion()(cloud.points, cloud.normals, TABLE)
    carved = TableExtrusion(eyes)(cloud.points, cloud.normals, TABLE)
    assert carved.center_of_mass[2] == pytest.approx(truth, abs=5e-3)
    assert filled.center_of_mass[2] < truth - 0.01


@pytest.mark.parametrize("thickness", [0.002, 0.003, 0.005])
def test_thin_plate_gets_an_edge(thickness):
    points, normals = sample_surface(box_mesh([0.06, 0.09, thickness]), 3000, np.random.default_rng(0))
    top = normals[:, 2] > 0.5
    cloud = PointCloud(points[top] + [0.0, 0.0, thickness / 2], normals[top])
    scene = prepare_scene(cloud, PlannerConfig(), TABLE, None, None, np.random.default_rng(0))
    side = (scene.observed < 1.0) & (np.abs(scene.normals[:, 2]) < 0.5)
    virtual, facing = scene.points[side], scene.normals[side]
    assert scene.note == ""
    assert len(virtual) > 20
    assert ((virtual[:, 2] > 0.0) & (virtual[:, 2] < thickness)).all()
    np.testing.assert_allclose(facing[:, 2], 0.0, atol=1e-9)
    for axis, half in ((0, 0.03), (1, 0.045)):
        for side in (-1.0, 1.0):
            edge = side * facing[:, axis] > 0.95
            assert edge.sum() >= 5
            np.testing.assert_allclose(side * virtual[edge, axis], half, atol=3.5e-3)


def test_hull_without_a_table_centres_a_box_seen_all_around():
    points, normals = sample_surface(box_mesh([0.05, 0.08, 0.03]), 3000, np.random.default_rng(0))
    shape = HullCompletion()(points + np.array([0.2, 0.0, 0.0]), normals, None)
    np.testing.assert_allclose(shape.center_of_mass, [0.2, 0.0, 0.0], atol=1.5e-3)
    assert len(shape.points) == 0


def test_hull_with_viewpoints_closes_the_hidden_side():
    cloud = seen_from(sphere_mesh(0.03), EYE)
    shape = HullCompletion(EYE[None])(cloud.points, cloud.normals, None)
    assert len(shape.points) > 10
    assert (np.einsum("ij,j->i", shape.normals, EYE) < 0.0).mean() > 0.9


def test_nothing_is_extruded_into_a_neighbour():
    # A box lies on another one that was seen below it.
    cloud = seen_from(box_mesh([0.06, 0.06, 0.04]), np.array([0.0, 0.0, 0.6]))
    raised = PointCloud(cloud.points + np.array([0.0, 0.0, 0.05]), cloud.normals)
    x, y = np.meshgrid(np.linspace(-0.06, 0.06, 41), np.linspace(-0.06, 0.06, 41))
    below = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, 0.05)])
    arguments = (raised, PlannerConfig(), TABLE, None, None)
    alone = prepare_scene(*arguments, np.random.default_rng(0))
    heap = prepare_scene(*arguments, np.random.default_rng(0), obstacles=below)
    assert alone.points[:, 2].min() < 0.01
    assert heap.points[:, 2].min() > 0.047
    assert heap.center_of_mass[2] == pytest.approx(0.07, abs=4e-3)


def test_confidence_falls_with_what_is_hidden():
    mesh = box_mesh([0.10, 0.08, 0.08])
    front = seen_from(mesh, EYE)
    back = seen_from(mesh, EYE * [-1.0, 1.0, 1.0])
    both = PointCloud(np.vstack([front.points, back.points]), np.vstack([front.normals, back.normals]))
    one, two = (TableExtrusion()(c.points, c.normals, TABLE).confidence for c in (front, both))
    assert one < two


@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("on_table", [True, False])
def test_completed_scene_moves_with_the_object(name, on_table):
    cloud = seen_from(SOLIDS[name][0], EYE, 3000)
    config = PlannerConfig(max_points=600)
    here, there = (
        prepare_scene(
            cloud.transformed(motion), config, SupportPlane(motion) if on_table else None, None, None,
            np.random.default_rng(0), viewpoints=transform_points(motion, EYE[None]),
        )
        for motion in (np.eye(4), MOTION)
    )  # fmt: skip
    np.testing.assert_allclose(there.points, transform_points(MOTION, here.points), atol=1e-6)
    np.testing.assert_allclose(there.normals, transform_vectors(MOTION, here.normals), atol=1e-6)
    np.testing.assert_allclose(there.center_of_mass, transform_points(MOTION, here.center_of_mass[None])[0], atol=1e-4)
    assert there.confidence == pytest.approx(here.confidence, abs=1e-3)
    if on_table or name != "box":
        assert (here.observed < 1.0).sum() > 0


def test_given_completion_supplies_centre_mass_and_weights():
    cloud = seen_from(SOLIDS["box"][0], EYE)

    def known(points, normals, table):
        assert points.shape == normals.shape
        assert table is TABLE
        return CompletedShape(
            np.array([[0.0, 0.0, 0.02]]), np.array([[-1.0, 0.0, 0.0]]), np.array([0.01, 0.02, 0.03]), 0.8,
            weights=np.array([0.25]), mass=0.4, method="known",
        )  # fmt: skip

    scene = prepare_scene(cloud, PlannerConfig(), TABLE, None, None, np.random.default_rng(0), completion=known)
    np.testing.assert_array_equal(scene.center_of_mass, [0.01, 0.02, 0.03])
    assert (scene.mass, scene.confidence, scene.completion) == (0.4, 0.8, "known")
    np.testing.assert_array_equal(scene.observed[-2:], [1.0, 0.25])
    bad = CompletedShape(np.zeros((2, 3)), np.zeros((1, 3)), np.zeros(3), 0.5)
    with pytest.raises(InvalidInputError, match="completion"):
        prepare_scene(cloud, PlannerConfig(), TABLE, None, None, np.random.default_rng(0), completion=lambda *_: bad)


def scattered(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    return {
        "collinear": np.outer(np.linspace(0.0, 0.1, 60), [1.0, 0.5, 0.2]) + np.array([0.0, 0.0, 0.01]),
        "flat": rng.uniform(-0.05, 0.05, (400, 3)) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.02],
        "upright wall": rng.uniform(0.0, 0.1, (400, 3)) * [1.0, 0.0, 1.0],
        "30 points": rng.uniform(0.0, 0.05, (30, 3)),
        "transparent": rng.uniform(0.0, 0.1, (45, 3)) ** 2,
        "below the table": rng.uniform(-0.05, -0.01, (200, 3)),
    }[kind]


@pytest.mark.parametrize("viewpoints", [None, EYE[None]])
@pytest.mark.parametrize("table", [TABLE, None])
@pytest.mark.parametrize("kind", ["collinear", "flat", "upright wall", "30 points", "transparent", "below the table"])
def test_poor_clouds_give_finite_scenes(kind, table, viewpoints):
    cloud = PointCloud(scattered(kind))
    scene = prepare_scene(cloud, PlannerConfig(), table, None, None, np.random.default_rng(0), viewpoints=viewpoints)
    for values in (scene.points, scene.normals, scene.center_of_mass):
        assert np.isfinite(values).all()
    assert 0.0 <= scene.confidence <= 1.0
    low, high = cloud.points.min(axis=0) - 0.06, cloud.points.max(axis=0) + 0.06
    assert ((scene.center_of_mass > low) & (scene.center_of_mass < high)).all()


def test_bad_positions_are_named():
    cloud = seen_from(SOLIDS["box"][0], EYE)
    for name in ("viewpoints", "obstacles"):
        with pytest.raises(InvalidInputError, match=name):
            prepare_scene(cloud, PlannerConfig(), TABLE, None, None, np.random.default_rng(0), **{name: np.zeros(3)})


def test_round_surfaces_go_on_beyond_their_horizon():
    # An ellipsoid seen from the front and above: behind its horizon it is further out than the last seen points.
    ball = sphere_mesh(0.03)
    mesh = TriangleMesh(ball.vertices * [1.0, 1.6, 1.2], ball.faces)
    cloud = seen_from(mesh, EYE, noise=5e-4)
    seen = float(cloud.points[np.abs(cloud.points[:, 1]) < 0.01, 0].min())
    sides = TableExtrusion(EYE[None])(cloud.points, cloud.normals, TABLE).points
    back = float(sides[np.abs(sides[:, 1]) < 0.01, 0].min())
    assert seen > -0.016
    assert back == pytest.approx(-0.03, abs=0.005)


def test_boxes_end_at_their_edge():
    cloud = seen_from(SOLIDS["box"][0], EYE, noise=5e-4)
    sides = TableExtrusion(EYE[None])(cloud.points, cloud.normals, TABLE).points
    assert sides[:, 0].min() > -0.0275


def test_part_of_a_ring_is_not_made_whole_where_cameras_see_that_the_rest_is_missing():
    ring, tube = 0.08, 0.016
    angle, turn = (part.ravel() for part in np.meshgrid(np.linspace(0.0, 1.6, 120), np.linspace(0.0, 2 * np.pi, 60)))
    radial = np.column_stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)])
    normals = np.cos(turn)[:, None] * radial + np.sin(turn)[:, None] * np.array([0.0, 0.0, 1.0])
    points = ring * radial + tube * normals + [0.0, 0.0, 0.04]
    eyes = np.array([[0.4, 0.4, 0.5], [-0.3, 0.4, 0.5]])
    visible = (np.einsum("eij,ij->ei", eyes[:, None] - points[None], normals) > 0.05).any(axis=0)
    points, normals = points[visible], normals[visible]
    fit = RevolutionCompletion(eyes).fit(points, normals, TABLE)
    assert fit is not None and fit.supported
    shape = AutoCompletion(eyes)(points, normals, TABLE)
    assert shape.method != "solid of revolution"
    # The middle of the seen part, not of the ring.
    assert np.linalg.norm(shape.center_of_mass[:2] - ring * 0.9 * np.array([np.cos(0.8), np.sin(0.8)])) < 0.02
    # Without cameras nothing speaks against it.
    assert AutoCompletion()(points, normals, TABLE).method == "solid of revolution"
