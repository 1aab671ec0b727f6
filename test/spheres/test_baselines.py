"""The baselines: exact counts, cover, invariances and known answers."""

import numpy as np
import pytest

from morphit_bench.spheres.baselines import fit_amaa, fit_baseline, fit_packing, fit_vssa
from morphit_bench.spheres.baselines.solid import make_solid, outside_volume
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.primitives import box_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.spheres import SphereFitConfig, fit_spheres
from morphit_ros.spheres.clustering import spherize_cloud
from morphit_ros.spheres.metrics import measure_spheres, nearest_gaps

METHODS = ("vssa", "amaa", "packing")
BOX = box_mesh([0.3, 0.15, 0.1])
CROSS = [box_mesh([0.3, 0.06, 0.06]), box_mesh([0.06, 0.3, 0.06])]


def sheet():
    corners = np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0.05], [0, 0.1, 0.05]])
    return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def needle():
    return TriangleMesh(np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-6, 0]]), np.array([[0, 1, 2]]))


def measured(mesh, method, count, seed=0):
    return measure_spheres(mesh, *fit_baseline(method, mesh, count, seed), 5000, 50000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("mesh", "count"), [(BOX, 2), (CROSS, 30), (sheet(), 9), (needle(), 3), (sphere_mesh(1.0, 12), 40)]
)
def test_count_is_kept_and_spheres_are_sound(method, mesh, count):
    centers, radii = fit_baseline(method, mesh, count)
    assert centers.shape == (count, 3)
    assert radii.shape == (count,)
    assert np.isfinite(centers).all()
    assert (radii > 0.0).all()


def test_one_sphere_on_a_sphere_is_that_sphere():
    mesh = sphere_mesh(0.1).transformed(make_transform(translation=[1, 2, 3]))
    for fit, tolerance in ((fit_vssa, 0.002), (fit_amaa, 0.003), (fit_packing, 0.01)):
        centers, radii = fit(mesh, 1)
        np.testing.assert_allclose(centers, [[1, 2, 3]], atol=tolerance)
        np.testing.assert_allclose(radii, [0.1], atol=tolerance)


@pytest.mark.parametrize("mesh", [BOX, CROSS], ids=["box", "cross"])
@pytest.mark.parametrize("method", ["vssa", "amaa"])
def test_surface_is_covered(method, mesh):
    centers, radii = fit_baseline(method, mesh, 12)
    rng = np.random.default_rng(99)
    for part in [mesh] if isinstance(mesh, TriangleMesh) else mesh:
        points, _ = sample_surface(part, 20000, rng)
        # Other points than the fit saw: what shows between those is a sliver.
        gaps = nearest_gaps(np.concatenate([points, part.vertices]), centers, radii)
        assert gaps.max() < 0.002
        assert np.mean(gaps > 0.0) < 0.005
    assert measure_spheres(mesh, centers, radii).inside > 0.999


def test_box_by_one_sphere_is_nearly_its_smallest_enclosing_sphere():
    # A sphere over the whole box has least outside volume where it is smallest: around the box's centre.
    half = 0.5 * float(np.linalg.norm(BOX.extents))
    for fit in (fit_vssa, fit_amaa):
        centers, radii = fit(BOX, 1)
        assert half <= radii[0] * (1.0 + 1e-9) < 1.05 * half
        assert np.linalg.norm(centers[0]) < 0.1 * half


def test_lloyd_iterations_beat_plain_clusters():
    rng = np.random.default_rng(0)
    points = np.concatenate([sample_surface(part, 5000, rng)[0] for part in CROSS])
    clusters = measure_spheres(CROSS, *spherize_cloud(points, 20), 5000, 50000)
    assert measured(CROSS, "vssa", 20).outside < 0.8 * clusters.outside


@pytest.mark.parametrize("method", ["vssa", "amaa"])
def test_more_spheres_leave_less_outside(method):
    few, many = measured(BOX, method, 4), measured(BOX, method, 30)
    assert many.outside < 0.5 * few.outside
    assert many.d_avg < 0.6 * few.d_avg


def test_packing_is_greedy_and_stays_inside():
    centers, radii = fit_packing(BOX, 12)
    assert radii[0] == radii.max() == pytest.approx(0.05, rel=0.08)
    assert measure_spheres(BOX, centers, radii).outside < 0.002
    first_centers, first_radii = fit_packing(BOX, 5)
    np.testing.assert_array_equal(first_centers, centers[:5])
    np.testing.assert_array_equal(first_radii, radii[:5])
    shares = [measure_spheres(BOX, centers[:n], radii[:n]).inside for n in (3, 6, 12)]
    gains = np.diff([0.0, *shares]) / [3, 3, 6]
    assert gains[0] > gains[1] > gains[2] > 0.0


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_spheres_at_any_scale(method):
    reference = fit_baseline(method, BOX, 6, seed=4)
    again = fit_baseline(method, BOX, 6, seed=4)
    for first, second in zip(reference, again, strict=True):
        np.testing.assert_array_equal(first, second)
    # Powers of two keep every digit.
    large = TriangleMesh(BOX.vertices * 1024.0, BOX.faces)
    centers, radii = fit_baseline(method, large, 6, seed=4)
    np.testing.assert_allclose(centers / 1024.0, reference[0], atol=1e-12)
    np.testing.assert_allclose(radii / 1024.0, reference[1], atol=1e-12)
    if method != "packing":
        assert not np.array_equal(fit_baseline(method, BOX, 6, seed=5)[0], reference[0])


@pytest.mark.parametrize("method", METHODS)
def test_open_and_inverted_meshes_have_an_inside(method):
    opened = TriangleMesh(BOX.vertices, BOX.faces[1:])
    inverted = TriangleMesh(BOX.vertices, BOX.faces[:, ::-1])
    reference = measured(BOX, method, 8)
    for mesh in (opened, inverted):
        metrics = measure_spheres(BOX, *fit_baseline(method, mesh, 8), 5000, 50000)
        assert metrics.inside > 0.9 * reference.inside
        assert metrics.outside < 1.2 * reference.outside + 0.02


def test_outside_volume_of_spheres_against_a_box():
    solid = make_solid(BOX, np.random.default_rng(0))
    scale = solid.diagonal
    whole = 4.0 / 3.0 * np.pi * 0.1**3

    def outside(x, y, z, radius=0.1):
        return outside_volume(*solid.grid, x, y, z, radius)

    assert outside(0.0, 0.0, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert outside(2.0, 0.0, 0.0) == pytest.approx(whole, rel=0.02)
    assert outside(0.15 / scale, 0.0, 0.0) == pytest.approx(0.5 * whole, rel=0.05)
    assert outside(0.0, 0.0, 0.05 / scale) == pytest.approx(0.5 * whole, rel=0.05)
    box = BOX.volume / scale**3
    assert outside(0.0, 0.0, 0.0, 0.6) == pytest.approx(4.0 / 3.0 * np.pi * 0.6**3 - box, rel=0.01)


def test_fit_spheres_reaches_the_baselines():
    result = fit_spheres(BOX, SphereFitConfig(count=4, method="packing"), seed=2)
    centers, radii = fit_packing(BOX, 4, seed=2)
    np.testing.assert_array_equal(result.centers, centers)
    np.testing.assert_array_equal(result.radii, radii)


@pytest.mark.parametrize("method", METHODS)
def test_bad_input(method):
    point = TriangleMesh(np.zeros((3, 3)), np.array([[0, 1, 2]]))
    for mesh, count, name in ((BOX, 0, "count"), (BOX, -3, "count"), ([], 3, "meshes"), (point, 3, "mesh")):
        with pytest.raises(InvalidInputError) as caught:
            fit_baseline(method, mesh, count)
        assert caught.value.name == name
    with pytest.raises(InvalidInputError, match="vssa, amaa, packing"):
        fit_baseline("octree", BOX, 3)
