"""The object as it is planned on: checked, thinned, with outward normals, completed down to its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.grasping.completion import extrude_to_table
from morphit_ros.grasping.normals import estimate_normals, normals_point_outwards, smooth_normals
from morphit_ros.grasping.planner_config import PlannerConfig


class Table(Protocol):
    """What the planner needs of a table: `geometry.support_plane.SupportPlane` and perception's have it."""

    @property
    def T_world_table(self) -> Array: ...

    @property
    def size(self) -> Array | None: ...


@dataclass(frozen=True)
class ObjectScene:
    """The object as planned on: seen and virtual points, and directions."""

    points: Array
    normals: Array
    observed: Array
    spacing: float
    center_of_mass: Array
    up: Array | None
    approach: Array
    prefers_approach: bool
    min_width: float
    note: str


def prepare_scene(
    cloud: PointCloud,
    config: PlannerConfig,
    table: Table | None,
    approach: ArrayLike | None,
    center_of_mass: ArrayLike | None,
    rng: np.random.Generator,
) -> ObjectScene:
    """Check the input, thin the cloud, mend its normals, complete it."""
    finite = cloud.finite()
    if len(finite) < config.min_points:
        raise InvalidInputError(
            "cloud", f"{len(finite)} finite points of {len(cloud)}", f"at least {config.min_points} points",
            "Check the segmentation, or lower min_points.",
        )  # fmt: skip
    extent = float((finite.points.max(axis=0) - finite.points.min(axis=0)).max())
    if extent > 2.0:
        raise InvalidInputError(
            "cloud", f"an extent of {extent:.4g} m", "at most 2 m",
            "Coordinates are metres; millimetres must be divided by 1000.",
        )  # fmt: skip
    if extent < 1e-4:
        raise InvalidInputError("cloud", f"an extent of {extent:.3g} m", "an object", "All points coincide.")
    if len(finite) > config.max_points:
        finite = finite.select(np.sort(rng.choice(len(finite), size=config.max_points, replace=False)))
    points = np.ascontiguousarray(finite.points)
    normals, estimated, note = _outward_normals(points, finite.normals, config)
    min_width = config.min_width_estimated if estimated else config.min_width
    spacing = _spacing(points, rng)
    up, completion = None, None
    if table is not None:
        T_world_table = check_transform(table.T_world_table, "table.T_world_table")
        up = T_world_table[:3, 2]
        completion = extrude_to_table(points, normals, T_world_table, cell=max(0.003, 0.8 * spacing))
    direction, preferred = _approach_direction(points, approach, up)
    mass_center = _mass_center(points, center_of_mass, None if completion is None else completion.center_of_mass)
    if config.smoothing_radius > 0.0:
        normals = smooth_normals(points, normals, config.smoothing_radius)
    observed = np.ones(len(points))
    if completion is not None and config.complete:
        points = np.concatenate([points, completion.points])
        normals = np.concatenate([normals, completion.normals])
        observed = np.concatenate([observed, np.zeros(len(completion.points))])
    return ObjectScene(
        np.ascontiguousarray(points), np.ascontiguousarray(normals), observed, spacing, mass_center, up, direction,
        preferred, min_width, note,
    )  # fmt: skip


def _outward_normals(points: Array, given: Array | None, config: PlannerConfig) -> tuple[Array, bool, str]:
    """Unit outward normals, whether they were estimated, and a note if that was not asked for."""
    if config.normals == "given":
        if given is None or not np.isfinite(given).all():
            raise InvalidInputError(
                "cloud", "no finite normals", "one normal a point", "Give them, or set normals to 'auto'."
            )
        return given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12), False, ""
    if config.normals == "estimate":
        return estimate_normals(points), True, ""
    if given is None or not np.isfinite(given).all() or (np.linalg.norm(given, axis=1) < 1e-6).any():
        note = "The cloud has no complete normals: estimated from local planes and visibility."
        return estimate_normals(points), True, note
    unit = given / np.linalg.norm(given, axis=1, keepdims=True)
    if normals_point_outwards(points, unit):
        return unit, False, ""
    return estimate_normals(points), True, "The cloud's normals do not point outwards: estimated anew."


def _approach_direction(points: Array, approach: ArrayLike | None, up: Array | None) -> tuple[Array, bool]:
    """Unit direction that approach angles start from, and whether it is preferred."""
    if approach is not None:
        direction = np.asarray(approach, dtype=np.float64)
        if direction.shape != (3,) or not np.isfinite(direction).all() or np.linalg.norm(direction) < 1e-9:
            raise InvalidInputError("approach", approach, "a direction (3,) that is not zero")
        return direction / np.linalg.norm(direction), True
    if up is not None:
        return -up, True
    # Nothing is preferred: the cloud's third principal axis, so that starts move with the object.
    offsets = points - points.mean(axis=0)
    axis = np.linalg.eigh(offsets.T @ offsets)[1][:, 0]
    skew = float(((offsets @ axis) ** 3).sum())
    return (axis if skew >= 0.0 else -axis), False


def crosswise(points: Array, direction: Array) -> Array:
    """The direction across the given one along which the cloud is longest; it moves with the cloud."""
    offsets = points - points.mean(axis=0)
    flat = offsets - (offsets @ direction)[:, None] * direction
    axis: Array = np.linalg.eigh(flat.T @ flat)[1][:, 2]
    return axis if float(((flat @ axis) ** 3).sum()) >= 0.0 else -axis


def _mass_center(points: Array, given: ArrayLike | None, extruded: Array | None) -> Array:
    if given is not None:
        center = np.asarray(given, dtype=np.float64)
        if center.shape != (3,) or not np.isfinite(center).all():
            raise InvalidInputError("center_of_mass", given, "a finite point (3,) [m]")
        return center
    if extruded is not None:
        return extruded
    # Seen points crowd on the seen side; the middle of the principal box does not.
    mean = points.mean(axis=0)
    axes = np.linalg.eigh((points - mean).T @ (points - mean))[1]
    along = (points - mean) @ axes
    box = mean + axes @ (0.5 * (along.min(axis=0) + along.max(axis=0)))
    center = 0.5 * (mean + box)
    return center


def _spacing(points: Array, rng: np.random.Generator) -> float:
    """Radius [m] that a point stands for: 1.5 times the usual distance to the nearest neighbours, 2 to 6 mm."""
    probe = points[rng.choice(len(points), size=min(300, len(points)), replace=False)]
    distances = cKDTree(points).query(probe, k=min(5, len(points)))[0]
    return float(np.clip(1.5 * np.median(distances[:, -1]), 0.002, 0.006))
