"""Generalised winding number: inside or outside also for meshes that are not watertight.

Jacobson et al. 2013. The winding number is 1 inside a closed mesh, 0 outside, and degrades gracefully near holes,
where the parity of ray hits is arbitrary. It is the sum of two parts: with its holes filled, however badly, the
mesh has a whole number, which a ray counts (`RayCrossings`); the filling's own number is a sum of solid angles
(`SolidAngleTree`) over few triangles. Only a soup of triangles without common edges is all filling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, filling_faces, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.ray_crossings import RayCrossings
from morphit_ros.geometry.solid_angles import SolidAngleTree
from morphit_ros.geometry.transforms import Array


class InsideTest:
    """Inside or outside of the union of meshes in one frame; prepares itself once, at the first question.

    Works on any triangle soup: holes, several overlapping pieces, and inverted orientation of each whole mesh.
    """

    def __init__(self, mesh: TriangleMesh | Sequence[TriangleMesh]) -> None:
        """
        Raises:
            InvalidInputError: no mesh.
        """
        meshes = [mesh] if isinstance(mesh, TriangleMesh) else list(mesh)
        if not meshes:
            raise InvalidInputError("meshes", "none", "at least one mesh")
        # Each mesh by itself: inverted pieces would cancel others in a sum.
        self._pieces = [_WindingNumber(piece) for piece in meshes]

    def winding_numbers(self, points: Array) -> Array:
        """Winding number (P,) of points (P, 3), exact to 0.02; of several meshes that of greatest magnitude.

        Raises:
            InvalidInputError: wrong shape.
        """
        queries = _checked_points(points)
        result = self._pieces[0](queries)
        for piece in self._pieces[1:]:
            numbers = piece(queries)
            result = np.where(np.abs(numbers) > np.abs(result), numbers, result)
        return result

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether each of the points (P, 3) is inside a mesh: |winding number| above one half, and within its box.

        Raises:
            InvalidInputError: wrong shape.
        """
        queries = _checked_points(points)
        inside = np.zeros(len(queries), dtype=np.bool_)
        for piece in self._pieces:
            low, high = piece.bounds
            open_ = np.flatnonzero(~inside & (queries >= low).all(axis=1) & (queries <= high).all(axis=1))
            if len(open_):
                inside[open_] = np.abs(piece(queries[open_])) > 0.5
        return inside


class _WindingNumber:
    """Of one mesh; computed in a frame in which its box has the size 1, where nothing can overflow."""

    def __init__(self, mesh: TriangleMesh) -> None:
        self._mesh = mesh
        self.bounds = mesh.bounds
        self._center = mesh.bounds.mean(axis=0)
        self._scale = 1.0 / max(float(mesh.extents.max()), 1e-300)

    @cached_property
    def _parts(self) -> tuple[RayCrossings | None, SolidAngleTree | None]:
        vertices = (self._mesh.vertices - self._center) * self._scale
        faces = welded_faces(vertices, self._mesh.faces)
        filling = filling_faces(boundary_edges(faces))
        if len(filling) == 0:
            return RayCrossings(vertices, faces), None
        if 2 * len(filling) > len(faces):
            return None, SolidAngleTree(vertices[faces])
        closed = np.concatenate([faces, filling[:, ::-1]])
        return RayCrossings(vertices, closed), SolidAngleTree(vertices[filling])

    def __call__(self, points: Array) -> Array:
        crossings, solid_angles = self._parts
        scaled = (points - self._center) * self._scale
        numbers = np.zeros(len(points)) if crossings is None else crossings.winding_numbers(scaled)
        return numbers if solid_angles is None else numbers + solid_angles.winding_numbers(scaled)


def _checked_points(points: Array) -> Array:
    queries = np.ascontiguousarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3:
        raise InvalidInputError("points", f"shape {queries.shape}", "shape (P, 3)")
    return queries
