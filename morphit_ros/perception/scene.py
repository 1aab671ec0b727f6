"""What perception returns: objects, table, fused cloud, and an account of how they came about."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array

# Labels of points of a scene that belong to no object: above the table, and on it.
LOOSE, ON_TABLE = -1, -2


class SceneStatus(enum.Enum):
    """Outcome of `perceive`. Anything but OK comes without a target."""

    OK = "ok"
    NO_POINTS = "a camera has no usable points"
    REGISTRATION_FAILED = "the two views could not be brought together"
    EXTRINSICS_INCONSISTENT = "the two views contradict the given extrinsics"
    NO_TABLE = "no table was found"
    NO_OBJECT = "no object was found"
    OBJECT_MOVED = "the target is not where the other view has it"
    TARGET_NOT_FOUND = "the rule for the target names no object"


@dataclass(frozen=True)
class Table:
    """A bounded support plane.

    Attributes:
        T_world_table: centre of the visible part of the upper face, z up, x along the side nearest to world x.
        size: (2,) extent along x and y of the table's frame [m].
        residual: root mean square distance of its points to the plane [m].
    """

    T_world_table: Array
    size: Array
    residual: float


@dataclass(frozen=True)
class RegistrationResult:
    """How the right view fits the left one.

    Attributes:
        T_left_right: right camera in the left camera's frame, as refined.
        residual: RMS point-to-plane distance of matched points [m]; NaN where nothing matched.
        overlap: part of the sampled right points that the left view confirms.
        shift, turn: how far the refinement moved the right view's points [m], [rad]; 0 where nothing was known before.
        constrained: how many of the six directions of motion the overlap determines. A bare
            table determines three: shifts along it go unnoticed.
        succeeded: False where no alignment passed the checks.
        message: why it did not succeed.
    """

    T_left_right: Array
    residual: float
    overlap: float
    shift: float = 0.0
    turn: float = 0.0
    constrained: int = 6
    succeeded: bool = True
    message: str = ""


@dataclass(frozen=True)
class ObjectExtent:
    """Diagnostics of one object.

    Attributes:
        extents: (3,) sides of the box around it, aligned with the table (or the world without one) [m].
        parts: number of large parts between concave seams. More than one may mean touching
            objects, or one object with a concave outline.
        overhang: part of its points beyond the visible part of the table.
    """

    extents: Array
    parts: int
    overhang: float = 0.0


@dataclass(frozen=True)
class ObjectEvidence:
    """How well one object is known.

    Attributes:
        left_points, right_points, more_points: points that each camera contributes, and all further ones together,
            before the views are fused.
        residual: RMS point-to-plane distance between the two views of it [m]; NaN where they share nothing.
        overlap: part of the right view's points that the left view confirms.
        coverage: density of its points relative to a surface with a point in every voxel, in [0, 1].
        transparency: part of its points behind which the same camera saw the table.
        displacement: how far the two views have it apart [m]; 0 where nothing called for a comparison.
        consistent: False where the views contradict each other: it moved between the clouds, or a pose is wrong.
        compared: whether both views show enough of the same surface to say so.
    """

    left_points: int
    right_points: int
    residual: float = math.nan
    overlap: float = 0.0
    coverage: float = 1.0
    transparency: float = 0.0
    displacement: float = 0.0
    consistent: bool = True
    compared: bool = False
    more_points: int = 0

    @property
    def views(self) -> int:
        """Number of cameras that saw it; all further ones count as one."""
        return (self.left_points > 0) + (self.right_points > 0) + (self.more_points > 0)

    @property
    def confidence(self) -> float:
        """In [0, 1]: the share of the surface that is measured, halved for one view, 0 where the views disagree."""
        if not self.consistent:
            return 0.0
        return self.coverage * (1.0 - self.transparency) * (1.0 if self.views > 1 else 0.5)


@dataclass(frozen=True)
class Scene:
    """Outcome of `perceive`; all geometry is in the frame `PerceptionConfig.world_frame`.

    Attributes:
        status: outcome; the target is None unless it is OK.
        message: for people: what was found, or which stage emptied the scene, with counts.
        objects: object clouds with normals, most points first.
        extents: size and parts of each object, in the same order.
        evidence: how well each object is known, in the same order.
        target: index into `objects`, or None.
        table: None where none was found.
        cloud: what both views show above the table, and coarser cells of the table itself, registered, with normals.
        labels: (N,) for each point of the cloud the index of its object, `LOOSE` or `ON_TABLE`.
        T_world_left, T_world_right: camera poses as used and refined; None for a camera that was not there.
        registration: None for a single view.
        timings: stage → wall time [s], in order.
        counts: stage → points (or objects) left after it, in order.
        T_world_more: poses of further cameras, as used and refined.
    """

    status: SceneStatus
    message: str
    objects: list[PointCloud]
    extents: list[ObjectExtent]
    evidence: list[ObjectEvidence]
    target: int | None
    table: Table | None
    cloud: PointCloud
    labels: NDArray[np.int64]
    T_world_left: Array | None
    T_world_right: Array | None
    registration: RegistrationResult | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    T_world_more: Sequence[Array] = ()

    @property
    def viewpoints(self) -> list[Array]:
        """Where the cameras stand, (3,) each [m]."""
        poses = (self.T_world_left, self.T_world_right, *self.T_world_more)
        return [pose[:3, 3] for pose in poses if pose is not None]

    @property
    def registration_residual(self) -> float:
        """RMS point-to-plane distance between the two views [m]; NaN for a single view."""
        return float("nan") if self.registration is None else self.registration.residual

    @property
    def target_cloud(self) -> PointCloud | None:
        """Cloud of the target, or None."""
        return None if self.target is None else self.objects[self.target]

    def obstacle_points(self, target: int | None = None) -> Array:
        """(M, 3) points above the table that are not the target's: neighbours, and what is no object [m].

        Args:
            target: index of the object to be grasped; the scene's own target if None.
        """
        chosen = self.target if target is None else target
        others = self.labels != ON_TABLE
        if chosen is not None:
            others &= self.labels != chosen
        return self.cloud.points[others]
