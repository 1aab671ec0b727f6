"""Inside tests on closed, open, inverted and degenerate meshes."""

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, filling_faces
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import make_transform
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


def soup(mesh: TriangleMesh) -> TriangleMesh:
    """The same triangles without common vertices, each moved a little so that they cannot be welded."""
    corners = mesh.triangles + np.random.default_rng(2).normal(0.0, 1e-9, (len(mesh.faces), 1, 3))
    return TriangleMesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def capless(mesh: TriangleMesh, height: float) -> TriangleMesh:
    return TriangleMesh(mesh.vertices, mesh.faces[mesh.triangles[:, :, 2].mean(axis=1) < height])


BALL = sphere_mesh(1.0, 40)
FLIPPED = BALL.faces.copy()
FLIPPED[::7] = FLIPPED[::7, ::-1]


@pytest.mark.parametrize(
    "mesh",
    [
        BALL,
        capless(BALL, 0.3),
        capless(capless(cylinder_mesh(0.5, 2.0, 60), 0.9).scaled((1, 1, -1)), 0.9),
        soup(BALL),
        TriangleMesh(BALL.vertices, FLIPPED),
        concatenate_meshes([BALL, capless(box_mesh([1.5, 1.5, 1.5]), 0.7), BALL]),
        TriangleMesh(BALL.triangles.reshape(-1, 3), np.arange(3 * len(BALL.faces)).reshape(-1, 3)),
        TriangleMesh(np.eye(3), np.array([[0, 1, 2]])),
        concatenate_meshes([TriangleMesh(np.eye(3), np.array([[0, 1, 2]]))] * 3),
    ],
)
def test_every_way_of_counting_agrees_with_the_definition(mesh):
    points = points_in_cube(1.5, 500)
    error = InsideTest(mesh).winding_numbers(points) - direct_winding_numbers(mesh, points)
    assert np.abs(error).max() < 0.02


def test_a_closed_mesh_has_exact_whole_numbers_also_where_its_faces_share_no_vertices():
    mesh = concatenate_meshes([BALL, BALL, box_mesh([0.5, 0.5, 0.5])])
    loose = TriangleMesh(mesh.triangles.reshape(-1, 3), np.arange(3 * len(mesh.faces)).reshape(-1, 3))
    for each in (mesh, loose):
        numbers = InsideTest(each).winding_numbers(points_in_cube(1.5))
        np.testing.assert_array_equal(np.unique(numbers), [0.0, 2.0, 3.0])


def test_points_level_with_vertices_and_edges_are_counted_once():
    # A grid that meets every vertex and edge direction of a machined part.
    steps = np.linspace(-1.0, 1.0, 21)
    grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 3)
    grid = grid[~np.isclose(np.abs(grid).max(axis=1), 0.5)]
    parts = [box_mesh([0.5, 1, 1]).transformed(make_transform(translation=(x, 0, 0))) for x in (-0.25, 0.25)]
    np.testing.assert_array_equal(
        InsideTest(concatenate_meshes(parts)).contains(grid[np.abs(grid[:, 0]) > 1e-9]),
        (np.abs(grid) < 0.5).all(axis=1)[np.abs(grid[:, 0]) > 1e-9],
    )


def test_the_union_of_meshes_is_not_their_sum():
    inverted = TriangleMesh(BALL.vertices, BALL.faces[:, ::-1])
    shifted = inverted.transformed(make_transform(translation=(0.5, 0, 0)))
    points = points_in_cube(2.0)
    either = InsideTest(BALL).contains(points) | InsideTest(shifted).contains(points)
    np.testing.assert_array_equal(InsideTest([BALL, shifted]).contains(points), either)
    np.testing.assert_array_equal(np.abs(InsideTest([BALL, shifted]).winding_numbers(points)) > 0.5, either)
    assert (InsideTest(concatenate_meshes([BALL, shifted])).contains(points) != either).any(), "where they cancel"
    with pytest.raises(InvalidInputError, match="meshes"):
        InsideTest([])


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("mesh", [BALL, capless(BALL, 0.8), soup(sphere_mesh(1.0, 16))])
def test_the_answer_does_not_depend_on_size_and_place(mesh, size):
    points = points_in_cube(1.2)
    points = points[np.abs(np.linalg.norm(points, axis=1) - 1.0) > 0.1]
    offset = np.array([7.0, -5.0, 3.0]) * size
    moved = TriangleMesh(mesh.vertices * size + offset, mesh.faces)
    np.testing.assert_array_equal(
        InsideTest(moved).contains(points * size + offset), InsideTest(mesh).contains(points), str(size)
    )


def test_long_thin_triangles_and_points_outside_the_box():
    needles = cylinder_mesh(0.5, 2.0, 3000)
    points = points_in_cube(1.5, 2000)
    inside = (np.hypot(points[:, 0], points[:, 1]) < 0.5) & (np.abs(points[:, 2]) < 1.0)
    assert (InsideTest(needles).contains(points) != inside).sum() <= 2
    # Twice the same sheet has a winding number above one half close to it, but nothing can be inside of a plane.
    square = TriangleMesh(
        np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])
    )
    assert not InsideTest(concatenate_meshes([square] * 3)).contains(points).any()


def test_points_that_are_not_finite_are_outside():
    points = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [0, 0, -np.inf], [0, 0, 0]])
    for mesh in (BALL, capless(BALL, 0.3), soup(BALL)):
        np.testing.assert_array_equal(InsideTest(mesh).contains(points), [False, False, False, True])


def test_meshes_without_extent():
    point = TriangleMesh(np.full((3, 3), 5.0), np.array([[0, 1, 2]]))
    line = TriangleMesh(np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2.0]]), np.array([[0, 1, 2], [2, 1, 0]]))
    for mesh in (point, line, concatenate_meshes([point, BALL])):
        InsideTest(mesh).winding_numbers(points_in_cube(2.0, 100))
    assert not InsideTest(line).contains(np.linspace(-1, 3, 41)[:, None] * np.ones(3)).any()
    assert InsideTest([point, BALL]).contains(np.zeros((1, 3))).all()


def test_the_same_question_has_the_same_answer_on_every_run():
    points = points_in_cube(1.0)
    for mesh in (capless(BALL, 0.3), soup(BALL)):
        np.testing.assert_array_equal(
            InsideTest(mesh).winding_numbers(points), InsideTest(mesh).winding_numbers(points)
        )


def test_boundary_edges_are_what_is_left_over():
    assert len(boundary_edges(box_mesh([1, 1, 1]).faces)) == 0
    open_box = box_mesh([1, 1, 1]).faces[2:]
    edges = boundary_edges(open_box)
    assert len(edges) == 4
    np.testing.assert_array_equal(np.sort(edges[:, 0]), np.sort(edges[:, 1]))
    filling = filling_faces(edges)
    assert len(filling) == 2
    assert len(boundary_edges(np.concatenate([open_box, filling[:, ::-1]]))) == 0
    # Three fins on one edge: that edge is left over three times.
    assert len(boundary_edges(np.array([[0, 1, 2], [0, 1, 3], [0, 1, 4]]))) == 9


@pytest.mark.parametrize("seed", range(5))
def test_any_boundary_can_be_filled(seed):
    rng = np.random.default_rng(seed)
    faces = rng.integers(0, 12, (40, 3))
    filling = filling_faces(boundary_edges(faces))
    assert len(boundary_edges(np.concatenate([faces, filling[:, ::-1]]))) == 0


@pytest.mark.parametrize("points", [1, 3, 500, 20000])
@pytest.mark.parametrize("mesh", [BALL, cylinder_mesh(0.05, 3.0, 100), box_mesh([1.0, 0.2, 2.0])])
def test_every_question_gets_the_same_answer(mesh, points):
    # The first questions are answered by a pass over the faces, later ones by their list.
    queries = np.random.default_rng(points).uniform(-1.2, 1.2, (points, 3))
    test = InsideTest(mesh)
    first, *others = (test.winding_numbers(queries) for _ in range(4))
    for other in others:
        np.testing.assert_array_equal(other, first)
