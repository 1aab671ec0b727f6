"""Outward normals and thinning of object clouds: what is accepted, what is mended, evenness, moved clouds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import concatenate_meshes, sample_surface
from morphit_ros.geometry.outward_normals import (
    estimate_outward_normals,
    normals_face_viewpoints,
    normals_point_outwards,
    smooth_normals,
)
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.thinning import finite_rows, point_spacing, thin_evenly
from morphit_ros.geometry.transforms import (
    make_transform,
    matrix_from_rotation_vector,
    transform_points,
    transform_vectors,
)
from morphit_ros.grasping import PlannerConfig
from morphit_ros.grasping.scene import prepare_scene

MOTION = make_transform(matrix_from_rotation_vector((0.4, -0.9, 1.3)), (0.4, -0.2, 0.7))


def surface(mesh, count=3000):
    return sample_surface(mesh, count, np.random.default_rng(0))


@pytest.mark.parametrize("mesh", [box_mesh([0.07, 0.04, 0.06]), cylinder_mesh(0.03, 0.1), sphere_mesh(0.03)])
def test_outward_normals_are_told_from_others(mesh):
    points, normals = surface(mesh)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], size=(len(points), 1))
    assert normals_point_outwards(points, normals)
    assert not normals_point_outwards(points, -normals)
    assert not normals_point_outwards(points, signs * normals)


def test_plate_seen_from_above_keeps_its_normals():
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.04, 0.04, (1500, 3)) * [1.0, 1.0, 0.0] + rng.normal(0.0, 5e-4, (1500, 3))
    assert normals_point_outwards(points, np.tile([0.0, 0.0, 1.0], (1500, 1)))


def test_normals_must_face_a_camera_that_is_known():
    points, normals = surface(sphere_mesh(0.03))
    eye = np.array([[0.5, 0.0, 0.0]])
    front = points[:, 0] > 0.005
    assert normals_face_viewpoints(points[front], normals[front], eye)
    assert not normals_face_viewpoints(points[front], -normals[front], eye)
    scene = prepare_scene(
        PointCloud(points[front], -normals[front]), PlannerConfig(), None, None, None, np.random.default_rng(0),
        viewpoints=eye,
    )  # fmt: skip
    assert "do not face the cameras" in scene.note
    seen = scene.observed == 1.0
    outward = scene.points[seen] / np.linalg.norm(scene.points[seen], axis=1, keepdims=True)
    assert (np.einsum("ij,ij->i", scene.normals[seen], outward) > 0.8).mean() > 0.95


@pytest.mark.parametrize("mesh", [box_mesh([0.07, 0.04, 0.06]), cylinder_mesh(0.03, 0.1), sphere_mesh(0.03)])
def test_estimated_normals_are_those_of_the_surface(mesh):
    points, normals = surface(mesh)
    agreement = np.einsum("ij,ij->i", estimate_outward_normals(points), normals)
    assert (agreement > 0.0).mean() > 0.99
    assert np.median(agreement) > 0.99
    rows = np.arange(0, len(points), 5)
    some = estimate_outward_normals(points, rows)
    assert some.shape == (len(rows), 3)
    assert (np.einsum("ij,ij->i", some, normals[rows]) > 0.0).mean() > 0.97


def test_estimated_normals_move_with_the_cloud():
    points, _ = surface(concatenate_meshes([box_mesh([0.2, 0.02, 0.02]), box_mesh([0.03, 0.09, 0.03])]))
    here, there = estimate_outward_normals(points), estimate_outward_normals(transform_points(MOTION, points))
    assert (np.einsum("ij,ij->i", there, transform_vectors(MOTION, here)) > 0.999).mean() > 0.999


def test_estimate_needs_four_points():
    with pytest.raises(InvalidInputError, match="4"):
        estimate_outward_normals(np.zeros((3, 3)))


def test_smoothing_averages_only_what_faces_the_same_way():
    rng = np.random.default_rng(0)
    points, normals = surface(box_mesh([0.06, 0.06, 0.06]), 6000)
    noisy = normals + rng.normal(0.0, 0.2, normals.shape)
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    smoothed = smooth_normals(points, noisy, 0.006)
    np.testing.assert_allclose(np.linalg.norm(smoothed, axis=1), 1.0)
    before, after = (np.einsum("ij,ij->i", n, normals) for n in (noisy, smoothed))
    assert np.arccos(np.clip(after, -1, 1)).mean() < 0.35 * np.arccos(np.clip(before, -1, 1)).mean()
    rows = np.array([5, 17, 3])
    np.testing.assert_array_equal(smooth_normals(points, noisy, 0.006, rows), smoothed[rows])


def test_thinning_is_even_and_bounded():
    points, normals = surface(box_mesh([0.1, 0.06, 0.08]), 20000)
    rows = thin_evenly(points, normals, 1000, np.random.default_rng(0))
    assert 850 <= len(rows) <= 1000
    assert (np.diff(rows) > 0).all()
    gaps = cKDTree(points[rows]).query(points[rows], k=2)[0][:, 1]
    drawn = np.random.default_rng(0).choice(len(points), size=len(rows), replace=False)
    drawn_gaps = cKDTree(points[drawn]).query(points[drawn], k=2)[0][:, 1]
    assert gaps.min() > 4.0 * np.quantile(drawn_gaps, 0.05)
    # Every point has a kept one near it.
    farthest = cKDTree(points[rows]).query(points)[0].max()
    assert farthest < 2.0 * gaps.min()


def test_thinning_keeps_thin_parts_and_both_sides_of_a_wall():
    stem, stem_normals = surface(cylinder_mesh(0.002, 0.1), 300)
    body, body_normals = surface(sphere_mesh(0.05), 30000)
    points, normals = np.vstack([stem + np.array([0.0, 0.0, 0.1]), body]), np.vstack([stem_normals, body_normals])
    rows = thin_evenly(points, normals, 1500, np.random.default_rng(0))
    heights = np.sort(points[rows[rows < 300], 2])
    assert np.diff(heights).max() < 0.008
    wall, wall_normals = surface(box_mesh([0.08, 0.0015, 0.08]), 6000)
    kept = thin_evenly(wall, wall_normals, 800, np.random.default_rng(0))
    # Each side is covered by its own points, as closely as if the other weren't there.
    for side in (-1.0, 1.0):
        own = side * wall_normals[:, 1] > 0.5
        chosen = kept[own[kept]]
        gaps = cKDTree(wall[chosen]).query(wall[chosen], k=2)[0][:, 1]
        # Away from the rim, whose points belong to both.
        inner = own & (np.abs(wall[:, [0, 2]]) < 0.034).all(axis=1)
        assert cKDTree(wall[chosen]).query(wall[inner])[0].max() < 1.1 * gaps.min()


def test_thinning_repeats_with_the_seed_and_moves_with_the_cloud():
    points, normals = surface(concatenate_meshes([box_mesh([0.2, 0.02, 0.02]), box_mesh([0.03, 0.09, 0.03])]), 9000)
    first, again, other = (thin_evenly(points, normals, 700, np.random.default_rng(s)) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert len(first) != len(other) or (first != other).any()
    moved = thin_evenly(
        transform_points(MOTION, points), transform_vectors(MOTION, normals), 700, np.random.default_rng(3)
    )
    np.testing.assert_array_equal(first, moved)


def test_a_million_points_with_holes_become_a_scene():
    rng = np.random.default_rng(0)
    points, normals = sample_surface(cylinder_mesh(0.04, 0.1), 10**6, rng)
    points[rng.integers(10**6, size=10**5)] = np.nan
    scene = prepare_scene(PointCloud(points, normals), PlannerConfig(), None, None, None, np.random.default_rng(0))
    assert 2400 <= (scene.observed == 1.0).sum() <= PlannerConfig().max_points
    np.testing.assert_allclose(scene.center_of_mass, 0.0, atol=1e-3)


def test_small_and_degenerate_clouds_are_thinned_too():
    few = np.random.default_rng(0).uniform(size=(20, 3))
    np.testing.assert_array_equal(thin_evenly(few, None, 100, np.random.default_rng(0)), np.arange(20))
    twice = np.repeat(few, 100, axis=0)
    rows = thin_evenly(twice, None, 50, np.random.default_rng(0))
    assert 0 < len(rows) <= 50
    assert len(np.unique(twice[rows], axis=0)) == len(rows)


def test_finite_rows_and_spacing():
    grid = np.stack(np.meshgrid(np.arange(30), np.arange(30), [0]), axis=-1).reshape(-1, 3) * 0.002
    grid[5] = np.nan
    grid[7, 1] = np.inf
    rows, corners = finite_rows(grid)
    assert len(rows) == 898
    assert 5 not in rows
    assert 7 not in rows
    np.testing.assert_allclose(corners, [[0, 0, 0], [0.058, 0.058, 0]])
    assert point_spacing(grid[rows]) == pytest.approx(0.003)
