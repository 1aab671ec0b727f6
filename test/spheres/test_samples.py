"""Samples that fits are made against: where they lie, what they say of volume and mass, thin walls and sheets."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres import LossWeights, SphereFitConfig, fit_spheres, measure_spheres
from morphit_ros.spheres.samples import REFERENCE_DIAGONAL, TOUCH_RADIUS, draw_samples


def samples_of(mesh, interior=1000, surface=1000, seed=0):
    return draw_samples(mesh, interior, surface, np.random.default_rng(seed))


def test_frame_volume_and_mass_of_a_box():
    size = np.array([0.4, 0.2, 0.1])
    mesh = box_mesh(size).transformed(make_transform(translation=[5.0, -2.0, 1.0]))
    samples = samples_of(mesh)
    normalised = size * samples.scale
    assert samples.diagonal == pytest.approx(REFERENCE_DIAGONAL)
    np.testing.assert_allclose(2.0 * samples.half_size, normalised)
    np.testing.assert_allclose(samples.origin, [5.0, -2.0, 1.0])
    assert samples.volume == pytest.approx(normalised.prod(), rel=0.02)
    np.testing.assert_allclose(samples.center, 0.0, atol=0.005 * REFERENCE_DIAGONAL)
    squares = normalised**2
    expected = samples.volume / 12.0 * np.diag([squares[1] + squares[2], squares[0] + squares[2], squares[:2].sum()])
    np.testing.assert_allclose(samples.inertia, expected, atol=0.04 * expected.max())
    assert InsideTest(mesh).contains(samples.interior / samples.scale + samples.origin).all()


def test_surface_points_lie_on_it_with_outward_normals_also_of_an_inverted_mesh():
    ball = sphere_mesh(0.2)
    for mesh in (ball, TriangleMesh(ball.vertices, ball.faces[:, ::-1])):
        samples = samples_of(mesh)
        directions = samples.surface / np.linalg.norm(samples.surface, axis=1)[:, None]
        assert ((directions * samples.normals).sum(axis=1) > 0.99).all()


def test_points_are_spread_evenly():
    samples = samples_of(box_mesh([1.0, 1.0, 1.0]), interior=1000)
    cells = np.floor((samples.interior / samples.half_size + 1.0) * 2.5).astype(int)
    counts = np.bincount(np.ravel_multi_index(cells.T, (5, 5, 5)), minlength=125)
    # Independent draws would spread by 2.8 about 8.
    assert counts.std() < 2.0


def test_balls_touch_faces_edges_and_corners_as_often_as_there_are_places_for_them():
    size = np.array([0.4, 0.2, 0.1])
    samples = draw_samples(box_mesh(size), 500, 500, np.random.default_rng(0), 4000)
    half = 0.5 * size * samples.scale
    beyond = np.maximum(np.abs(samples.touches) - half, 0.0)
    np.testing.assert_allclose(np.linalg.norm(beyond, axis=1), TOUCH_RADIUS, rtol=1e-6)
    # A box grown by a radius is its faces, a quarter of a cylinder an edge, an eighth of a sphere a corner (Steiner).
    a, b, c = 2.0 * half
    areas = np.array([
        2.0 * (a * b + b * c + c * a), 2.0 * np.pi * TOUCH_RADIUS * (a + b + c), 4.0 * np.pi * TOUCH_RADIUS**2
    ])  # fmt: skip
    shares = np.bincount((beyond > 1e-9).sum(axis=1), minlength=4)[1:] / 4000
    np.testing.assert_allclose(shares, areas / areas.sum(), atol=0.02)


def test_balls_do_not_touch_what_they_cannot_reach():
    walls = [box_mesh([0.02, 1.0, 1.0]).transformed(make_transform(translation=[x, 0.0, 0.0])) for x in (-0.1, 0.1)]
    samples = draw_samples(walls, 100, 100, np.random.default_rng(0), 1000)
    # Between the walls is room for a ball of 90 mm; one of `TOUCH_RADIUS` would measure 300 mm across there.
    centers = samples.touches / samples.scale
    assert 900 < len(centers) <= 1000
    assert not ((np.abs(centers[:, 0]) < 0.09) & (np.abs(centers[:, 1:]) < 0.5).all(axis=1)).any()


def test_no_balls_unless_asked_for_and_half_of_them_in_half_the_samples():
    assert samples_of(box_mesh([0.4, 0.2, 0.1])).touches.shape == (0, 3)
    samples = draw_samples(box_mesh([0.4, 0.2, 0.1]), 100, 100, np.random.default_rng(0), 300)
    np.testing.assert_array_equal(samples.halved().touches, samples.touches[::2])


def test_thin_wall_has_an_inside():
    outer, inner = sphere_mesh(0.2), sphere_mesh(0.1995)
    shell = concatenate_meshes([outer, TriangleMesh(inner.vertices, inner.faces[:, ::-1])])
    samples = samples_of(shell, interior=500)
    assert samples.has_volume
    assert len(samples.interior) > 400
    assert InsideTest(shell).contains(samples.interior / samples.scale + samples.origin).all()


def test_sheet_is_its_surface():
    sheet = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]), np.array([[0, 1, 2]]))
    samples = samples_of(sheet)
    assert not samples.has_volume
    np.testing.assert_array_equal(samples.interior, samples.surface)
    assert samples.volume > 0.0


def test_half_of_them():
    samples = samples_of(box_mesh([1.0, 2.0, 3.0]), interior=501, surface=400)
    half = samples.halved()
    assert (len(half.interior), len(half.surface), len(half.normals)) == (251, 200, 200)
    np.testing.assert_array_equal(half.surface, samples.surface[::2])
    assert half.volume == samples.volume


def test_mesh_without_area_is_refused():
    with pytest.raises(InvalidInputError, match="area"):
        samples_of(TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]])))


def test_thin_rod_has_its_volume():
    rod = cylinder_mesh(0.001, 1.0).transformed(
        make_transform(matrix_from_rotation_vector([0.5, -0.6, 0.1]), [0.0, 0.0, 0.0])
    )
    samples = samples_of(rod)
    assert samples.has_volume
    assert samples.volume == pytest.approx(rod.volume * samples.scale**3, rel=0.01)
    assert np.linalg.eigvalsh(samples.inertia)[-1] == pytest.approx(samples.volume * 0.09 / 12.0, rel=0.2)


def test_mass_and_inertia_of_a_thin_rod_can_be_fitted():
    rod = cylinder_mesh(0.001, 1.0).transformed(
        make_transform(matrix_from_rotation_vector([0.5, -0.6, 0.1]), [0.0, 0.0, 0.0])
    )
    config = SphereFitConfig(count=12, weights=LossWeights(mass=100.0, inertia=100.0))
    result = fit_spheres(rod, config)
    assert np.isfinite(result.history).all()
    assert result.history[-1] < result.history[0]
    # The spheres are thicker than the rod; that their mass counts makes them thinner.
    plain = fit_spheres(rod, SphereFitConfig(count=12))
    assert np.sum(result.radii**3) < 0.8 * np.sum(plain.radii**3)
    assert np.isfinite(measure_spheres(rod, result.centers, result.radii).outside)
