"""Density control: what is moved, what is split, and that counts and locked spheres are kept."""

import numpy as np
import pytest

from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.spheres.configuration import LossWeights, SphereFitConfig
from morphit_ros.spheres.density_control import move_useless, resize, tally_spheres
from morphit_ros.spheres.samples import draw_samples

WEIGHTS = SphereFitConfig().loss_weights()
MESH = box_mesh([0.8, 0.1, 0.1])


@pytest.fixture
def samples():
    return draw_samples(MESH, 800, 800, np.random.default_rng(0))


def row_of_spheres(samples):
    """Five along the box, the third one twice: one of the two is of no use."""
    x = np.array([-0.8, -0.4, 0.0, 0.0, 0.4]) * samples.half_size[0]
    return np.stack([x, np.zeros(5), np.zeros(5)], axis=1), np.array([0.03, 0.03, 0.03, 0.029, 0.03])


def test_sphere_inside_another_is_worth_nothing(samples):
    centers, radii = row_of_spheres(samples)
    tally = tally_spheres(samples, centers, radii, WEIGHTS)
    assert tally.worth.argmin() == 3
    assert tally.worth[3] == 0.0
    assert (tally.worth[[0, 1, 2, 4]] > 0.0).all()


def test_error_is_where_the_spheres_are_missing(samples):
    centers, radii = row_of_spheres(samples)
    tally = tally_spheres(samples, centers, radii, WEIGHTS)
    # The right end of the box is bare: its samples are nearest to the last sphere, spread along x.
    assert tally.error.argmax() == 4
    assert tally.axes[4, 0] > 0.9
    np.testing.assert_allclose(np.linalg.norm(tally.axes, axis=1), 1.0)


def test_contact_alone_tells_what_is_worth_something_and_where_it_is_missing():
    samples = draw_samples(MESH, 800, 800, np.random.default_rng(0), 800)
    centers, radii = row_of_spheres(samples)
    # Not standing out of the box: none is in a ball's way.
    tally = tally_spheres(samples, centers, 0.6 * radii, LossWeights.only(contact=100.0))
    assert tally.worth.argmin() == 3
    assert (tally.worth[[0, 1, 2, 4]] > 1e-3).all()
    assert tally.error.argmax() == 4


def test_useless_sphere_moves_to_the_bare_end(samples):
    centers, radii = row_of_spheres(samples)
    moved, sizes = move_useless(samples, centers, radii, np.ones(5, bool), WEIGHTS, 1, np.random.default_rng(0))
    assert moved.shape == centers.shape
    changed = np.flatnonzero((moved != centers).any(axis=1) | (sizes != radii))
    np.testing.assert_array_equal(changed, [3, 4])
    assert moved[3, 0] > centers[4, 0] > moved[4, 0]


def test_locked_spheres_are_neither_moved_nor_split(samples):
    centers, radii = row_of_spheres(samples)
    free = np.array([True, True, True, False, False])
    for seed in range(10):
        moved, sizes = move_useless(samples, centers, radii, free, WEIGHTS, 2, np.random.default_rng(seed))
        np.testing.assert_array_equal(moved[3:], centers[3:])
        np.testing.assert_array_equal(sizes[3:], radii[3:])


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 11, 100])
def test_resize_reaches_every_count(samples, count):
    centers, radii = row_of_spheres(samples)
    free = np.array([False, True, True, True, True])
    new_centers, new_radii, new_free = resize(samples, centers, radii, free, WEIGHTS, count)
    assert new_centers.shape == (count, 3)
    assert (new_radii > 0.0).all()
    np.testing.assert_array_equal(new_centers[0], centers[0])
    assert new_radii[0] == radii[0]
    np.testing.assert_array_equal(new_free, np.arange(count) > 0)


def test_resize_drops_the_useless_one_first(samples):
    centers, radii = row_of_spheres(samples)
    kept, _, _ = resize(samples, centers, radii, np.ones(5, bool), WEIGHTS, 4)
    np.testing.assert_array_equal(kept, centers[[0, 1, 2, 4]])


def test_one_sphere_can_be_split_and_moved(samples):
    center, radius = np.zeros((1, 3)), np.array([0.05])
    moved, sizes = move_useless(samples, center, radius, np.ones(1, bool), WEIGHTS, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(moved, center)
    np.testing.assert_array_equal(sizes, radius)
    two, _, _ = resize(samples, center, radius, np.ones(1, bool), WEIGHTS, 2)
    assert np.linalg.norm(two[0] - two[1]) == pytest.approx(0.05, rel=1e-6)
    assert abs(two[0, 0] - two[1, 0]) > 0.045
