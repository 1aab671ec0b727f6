"""What the spheres of an editor stand for: meshes by link, and the joints that place the links."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array

if TYPE_CHECKING:
    from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class JointRange:
    """A joint with the ends of its slider and where it is [rad or m]."""

    name: str
    lower: float
    upper: float
    position: float


@dataclass(frozen=True)
class EditedShape:
    """A robot or a single mesh.

    Attributes:
        name: of the robot or mesh.
        meshes: link → its surface, in the link's frame.
        kinematics: places the links; None puts all at the origin.
        positions: joint → position [rad or m]; the others are at zero or at the limit nearest to it.
    """

    name: str
    meshes: Mapping[str, TriangleMesh]
    kinematics: KinematicModel | None = None
    positions: Mapping[str, float] = field(default_factory=dict)

    def link_poses(self, positions: Mapping[str, float]) -> Mapping[str, Array]:
        """``T_world_link`` (4, 4) of every link, the world being the root link's frame."""
        if self.kinematics is None:
            return {link: np.eye(4) for link in self.meshes}
        return self.kinematics.forward_kinematics(positions)

    def start_positions(self) -> dict[str, float]:
        """Position of every joint to begin with."""
        if self.kinematics is None:
            return {}
        neutral = np.clip(0.0, self.kinematics.position_lower, self.kinematics.position_upper)
        return dict(zip(self.kinematics.joint_names, neutral.tolist(), strict=True)) | dict(self.positions)

    def joint_ranges(self) -> list[JointRange]:
        """Joints that have somewhere to go; a turn in either direction for those without limits."""
        if self.kinematics is None:
            return []
        start = self.start_positions()
        lower = np.where(np.isfinite(self.kinematics.position_lower), self.kinematics.position_lower, -math.pi)
        upper = np.where(np.isfinite(self.kinematics.position_upper), self.kinematics.position_upper, math.pi)
        rows = zip(self.kinematics.joint_names, lower.tolist(), upper.tolist(), strict=True)
        return [JointRange(name, low, high, start[name]) for name, low, high in rows if high > low]
