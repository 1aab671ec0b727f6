"""Clouds and planes as obstacles."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.obstacles import fine_obstacle, loose_obstacle, object_obstacle, table_obstacle
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points


def test_every_point_is_inside_a_sphere() -> None:
    points = np.random.default_rng(0).uniform(-0.05, 0.05, (500, 3))
    pose = make_transform(matrix_from_rpy([0.3, 0.2, -0.5]), [0.4, 0.1, 0.2])
    cloud = PointCloud(np.vstack([points, [[np.nan, 0.0, 0.0]]]))
    obstacle = object_obstacle("cup", cloud, pose, spheres=30)
    assert len(obstacle.radii) <= 30
    moved = transform_points(pose, points)
    distance = np.linalg.norm(moved[:, None] - obstacle.centers[None], axis=2) - obstacle.radii
    assert distance.min(axis=1).max() <= 1e-9
    assert obstacle.radii.max() < 0.06


@pytest.mark.parametrize("radius", [0.03, 0.13])
def test_fine_spheres_bulge_little_whatever_their_size(radius: float) -> None:
    rng = np.random.default_rng(0)
    angle, out = 2.0 * np.pi * rng.random(4000), radius * np.sqrt(rng.random(4000))
    points = np.stack([out * np.cos(angle), out * np.sin(angle), rng.normal(0.0, 5e-4, 4000)], axis=1)
    pose = make_transform(matrix_from_rpy([0.3, 0.2, -0.5]), [0.4, 0.1, 0.2])
    plate = fine_obstacle("plate", PointCloud(points), pose)
    apart = np.linalg.norm(transform_points(pose, points)[:, None] - plate.centers[None], axis=2) - plate.radii
    assert apart.min(axis=1).max() <= 1e-9
    assert float(np.median(plate.radii)) < 0.009
    assert 40 <= len(plate.radii) <= 400


def test_nothing_between_scattered_points_is_solid() -> None:
    points = np.random.default_rng(1).uniform(-0.2, 0.2, (80, 3))
    pose = make_transform(matrix_from_rpy([0.3, 0.2, -0.5]), [0.4, 0.1, 0.2])
    obstacle = loose_obstacle("crumbs", PointCloud(np.vstack([points, [[np.nan, 0.0, 0.0]]])), pose, cell=0.02)
    moved = transform_points(pose, points)
    distance = np.linalg.norm(moved[:, None] - obstacle.centers[None], axis=2) - obstacle.radii
    assert distance.min(axis=1).max() <= 1e-9
    # At most half the diagonal of a cell, and not less than a small ball.
    assert obstacle.radii.max() <= 0.02 * np.sqrt(3.0)
    assert obstacle.radii.min() == pytest.approx(0.004)
    assert len(obstacle.radii) > 60
    with pytest.raises(InvalidInputError, match="point"):
        loose_obstacle("nothing", PointCloud(np.full((4, 3), np.nan)), pose)


@pytest.mark.parametrize("points", [np.empty((0, 3)), np.full((4, 3), np.nan)])
def test_an_empty_cloud_is_refused(points: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="points"):
        object_obstacle("cup", PointCloud(points), np.eye(4))


def test_names_and_poses_are_checked() -> None:
    cloud = PointCloud(np.zeros((1, 3)))
    with pytest.raises(InvalidInputError, match="name"):
        object_obstacle("", cloud, np.eye(4))
    with pytest.raises(InvalidInputError, match="T_base_cloud"):
        object_obstacle("cup", cloud, 2.0 * np.eye(4))


def test_a_table_goes_on_beyond_what_was_seen() -> None:
    pose = make_transform(translation=[0.5, 0.0, 0.02])
    table = table_obstacle(pose, [0.4, 0.6], margin=0.1)
    np.testing.assert_allclose(table.size, [0.6, 0.8])
    np.testing.assert_array_equal(table.T_base_table, pose)


@pytest.mark.parametrize("size", [[0.4], [0.4, 0.0], [np.nan, 0.5], [0.4, -1.0]])
def test_bad_table_sizes_are_refused(size: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="size"):
        table_obstacle(np.eye(4), size)
