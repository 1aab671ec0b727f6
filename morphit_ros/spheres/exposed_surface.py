"""Points on the surface of a shape that several overlapping meshes make up together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike, as_meshes
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface, sample_surface_evenly
from morphit_ros.geometry.orientation import consistent_faces
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest

# How far outside its face a point is tested, relative to the diagonal of the shape: on the common face of two boxes
# side by side it is then inside the other one, and on two equal boxes outside of both.
_OFFSET = 1e-6
_MAX_BATCHES = 32


def as_shape(mesh: MeshesLike) -> tuple[TriangleMesh, ...]:
    """The meshes that make up a shape, with faces turned over that disagree with their neighbours on the outside.

    A mesh some of whose faces are flipped encloses next to nothing by its winding number. Soups of triangles that
    share no edges stay as they are.

    Raises:
        InvalidInputError, ResourceNotFoundError: as of `as_meshes`.
    """
    return tuple(_agreeing(part) for part in as_meshes(mesh))


def _agreeing(mesh: TriangleMesh) -> TriangleMesh:
    faces = consistent_faces(mesh.faces, mesh.face_areas)
    return mesh if faces is mesh.faces else TriangleMesh(mesh.vertices, faces)


def shape_bounds(meshes: Sequence[TriangleMesh]) -> Array:
    """(2, 3): lower and upper corner of the axis-aligned box around all meshes [m]."""
    corners = np.stack([mesh.bounds for mesh in meshes])
    return np.stack([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])


def sample_exposed_surface(
    mesh: MeshesLike, count: int, rng: np.random.Generator, even: bool = False
) -> tuple[Array, Array]:
    """Points drawn uniformly by area from the surface of the union of meshes, with their outward unit normals.

    What one mesh buries in another is not surface of the union. The normals of an inverted mesh are turned round.

    Args:
        mesh: one mesh, or several in one frame.
        count: number of points.
        rng: source of randomness.
        even: whether neighbouring points keep their distance: better to optimise with, but no independent draws,
            which error bars assume.

    Returns:
        points (count, 3) [m] and normals (count, 3). Should nothing be exposed, as may be with open meshes, the
        points are from all of the surface.

    Raises:
        InvalidInputError: no mesh, a count below one, or no area.
    """
    meshes = as_meshes(mesh)
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    areas = np.array([part.area for part in meshes])
    if not areas.sum() > 0.0:
        raise InvalidInputError("mesh", "zero area", "a mesh with area")
    if len(meshes) == 1:
        return _oriented_samples(meshes[0], count, rng, even)
    offset = _OFFSET * float(np.linalg.norm(np.diff(shape_bounds(meshes), axis=0)))
    tests = [InsideTest(part) for part in meshes]
    points, normals, kept = np.empty((0, 3)), np.empty((0, 3)), 0
    for _ in range(_MAX_BATCHES):
        batch = [
            (*_oriented_samples(meshes[part], drawn, rng, even), np.full(drawn, part))
            for part, drawn in enumerate(rng.multinomial(2 * count, areas / areas.sum()))
            if drawn
        ]
        # Shuffled, so that the first `count` of them come from all meshes.
        order = rng.permutation(2 * count)
        drawn_points, drawn_normals, owners = (np.concatenate(column)[order] for column in zip(*batch, strict=True))
        exposed = ~_buried(drawn_points + offset * drawn_normals, owners, tests)
        points = np.concatenate([points, drawn_points[exposed]])
        normals = np.concatenate([normals, drawn_normals[exposed]])
        kept += int(np.count_nonzero(exposed))
        if kept >= count:
            return points[:count], normals[:count]
    if kept == 0:
        return drawn_points[:count], drawn_normals[:count]
    # A sliver of surface is exposed: its few points stand for it several times.
    again = rng.integers(0, kept, count)
    return points[again], normals[again]


def _oriented_samples(mesh: TriangleMesh, count: int, rng: np.random.Generator, even: bool) -> tuple[Array, Array]:
    points, normals = (sample_surface_evenly if even else sample_surface)(mesh, count, rng)
    return points, -normals if mesh.volume < 0.0 else normals


def _buried(points: Array, owners: NDArray[np.int64], tests: Sequence[InsideTest]) -> NDArray[np.bool_]:
    """Whether each point is inside a mesh other than its owner."""
    buried = np.zeros(len(points), dtype=bool)
    for part, test in enumerate(tests):
        others = np.flatnonzero((owners != part) & ~buried)
        if len(others):
            buried[others] = test.contains(points[others])
    return buried
