"""Inside tests on closed, open, inverted and degenerate meshes."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.winding_number import InsideTest


def points_in_cube(half: float, count: int = 4000) -> np.ndarray:
    return np.random.default_rng(1).uniform(-half, half, (count, 3))


def direct_winding_numbers(mesh: TriangleMesh, points: np.ndarray) -> np.ndarray:
    """The definition: solid angles of all triangles, summed."""
    corners = mesh.triangles[None] - points[:, None, None]
    a, b, c = corners[:, :, 0], corners[:, :, 1], corners[:, :, 2]
    la, lb, lc = (np.linalg.norm(edge, axis=2) for edge in (a, b, c))
    determinant = np.einsum("pti,pti->pt", a, np.cross(b, c))
    denominator = la * lb * lc + (a * b).sum(2) * lc + (b * c).sum(2) * la + (c * a).sum(2) * lb
    return (2.0 * np.arctan2(determinant, denominator)).sum(axis=1) / (4.0 * np.pi)


@pytest.mark.parametrize(
    ("mesh", "inside"),
    [
        (box_mesh([1, 1.5, 0.5]), lambda p: (np.abs(p) < [0.5, 0.75, 0.25]).all(axis=1)),
        (cylinder_mesh(0.6, 1.0, 96), lambda p: (np.hypot(p[:, 0], p[:, 1]) < 0.6) & (np.abs(p[:, 2]) < 0.5)),
        (sphere_mesh(0.8, 96), lambda p: np.linalg.norm(p, axis=1) < 0.8),
        (capsule_mesh(0.4, 0.8, 96), lambda p: np.linalg.norm(p - np.clip(p, [0, 0, -0.4], [0, 0, 0.4]), axis=1) < 0.4),
    ],
)
def test_primitives(mesh, inside):
    points = points_in_cube(1.0)
    assert (InsideTest(mesh).contains(points) != inside(points)).mean() < 0.003


def test_tree_agrees_with_the_definition_on_a_soup_with_holes():
    rng = np.random.default_rng(0)
    mesh = sphere_mesh(1.0, 40)
    holed = TriangleMesh(mesh.vertices, mesh.faces[rng.random(len(mesh.faces)) > 0.2])
    points = points_in_cube(1.5, 500)
    error = InsideTest(holed).winding_numbers(points) - direct_winding_numbers(holed, points)
    assert np.abs(error).max() < 0.02


def test_inside_survives_holes_inversion_and_overlap():
    closed = sphere_mesh(1.0, 40)
    points = points_in_cube(1.2)
    points = points[np.abs(np.linalg.norm(points, axis=1) - 1.0) > 0.2]
    expected = np.linalg.norm(points, axis=1) < 1.0
    holed = TriangleMesh(closed.vertices, closed.faces[40:])
    inverted = TriangleMesh(closed.vertices, closed.faces[:, ::-1])
    doubled = concatenate_meshes([closed, closed])
    for mesh in (closed, holed, inverted, doubled):
        np.testing.assert_array_equal(InsideTest(mesh).contains(points), expected)


def test_sheet_and_degenerate_triangles_have_no_inside():
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.0]])
    sheet = TriangleMesh(square, np.array([[0, 1, 2], [0, 2, 3]]))
    needle = TriangleMesh(square, np.array([[0, 0, 1]]))
    assert not InsideTest(sheet).contains(points_in_cube(1.0)).any()
    assert not InsideTest(needle).contains(points_in_cube(1.0)).any()


def test_empty_and_misshapen_points():
    test = InsideTest(box_mesh([1, 1, 1]))
    assert test.contains(np.empty((0, 3))).shape == (0,)
    with pytest.raises(InvalidInputError):
        test.contains(np.zeros(3))


def test_primitives_refuse_bad_dimensions():
    for call in (
        lambda: box_mesh([1, 0, 1]),
        lambda: box_mesh([1, 1]),
        lambda: cylinder_mesh(-1, 1),
        lambda: sphere_mesh(float("nan")),
        lambda: capsule_mesh(1, -1),
    ):
        with pytest.raises(InvalidInputError):
            call()
