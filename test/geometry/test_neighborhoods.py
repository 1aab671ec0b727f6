"""Cells, voxels and normals against brute force and known surfaces."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components as reference_components
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.normals import estimate_normals, least_direction
from morphit_ros.geometry.spatial_hash import cells_around, connected_components, count_neighbors
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points, transform_vectors
from morphit_ros.geometry.voxel_grid import crop_to_voxels, merge_views

EVERYWHERE = ((-100.0,) * 3, (100.0,) * 3)


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.1, 0.1, (4000, 3))


def test_cells_hold_every_point_once(points: np.ndarray) -> None:
    grid = cells_around(points, 0.02)
    np.testing.assert_array_equal(np.sort(grid.order), np.arange(len(points)))
    np.testing.assert_array_equal(grid.points, points[grid.order])
    for first, end in zip(grid.starts[:-1], grid.starts[1:], strict=True):
        cells = np.floor(grid.points[first:end] / 0.02)
        assert (cells == cells[0]).all()
    assert len(np.unique(grid.packed)) == len(grid.packed) == len(np.unique(np.floor(points / 0.02), axis=0))


def test_neighbor_counts_equal_a_kd_tree(points: np.ndarray) -> None:
    expected = np.array([len(found) for found in cKDTree(points).query_ball_point(points, 0.013)])
    np.testing.assert_array_equal(count_neighbors(cells_around(points, 0.013), 10**6), expected)
    np.testing.assert_array_equal(count_neighbors(cells_around(points, 0.013), 3) >= 3, expected >= 3)
    np.testing.assert_array_equal(estimate_normals(points, 0.013, np.zeros(3))[1], expected)


def test_components_equal_a_graph_search(points: np.ndarray) -> None:
    pairs = cKDTree(points).query_pairs(0.009, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(len(points), len(points)))
    count, expected = reference_components(graph, directed=False)
    labels = connected_components(cells_around(points, 0.009))
    assert 1 < count == len(np.unique(labels))
    assert len(np.unique(np.stack([labels, expected]), axis=1).T) == count


def test_points_too_far_for_the_grid_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="1e\\+09"):
        cells_around(np.array([[1e9, 0.0, 0.0]]), 0.01)
    with pytest.raises(InvalidInputError, match="finite"):
        cells_around(np.array([[np.nan, 0.0, 0.0]]), 0.01)
    with pytest.raises(InvalidInputError, match="size"):
        cells_around(np.zeros((1, 3)), 0.0)


def test_voxels_are_means_and_conditions_are_counted(points: np.ndarray) -> None:
    shifted = points + np.array([0.0, 0.0, 0.5])
    dirty = np.concatenate([shifted, [[np.nan, 0, 0.5], [0, np.inf, 0.5], [0.0, 0.0, 5.0], [3.0, 0.0, 0.5]]])
    kept = crop_to_voxels(dirty, np.eye(4), (0.1, 1.0), ((-1.0, -1.0, 0.0), (1.0, 1.0, 1.0)), 0.02)
    assert (kept.finite, kept.in_range, kept.in_box) == (4002, 4001, 4000)
    cells, numbers = np.unique(np.floor(shifted / 0.02), axis=0, return_inverse=True)
    means = np.stack([shifted[numbers.ravel() == cell].mean(axis=0) for cell in range(len(cells))])
    order, expected = np.lexsort(kept.points.T), np.lexsort(means.T)
    np.testing.assert_allclose(kept.points[order], means[expected], atol=1e-12)
    np.testing.assert_array_equal(np.floor(shifted[kept.rows] / 0.02), np.floor(kept.points / 0.02))


def test_voxels_are_laid_in_the_target_frame(points: np.ndarray) -> None:
    transform = make_transform(matrix_from_rpy((0.3, 0.2, 0.1)), (0.4, 0.5, 0.6))
    optical = points + np.array([0.0, 0.0, 0.5])
    direct = crop_to_voxels(optical, transform, (0.0, 2.0), EVERYWHERE, 0.01)
    moved = crop_to_voxels(transform_points(transform, optical), np.eye(4), (-9.0, 9.0), EVERYWHERE, 0.01)
    np.testing.assert_allclose(direct.points, moved.points, atol=1e-9)


def test_no_points_and_impossible_voxels() -> None:
    assert len(crop_to_voxels(np.empty((0, 3)), np.eye(4), (0.0, 1.0), EVERYWHERE, 0.01).points) == 0
    with pytest.raises(InvalidInputError, match="voxel_size"):
        crop_to_voxels(np.zeros((1, 3)), np.eye(4), (0.0, 1.0), EVERYWHERE, 0.0)
    with pytest.raises(InvalidInputError, match="box"):
        crop_to_voxels(np.zeros((1, 3)), np.eye(4), (0.0, 1.0), ((-1e9,) * 3, (1e9,) * 3), 0.01)


def test_merging_keeps_the_two_sides_of_a_thin_wall_apart() -> None:
    points = np.array([[0.001, 0.001, 0.001], [0.002, 0.001, 0.001], [0.001, 0.001, 0.002], [0.5, 0.0, 0.0]])
    up = np.array([0.0, 0.0, 1.0])
    merged, normals, rows, places = merge_views(points, np.array([up, up, -up, up]), 0.01)
    np.testing.assert_allclose(merged, [[0.0015, 0.001, 0.001], [0.001, 0.001, 0.002], [0.5, 0.0, 0.0]])
    np.testing.assert_allclose(normals, [up, -up, up])
    np.testing.assert_array_equal(rows, [0, 2, 3])
    np.testing.assert_array_equal(places, [0, 0, 1, 2])


def test_normals_of_a_sphere_are_radial_and_follow_the_camera() -> None:
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sphere = 0.05 * directions
    outside, _ = estimate_normals(sphere, 0.008, (0.0, 0.0, 10.0))
    cosine = np.einsum("ij,ij->i", outside, directions)
    assert np.degrees(np.arccos(np.abs(cosine)).max()) < 8.0
    assert (
        np.sign(cosine)[np.abs(directions[:, 2]) > 0.2] == np.sign(directions[:, 2])[np.abs(directions[:, 2]) > 0.2]
    ).all()
    inside, _ = estimate_normals(sphere, 0.008, np.zeros(3))
    assert (np.einsum("ij,ij->i", inside, directions) < 0.0).all()


def test_normals_move_with_the_points(points: np.ndarray) -> None:
    flat = points * np.array([1.0, 1.0, 0.01])
    motion = make_transform(matrix_from_rpy((1.0, -0.5, 2.0)), (100.0, -50.0, 20.0))
    eye = np.array([0.1, 0.2, 1.0])
    normals, counts = estimate_normals(flat, 0.02, eye)
    moved, moved_counts = estimate_normals(transform_points(motion, flat), 0.02, transform_points(motion, eye))
    same = counts == moved_counts
    assert same.mean() > 0.99
    np.testing.assert_allclose(moved[same], transform_vectors(motion, normals)[same], atol=1e-6)


def test_selected_normals_equal_those_of_the_whole(points: np.ndarray) -> None:
    chosen = np.arange(len(points)) % 3 == 0
    whole, _ = estimate_normals(points, 0.02, np.zeros(3))
    part, counts = estimate_normals(points, 0.02, np.zeros(3), chosen)
    np.testing.assert_array_equal(part[chosen], whole[chosen])
    assert (part[~chosen] == 0.0).all() and (counts[~chosen] == 0).all()


def test_lonely_and_empty_points_have_no_normal() -> None:
    normals, counts = estimate_normals([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], 0.1, (0.0, 0.0, 1.0))
    np.testing.assert_array_equal(normals, 0.0)
    np.testing.assert_array_equal(counts, 1)
    assert estimate_normals(np.empty((0, 3)), 0.1, np.zeros(3))[0].shape == (0, 3)
    for bad in (np.zeros((2, 2)), np.full((2, 3), np.nan)):
        with pytest.raises(InvalidInputError, match="points"):
            estimate_normals(bad, 0.1, np.zeros(3))
    with pytest.raises(InvalidInputError, match="radius"):
        estimate_normals(np.zeros((3, 3)), -1.0, np.zeros(3))


def test_the_least_direction_is_an_eigenvector() -> None:
    rng = np.random.default_rng(0)
    for trial in range(300):
        scales = 10.0 ** rng.uniform(-6, 0, 3)
        basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        matrix = (basis * scales) @ basis.T * 10.0 ** rng.uniform(-8, 8)
        values, vectors = np.linalg.eigh(matrix)
        found = np.array(least_direction(*matrix[np.triu_indices(3)]))
        assert np.linalg.norm(found) == pytest.approx(1.0), trial
        if values[1] > 1e-3 * values[2] and values[0] < 0.5 * values[1]:
            assert abs(found @ vectors[:, 0]) > 1.0 - 1e-6


def test_degenerate_scatter_still_gives_a_unit_vector() -> None:
    line = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    found = np.array(least_direction(*line[np.triu_indices(3)]))
    assert np.linalg.norm(found) == pytest.approx(1.0)
    assert abs(found @ [1.0, 2.0, 3.0]) < 1e-5
    for matrix in (np.zeros((3, 3)), np.eye(3)):
        assert math.isclose(np.linalg.norm(least_direction(*matrix[np.triu_indices(3)])), 1.0)
