"""Covering spheres: always proven, always as many as asked for, on any shape and scale."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres.cover.certificate import certify_cover
from morphit_ros.spheres.cover.search import cover_spheres
from morphit_ros.spheres.metrics import measure_spheres, nearest_gaps

BOX = box_mesh([0.3, 0.2, 0.1])
SHEET = TriangleMesh(np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0], [0, 0.1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]]))
OPEN_BOX = TriangleMesh(BOX.vertices, BOX.faces[BOX.face_normals[:, 2] < 0.9])
APART = [BOX, sphere_mesh(0.05, 16).transformed(make_transform(translation=[0.4, 0.1, 0.3]))]
TRIANGLE = TriangleMesh(np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.05, 0.02]]), np.array([[0, 1, 2]]))


@pytest.mark.parametrize("count", [1, 2, 17])
@pytest.mark.parametrize(
    "shape", [BOX, SHEET, OPEN_BOX, APART, TRIANGLE], ids=["box", "sheet", "open box", "apart", "triangle"]
)
def test_any_shape_is_covered_by_any_count(shape, count):
    result = cover_spheres(shape, count, trials=1)
    assert result.centers.shape == (count, 3)
    assert result.radii.shape == (count,)
    assert np.isfinite(result.centers).all()
    assert (result.radii > 0.0).all()
    assert result.certificate.covered
    assert result.certificate.margin > 0.0
    for mesh in shape if isinstance(shape, list) else [shape]:
        points = np.concatenate([mesh.vertices, sample_surface(mesh, 5000, np.random.default_rng(0))[0]])
        assert nearest_gaps(points, result.centers, result.radii).max() < 0.0
        points = np.random.default_rng(1).uniform(mesh.bounds[0], mesh.bounds[1], (5000, 3))
        inside = np.abs(InsideTest(mesh).winding_numbers(points)) > 0.512
        assert nearest_gaps(points[inside], result.centers, result.radii).max(initial=-1.0) < 0.0


def test_one_sphere_is_nearly_the_smallest():
    result = cover_spheres(BOX, 1)
    assert result.radii[0] == pytest.approx(np.linalg.norm(BOX.extents) / 2, rel=0.005)
    np.testing.assert_allclose(result.centers[0], 0.0, atol=0.005)


def test_a_sphere_is_covered_by_hardly_more_than_itself():
    result = cover_spheres(sphere_mesh(0.1), 1)
    assert result.radii[0] == pytest.approx(0.1, rel=0.005)


def test_more_spheres_and_more_trials_leave_less_outside():
    outside = [measure_spheres(BOX, *spheres(cover_spheres(BOX, count))).outside for count in (1, 6, 30)]
    assert outside[0] > 2.0 * outside[1] > 3.0 * outside[2]
    # Measured 1.01; a regular grid of 2 × 3 spheres, as good a guess as any, leaves 1.18.
    assert outside[1] < 1.15
    history = cover_spheres(BOX, 6, trials=12).history
    assert len(history) == 13
    assert (np.diff(history) <= 0.0).all()


def spheres(result):
    return result.centers, result.radii


def test_row_of_spheres_for_a_capsule():
    mesh = capsule_mesh(0.05, 0.3)
    assert measure_spheres(mesh, *spheres(cover_spheres(mesh, 8))).outside < 0.2


def test_same_seed_same_spheres():
    first, second, other = (cover_spheres(BOX, 8, seed=seed, trials=3) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.centers, second.centers)
    np.testing.assert_array_equal(first.radii, second.radii)
    assert np.abs(first.radii - other.radii).max() > 1e-5


def test_scale_and_place_do_not_matter():
    small = cover_spheres(BOX, 8, trials=3)
    transform = make_transform(translation=[3.0, -2.0, 1.0])
    moved = BOX.transformed(transform).scaled(1000.0)
    large = cover_spheres(moved, 8, trials=3)
    assert large.certificate.covered
    ratio = measure_spheres(moved, *spheres(large)).outside / measure_spheres(BOX, *spheres(small)).outside
    # Rounding makes the search take other ways, of the same quality.
    assert ratio == pytest.approx(1.0, abs=0.15)


def test_rotation_keeps_the_quality():
    turned = BOX.transformed(make_transform(matrix_from_rpy([0.5, 0.4, 1.0]), [0.0, 0.0, 0.0]))
    outside = [measure_spheres(mesh, *spheres(cover_spheres(mesh, 8))).outside for mesh in (BOX, turned)]
    assert outside[1] == pytest.approx(outside[0], rel=0.2)


def test_initial_spheres_are_kept_but_for_what_covers():
    centers = np.array([[x, y, 0.01] for x in (-0.1, 0.0, 0.1) for y in (-0.05, 0.05)])
    radii = np.full(6, 0.08)
    assert not certify_cover(BOX, centers, radii).covered
    result = cover_spheres(BOX, 6, initial=(centers, radii))
    assert result.certificate.covered
    assert np.linalg.norm(result.centers - centers, axis=1).max() < 0.03
    assert np.abs(result.radii - radii).max() < 0.03
    assert len(result.history) == 0


def test_initial_spheres_far_away_or_tiny_still_end_in_a_cover():
    result = cover_spheres(BOX, 3, initial=([[5, 0, 0], [0, 0, 0], [0, 0, 0.01]], [0.001, 1e-7, 0.05]))
    assert result.certificate.covered


def test_bad_input():
    with pytest.raises(InvalidInputError, match="count"):
        cover_spheres(BOX, 0)
    with pytest.raises(InvalidInputError, match="trials"):
        cover_spheres(BOX, 1, trials=-1)
    with pytest.raises(InvalidInputError, match="meshes"):
        cover_spheres([], 1)
    with pytest.raises(InvalidInputError, match="initial"):
        cover_spheres(BOX, 2, initial=([[0, 0, 0]], [0.1]))
    with pytest.raises(InvalidInputError):
        cover_spheres(BOX, 1, initial=([[0, 0, np.nan]], [0.1]))
    point = TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="area"):
        cover_spheres(point, 1)
    line = TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0.0]]), np.array([[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="area"):
        cover_spheres(line, 1)
