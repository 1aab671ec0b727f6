"""What a robot moves among: primitives, meshes and a point cloud, as arrays for compiled kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.boundary import boundary_edges, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.geometry.triangle_tree import TreeArrays, TriangleTree
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.motion.cloud import CloudArrays, CloudObstacle
from morphit_ros.robot.links import GeometryKind

_DIMENSIONS = {
    GeometryKind.SPHERE: 1, GeometryKind.CAPSULE: 2, GeometryKind.CYLINDER: 2, GeometryKind.BOX: 3, GeometryKind.MESH: 1
}  # fmt: skip
# Triangles of a mesh: more take seconds to be sorted.
MOST_TRIANGLES = 2_000_000


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

    @cached_property
    def _inside(self) -> InsideTest | None:
        if self.mesh is None or len(boundary_edges(welded_faces(self.mesh.vertices, self.mesh.faces))):
            return None
        return InsideTest(self.mesh)


class WorldArrays(NamedTuple):
    """Solids as arrays, those that are rounded boxes before cylinders.

    A sphere is a box of no size with a radius about it, a capsule one of length only: their distances are exact. A mesh
    is the box around it, within which its triangles are looked at.

    Attributes:
        boxes: how many are rounded boxes.
        rotations: (N, 3, 3), ``R_world_solid``.
        centers: (N, 3) [m].
        halves: (N, 3) half sizes [m]; of a cylinder its radius, its radius and half its length.
        radii: (N,) how far a rounded box reaches beyond its sides [m], 0 for cylinders.
        cloud: the points.
        meshes: row in `trees` of a solid that is a mesh, -1 of others.
        trees: triangles of the meshes, each about its centre.
        allowed: (P, N + 1) whether a part of the robot may touch a solid, at last the cloud.
    """

    boxes: int
    rotations: Array
    centers: Array
    halves: Array
    radii: Array
    cloud: CloudArrays
    meshes: NDArray[np.int64]
    trees: TreeArrays
    allowed: NDArray[np.bool_]


class World:
    """Solids that a robot must not touch.

    Attributes:
        solids: in the order of `arrays_for`.
        names: of the solids, and of the cloud at last.

    Args:
        solids: in the frame of the robot's root link.
        allowed: pairs of a body of the robot and a solid, or the cloud, that may touch, by name.
        cloud: points, None for none.
    """

    def __init__(
        self,
        solids: Sequence[Solid] = (),
        allowed: Collection[frozenset[str]] = (),
        cloud: CloudObstacle | None = None,
    ) -> None:
        self.solids = tuple(sorted(solids, key=lambda solid: solid.kind is GeometryKind.CYLINDER))
        self._allowed = set(allowed)
        cloud = self._cloud = cloud or CloudObstacle("points", np.zeros((0, 3)))
        self.names = (*(solid.name for solid in self.solids), cloud.name)
        count = len(self.solids)
        halves, radii = np.zeros((count, 3)), np.zeros(count)
        centers, trees, meshes = np.zeros((count, 3)), list[TriangleTree](), np.full(count, -1, dtype=np.int64)
        for row, solid in enumerate(self.solids):
            size = solid.dimensions
            match solid.kind:
                case GeometryKind.BOX:
                    halves[row] = 0.5 * size
                case GeometryKind.CYLINDER:
                    halves[row] = size[0], size[0], 0.5 * size[1]
                case GeometryKind.CAPSULE:
                    halves[row, 2], radii[row] = 0.5 * size[1], size[0]
                case GeometryKind.MESH:
                    tree, centers[row], halves[row] = solid.tree
                    meshes[row], radii[row] = len(trees), size[0]
                    trees.append(tree)
                case _:
                    radii[row] = size[0]
        poses = np.array([solid.T_world_solid for solid in self.solids]).reshape(-1, 4, 4)
        self._arrays = WorldArrays(
            sum(solid.kind is not GeometryKind.CYLINDER for solid in self.solids),
            np.ascontiguousarray(poses[:, :3, :3]),
            np.einsum("nij,nj->ni", poses[:, :3, :3], centers) + poses[:, :3, 3],
            halves,
            radii,
            cloud.arrays(),
            meshes,
            TriangleTree.arrays(trees),
            np.zeros((0, count + 1), dtype=np.bool_),
        )

    def arrays_for(self, parts: Sequence[str]) -> WorldArrays:
        """The solids for kernels, with the bodies of a robot."""
        allowed = np.zeros((len(parts), len(self.names)), dtype=np.bool_)
        for pair in self._allowed:
            for n, name in enumerate(self.names):
                if name in pair:
                    allowed[[p for p, part in enumerate(parts) if part in pair], n] = True
        return self._arrays._replace(allowed=allowed)

    def allowing(self, pairs: Collection[frozenset[str]]) -> World:
        """The same world, where further pairs may touch."""
        world = copy(self)
        world._allowed = self._allowed | set(pairs)
        return world

    def alone(self, names: Collection[str]) -> World:
        """What of this world has one of some names."""
        cloud = self._cloud if self._cloud.name in names else None
        return World([solid for solid in self.solids if solid.name in names], self._allowed, cloud)
