"""A superovoid somewhere in the frame of a link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.superovoid.shapes.superovoid import Superovoid


@dataclass(frozen=True, eq=False)
class PlacedSuperovoid(Meshed):
    """A superovoid and its pose.

    Attributes:
        shape: in its own frame.
        T_link_shape: (4, 4), its frame in that of the link or mesh.

    Raises:
        InvalidInputError: the pose is not a rigid motion.
    """

    shape: Superovoid
    T_link_shape: Array

    def __post_init__(self) -> None:
        pose = check_transform(self.T_link_shape, "T_link_shape").copy()
        pose.setflags(write=False)
        object.__setattr__(self, "T_link_shape", pose)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PlacedSuperovoid):
            return NotImplemented
        return self.shape == other.shape and bool((self.T_link_shape == other.T_link_shape).all())

    def __hash__(self) -> int:
        return hash((self.shape, self.T_link_shape.tobytes()))

    def triangle_mesh(self) -> TriangleMesh:
        """`Superovoid.triangle_mesh`, in the frame of the link or mesh."""
        return self.shape.triangle_mesh().transformed(self.T_link_shape)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (N, 3) [m] in the link's frame lie inside or on the surface, (N,)."""
        return self.shape.contains((points - self.T_link_shape[:3, 3]) @ self.T_link_shape[:3, :3])
