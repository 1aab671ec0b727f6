"""Objects as spheres: cover, body, tightness and bad input."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy, transform_points
from morphit_ros.spheres import measure_spheres, spherize_cloud
from morphit_ros.spheres.clustering import spherize_mesh


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


BOX = np.array([0.2, 0.1, 0.05])
ROTATED = make_transform(matrix_from_rpy([0.4, 0.5, 0.6]), [0.3, -0.2, 1.0])


def cloud_of(mesh, count=6000, seed=0):
    return sample_surface(mesh, count, np.random.default_rng(seed))[0]


def inside_grid(size, step=0.005):
    """Points (P, 3) inside a box around the origin, a step from its faces."""
    axes = [np.arange(-side / 2.0 + step, side / 2.0 - step / 2.0, step) for side in size]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def test_many_points_are_all_covered():
    points = cloud_of(box_mesh(BOX), 40_000)
    centers, radii = spherize_cloud(points, 40)
    assert len(radii) == 40
    assert depth(points, centers, radii).max() <= 0.0


@pytest.mark.parametrize("transform", [np.eye(4), ROTATED])
def test_the_body_between_the_points_is_filled(transform):
    grid = inside_grid(BOX)
    spheres = spherize_cloud(transform_points(transform, cloud_of(box_mesh(BOX))), 40)
    assert (depth(transform_points(transform, grid), *spheres) <= 0.0).mean() > 0.97


def test_a_body_without_its_underside_is_filled_and_a_single_side_is_not():
    size = np.array([0.1, 0.1, 0.1])
    points = cloud_of(box_mesh(size))
    grid = inside_grid(size)
    open_below = points[points[:, 2] > -0.0499]
    assert (depth(grid, *spherize_cloud(open_below, 40)) <= 0.0).mean() > 0.9
    # Nobody saw how far it reaches: the spheres stay near the side that was seen.
    front = points[points[:, 0] > 0.0499]
    centers, _ = spherize_cloud(front, 40)
    assert np.abs(centers[:, 0] - 0.05).max() < 0.001


def test_free_space_beside_the_stem_of_a_t_stays_free():
    bar = transform_points(make_transform(translation=[0.0, 0.0, 0.1]), cloud_of(box_mesh([0.2, 0.04, 0.04])))
    stem = cloud_of(box_mesh([0.04, 0.04, 0.2]), seed=1)
    spheres = spherize_cloud(np.concatenate([bar, stem]), 40)
    assert depth(np.array([[0.08, 0.0, -0.05], [-0.08, 0.0, -0.05]]), *spheres).min() > 0.02


@pytest.mark.parametrize("mesh", [box_mesh(BOX), cylinder_mesh(0.03, 0.15)])
def test_the_whole_surface_and_body_of_a_mesh_is_covered_tightly(mesh):
    centers, radii = spherize_mesh(mesh, 40)
    assert len(radii) == 40
    assert depth(cloud_of(mesh, 50_000), centers, radii).max() <= 0.0
    metrics = measure_spheres(mesh, centers, radii)
    assert metrics.inside > 0.97
    # One sphere around the box would have 5.3 times its volume outside of it.
    assert metrics.outside < 1.3


def test_large_triangles_are_covered_between_their_corners():
    sheet = TriangleMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    spheres = spherize_mesh(sheet, 10)
    assert depth(cloud_of(sheet, 20_000), *spheres).max() <= 0.0


def test_meshes_keep_their_spheres_under_rigid_motion_and_scale():
    mesh = box_mesh(BOX)
    reference = measure_spheres(mesh, *spherize_mesh(mesh, 20))
    # A power of two changes no digit, so that ties are decided alike.
    scale = 1024.0
    larger = TriangleMesh(mesh.vertices * scale, mesh.faces)
    for other in (mesh.transformed(ROTATED), larger):
        metrics = measure_spheres(other, *spherize_mesh(other, 20))
        assert metrics.outside == pytest.approx(reference.outside, rel=0.2)
    centers, radii = spherize_mesh(mesh, 20)
    large_centers, large_radii = spherize_mesh(larger, 20)
    np.testing.assert_allclose(large_centers, scale * centers, atol=1e-6)
    np.testing.assert_allclose(large_radii, scale * radii, rtol=1e-9)


def test_needles_and_slivers_are_covered():
    needle = TriangleMesh([[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0]], [[0, 1, 2]])
    tube = cylinder_mesh(0.03, 0.15, 400)
    for mesh, largest in ((needle, 0.06), (tube, 0.04)):
        centers, radii = spherize_mesh(mesh, 20)
        assert depth(cloud_of(mesh, 5000), centers, radii).max() <= 0.0
        assert radii.max() < largest


def test_tiny_flat_and_bad_meshes():
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    tiny = TriangleMesh(np.array(corners) * 1e-5, [[0, 1, 2]])
    centers, radii = spherize_mesh(tiny, 5)
    assert (radii == 0.001).all()
    assert depth(tiny.vertices, centers, radii).max() <= 0.0
    with pytest.raises(InvalidInputError, match="area"):
        spherize_mesh(TriangleMesh(np.zeros((3, 3)), [[0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="count"):
        spherize_mesh(box_mesh(BOX), 0)
    with pytest.raises(InvalidInputError, match="minimum_radius"):
        spherize_mesh(box_mesh(BOX), 5, minimum_radius=np.nan)


def test_lines_and_planes_of_points():
    line = np.linspace([0.0, 0.0, 0.0], [0.3, 0.1, 0.0], 500)
    centers, radii = spherize_cloud(line, 10)
    assert depth(line, centers, radii).max() <= 0.0
    assert radii.max() < 0.03
    plane = np.random.default_rng(0).uniform(-0.1, 0.1, (3000, 3)) * [1.0, 1.0, 0.0]
    assert depth(plane, *spherize_cloud(plane, 10)).max() <= 0.0


def test_same_object_same_spheres():
    mesh, points = cylinder_mesh(0.03, 0.15), cloud_of(box_mesh(BOX), 20_000)
    for first, second in ((spherize_mesh(mesh), spherize_mesh(mesh)), (spherize_cloud(points), spherize_cloud(points))):
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])
