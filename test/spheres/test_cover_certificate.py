"""The proof of cover against brute force, on closed, open, flat and broken meshes."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.spheres.cover.certificate import CoverProof, CoverStatus, certify_cover
from morphit_ros.spheres.cover.openings import _turns
from morphit_ros.spheres.metrics import nearest_gaps

BOX = box_mesh([0.3, 0.2, 0.1])


def sheet():
    corners = np.array([[0, 0, 0], [0.2, 0, 0], [0.2, 0.1, 0], [0, 0.1, 0.0]])
    return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


def open_box():
    """A box without its two top triangles."""
    normals = BOX.face_normals
    return TriangleMesh(BOX.vertices, BOX.faces[normals[:, 2] < 0.9])


def torus(rings=24, sides=12):
    u, v = np.meshgrid(np.arange(rings) * 2 * np.pi / rings, np.arange(sides) * 2 * np.pi / sides, indexing="ij")
    radius = 0.1 + 0.03 * np.cos(v)
    vertices = np.stack([radius * np.cos(u), radius * np.sin(u), 0.03 * np.sin(v)], axis=-1).reshape(-1, 3)
    index = np.arange(rings * sides).reshape(rings, sides)
    a, b = index, np.roll(index, -1, axis=0)
    c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
    faces = np.concatenate([np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)])
    return TriangleMesh(vertices, faces)


SHAPES = {
    "box": [BOX],
    "torus": [torus()],
    "sheet": [sheet()],
    "open box": [open_box()],
    "two meshes": [BOX, sphere_mesh(0.08, 16).transformed(make_transform(translation=[0.15, 0, 0]))],
    "inverted": [TriangleMesh(BOX.vertices, BOX.faces[:, ::-1])],
}


def shape_points(meshes, count, rng):
    """Dense points of the surface and of the inside."""
    groups = []
    for mesh in meshes:
        groups += [mesh.vertices, sample_surface(mesh, count, rng)[0]]
        points = rng.uniform(mesh.bounds[0], mesh.bounds[1], (count, 3))
        # Where the winding number is one half but for rounding, either answer is right.
        groups.append(points[np.abs(InsideTest(mesh).winding_numbers(points)) > 0.512])
    return np.concatenate(groups)


def random_spheres(points, count, rng):
    """Spheres that just about cover the points: each grows to what is nearest to it."""
    centers = points[rng.choice(len(points), count)] + rng.normal(0.0, 0.005, (count, 3))
    distances = np.linalg.norm(points[:, None] - centers, axis=2)
    owners = distances.argmin(axis=1)
    radii = np.array([distances[owners == k, k].max(initial=0.01) for k in range(count)])
    return centers, radii


@pytest.mark.parametrize("name", SHAPES)
def test_verdicts_agree_with_dense_samples(name):
    meshes, rng = SHAPES[name], np.random.default_rng(3)
    points = shape_points(meshes, 4000, rng)
    proof = CoverProof(meshes)
    verdicts = set()
    for _ in range(12):
        centers, radii = random_spheres(points[rng.choice(len(points), 600)], int(rng.integers(1, 25)), rng)
        for factor in (0.9, 1.0, 1.02, 1.1, 1.4):
            certificate = proof.certify(centers, radii * factor, margin_steps=0)
            worst = nearest_gaps(points, centers, radii * factor).max()
            verdicts.add(certificate.status)
            assert not (certificate.covered and worst > 0.0)
            if certificate.status is CoverStatus.UNCOVERED:
                assert nearest_gaps(certificate.uncovered[None], centers, radii * factor)[0] > 0.0
                assert is_in_shape(meshes, certificate.uncovered)
            # A gap of the sampling's size shows that the other direction is not vacuous.
            if worst < -0.01:
                assert certificate.covered
    assert {CoverStatus.COVERED, CoverStatus.UNCOVERED} <= verdicts


def is_in_shape(meshes, point):
    inside = any(abs(InsideTest(mesh).winding_numbers(point[None])[0]) > 0.488 for mesh in meshes)
    return inside or any(np.abs(plane_distance(mesh, point)).min() < 1e-6 for mesh in meshes)


def plane_distance(mesh, point):
    return np.einsum("ij,ij->i", mesh.face_normals, point - mesh.triangles[:, 0])


def test_a_hole_inside_is_found_though_the_surface_is_covered():
    surface, _ = sample_surface(BOX, 20000, np.random.default_rng(0))
    grid = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, n) for n in (13, 9, 5)], indexing="ij"), -1).reshape(-1, 3)
    grid = grid[np.abs(grid).max(axis=1) == 0.5] * BOX.extents
    radii = np.full(len(grid), 0.03)
    assert nearest_gaps(surface, grid, radii).max() < 0.0
    certificate = certify_cover(BOX, grid, radii)
    assert certificate.status is CoverStatus.UNCOVERED
    assert InsideTest(BOX).contains(certificate.uncovered[None])[0]
    filled = np.concatenate([grid, [[x, 0, 0] for x in (-0.08, 0.0, 0.08)]])
    assert certify_cover(BOX, filled, np.concatenate([radii, np.full(3, 0.1)])).covered


def test_a_needed_sphere_made_smaller_flips_the_verdict():
    centers = np.array([[x, y, 0] for x in (-0.1, 0.0, 0.1) for y in (-0.05, 0.05)])
    radii = np.full(6, 1.0) * np.sqrt(3) * 0.05 * (1.0 + 1e-4)
    assert certify_cover(BOX, centers, radii).covered
    for sphere in range(6):
        smaller = radii.copy()
        smaller[sphere] *= 0.995
        assert certify_cover(BOX, centers, smaller).status is CoverStatus.UNCOVERED


def test_margin_holds_and_is_sharp():
    radius = np.linalg.norm(BOX.extents) / 2
    certificate = certify_cover(BOX, [[0, 0, 0]], [radius + 0.01], margin_steps=20)
    assert certificate.margin == pytest.approx(0.01, abs=3e-6)
    assert certificate.margin <= 0.01
    centers = np.array([[x, y, 0] for x in (-0.1, 0.0, 0.1) for y in (-0.05, 0.05)])
    certificate = certify_cover(BOX, centers, np.full(6, 0.095))
    assert certify_cover(BOX, centers, np.full(6, 0.095) - certificate.margin).covered
    assert not certify_cover(BOX, centers, np.full(6, 0.095) - certificate.margin - 1e-5).covered


@pytest.mark.parametrize("excess", [0.0, 1e-9])
def test_a_cover_by_a_hair_is_not_proven(excess):
    """Within rounding of touching, covered or not: nothing is claimed."""
    radius = np.linalg.norm(BOX.extents) / 2 + excess
    certificate = certify_cover(BOX, [[0, 0, 0]], [radius])
    assert not certificate.covered
    assert certificate.uncovered is None


def test_equal_nested_and_touching_spheres_do_not_confuse_it():
    radius = np.linalg.norm(BOX.extents) / 2 + 0.001
    centers = np.array([[0, 0, 0], [0, 0, 0], [1e-13, 0, 0], [0.01, 0, 0], [1.0, 0, 0], [2 * radius, 0, 0]])
    radii = np.array([radius, radius, radius, 0.05, 0.1, radius])
    assert certify_cover(BOX, centers, radii).covered
    radii[:3] -= 0.002
    assert certify_cover(BOX, centers, radii).status is CoverStatus.UNCOVERED


def test_sheet_is_covered_by_flat_rows_and_has_no_inside():
    centers = np.array([[x, y, 0.0] for x in (0.025, 0.075, 0.125, 0.175) for y in (0.025, 0.075)])
    radius = 0.025 * np.sqrt(2)
    assert certify_cover(sheet(), centers, np.full(8, radius + 1e-5)).covered
    assert certify_cover(sheet(), centers, np.full(8, radius - 1e-5)).status is CoverStatus.UNCOVERED


def test_opening_of_a_box_must_be_covered_up_to_where_the_winding_number_is_one_half():
    mesh = open_box()
    floor = np.array([[x, y, -0.05] for x in np.linspace(-0.15, 0.15, 13) for y in np.linspace(-0.1, 0.1, 9)])
    rim = floor[(np.abs(floor[:, 0]) > 0.149) | (np.abs(floor[:, 1]) > 0.099)]
    shell = np.concatenate([floor, *(rim + np.array([0, 0, height]) for height in (0.03, 0.06, 0.1))])
    radii = np.full(len(shell), 0.026)
    surface, _ = sample_surface(mesh, 20000, np.random.default_rng(0))
    assert nearest_gaps(surface, shell, radii).max() < 0.0
    certificate = certify_cover(mesh, shell, radii)
    assert certificate.status is CoverStatus.UNCOVERED
    assert InsideTest(mesh).winding_numbers(certificate.uncovered[None])[0] > 0.48
    assert certify_cover(mesh, [[0, 0, 0]], [0.2]).covered


def test_rigid_motion_and_scale_change_nothing():
    centers = np.array([[x, y, 0] for x in (-0.1, 0.0, 0.1) for y in (-0.05, 0.05)])
    radii = np.full(6, 0.095)
    margin = certify_cover(BOX, centers, radii).margin
    transform = make_transform(matrix_from_rpy([0.3, -1.0, 2.0]), [5.0, -3.0, 1.0])
    moved = centers @ transform[:3, :3].T + transform[:3, 3]
    assert certify_cover(BOX.transformed(transform), moved, radii).margin == pytest.approx(margin, abs=2e-6)
    assert certify_cover(BOX.scaled(1000.0), centers * 1000.0, radii * 1000.0).margin == pytest.approx(
        1000.0 * margin, rel=1e-3
    )


def test_pieces_apart_must_all_be_covered():
    far = BOX.transformed(make_transform(translation=[5, 0, 0]))
    assert certify_cover([BOX, far], [[0, 0, 0], [5, 0, 0]], [0.2, 0.2]).covered
    assert certify_cover([BOX, far], [[0, 0, 0], [4, 0, 0]], [0.2, 0.2]).status is CoverStatus.UNCOVERED


def test_slivers_and_faces_without_area_are_covered_like_lines():
    line = np.array([[0, 0, 0], [0.1, 0, 0], [0.2, 0, 0], [0.1, 1e-12, 0]])
    mesh = TriangleMesh(line, np.array([[0, 1, 2], [0, 2, 3], [1, 1, 1]]))
    assert certify_cover(mesh, [[0.05, 0, 0], [0.15, 0, 0]], [0.051, 0.051]).covered
    assert certify_cover(mesh, [[0.05, 0, 0], [0.15, 0, 0]], [0.049, 0.049]).status is CoverStatus.UNCOVERED


def test_round_mesh_of_many_faces():
    mesh = cylinder_mesh(0.05, 0.3, segments=200)
    centers = np.array([[0, 0, z] for z in np.linspace(-0.13, 0.13, 7)])
    assert certify_cover(mesh, centers, np.full(7, 0.06)).covered
    assert certify_cover(mesh, centers, np.full(7, 0.053)).status is CoverStatus.UNCOVERED


def test_bad_input():
    with pytest.raises(InvalidInputError, match="meshes"):
        certify_cover([], [[0, 0, 0]], [1.0])
    for centers, radii in (([[0, 0, np.nan]], [1.0]), ([[0, 0, 0]], [0.0]), ([[0, 0]], [1.0]), (np.empty((0, 3)), [])):
        with pytest.raises(InvalidInputError):
            certify_cover(BOX, centers, radii)


def test_hole_in_the_middle_of_a_face_whose_edges_are_covered():
    corners = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.1, 0.25, 0.1]])
    mesh = TriangleMesh(corners, np.array([[0, 1, 2]]))
    shares = np.linspace(0.0, 1.0, 20)[:-1, None]
    centers = np.concatenate([corners[i] * (1 - shares) + corners[(i + 1) % 3] * shares for i in range(3)])
    radii = np.full(len(centers), 0.03)
    certificate = certify_cover(mesh, centers, radii)
    assert certificate.status is CoverStatus.UNCOVERED
    assert np.abs(plane_distance(mesh, certificate.uncovered)).max() < 1e-9
    assert certify_cover(mesh, [*centers, corners.mean(axis=0)], [*radii, 0.19]).covered


def test_winding_numbers_of_soups_equal_the_sum_of_solid_angles():
    rng = np.random.default_rng(3)
    triangles, points = rng.normal(size=(300, 3, 3)), rng.normal(size=(700, 3))
    # Coherent triangles too: whole turns add up.
    triangles = np.concatenate([triangles, np.repeat(sphere_mesh(1.5, 8).triangles, 3, axis=0)])
    a, b, c = (triangles[None, :, i] - points[:, None] for i in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    cosine = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
    expected = np.arctan2((a * np.cross(b, c)).sum(2), cosine).sum(1) / (2.0 * np.pi)
    assert np.ptp(expected) > 2.0
    np.testing.assert_allclose(_turns(points, triangles), expected, atol=1e-12)
