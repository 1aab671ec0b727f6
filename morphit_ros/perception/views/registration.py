"""The right view in the left camera's frame, without extrinsics: from what both views show of a table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
)
from morphit_ros.perception.configuration import ObjectConfig, RegistrationConfig
from morphit_ros.perception.scene import RegistrationResult
from morphit_ros.perception.tabletop.table_view import TableView, thinned, view_table
from morphit_ros.perception.views.explanation import Explanation, explain
from morphit_ros.perception.views.turn_alignment import TurnFit, align_turn, nearest_points
from morphit_ros.perception.views.turn_search import search_poses
from morphit_ros.perception.views.view import Surface

# Poses from the search that are refined.
_PROPOSALS = 40
# Voxels for refining the proposals; cells and reach of the lookups of nearest points [m].
_COARSE_VOXEL, _COARSE_CELL, _COARSE_REACH = 0.008, 0.004, 0.012
_FINE_CELL, _FINE_REACH = 0.003, 0.008
# Matching distances of the stages [m], and points of each view that are matched.
_COARSE_DISTANCES, _FINE_DISTANCES = (0.02, 0.01), (0.01,)
_COARSE_POINTS, _FINE_POINTS = 600, 6000
# Candidates that are refined on all points: at most so many, with this part of the best one's score.
_FINALISTS, _CONTENDER = 4, 0.5
# Poses this far apart, at the objects, are different ones.
_DIFFERENT_SHIFT, _DIFFERENT_TURN = 0.01, math.radians(4.0)
# Noise of a point, matches counted as independent [m].
_NOISE = 0.001


class _Candidate(NamedTuple):
    fit: TurnFit
    explanation: Explanation


def register_views(
    left: Surface,
    right: Surface,
    left_plane: PlaneFit,
    right_plane: PlaneFit,
    config: RegistrationConfig,
    objects: ObjectConfig,
    rng: np.random.Generator,
) -> RegistrationResult:
    """Find the right camera's pose relative to the left one from the objects on the table that both see.

    The planes fix height and tilt. Of what remains, a turn and two shifts, all are tried on a grid; the
    best are refined by point-to-plane ICP and judged by what they explain: object points on a surface of
    the other view count for a pose, object points where the other camera saw that nothing is against it.
    At 120° between the cameras little surface is shared, but what each camera sees past remains.

    Args:
        left, right: surfaces, each in its camera's optical frame.
        left_plane, right_plane: the support plane of each view in the same frames.
        config: bounds.
        objects: heights between which points belong to objects.
        rng: source of randomness.
    """
    views = view_table(left, left_plane, objects), view_table(right, right_plane, objects)
    failed = RegistrationResult(np.eye(4), math.nan, 0.0, succeeded=False)
    counts = f"left {len(views[0].points)}, right {len(views[1].points)} points above the table"
    if min(len(view.points) for view in views) < objects.min_points:
        return replace(failed, message=f"too few points of objects ({counts}; {objects.min_points} needed in each)")
    candidates = _candidates(*views, rng)
    if not candidates:
        return replace(failed, message=f"no relative pose of the views brings objects together ({counts})")
    best, *others = _finalists(views, candidates, rng)
    rivals = [
        other.explanation.score
        for other in others
        if _different(other.fit, best.fit) and _explains(other.explanation, config)
    ]
    rival = max(rivals, default=0.0)
    result = RegistrationResult(
        invert_transform(views[0].T_table_camera) @ _motion(best.fit.pose) @ views[1].T_table_camera,
        best.fit.residual,
        best.explanation.shared,
        constrained=3 + _determined(best.fit, config),
    )
    message = _objection(result, best, rival, config)
    return result if not message else replace(result, succeeded=False, message=message)


def _candidates(left: TableView, right: TableView, rng: np.random.Generator) -> list[_Candidate]:
    """Refined poses with what they explain, best first."""
    sparse_left, sparse_right = (
        nearest_points(_shuffled(thinned(view, _COARSE_VOXEL), rng), _COARSE_CELL, _COARSE_REACH)
        for view in (left, right)
    )
    candidates = []
    for proposal in search_poses(left, right, _PROPOSALS, rng):
        fit = align_turn(proposal, sparse_right, sparse_left, _COARSE_DISTANCES, 10, _COARSE_POINTS)
        candidates.append(_Candidate(fit, explain(fit.pose, left, right, sparse_left, sparse_right)))
    return sorted(candidates, key=lambda candidate: -candidate.explanation.score)


def _finalists(
    views: tuple[TableView, TableView], candidates: list[_Candidate], rng: np.random.Generator
) -> list[_Candidate]:
    """The best few candidates that differ, aligned once more on all points, best first.

    The best one is also turned about what it matches: what looks the same after half or a quarter of a
    turn must not be decided by which of the two the search came upon.
    """
    left, right = (
        nearest_points(_shuffled(Surface(view.points, view.normals), rng), _FINE_CELL, _FINE_REACH) for view in views
    )
    starts = [candidates[0].fit]
    for candidate in candidates[1:]:
        if len(starts) == _FINALISTS or candidate.explanation.score < _CONTENDER * candidates[0].explanation.score:
            break
        if all(_different(candidate.fit, other) for other in starts):
            starts.append(candidate.fit)
    poses = [start.pose for start in starts]
    poses += [_turned(candidates[0].fit, quarter * math.pi / 2.0) for quarter in (1, 2, 3)]
    finalists = []
    for pose in poses:
        fit = align_turn(pose, right, left, _FINE_DISTANCES, 20, _FINE_POINTS)
        finalists.append(_Candidate(fit, explain(fit.pose, *views, left, right)))
    return sorted(finalists, key=lambda finalist: -finalist.explanation.score)


def _turned(fit: TurnFit, angle: float) -> Array:
    """The pose after another turn about the centre of the matches."""
    c, s = math.cos(angle), math.sin(angle)
    x, y = fit.pose[1:] - fit.center
    return np.array([fit.pose[0] + angle, fit.center[0] + c * x - s * y, fit.center[1] + s * x + c * y])


def _shuffled(surface: Surface, rng: np.random.Generator) -> Surface:
    rows = rng.permutation(len(surface.points))
    return Surface(surface.points[rows], surface.normals[rows])


def _motion(pose: Array) -> Array:
    return make_transform(matrix_from_rpy((0.0, 0.0, pose[0])), (pose[1], pose[2], 0.0))


def _different(first: TurnFit, second: TurnFit) -> bool:
    """Whether two poses place the objects of the right view differently."""
    turn = abs((first.pose[0] - second.pose[0] + math.pi) % (2.0 * math.pi) - math.pi)
    return turn > _DIFFERENT_TURN or float(np.hypot(*(first.pose - second.pose)[1:])) > _DIFFERENT_SHIFT


def _explains(explanation: Explanation, config: RegistrationConfig) -> bool:
    return explanation.refuted <= config.max_contradicted and explanation.shared >= config.min_overlap


def _spread(fit: TurnFit) -> tuple[float, float]:
    """Standard deviations of the turn [rad] and, in its worst direction, of the shift at the matches' centre [m]."""
    values = np.linalg.eigvalsh(fit.information)
    if values[0] <= 1e-12 * values[2]:
        return math.inf, math.inf
    covariance = _NOISE**2 * np.linalg.inv(fit.information)
    return math.sqrt(covariance[0, 0]), math.sqrt(float(np.linalg.eigvalsh(covariance[1:, 1:])[-1]))


def _determined(fit: TurnFit, config: RegistrationConfig) -> int:
    """How many of turn and shifts the matches determine, 0 to 3."""
    turn, shift = _spread(fit)
    return int(turn <= config.max_turn_spread) + 2 * int(shift <= config.max_shift_spread)


def _objection(result: RegistrationResult, best: _Candidate, rival: float, config: RegistrationConfig) -> str:
    """Why the best pose is not to be trusted; empty where it is."""
    explanation = best.explanation
    if explanation.shared < config.min_overlap:
        return f"only {explanation.shared:.0%} of a view's objects fit the other ({config.min_overlap:.0%} needed)"
    if explanation.refuted > config.max_contradicted:
        return (
            f"in the best alignment, {explanation.refuted:.0%} of a view's objects float where the other saw past them"
        )
    if rival > config.max_rival * explanation.score:
        return (
            f"another alignment explains the views {rival / explanation.score:.0%} as well: "
            "the objects are too symmetric"
        )
    if result.constrained < 6:
        return "the objects in view do not determine the alignment: they are too symmetric"
    if result.residual > config.max_residual:
        return f"the views differ by {result.residual * 1e3:.1f} mm RMS ({config.max_residual * 1e3:.1f} mm accepted)"
    return ""
