"""What perception returns: objects, table, fused cloud, and an account of how they came about."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array


class SceneStatus(enum.Enum):
    """Outcome of `perceive`. Anything but OK comes without a target."""

    OK = "ok"
    NO_POINTS = "a camera has no usable points"
    REGISTRATION_FAILED = "the two views could not be brought together"
    EXTRINSICS_INCONSISTENT = "the two views contradict the given extrinsics"
    NO_TABLE = "no table was found"
    NO_OBJECT = "no object was found"
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
    """

    extents: Array
    parts: int


@dataclass(frozen=True)
class Scene:
    """Outcome of `perceive`; all geometry is in the frame `PerceptionConfig.world_frame`.

    Attributes:
        status: outcome; the target is None unless it is OK.
        message: for people: what was found, or which stage emptied the scene, with counts.
        objects: object clouds with normals, most points first.
        extents: diagnostics of each object, in the same order.
        target: index into `objects`, or None.
        table: None where none was found.
        cloud: all points of both views, registered, with normals.
        T_world_left, T_world_right: camera poses as used and refined; None for a camera that was not there.
        registration: None for a single view.
        timings: stage → wall time [s], in order.
        counts: stage → points (or objects) left after it, in order.
    """

    status: SceneStatus
    message: str
    objects: list[PointCloud]
    extents: list[ObjectExtent]
    target: int | None
    table: Table | None
    cloud: PointCloud
    T_world_left: Array | None
    T_world_right: Array | None
    registration: RegistrationResult | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def registration_residual(self) -> float:
        """RMS point-to-plane distance between the two views [m]; NaN for a single view."""
        return float("nan") if self.registration is None else self.registration.residual

    @property
    def target_cloud(self) -> PointCloud | None:
        """Cloud of the target, or None."""
        return None if self.target is None else self.objects[self.target]
