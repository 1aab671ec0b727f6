"""Cells, voxels and normals against brute force and known surfaces."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components as reference_components
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.nearest_grid import nearest_grid, row_at
from morphit_ros.geometry.normals import estimate_normals, least_direction
from morphit_ros.geometry.spatial_hash import cells_around, connected_components, distances_to, nearest_facing
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points, transform_vectors
from morphit_ros.geometry.voxel_grid import PlaneCells, crop_to_voxels, merge_views

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
    np.testing.assert_array_equal(estimate_normals(points, 0.013, np.zeros(3))[1], expected)


def test_components_equal_a_graph_search(points: np.ndarray) -> None:
    pairs = cKDTree(points).query_pairs(0.009, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), shape=(len(points), len(points)))
    count, expected = reference_components(graph, directed=False)
    labels = connected_components(points, 0.009)
    assert 1 < count == len(np.unique(labels))
    assert len(np.unique(np.stack([labels, expected]), axis=1).T) == count


def test_components_reach_as_far_as_asked_and_no_farther() -> None:
    chain = np.array(
        [[0.0, 0.0, 0.0], [0.0099, 0.0, 0.0], [0.0198, 0.0, 0.0], [0.0299, 0.0, 0.0], [0.0299, 0.0099, 0.0]]
    )
    labels = connected_components(chain, 0.01)
    assert labels[0] == labels[1] == labels[2] != labels[3] == labels[4]


def test_distances_equal_a_kd_tree(points: np.ndarray) -> None:
    queries = np.random.default_rng(1).uniform(-0.15, 0.15, (2000, 3))
    found = distances_to(queries, points, 0.02)
    expected = cKDTree(points).query(queries, distance_upper_bound=0.02)[0]
    assert 0.2 < np.isfinite(expected).mean() < 0.9
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.isinf(distances_to(queries, points[:0], 0.02)).all()
    assert distances_to(queries[:0], points, 0.02).shape == (0,)


def test_the_nearest_point_that_faces_the_same_way_is_found(points: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    normals = rng.normal(size=points.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    grid, distance = cells_around(points, 0.02), 0.015
    directions, answers = np.ascontiguousarray(normals[grid.order]), []
    for query, normal in zip(rng.uniform(-0.11, 0.11, (300, 3)), normals[:300], strict=True):
        found = nearest_facing(grid, directions, tuple(query), tuple(normal), distance, 0.7)
        gaps = np.linalg.norm(points - query, axis=1)
        gaps[(normals @ normal <= 0.7) | (gaps >= distance)] = np.inf
        assert (found < 0) == np.isinf(gaps.min())
        assert found < 0 or grid.order[found] == np.argmin(gaps)
        answers.append(found >= 0)
    assert 0.1 < np.mean(answers) < 0.9


def test_a_dense_grid_knows_the_points_nearest_to_its_cells() -> None:
    points = np.random.default_rng(3).uniform(0.0, 0.05, (400, 3))
    low, size, reach = np.full(3, -0.01), 0.004, 0.007
    shape = np.full(3, 18)
    grid = nearest_grid(points, low, shape, size, 2, reach)
    middles = low + size * (np.stack(np.meshgrid(*[np.arange(18)] * 3, indexing="ij"), axis=-1) + 0.5)
    gaps, rows = cKDTree(points).query(middles)
    near = gaps < reach
    assert 0.2 < near.mean() < 0.9
    np.testing.assert_array_equal(grid.rows[near], rows[near])
    assert (grid.rows[~near] == -1).all()
    place = points[0] + 0.001
    assert row_at(grid, *place) == grid.rows[tuple(((place - low) / size).astype(int))] >= 0
    assert row_at(grid, -1.0, 0.0, 0.0) == row_at(grid, 0.0, 0.0, 1.0) == -1


def test_points_on_a_plane_go_into_its_cells() -> None:
    rng = np.random.default_rng(4)
    table = np.column_stack([rng.uniform(-0.1, 0.1, (5000, 2)), rng.uniform(0.499, 0.501, 5000)])
    block = np.column_stack([rng.uniform(0.0, 0.02, (3000, 2)), rng.uniform(0.51, 0.53, 3000)])
    below = np.array([[0.0, 0.0, 0.4]])
    frame = np.hstack([np.eye(3), [[0.1], [0.1], [-0.5]]])
    plane = PlaneCells(frame, (10, 10), 0.02, 0.002)
    kept = crop_to_voxels(np.concatenate([table, block, below]), np.eye(4), (0.0, 1.0), EVERYWHERE, 0.005, plane)
    assert (kept.in_box, kept.on_plane, kept.below) == (8001, 5000, 1)
    cells, numbers = np.unique(np.floor((table[:, :2] + 0.1) / 0.02), axis=0, return_inverse=True)
    means = np.stack([table[numbers.ravel() == cell].mean(axis=0) for cell in range(len(cells))])
    np.testing.assert_allclose(kept.layer, means, atol=1e-12)
    np.testing.assert_allclose(kept.points.min(axis=0), block.min(axis=0), atol=0.005)
    alone = crop_to_voxels(block, np.eye(4), (0.0, 1.0), EVERYWHERE, 0.005)
    np.testing.assert_array_equal(kept.points, alone.points)
    assert len(alone.layer) == alone.on_plane == alone.below == 0


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
