"""What a robot moves among: spheres, capsules, boxes, cylinders and a point cloud, as arrays for compiled kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.motion.cloud import CloudArrays, CloudObstacle
from morphit_ros.robot.links import GeometryKind

_DIMENSIONS = {GeometryKind.SPHERE: 1, GeometryKind.CAPSULE: 2, GeometryKind.CYLINDER: 2, GeometryKind.BOX: 3}


@dataclass(frozen=True)
class Solid:
    """A solid in the world.

    Attributes:
        name: how answers call it.
        kind: sphere, capsule, cylinder or box.
        T_world_solid: (4, 4).
        dimensions: box: full size (3,); cylinder and capsule (axis z): radius and length of the cylinder (2,);
            sphere: radius (1,) [m].

    Raises:
        InvalidInputError: another kind, a pose that is none, or dimensions that are not positive and finite.
    """

    name: str
    kind: GeometryKind
    T_world_solid: Array
    dimensions: Array

    def __post_init__(self) -> None:
        if self.kind not in _DIMENSIONS:
            bound = f"one of {', '.join(kind.value for kind in _DIMENSIONS)}"
            raise InvalidInputError(f"kind of '{self.name}'", self.kind.value, bound)
        size = np.asarray(self.dimensions, dtype=np.float64)
        if size.shape != (_DIMENSIONS[self.kind],) or not np.isfinite(size).all() or not (size > 0.0).all():
            bound = f"{_DIMENSIONS[self.kind]} positive numbers for a {self.kind.value}"
            raise InvalidInputError(f"dimensions of '{self.name}'", size.tolist(), bound)
        object.__setattr__(self, "T_world_solid", check_transform(self.T_world_solid, f"pose of '{self.name}'"))
        object.__setattr__(self, "dimensions", size)


class WorldArrays(NamedTuple):
    """Solids as arrays, those that are rounded boxes before cylinders.

    A sphere is a box of no size with a radius about it, a capsule one of length only: their distances are exact.

    Attributes:
        boxes: how many are rounded boxes.
        rotations: (N, 3, 3), ``R_world_solid``.
        centers: (N, 3) [m].
        halves: (N, 3) half sizes [m]; of a cylinder its radius, its radius and half its length.
        radii: (N,) how far a rounded box reaches beyond its sides [m], 0 for cylinders.
        cloud: the points.
        allowed: (P, N + 1) whether a part of the robot may touch a solid, at last the cloud.
    """

    boxes: int
    rotations: Array
    centers: Array
    halves: Array
    radii: Array
    cloud: CloudArrays
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
        cloud = cloud or CloudObstacle("points", np.zeros((0, 3)))
        self.names = (*(solid.name for solid in self.solids), cloud.name)
        count = len(self.solids)
        halves, radii = np.zeros((count, 3)), np.zeros(count)
        for row, solid in enumerate(self.solids):
            size = solid.dimensions
            match solid.kind:
                case GeometryKind.BOX:
                    halves[row] = 0.5 * size
                case GeometryKind.CYLINDER:
                    halves[row] = size[0], size[0], 0.5 * size[1]
                case GeometryKind.CAPSULE:
                    halves[row, 2], radii[row] = 0.5 * size[1], size[0]
                case _:
                    radii[row] = size[0]
        poses = np.array([solid.T_world_solid for solid in self.solids]).reshape(-1, 4, 4)
        self._arrays = WorldArrays(
            sum(solid.kind is not GeometryKind.CYLINDER for solid in self.solids),
            np.ascontiguousarray(poses[:, :3, :3]),
            np.ascontiguousarray(poses[:, :3, 3]),
            halves,
            radii,
            cloud.arrays(),
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
