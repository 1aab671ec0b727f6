"""The object as it is planned on: checked, thinned, with outward normals, completed where no camera saw it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.outward_normals import (
    Index,
    estimate_outward_normals,
    normals_face_viewpoints,
    normals_point_outwards,
    smooth_normals,
)
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import OVERSAMPLING, finite_rows, point_spacing, surface_noise, thin_evenly
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.grasping.completion import AutoCompletion, CompletedShape, ShapeCompletion
from morphit_ros.grasping.planner_config import PlannerConfig

# Of the spacing, what closes the gaps between evenly spread points: more blurs a rim or an edge into what is beside it.
_FOOTPRINT = 0.7


@dataclass(frozen=True)
class ObjectScene:
    """The object as planned on: seen and virtual points, and directions; all in the cloud's frame.

    Attributes:
        points, normals: (N, 3) seen points first, then virtual ones; outward unit normals.
        observed: (N,) trust in each point: 1 for a seen one, less for a virtual one.
        spacing: radius that a point stands for [m].
        center_of_mass: (3,) as given, else of the completed shape [m].
        up: (3,) the table's, None without one.
        approach: (3,) unit direction that approach angles start from.
        prefers_approach: whether that direction is preferred.
        min_width: thinner pairs of surfaces are not gripped [m].
        note: what was done to the input, for people; empty if nothing unusual was.
        confidence: in [0, 1], of the completed shape and its centre of mass.
        mass: of the object if the completion knows it [kg].
        completion: name of the method that completed it.
        noise: usual deviation of seen points from their surface, along the normal [m].
        weighed: whether mass and centre of mass are both known, given or by the completion.
    """

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
    confidence: float = 1.0
    mass: float | None = None
    completion: str = ""
    noise: float = 0.0
    weighed: bool = False


def prepare_scene(
    cloud: PointCloud,
    config: PlannerConfig,
    table: SupportPlaneLike | None,
    approach: ArrayLike | None,
    center_of_mass: ArrayLike | None,
    rng: np.random.Generator,
    *,
    completion: ShapeCompletion | None = None,
    obstacles: ArrayLike | None = None,
    viewpoints: ArrayLike | None = None,
) -> ObjectScene:
    """Check the input, thin the cloud, mend its normals, complete it.

    Args:
        cloud: (N, 3) seen points [m], with outward normals if there are any.
        config: see `PlannerConfig`.
        table: what the object stands on, None if unknown.
        approach: (3,) preferred approach direction, None for down onto the table.
        center_of_mass: (3,) if it is known [m].
        rng: order in which points are visited for thinning.
        completion: how hidden sides are found, `AutoCompletion` if None.
        obstacles: (M, 3) points of other things, same frame: the object is not extruded into them [m].
        viewpoints: (K, 3) positions of the cameras in the cloud's frame, None if unknown [m].

    Raises:
        InvalidInputError: empty or tiny cloud, coordinates that look like millimetres, bad transform, direction or
            position, normals required but missing, a completion that returns nonsense.
    """
    others, eyes = _positions(obstacles, "obstacles"), _positions(viewpoints, "viewpoints")
    if table is not None:
        check_transform(table.T_world_table, "table.T_world_table")
    dense = _checked_points(cloud, config, rng)
    rows, normals, estimated, note = _thinned(dense, config, eyes, rng)
    points = np.ascontiguousarray(dense.points[rows])
    min_width = config.min_width_estimated if estimated else config.min_width
    up = None if table is None else np.asarray(table.T_world_table, dtype=np.float64)[:3, 2]
    direction, preferred = _approach_direction(points, approach, up)
    given_center = _given_center(center_of_mass)
    complete = completion or AutoCompletion(eyes, others)
    shape = _checked_shape(complete(points, normals, table))
    mass_center = shape.center_of_mass if given_center is None else given_center
    spacing, noise = _FOOTPRINT * point_spacing(points), surface_noise(points, normals)
    observed = np.ones(len(points))
    if config.complete and len(shape.points) and not _seen_from_below(normals, up):
        weights = shape.confidence * np.ones(len(shape.points)) if shape.weights is None else shape.weights
        points = np.concatenate([points, shape.points])
        normals = np.concatenate([normals, shape.normals])
        observed = np.concatenate([observed, weights])
    return ObjectScene(
        np.ascontiguousarray(points), np.ascontiguousarray(normals), observed, spacing, mass_center, up, direction,
        preferred, min_width, note, shape.confidence, shape.mass, shape.method,
        noise,
        # A completion that knows a mass knows its centre.
        shape.mass is not None or (given_center is not None and config.mass > 0.0),
    )  # fmt: skip


def _seen_from_below(normals: Array, up: Array | None) -> bool:
    """Whether the cloud is of the whole object: what stands on a table shows its underside to no camera."""
    return up is not None and float((normals @ up < -0.8).mean()) > 0.04


def _checked_points(cloud: PointCloud, config: PlannerConfig, rng: np.random.Generator) -> PointCloud:
    """The finite points, no more of them than thinning can make use of."""
    rows, corners = finite_rows(cloud.points)
    if len(rows) < config.min_points:
        raise InvalidInputError(
            "cloud", f"{len(rows)} finite points of {len(cloud)}", f"at least {config.min_points} points",
            "Check the segmentation, or lower min_points.",
        )  # fmt: skip
    extent = float((corners[1] - corners[0]).max())
    if extent > 2.0:
        raise InvalidInputError(
            "cloud", f"an extent of {extent:.4g} m", "at most 2 m",
            "Coordinates are metres; millimetres must be divided by 1000.",
        )  # fmt: skip
    if extent < 1e-4:
        raise InvalidInputError("cloud", f"an extent of {extent:.3g} m", "an object", "All points coincide.")
    if len(rows) > OVERSAMPLING * config.max_points:
        # With repetition is as good here and takes no permutation of a million rows.
        rows = rows[np.unique(rng.integers(len(rows), size=OVERSAMPLING * config.max_points))]
    return PointCloud(cloud.points[rows], None if cloud.normals is None else cloud.normals[rows])


def _thinned(
    dense: PointCloud, config: PlannerConfig, viewpoints: Array | None, rng: np.random.Generator
) -> tuple[Index, Array, bool, str]:
    """Rows that are kept, their outward normals, whether those were estimated, and a note if that was not asked for."""
    points, given = dense.points, dense.normals
    unit: Array | None = None
    if given is not None and config.normals != "estimate":
        lengths = np.linalg.norm(given, axis=1, keepdims=True)
        if np.isfinite(lengths).all() and (config.normals == "given" or float(lengths.min()) > 1e-6):
            unit = given / np.maximum(lengths, 1e-12)
    if config.normals == "given" and unit is None:
        raise InvalidInputError(
            "cloud", "no finite normals", "one normal a point", "Give them, or set normals to 'auto'."
        )
    note = ""
    if config.normals == "auto":
        if unit is None:
            note = "The cloud has no complete normals: estimated from local planes and visibility."
        elif viewpoints is not None:
            if not normals_face_viewpoints(points, unit, viewpoints):
                unit, note = None, "The cloud's normals do not face the cameras: estimated anew."
        elif not normals_point_outwards(points, unit):
            unit, note = None, "The cloud's normals do not point outwards: estimated anew."
    rows = thin_evenly(points, unit, config.max_points, rng)
    if unit is not None:
        return rows, _smoothed(points, unit, config, rows), False, note
    normals = estimate_outward_normals(points, rows, viewpoints)
    if config.smoothing_radius > 0.0:
        normals = smooth_normals(points[rows], normals, config.smoothing_radius)
    return rows, normals, True, note


def _smoothed(points: Array, normals: Array, config: PlannerConfig, rows: Index) -> Array:
    if config.smoothing_radius > 0.0:
        return smooth_normals(points, normals, config.smoothing_radius, rows)
    return normals[rows]


def _positions(values: ArrayLike | None, name: str) -> Array | None:
    """Positions (M, 3) without those that are not finite; None for none."""
    if values is None:
        return None
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return None
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidInputError(name, f"shape {array.shape}", "shape (M, 3) [m]")
    finite: Array = array[np.isfinite(array).all(axis=1)]
    return finite if len(finite) else None


def _given_center(given: ArrayLike | None) -> Array | None:
    if given is None:
        return None
    center = np.asarray(given, dtype=np.float64)
    if center.shape != (3,) or not np.isfinite(center).all():
        raise InvalidInputError("center_of_mass", given, "a finite point (3,) [m]")
    return center


def _checked_shape(shape: CompletedShape) -> CompletedShape:
    """What a completion returned, which may be anyone's."""
    count = len(shape.points)
    fits = (
        shape.points.shape == (count, 3)
        and shape.normals.shape == (count, 3)
        and shape.center_of_mass.shape == (3,)
        and (shape.weights is None or shape.weights.shape == (count,))
    )
    if not fits:
        raise InvalidInputError(
            "completion",
            f"points {shape.points.shape}, normals {shape.normals.shape}, centre {shape.center_of_mass.shape}",
            "shapes (V, 3), (V, 3), (3,) and weights (V,) or None",
        )
    values = [shape.points, shape.normals, shape.center_of_mass, np.array([shape.confidence])]
    if not all(np.isfinite(value).all() for value in values) or not 0.0 <= shape.confidence <= 1.0:
        raise InvalidInputError("completion", "a value that is not finite", "finite values, confidence in [0, 1]")
    return shape


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


def solid_points(scene: ObjectScene, around: Array, reach: float, cell: float = 0.004) -> Array:
    """The object's points, and of others (M, 3) around it one a cell [m] of those within `reach` [m] of its box."""
    low, high = scene.points.min(axis=0), scene.points.max(axis=0)
    near = around[((around >= low - reach) & (around <= high + reach)).all(axis=1)]
    if len(near):
        _, first = np.unique(np.floor(near / cell).astype(np.int64), axis=0, return_index=True)
        near = near[first]
    return np.ascontiguousarray(np.concatenate([scene.points, near]))
