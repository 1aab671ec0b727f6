"""Solids that an arm must not touch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.geometry.triangle_tree import TriangleTree
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.links import GeometryKind

_DIMENSIONS = {
    GeometryKind.SPHERE: 1, GeometryKind.CAPSULE: 2, GeometryKind.CYLINDER: 2, GeometryKind.BOX: 3, GeometryKind.MESH: 1
}  # fmt: skip
# Triangles of a mesh: more take seconds to be sorted.
MOST_TRIANGLES = 2_000_000
# Points on a surface: so far apart [m], at most so many of one solid before those are left out that are further from an
# object than a hand reaches with its fingers at it, or lower above a table than it is known [m].
_SPACING, _MOST_POINTS, _BESIDE, _ABOVE = 0.006, 200_000, 0.3, 0.005


@dataclass(frozen=True)
class Solid:
    """A solid in the world.

    Attributes:
        name: how answers call it.
        kind: sphere, capsule, cylinder, box or mesh.
        T_world_solid: (4, 4).
        dimensions: box: full size (3,); cylinder and capsule (axis z): radius and length of the cylinder (2,);
            sphere: radius (1,); mesh: how far it is grown, 0 or more (1,) [m].
        mesh: the surface of a mesh, in its own frame; where it is closed, what is inside belongs to the solid.

    Raises:
        InvalidInputError: another kind, a pose that is none, dimensions that are not positive and finite, or a mesh
            that is missing, too large or has no area.
    """

    name: str
    kind: GeometryKind
    T_world_solid: Array
    dimensions: Array
    mesh: TriangleMesh | None = None

    def __post_init__(self) -> None:
        if self.kind not in _DIMENSIONS:
            bound = f"one of {', '.join(kind.value for kind in _DIMENSIONS)}"
            raise InvalidInputError(f"kind of '{self.name}'", self.kind.value, bound)
        size = np.asarray(self.dimensions, dtype=np.float64)
        least = -1.0 if self.kind is GeometryKind.MESH else 0.0
        if size.shape != (_DIMENSIONS[self.kind],) or not np.isfinite(size).all() or not (size > least).all():
            bound = f"{_DIMENSIONS[self.kind]} positive numbers for a {self.kind.value}"
            raise InvalidInputError(f"dimensions of '{self.name}'", size.tolist(), bound)
        if (self.mesh is not None) is not (self.kind is GeometryKind.MESH):
            raise InvalidInputError(f"mesh of '{self.name}'", self.mesh, "one for the kind mesh, none for others")
        if self.mesh is not None:
            count = len(self.mesh.faces)
            if count > MOST_TRIANGLES:
                remedy = "Simplify the mesh."
                raise InvalidInputError(f"triangles of '{self.name}'", count, f"at most {MOST_TRIANGLES}", remedy)
            if not (self.mesh.face_areas > 0.0).any():
                raise InvalidInputError(f"area of '{self.name}'", "none", "at least one triangle with an area")
        object.__setattr__(self, "T_world_solid", check_transform(self.T_world_solid, f"pose of '{self.name}'"))
        object.__setattr__(self, "dimensions", size)

    @cached_property
    def tree(self) -> tuple[TriangleTree, Array, Array]:
        """Of a mesh: triangles about the middle of its box, that middle (3,), and half of the box's size (3,) [m]."""
        assert self.mesh is not None
        triangles = self.mesh.triangles[self.mesh.face_areas > 0.0]
        low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
        middle = 0.5 * (low + high)
        # A little larger against rounding of the middle.
        return TriangleTree(triangles - middle), middle, 0.5 * (high - low) * (1.0 + 1e-12) + 1e-12

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Which points (N, 3) are inside a closed mesh; none of other solids, whose distances are signed."""
        if self._inside is None:
            return np.zeros(len(points), dtype=np.bool_)
        pose = self.T_world_solid
        return self._inside.contains((points - pose[:3, 3]) @ pose[:3, :3])

    def surface(self, segments: int = 48) -> TriangleMesh:
        """Triangles in the solid's own frame [m]; what a mesh is grown by is left out.

        Args:
            segments: sides of what is round; a multiple of 4.
        """
        size = self.dimensions.tolist()
        match self.kind:
            case GeometryKind.BOX:
                return box_mesh(size)
            case GeometryKind.CYLINDER:
                return cylinder_mesh(size[0], size[1], segments)
            case GeometryKind.CAPSULE:
                return capsule_mesh(size[0], size[1], segments)
            case GeometryKind.SPHERE:
                return sphere_mesh(size[0], segments)
            case GeometryKind.MESH:
                assert self.mesh is not None
                return self.mesh

    @cached_property
    def _inside(self) -> InsideTest | None:
        if self.mesh is None or len(boundary_edges(welded_faces(self.mesh.vertices, self.mesh.faces))):
            return None
        return InsideTest(self.mesh)


def points_beside(solids: Iterable[Solid], points: Array, T_frame_table: Array | None) -> Array:
    """(M, 3) on the surfaces of solids, above a table and near an object: what stands there as if it had been seen [m].

    Perception leaves out what is known to stand there, and grasps and pushes are planned on points.

    Args:
        solids: all in one frame.
        points: (N, 3) of the object, in that frame [m].
        T_frame_table: (4, 4) of the table in that frame, z up; None: all of the solids counts.
    """
    rng, found = np.random.default_rng(0), [np.empty((0, 3))]
    low, high = points.min(axis=0) - _BESIDE, points.max(axis=0) + _BESIDE
    for solid in solids:
        mesh = solid.surface()
        count = int(np.clip(mesh.area / _SPACING**2, 1, _MOST_POINTS))
        pose = solid.T_world_solid
        there = sample_surface_evenly(mesh, count, rng)[0] @ pose[:3, :3].T + pose[:3, 3]
        there = there[((there >= low) & (there <= high)).all(axis=1)]
        if T_frame_table is not None:
            there = there[(there - T_frame_table[:3, 3]) @ T_frame_table[:3, 2] > _ABOVE]
        found.append(there)
    return np.concatenate(found)
