"""What a robot moves among: primitives, meshes and a point cloud, as arrays for compiled kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import TreeArrays, TriangleTree
from morphit_ros.motion.cloud import CloudArrays, CloudObstacle
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid


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
