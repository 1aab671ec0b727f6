"""A solid given by meshes: what is inside, and the nearest points of its surface."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import TriangleTree
from morphit_ros.geometry.winding_number import InsideTest


class Solid:
    """The surface of meshes and what is inside of it.

    Inside is what has a winding number above one half in magnitude: of a closed mesh its true inside, of one with
    holes what is taken for it.

    Attributes:
        triangles: (F, 3, 3) corners of the faces that have an area [m].
        bounds: (2, 3) the box around the surface [m].
    """

    def __init__(self, meshes: Sequence[TriangleMesh]) -> None:
        """
        Args:
            meshes: in one frame; they mean their union.

        Raises:
            InvalidInputError: no mesh, or no face with an area.
        """
        if not meshes:
            raise InvalidInputError("meshes", "none", "at least one mesh")
        triangles = np.concatenate([mesh.triangles for mesh in meshes])
        areas = np.linalg.norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]), axis=1)
        self.triangles = np.ascontiguousarray(triangles[areas > 0.0])
        if len(self.triangles) == 0:
            raise InvalidInputError("meshes", "no face with an area", "a surface")
        self._tree = TriangleTree(self.triangles)
        self._inside = InsideTest(meshes)
        self.bounds = np.stack([self.triangles.min(axis=(0, 1)), self.triangles.max(axis=(0, 1))])

    @cached_property
    def vertices(self) -> Array:
        """(V, 3) corners of the faces, each once [m]."""
        return np.unique(self.triangles.reshape(-1, 3), axis=0)

    @property
    def diagonal(self) -> float:
        """Of the box [m]."""
        return float(np.linalg.norm(self.bounds[1] - self.bounds[0]))

    def feet(self, points: Array) -> Array:
        """The points (N, 3) of the surface that are nearest to points (N, 3) [m]."""
        faces, weights = self._tree.query(points)
        feet: Array = np.einsum("ij,ijk->ik", weights, self.triangles[faces])
        return feet

    def surface_distances(self, points: Array) -> Array:
        """(N,) from points (N, 3) to the surface [m], not negative."""
        distances: Array = np.linalg.norm(points - self.feet(points), axis=1)
        return distances

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which of points (N, 3) [m] are inside, (N,)."""
        return self._inside.contains(points)
