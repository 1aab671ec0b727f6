"""Samples that fits are made against: where they lie, what they say of volume and mass, thin walls and sheets."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rotation_vector
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres import LossWeights, SphereFitConfig, fit_spheres, measure_spheres
from morphit_ros.spheres.samples import REFERENCE_DIAGONAL, draw_samples


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
