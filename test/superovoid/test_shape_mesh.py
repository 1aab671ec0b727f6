"""Meshes: closed, on the surface, within the chord error from both sides, bounded in size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.superovoid import Superovoid
from morphit_ros.superovoid.shapes import meshing

PROPERTY = settings(max_examples=25, deadline=None, derandomize=True, database=None)
SHAPES = st.builds(
    lambda power, axes, squareness, tapering: Superovoid(tuple(10.0**power * a for a in axes), squareness, tapering),
    st.floats(-6.0, 3.0),
    st.tuples(st.floats(0.1, 1.0), st.floats(0.1, 1.0), st.floats(0.1, 1.0)),
    st.tuples(st.floats(0.1, 1.9), st.floats(0.1, 1.9)),
    st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)),
)
ERRORS = st.floats(-2.5, 0.3).map(lambda power: 10.0**power)


def assert_closed(mesh: TriangleMesh) -> None:
    """Every directed edge once, and once the other way round; one piece without a hole."""
    edges = np.concatenate([mesh.faces[:, [i, (i + 1) % 3]] for i in range(3)])
    directed = {tuple(edge) for edge in edges.tolist()}
    assert len(directed) == len(edges)
    assert all((b, a) in directed for a, b in directed)
    assert len(mesh.vertices) - len(edges) // 2 + len(mesh.faces) == 2
    assert len(np.unique(mesh.faces)) == len(mesh.vertices)


@PROPERTY
@given(SHAPES, ERRORS)
def test_closed_and_on_the_surface(shape: Superovoid, error: float) -> None:
    mesh = shape.mesh(error * shape.size)
    assert_closed(mesh)
    np.testing.assert_allclose(shape.levels(mesh.vertices), 1.0, atol=1e-13)
    assert 0.0 < mesh.volume < shape.bounding_box[1].prod() * 8.0
    assert (mesh.face_areas > 0.0).all()


@PROPERTY
@given(SHAPES, ERRORS, st.integers(0, 2**32 - 1))
def test_facets_stay_within_the_error(shape: Superovoid, error: float, seed: int) -> None:
    mesh = shape.mesh(error * shape.size)
    points, _ = sample_surface(mesh, 300, np.random.default_rng(seed))
    assert np.abs(shape.closest_points(points).distances).max() <= error * shape.size


@PROPERTY
@given(SHAPES, ERRORS, st.integers(0, 2**32 - 1))
def test_the_surface_stays_within_the_error_of_the_facets(shape: Superovoid, error: float, seed: int) -> None:
    convex = Superovoid(shape.semi_axes, shape.squareness)
    mesh = convex.mesh(error * convex.size)
    rng = np.random.default_rng(seed)
    points = convex.surface_points(rng.uniform(-np.pi, np.pi, 100), rng.uniform(-0.5 * np.pi, 0.5 * np.pi, 100))
    # Corners that no line of the mesh meets may be cut off by a little more than facets lie below the surface.
    assert distances_to_mesh(points, mesh.triangles).max() <= 1.1 * error * convex.size


def distances_to_mesh(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Exact distances (P,) of points from the nearest of triangles (F, 3, 3)."""
    a, edges = triangles[:, 0], triangles[:, 1:] - triangles[:, :1]
    normals = np.cross(edges[:, 0], edges[:, 1])
    units = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    result = np.empty(len(points))
    for i, point in enumerate(points):
        best = np.full(len(triangles), np.inf)
        inside = np.ones(len(triangles), dtype=bool)
        for corner in range(3):
            start, way = triangles[:, corner], triangles[:, (corner + 1) % 3] - triangles[:, corner]
            share = np.einsum("ij,ij->i", point - start, way) / np.einsum("ij,ij->i", way, way)
            foot = start + np.clip(share, 0.0, 1.0)[:, None] * way
            best = np.minimum(best, np.linalg.norm(point - foot, axis=1))
            inside &= np.einsum("ij,ij->i", np.cross(way, point - start), units) >= 0.0
        offsets = np.abs(np.einsum("ij,ij->i", point - a, units))
        result[i] = np.where(inside, np.minimum(offsets, best), best).min()
    return result


def test_a_coarse_mesh_is_an_octahedron_and_a_fine_one_is_not_wasteful() -> None:
    shape = Superovoid.sphere(1.0)
    assert len(shape.mesh(10.0).faces) == 8
    counts = [len(shape.mesh(error).faces) for error in (1e-2, 1e-3, 1e-4)]
    # Quadratic convergence: ten times the faces for a tenth of the error.
    assert 7.0 < counts[1] / counts[0] < 14.0
    assert 7.0 < counts[2] / counts[1] < 14.0
    # A square of side h·√2 on the unit sphere has the sagitta h²/2: 2π/h² quads at best.
    assert counts[1] < 3.0 * 4.0 * np.pi / (2.0 * 2.0 * 1e-3) * 2.0


def test_edges_of_sharp_shapes_are_lines_of_the_mesh() -> None:
    mesh = Superovoid((1.0, 1.0, 1.0), (1.9, 1.9)).mesh(0.01)
    assert (mesh.vertices[:, 2] == 0.0).any() and (mesh.vertices[:, 0] == 0.0).any()
    assert boundary_edges(mesh.faces).size == 0


@pytest.mark.parametrize("error", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e-9])
def test_errors_out_of_reach_are_refused(error: float) -> None:
    with pytest.raises(InvalidInputError, match="chord_error"):
        Superovoid((1.0, 2.0, 3.0), (0.5, 1.2), (0.1, 0.2)).mesh(error)


def test_the_face_count_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meshing, "MOST_FACES", 1000)
    assert len(Superovoid.sphere(1.0).mesh(0.02).faces) <= 1000
    with pytest.raises(InvalidInputError, match="1000 faces"):
        Superovoid.sphere(1.0).mesh(1e-3)
