"""Bodies sampled for contact: weights, normals, and how well they approximate the overlap with a half-space."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.fields.analytic import BoxField, SphereField
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.neural.solid.inertia import inertial_properties
from morphit_ros.neural.solid.sampling import sample_body, sample_density

CONFIG = SolidConfig(resolution=48)


@pytest.fixture(scope="module")
def ball():
    solid = extract_solid(SphereField(0.05), config=CONFIG)
    return solid, inertial_properties(solid, mass=0.5)


@pytest.fixture(scope="module")
def box():
    solid = extract_solid(BoxField((0.1, 0.06, 0.04)), config=CONFIG)
    return solid, inertial_properties(solid, mass=0.24)


def test_a_sampled_body_has_the_mass_the_points_and_outward_normals(ball):
    body = sample_body(*ball, count=3000)
    assert body.points.shape == (3000, 3)
    assert body.masses.sum() == pytest.approx(0.5)
    radii = np.linalg.norm(body.points, axis=1)
    assert radii.max() == pytest.approx(0.05, abs=2e-4)
    np.testing.assert_allclose(np.linalg.norm(body.normals, axis=1), 1.0, atol=1e-9)
    outer = radii > 0.049
    along = (body.normals * body.points).sum(axis=1)[outer] / radii[outer]
    assert outer.mean() == pytest.approx(0.6, abs=0.01) and along.min() > 0.99
    # The weights' own moments are nearly those of the body: only that the skin's mass lies on the surface.
    second = (body.points * body.masses[:, None]).T @ body.points
    np.testing.assert_allclose(np.trace(second) * np.eye(3) - second, body.inertia, atol=0.08 * body.inertia[0, 0])
    np.testing.assert_allclose(body.masses @ body.points / 0.5, 0.0, atol=1e-3)


def test_points_weigh_what_a_half_space_cuts_off(box):
    body = sample_body(*box)
    for depth in (0.004, 0.01, 0.02):
        for axis, extent in ((2, 0.04), (0, 0.1)):
            overlap = body.masses[body.points[:, axis] < -0.5 * extent + depth].sum()
            assert overlap == pytest.approx(0.24 * depth / extent, rel=0.12)


def test_a_body_on_its_face_is_held_all_over_the_face(box):
    # The points of the lower face lie in a plane: their pressure is even, so that it does not tilt.
    body = sample_body(*box)
    lower = body.points[:, 2] < -0.0199
    weights = body.masses[lower]
    assert np.ptp(body.points[lower, 2]) < 1e-4
    np.testing.assert_allclose(weights @ body.points[lower, :2] / weights.sum(), 0.0, atol=6e-4)


def test_the_papers_sampling_keeps_to_its_range_and_weights(ball):
    solid, properties = ball
    body = sample_density(solid.field, properties, 0.2, 0.8, count=1000)
    densities = solid.field.density(body.points + body.center_of_mass)
    assert len(body.points) == 1000
    assert densities.min() >= 0.2 and densities.max() <= 0.8
    np.testing.assert_allclose(body.masses, 0.5 * densities / densities.sum())
    np.testing.assert_allclose(
        body.normals, body.points / np.linalg.norm(body.points, axis=1, keepdims=True), atol=1e-6
    )


@pytest.mark.parametrize("paper", [False, True])
def test_the_same_seed_draws_the_same_points(ball, paper):
    solid, properties = ball

    def draw(seed):
        if paper:
            return sample_density(solid.field, properties, 0.1, 0.9, 400, seed).points
        return sample_body(solid, properties, 400, seed).points

    assert np.array_equal(draw(3), draw(3))
    assert not np.array_equal(draw(3), draw(4))


def test_few_points_are_possible(box):
    assert len(sample_body(*box, count=8).points) == 8


def test_bad_requests_are_refused(ball):
    solid, properties = ball
    with pytest.raises(InvalidInputError, match="count"):
        sample_body(solid, properties, count=3)
    with pytest.raises(InvalidInputError, match="lowest and highest"):
        sample_density(solid.field, properties, 0.9, 0.1)
    with pytest.raises(InvalidInputError, match="widen"):
        sample_density(solid.field, properties, 2.0, 3.0, count=100)
