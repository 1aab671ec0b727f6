"""Registration without extrinsics, and the parts that it is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from raycast_scenes import TableScene, View, camera_pair

from morphit_ros.geometry.normals import estimate_normals
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, transform_points
from morphit_ros.perception import Scene, SceneStatus, perceive
from morphit_ros.perception.alignment import Surface, align, sample_by_normal
from morphit_ros.perception.visibility import NearestSurface

LANDMARKS = np.array([[0.0, 0.0, 0.0], [0.15, 0.12, 0.05], [-0.15, -0.12, 0.05]])


def placement_error(scene: Scene, T_left_right: Array, T_world_left: Array) -> float:
    """Largest displacement of points about the table's middle by the estimated relative pose [m]."""
    assert scene.registration is not None
    local = transform_points(invert_transform(T_world_left @ T_left_right), LANDMARKS)
    placed = transform_points(T_world_left @ scene.registration.T_left_right, local)
    return float(np.linalg.norm(placed - LANDMARKS, axis=1).max())


def observe(seed: int, angle: float) -> tuple[View, View]:
    scene = TableScene.random(seed)
    left, right = camera_pair(angle)
    return scene.render(left, seed=1000 + 2 * seed), scene.render(right, seed=1001 + 2 * seed)


@pytest.mark.parametrize("seed", [40, 41])
def test_views_60_degrees_apart_are_registered_without_extrinsics(seed: int) -> None:
    left, right = observe(seed, 60.0)
    T_left_right = invert_transform(left.T_world_camera) @ right.T_world_camera
    scene = perceive(left.cloud, right.cloud, left.T_world_camera, None)
    assert scene.status is SceneStatus.OK, scene.message
    assert placement_error(scene, T_left_right, left.T_world_camera) < 0.002
    again = perceive(left.cloud, right.cloud, left.T_world_camera, None)
    np.testing.assert_array_equal(again.T_world_right, scene.T_world_right)


@pytest.mark.slow
def test_nine_of_ten_scenes_at_60_degrees() -> None:
    right_ones = 0
    for seed in range(50, 60):
        left, right = observe(seed, 60.0)
        T_left_right = invert_transform(left.T_world_camera) @ right.T_world_camera
        scene = perceive(left.cloud, right.cloud, left.T_world_camera, None)
        if scene.status is SceneStatus.OK:
            error = placement_error(scene, T_left_right, left.T_world_camera)
            assert error < 0.005, f"scene {seed} was accepted although it is {error * 1e3:.1f} mm off"
            right_ones += error < 0.002
    assert right_ones >= 9


def test_the_known_camera_anchors_the_world(four_objects: tuple[TableScene, View, View]) -> None:
    _, left, right = four_objects
    by_right = perceive(left.cloud, right.cloud, None, right.T_world_camera)
    assert by_right.status is SceneStatus.OK
    np.testing.assert_allclose(by_right.T_world_right, right.T_world_camera, atol=1e-12)
    assert by_right.table is not None and abs(by_right.table.T_world_table[2, 3]) < 2e-3
    unanchored = perceive(left.cloud, right.cloud, None, None)
    assert unanchored.status is SceneStatus.OK and len(unanchored.objects) == 4
    np.testing.assert_array_equal(unanchored.T_world_left, np.eye(4))
    assert unanchored.table is not None
    up_in_left = left.T_world_camera[:3, :3].T @ np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(unanchored.table.T_world_table[:3, 2], up_in_left, atol=5e-3)


def test_a_lone_cylinder_is_too_symmetric_to_register() -> None:
    scene = TableScene.of(["cylinder"], [(0.0, 0.0, 0.0)], table_size=(3.0, 3.0))
    poses = camera_pair(60.0)
    left, right = (scene.render(pose, seed=seed) for seed, pose in enumerate(poses))
    found = perceive(left.cloud, right.cloud, poses[0], None)
    assert found.status is SceneStatus.REGISTRATION_FAILED
    assert found.target is None and found.message


def test_registration_without_extrinsics_needs_a_support_plane() -> None:
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(20000, 3))
    ball = 0.1 * ball / np.linalg.norm(ball, axis=1, keepdims=True) + (0.0, 0.0, 0.5)
    pair = PointCloud(ball[ball[:, 2] < 0.5])
    found = perceive(pair, PointCloud(np.empty((0, 3))), None, None)
    assert found.status is SceneStatus.NO_POINTS
    found = perceive(pair, pair, None, None)
    assert found.status is SceneStatus.REGISTRATION_FAILED


def corner(rng: np.random.Generator, count: int = 9000) -> Surface:
    """Three faces of a cube's inner corner, 0.2 m wide."""
    points, normals = [], []
    for axis in range(3):
        face = rng.uniform(0.0, 0.2, (count // 3, 3))
        face[:, axis] = 0.0
        points.append(face)
        normals.append(np.tile(np.eye(3)[axis], (count // 3, 1)))
    return Surface(np.concatenate(points), np.concatenate(normals))


def test_icp_recovers_a_known_motion() -> None:
    target = corner(np.random.default_rng(0))
    motion = make_transform(matrix_from_rpy((0.02, -0.03, 0.04)), (0.008, -0.005, 0.006))
    back = invert_transform(motion)
    other = corner(np.random.default_rng(1))
    source = Surface(transform_points(back, other.points), other.normals @ back[:3, :3].T)
    fit = align(source, target, [0.03, 0.01], 20, np.random.default_rng(2))
    np.testing.assert_allclose(fit.T_target_source, motion, atol=2e-4)
    assert fit.constrained == 6 and fit.residual < 1e-4 and fit.overlap > 0.95


def test_icp_leaves_undetermined_directions_alone() -> None:
    rng = np.random.default_rng(0)
    flat = np.column_stack([rng.uniform(-0.2, 0.2, (5000, 2)), np.zeros(5000)])
    normals = np.tile([0.0, 0.0, 1.0], (5000, 1))
    lifted = Surface(flat + np.array([0.005, 0.0, 0.004]), normals)
    fit = align(lifted, Surface(flat, normals), [0.02, 0.01], 10, rng)
    assert fit.constrained == 3
    np.testing.assert_allclose(fit.T_target_source[:3, 3], (0.0, 0.0, -0.004), atol=1e-6)


def test_icp_without_overlap_moves_nothing() -> None:
    target = corner(np.random.default_rng(0))
    far = Surface(target.points + 1.0, target.normals)
    fit = align(far, target, [0.03, 0.01], 5, np.random.default_rng(0))
    np.testing.assert_array_equal(fit.T_target_source, np.eye(4))
    assert math.isnan(fit.residual) and fit.overlap == 0.0 and fit.constrained == 0


def test_sampling_by_normal_keeps_rare_directions() -> None:
    rng = np.random.default_rng(0)
    normals = np.tile([0.0, 0.0, 1.0], (10_000, 1))
    normals[:100] = [1.0, 0.0, 0.0]
    rows = sample_by_normal(Surface(rng.random((10_000, 3)), normals), 200, rng)
    assert len(np.unique(rows)) == 200
    assert (rows < 100).sum() > 60


def test_visibility_contradicts_only_what_floats_before_a_measured_surface() -> None:
    grid = np.stack(np.meshgrid(np.arange(-0.3, 0.3, 0.003), np.arange(-0.3, 0.3, 0.003)), axis=-1).reshape(-1, 2)
    wall = NearestSurface(np.column_stack([grid, np.full(len(grid), 0.6)]))
    before, behind, beside = ([[0.0, 0.0, 0.4]], [[0.0, 0.0, 0.9]], [[0.6, 0.0, 0.4]])
    assert wall.contradicted(np.array(before)) == 1.0
    assert wall.contradicted(np.array(behind)) == 0.0
    assert wall.contradicted(np.array(beside)) == 0.0
    assert wall.contradicted(np.empty((0, 3))) == 0.0


def test_normals_of_a_view_face_its_camera(four_objects: tuple[TableScene, View, View]) -> None:
    _, left, _ = four_objects
    points = left.cloud.finite().points[::5]
    normals, _ = estimate_normals(points, 0.009, np.zeros(3))
    assert (np.einsum("ij,ij->i", normals, points) <= 1e-12).all()
