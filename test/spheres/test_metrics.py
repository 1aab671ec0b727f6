"""Metrics against analytic values, and their error bars against the spread over seeds."""

import math
from dataclasses import asdict

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.spheres.exposed_surface import sample_exposed_surface
from morphit_ros.spheres.metrics import measure_spheres, nearest_gaps

BOX = box_mesh([2.0, 1.0, 1.0])
# Without its top: the winding number still tells inside from outside, but there is no exact volume.
OPEN_BOX = TriangleMesh(BOX.vertices, np.delete(BOX.faces, 11, axis=0))


def ball(radius):
    return 4.0 / 3.0 * math.pi * radius**3


def shifted(mesh, *offset):
    return mesh.transformed(make_transform(translation=offset))


def assert_within(value, error, expected, errors=4.0):
    assert abs(value - expected) <= errors * error + 1e-12, f"{value} ± {error} is not {expected}"


def test_sphere_inside_a_box():
    metrics = measure_spheres(BOX, [[0.3, 0.0, 0.0]], [0.4])
    assert_within(metrics.inside, metrics.inside_error, ball(0.4) / 2.0)
    assert 0.0 < metrics.inside_error < 0.001
    assert (metrics.outside, metrics.outside_error) == (0.0, 0.0)
    # The farthest point of the surface is a corner at the other end.
    assert metrics.d_max == pytest.approx(np.linalg.norm([1.3, 0.5, 0.5]) - 0.4, abs=0.02)


def test_sphere_on_a_face_is_half_outside():
    metrics = measure_spheres(BOX, [[1.0, 0.0, 0.0]], [0.3])
    half = 0.5 * ball(0.3) / 2.0
    assert_within(metrics.inside, metrics.inside_error, half)
    assert_within(metrics.outside, metrics.outside_error, half)
    assert_within(metrics.union, metrics.union_error, 2.0 * half)


@pytest.mark.parametrize("radius", [2.0, 50.0, 1e4])
def test_sphere_around_the_box_covers_it_however_large(radius):
    metrics = measure_spheres(BOX, [[0.0, 0.0, 0.0]], [radius])
    assert (metrics.inside, metrics.inside_error) == (1.0, 0.0)
    assert_within(metrics.outside, metrics.outside_error, ball(radius) / 2.0 - 1.0)


def test_spheres_beside_the_box_are_counted():
    metrics = measure_spheres(BOX, [[5.0, 0.0, 0.0], [-9.0, 1.0, 0.0]], [0.5, 0.8])
    assert (metrics.inside, metrics.inside_error) == (0.0, 0.0)
    assert_within(metrics.outside, metrics.outside_error, (ball(0.5) + ball(0.8)) / 2.0)


def test_volume_is_relative_to_the_union_of_meshes():
    # Two boxes that overlap by half: volume 3, not 4.
    boxes = [BOX, shifted(BOX, 1.0, 0.0, 0.0)]
    metrics = measure_spheres(boxes, [[0.5, 0.0, 0.0]], [5.0])
    assert metrics.inside == 1.0
    assert_within(metrics.outside, metrics.outside_error, ball(5.0) / 3.0 - 1.0)
    # The same as one closed mesh: its divergence integral is 4, which the samples contradict.
    joined = measure_spheres(concatenate_meshes(boxes), [[0.5, 0.0, 0.0]], [5.0])
    assert_within(joined.outside, joined.outside_error, ball(5.0) / 3.0 - 1.0)


def test_inverted_mesh_measures_the_same_and_a_sheet_has_no_ratios():
    inverted = TriangleMesh(BOX.vertices, BOX.faces[:, ::-1])
    spheres = [[0.9, 0.2, 0.0], [-0.4, 0.0, 0.1]], [0.5, 0.6]
    one, other = asdict(measure_spheres(inverted, *spheres)), asdict(measure_spheres(BOX, *spheres))
    for name in ("d_avg", "inside", "outside", "union"):
        # The order of the corners decides where in a triangle a sample lies, and only that.
        assert_within(one[name], one[f"{name}_error"], other[name], 6.0)
    sheet = TriangleMesh(np.array([[0, 0, 0], [2, 0, 0], [2, 1, 0], [0, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]]))
    metrics = measure_spheres(sheet, [[1.0, 0.5, 0.0]], [0.3], 500, 500)
    assert math.isnan(metrics.inside)
    assert math.isnan(metrics.outside_error)
    assert math.isfinite(metrics.d_avg)


@pytest.mark.parametrize("mesh", [BOX, OPEN_BOX], ids=["closed", "open"])
def test_error_bars_are_the_spread_over_seeds(mesh):
    # Part of the first sphere is inside, part of it outside; half of the second is in the first.
    centers, radii = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.0]], [0.6, 0.4]
    runs = [measure_spheres(mesh, centers, radii, 300, 3000, seed) for seed in range(600)]
    reference = measure_spheres(BOX, centers, radii, 400000, 4000000, seed=1000)
    for name in ("d_avg", "inside", "outside", "union"):
        values = np.array([getattr(run, name) for run in runs])
        errors = np.array([getattr(run, f"{name}_error") for run in runs])
        if name == "d_avg" and mesh is OPEN_BOX:
            continue
        # 600 seeds know a spread to 3 %.
        assert np.sqrt((errors**2).mean()) == pytest.approx(values.std(), rel=0.12), name
        if mesh is BOX:
            assert abs(values.mean() - getattr(reference, name)) < 4.0 * values.std() / math.sqrt(600), name


def test_exact_volume_and_strata_narrow_the_error_bars():
    centers, radii = [[0.9, 0.1, 0.0], [0.5, 0.0, 0.0]], [0.6, 0.4]
    closed = measure_spheres(BOX, centers, radii)
    share = closed.inside
    # Plain Monte Carlo: binomial among the samples in the mesh, here all of half of them.
    assert closed.inside_error < 0.5 * math.sqrt(share * (1.0 - share) / 100000)


def test_same_seed_same_metrics():
    spheres = [[0.9, 0.1, 0.0]], [0.6]
    assert measure_spheres(BOX, *spheres, seed=3) == measure_spheres(BOX, *spheres, seed=3)
    assert measure_spheres(BOX, *spheres, seed=3) != measure_spheres(BOX, *spheres, seed=4)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_gaps_equal_the_dense_form(size):
    rng = np.random.default_rng(size)
    points, centers, radii = rng.normal(size=(size, 3)), rng.normal(size=(7, 3)), rng.uniform(0.1, 1.0, 7)
    expected = (np.linalg.norm(points[:, None] - centers, axis=2) - radii).min(axis=1)
    np.testing.assert_allclose(nearest_gaps(points, centers, radii), expected, atol=1e-12)


def test_buried_surface_is_no_surface():
    rng = np.random.default_rng(0)
    # Side by side: the common face at x = 1 is inside the union.
    points, normals = sample_exposed_surface([BOX, shifted(BOX, 2.0, 0.0, 0.0)], 5000, rng)
    assert points.shape == normals.shape == (5000, 3)
    assert not ((np.abs(points[:, 0] - 1.0) < 1e-9) & (np.abs(normals[:, 0]) > 0.5)).any()
    # By area: 1 × 1 at both ends, 4 sides of 4 × 1.
    assert np.mean(np.abs(normals[:, 0]) > 0.5) == pytest.approx(2.0 / 18.0, abs=0.02)
    # A small box in a large one has no surface of its own.
    points, _ = sample_exposed_surface([BOX, box_mesh([0.2, 0.2, 0.2])], 2000, rng)
    assert np.isclose(np.abs(points) / [1.0, 0.5, 0.5], 1.0).any(axis=1).all()


def test_equal_meshes_expose_each_others_surface_and_normals_point_outwards():
    inverted = TriangleMesh(BOX.vertices, BOX.faces[:, ::-1])
    points, normals = sample_exposed_surface([BOX, BOX, inverted], 1000, np.random.default_rng(0))
    assert len(points) == 1000
    assert (np.einsum("ij,ij->i", points, normals) > 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"surface_samples": 0}, "count"),
        ({"volume_samples": 15}, "volume_samples"),
        ({"mesh": []}, "meshes"),
        ({"mesh": TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))}, "mesh"),
        ({"radii": [-1.0]}, "spheres"),
        ({"centers": [[np.inf, 0.0, 0.0]]}, "spheres"),
    ],
)
def test_bad_input(arguments, name):
    with pytest.raises(InvalidInputError) as caught:
        measure_spheres(**{"mesh": sphere_mesh(0.1), "centers": [[0.0, 0.0, 0.0]], "radii": [1.0]} | arguments)
    assert caught.value.name == name


def test_stray_spheres_are_counted_however_far_and_small():
    mesh = box_mesh([0.2, 0.2, 0.2])
    centers, radii = [[0, 0, 0], [1e4, 0, 0], [0, 2e4, 1.0]], [0.05, 0.1, 0.001]
    metrics = measure_spheres(mesh, centers, radii)
    expected = 4 / 3 * np.pi * (0.1**3 + 0.001**3) / 0.2**3
    assert metrics.outside == pytest.approx(expected, abs=5.0 * metrics.outside_error)
    assert metrics.outside_error < 0.01 * expected


def test_reverse_distances_of_a_sphere_in_a_box():
    # From the sphere's surface to the box: half of the side less the radius straight on, more towards the edges.
    box = box_mesh([0.2, 0.2, 0.2])
    metrics = measure_spheres(box, [[0.0, 0.0, 0.0]], [0.05])
    directions = np.random.default_rng(0).normal(size=(200000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    expected = (0.1 - np.abs(0.05 * directions)).min(axis=1)
    assert metrics.reverse_avg == pytest.approx(expected.mean(), abs=5.0 * metrics.reverse_avg_error)
    assert metrics.reverse_max == pytest.approx(0.1 - 0.05 / math.sqrt(3.0), abs=1e-3)


def test_reverse_distances_see_what_stands_out_and_not_what_is_buried():
    box = box_mesh([0.2, 0.2, 0.2])
    # One sphere around all and one far from the surface within it, which is not seen.
    metrics = measure_spheres(box, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0.2, 0.01])
    assert metrics.reverse_max == pytest.approx(0.1, abs=1e-3)
    assert metrics.reverse_avg > 0.2 - 0.1 * math.sqrt(3.0)
    # The other direction alone does not see a sphere that stands out beside one that fits.
    stray = measure_spheres(box, [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]], [0.12, 0.1])
    assert stray.reverse_max == pytest.approx(0.5, abs=1e-3)
    assert stray.d_max < 0.1
