"""The right view in the left camera's frame: with known extrinsics, or from what both views show."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.transforms import Array, invert_transform, rotation_angle, transform_points
from morphit_ros.perception.alignment import Alignment, Surface, align
from morphit_ros.perception.configuration import ObjectConfig, RegistrationConfig
from morphit_ros.perception.feature_matching import propose_alignments
from morphit_ros.perception.scene import RegistrationResult
from morphit_ros.perception.table import Plane
from morphit_ros.perception.visibility import NearestSurface

# Matching distance of the last ICP stage [m].
_FINEST_DISTANCE = 0.01
# More than this part of a view's objects floating in front of what the other camera saw: a wrong alignment.
_MOST_CONTRADICTED = 0.1
# Another alignment this close to the best in score makes the answer ambiguous.
_AMBIGUITY = 0.93


def refine_extrinsics(
    left: Surface,
    right: Surface,
    T_world_left: Array,
    T_world_right: Array,
    config: RegistrationConfig,
    rng: np.random.Generator,
) -> tuple[Array, RegistrationResult]:
    """Fit the right view to the left one by ICP, starting from known extrinsics.

    Args:
        left, right: surfaces in the world frame by the given extrinsics.
        T_world_left, T_world_right: given poses of the cameras.
        config: distances and bounds; with `refine` off the misfit is measured but not corrected.
        rng: source of randomness for the samples.

    Returns:
        the motion of the right view's points in world, and the result: `succeeded` is False
        where the extrinsics contradict the views.
    """
    distances = _shrinking(config.capture_distance)
    fit = align(right, left, distances, config.iterations, rng)
    center = right.points.mean(axis=0)
    shift = float(np.linalg.norm(transform_points(fit.T_target_source, center) - center))
    turn = rotation_angle(fit.T_target_source[:3, :3])
    motion = fit.T_target_source
    if not config.refine:
        motion = np.eye(4)
        measured = align(right, left, [distances[0]], 0, rng)
        fit = fit._replace(residual=measured.residual, overlap=measured.overlap)
    result = RegistrationResult(
        invert_transform(T_world_left) @ motion @ T_world_right,
        fit.residual,
        fit.overlap,
        shift,
        turn,
        fit.constrained,
    )
    return motion, _judge_extrinsics(result, config)


def _judge_extrinsics(result: RegistrationResult, config: RegistrationConfig) -> RegistrationResult:
    if not math.isfinite(result.residual):
        reason = f"no point of the right view lies within {config.capture_distance * 1e3:.0f} mm of the left view"
    elif result.shift > config.max_correction or result.turn > config.max_correction_angle:
        reason = (
            f"the views fit only after moving the right one by {result.shift * 1e3:.1f} mm and "
            f"{math.degrees(result.turn):.2f}° (at most {config.max_correction * 1e3:.1f} mm and "
            f"{math.degrees(config.max_correction_angle):.2f}° are accepted)"
        )
    elif result.residual > config.max_residual:
        reason = (
            f"the views differ by {result.residual * 1e3:.1f} mm RMS "
            f"(at most {config.max_residual * 1e3:.1f} mm are accepted)"
        )
    else:
        return result
    return replace(result, succeeded=False, message=f"{reason}; calibrate the cameras' extrinsics again")


def _shrinking(widest: float) -> list[float]:
    """Matching distances from the widest down to the finest, halving."""
    distances = []
    while widest > 1.5 * _FINEST_DISTANCE:
        distances.append(widest)
        widest /= 2.0
    return [*distances, min(_FINEST_DISTANCE, widest)]


def register_views(
    left: Surface,
    right: Surface,
    left_plane: Plane,
    right_plane: Plane,
    config: RegistrationConfig,
    objects: ObjectConfig,
    rng: np.random.Generator,
) -> RegistrationResult:
    """Find the right camera's pose relative to the left one from the objects on the table that both see.

    The planes fix height and tilt; turn and shift along the table come from FPFH matches of what
    stands on it (Rusu et al. 2009), tried by RANSAC. The best few are refined by point-to-plane ICP
    and checked against what each camera saw past: an object in front of a surface that the other
    camera measured cannot be there.

    Args:
        left, right: surfaces, each in its camera's optical frame.
        left_plane, right_plane: the support plane of each view in the same frames.
        config: feature size and bounds.
        objects: heights between which points belong to objects.
        rng: source of randomness.
    """
    above = []
    for surface, plane in ((left, left_plane), (right, right_plane)):
        height = surface.points @ plane.normal - plane.offset
        rows = (height > objects.min_height) & (height < objects.max_height)
        above.append(Surface(surface.points[rows], surface.normals[rows]))
    proposals = propose_alignments(above[0], above[1], left_plane, right_plane, config, rng)
    failed = RegistrationResult(np.eye(4), math.nan, 0.0, succeeded=False)
    if not proposals:
        counts = f"left {len(above[0].points)}, right {len(above[1].points)} points above the table"
        return replace(failed, message=f"no features of the two views agree ({counts})")
    seen_left, seen_right = NearestSurface(left.points), NearestSurface(right.points)
    candidates: list[tuple[float, float, Alignment]] = []
    for T_left_right in proposals:
        fit = _refine(T_left_right, above[1], above[0], [0.02, _FINEST_DISTANCE], config, rng)
        contradicted = max(
            seen_left.contradicted(transform_points(fit.T_target_source, above[1].points)),
            seen_right.contradicted(transform_points(invert_transform(fit.T_target_source), above[0].points)),
        )
        candidates.append((fit.overlap - contradicted, contradicted, fit))
    candidates.sort(key=lambda candidate: -candidate[0])
    score, contradicted, best = candidates[0]
    rivals = [
        other
        for value, against, other in candidates[1:]
        if value > _AMBIGUITY * score
        and against <= _MOST_CONTRADICTED
        and _differ(best.T_target_source, other.T_target_source)
    ]
    # The table settles tilt and height to a fraction of a millimetre; the objects keep the rest.
    final = _refine(best.T_target_source, right, left, [_FINEST_DISTANCE], config, rng)
    result = RegistrationResult(final.T_target_source, final.residual, best.overlap, constrained=final.constrained)
    if best.overlap < config.min_overlap:
        message = f"only {best.overlap:.0%} of the right view's objects fit the left ({config.min_overlap:.0%} needed)"
    elif contradicted > _MOST_CONTRADICTED:
        message = f"in the best alignment, {contradicted:.0%} of a view's objects float where the other saw past them"
    elif rivals:
        message = "several alignments fit equally well: the objects are too symmetric"
    elif best.constrained < 6 or final.constrained < 6:
        message = "the objects in view do not determine the alignment: they are too symmetric"
    elif final.residual > config.max_residual:
        message = f"the views differ by {final.residual * 1e3:.1f} mm RMS ({config.max_residual * 1e3:.1f} mm accepted)"
    else:
        return result
    return replace(result, succeeded=False, message=message)


def _refine(
    T_target_source: Array,
    source: Surface,
    target: Surface,
    distances: list[float],
    config: RegistrationConfig,
    rng: np.random.Generator,
) -> Alignment:
    """ICP from a given start."""
    moved = Surface(transform_points(T_target_source, source.points), source.normals @ T_target_source[:3, :3].T)
    fit = align(moved, target, distances, config.iterations, rng)
    return fit._replace(T_target_source=fit.T_target_source @ T_target_source)


def _differ(first: Array, second: Array) -> bool:
    """Whether two alignments are more than 10 mm or 3° apart."""
    difference = invert_transform(first) @ second
    return bool(np.linalg.norm(difference[:3, 3]) > 0.01 or rotation_angle(difference[:3, :3]) > math.radians(3.0))
