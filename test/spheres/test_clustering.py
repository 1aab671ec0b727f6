"""Clouds as spheres: cover, tightness and bad clouds."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.spheres import spherize_cloud


def depth(points, centers, radii):
    """Distance of each point to the nearest sphere, negative inside."""
    return (np.linalg.norm(points[:, None] - centers, axis=2) - radii).min(axis=1)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_every_point_is_covered_tightly(count):
    points, _ = sample_surface(box_mesh([0.2, 0.1, 0.05]), 3000, np.random.default_rng(0))
    centers, radii = spherize_cloud(points, count)
    assert len(radii) == count
    assert depth(points, centers, radii).max() <= 0.0
    # One sphere around the box has half its diagonal; more spheres must be smaller.
    assert radii.max() < 0.5 * np.linalg.norm([0.2, 0.1, 0.05]) * 1.05 * (1.0 if count == 1 else count**-0.3)


def test_few_identical_and_far_points():
    centers, radii = spherize_cloud([[1, 2, 3]], 10, minimum_radius=0.005)
    np.testing.assert_allclose(centers, [[1, 2, 3]])
    np.testing.assert_allclose(radii, [0.005])
    centers, radii = spherize_cloud(np.full((50, 3), 7.0), 4)
    assert depth(np.full((1, 3), 7.0), centers, radii).max() <= 0.0
    far = np.random.default_rng(0).normal(size=(100, 3)) + 1e4
    assert depth(far, *spherize_cloud(far, 8)).max() <= 0.0


def test_nan_rows_are_left_out_and_results_repeat():
    points = np.random.default_rng(0).normal(size=(200, 3))
    spoiled = np.insert(points, [0, 50], np.nan, axis=0)
    for first, second in zip(spherize_cloud(points, 9), spherize_cloud(spoiled, 9), strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("points", "count", "radius"),
    [
        (np.empty((0, 3)), 5, 0.001),
        (np.full((4, 3), np.nan), 5, 0.001),
        (np.zeros((4, 2)), 5, 0.001),
        (np.zeros((4, 3)), 0, 0.001),
        (np.zeros((4, 3)), 5, 0.0),
    ],
)
def test_bad_clouds(points, count, radius):
    with pytest.raises(InvalidInputError):
        spherize_cloud(points, count, radius)
