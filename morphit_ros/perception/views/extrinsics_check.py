"""Known extrinsics put to the test: how well the two views fit, and the small motion that fits them best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.spatial_hash import cells_around, nearest_facing
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rotation_vector,
    rotation_angle,
)
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import RegistrationConfig
from morphit_ros.perception.scene import RegistrationResult
from morphit_ros.perception.views.view import CameraView, Surface

# Matching distance of the last stage [m].
_FINEST_DISTANCE = 0.01
# Points of the right view that are matched, those above the plane and those on it.
_ABOVE, _ON_PLANE = 1000, 300
# Spacing of the left view's points, as a part of the matching distance.
_SPACING = 0.25
# Matches must face the same way: the two sides of a wall are different surfaces.
_LEAST_NORMAL_COSINE = 0.7
# A direction of motion counts as determined if the normals' mean square component along it exceeds this.
# Normals scatter by about 3° = 0.05 rad, which alone gives 0.003.
_LEAST_INFORMATION = 0.01
# A stage ends once a step moves the overlap by less than this part of the matching distance.
_CONVERGED = 0.01


@dataclass(frozen=True)
class PlacedView:
    """One camera's points in the world by the given extrinsics.

    Attributes:
        above: surface above the support plane.
        on_plane: (M, 3) points of the plane [m].
        plane: the support plane as this camera alone sees it, None where there is none.
        T_world_camera: (4, 4) as given.
    """

    above: Surface
    on_plane: Array
    plane: PlaneFit | None
    T_world_camera: Array


def as_placed(view: CameraView) -> PlacedView:
    """A view whose points are in the world by its given pose."""
    return PlacedView(Surface(view.points, view.normals), view.on_plane.points, view.plane, view.T_frame_camera)


def joined(views: Sequence[CameraView]) -> PlacedView:
    """What several views have together, as `as_placed` of one; plane and pose are the first one's."""
    first = as_placed(views[0])
    if len(views) == 1:
        return first
    above = Surface(*(np.concatenate(parts) for parts in zip(*((v.points, v.normals) for v in views), strict=True)))
    return replace(first, above=above, on_plane=np.concatenate([view.on_plane.points for view in views]))


@dataclass(frozen=True)
class Fit:
    """How one set of points fits a surface.

    Attributes:
        motion: (4, 4) what moves the points onto the surface.
        residual: RMS point-to-plane distance of the matches at the last distance [m], NaN without matches.
        overlap: part of the points with a match.
        constrained: number of determined directions of motion, 0 to 6.
    """

    motion: Array
    residual: float
    overlap: float
    constrained: int


def check_extrinsics(
    left: PlacedView, right: PlacedView, voxel_size: float, config: RegistrationConfig, side: str = "right"
) -> tuple[Array, RegistrationResult]:
    """Fit the right view to the left one by point-to-plane ICP, starting from known extrinsics.

    A further view is fitted in the same way to what all before it have together.

    What is above the plane is matched point by point; points of the right view's plane are held
    against the left view's plane, which needs no search. Directions that neither determines, such as shifts
    along a bare table, are left as they are.

    Args:
        left, right: what the cameras see.
        voxel_size: spacing of the points above the plane [m].
        config: distances and bounds; with `refine` off the misfit is measured but not corrected.
        side: name of the right view's camera, for messages.

    Returns:
        the motion of the right view's points in world, and the result: `succeeded` is False
        where the extrinsics contradict the views.
    """
    points, normals = _spread(right.above.points, _ABOVE), _spread(right.above.normals, _ABOVE)
    on_plane = _spread(right.on_plane, _ON_PLANE) if left.plane is not None else np.empty((0, 3))
    target = left.above, left.plane
    distances = shrinking_distances(config.capture_distance)
    fit = fit_views(points, normals, on_plane, target, distances, config.iterations, voxel_size)
    everything = np.concatenate([points, on_plane])
    center = everything.mean(axis=0) if len(everything) else np.zeros(3)
    shift = float(np.linalg.norm(fit.motion[:3, :3] @ center + fit.motion[:3, 3] - center))
    turn = rotation_angle(fit.motion[:3, :3])
    corrected = fit.motion if config.refine else np.eye(4)
    if not config.refine:
        as_given = fit_views(points, normals, on_plane, target, [config.capture_distance], 0, voxel_size)
        fit = replace(as_given, motion=fit.motion, constrained=fit.constrained)
    result = RegistrationResult(
        invert_transform(left.T_world_camera) @ corrected @ right.T_world_camera,
        fit.residual,
        fit.overlap,
        shift,
        turn,
        fit.constrained,
    )
    return fit.motion, _judged(result, config, side)


def _judged(result: RegistrationResult, config: RegistrationConfig, side: str) -> RegistrationResult:
    if not math.isfinite(result.residual):
        rest = "the left view" if side == "right" else "the others"
        reason = f"no point of the {side} view lies within {config.capture_distance * 1e3:.0f} mm of {rest}"
    elif result.shift > config.max_correction or result.turn > config.max_correction_angle:
        reason = (
            f"the views fit only after moving the {side} one by {result.shift * 1e3:.1f} mm and "
            f"{math.degrees(result.turn):.2f}° (at most {config.max_correction * 1e3:.1f} mm and "
            f"{math.degrees(config.max_correction_angle):.2f}° are accepted)"
        )
    elif result.residual > config.max_residual:
        differ = "the views differ" if side == "right" else f"the {side} view differs from the others"
        reason = (
            f"{differ} by {result.residual * 1e3:.1f} mm RMS (at most {config.max_residual * 1e3:.1f} mm are accepted)"
        )
    else:
        return result
    return replace(result, succeeded=False, message=reason)


def plane_misfit(left: PlacedView, right: PlacedView) -> float:
    """RMS distance of the right view's plane to the left one's by the given extrinsics [m]; NaN without both."""
    if left.plane is None or len(right.on_plane) == 0:
        return math.nan
    offsets = right.on_plane @ left.plane.normal - left.plane.offset
    return float(np.sqrt(np.mean(offsets**2)))


def _spread(rows: Array, count: int) -> Array:
    """At most `count` of the rows, evenly spread over their order, which follows the image."""
    if len(rows) <= count:
        return rows
    return np.ascontiguousarray(rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)])


def shrinking_distances(widest: float) -> list[float]:
    """Matching distances from the widest down to the finest, halving."""
    distances = []
    while widest > 1.5 * _FINEST_DISTANCE:
        distances.append(widest)
        widest /= 2.0
    return [*distances, min(_FINEST_DISTANCE, widest)]


def fit_views(
    points: Array,
    normals: Array,
    on_plane: Array,
    target: tuple[Surface, PlaneFit | None],
    distances: list[float],
    iterations: int,
    voxel_size: float,
    turning: bool = True,
) -> Fit:
    """Fit points to a surface, with a shrinking distance between matches.

    Minimises Σ w ((R p + t − q)·n)² over the nearest neighbours q with normal n (Chen and Medioni
    1992), w from Tukey's biweight. Directions of motion that the matched normals do not
    determine are left as they are.

    Args:
        points, normals: (N, 3) what is moved [m].
        on_plane: (M, 3) points that belong onto the target's plane [m].
        target: where they are moved to.
        distances: largest distance of a match [m], one stage each.
        iterations: largest number of steps at each stage.
        voxel_size: spacing of the target's points [m].
        turning: False to shift only.
    """
    motion, constrained = np.eye(4), 0
    surface, plane = target
    flat = np.zeros(4) if plane is None else np.array([*plane.normal, plane.offset])
    for distance in distances:
        # The farther matches may be, the fewer points are needed: keeps the candidates per point constant.
        stride = max(1, round((_SPACING * distance / voxel_size) ** 2))
        grid = cells_around(surface.points[::stride], distance)
        directions = np.ascontiguousarray(surface.normals[::stride][grid.order])
        for _ in range(iterations):
            matches = _matches(motion, points, normals, on_plane, grid, directions, flat, distance)
            spread = distance
            if distance == distances[-1] and len(matches):
                # Only at last: before, the points that tell of a shift are the outliers among those that don't.
                spread = 3.0 * max(1.4826 * float(np.median(np.abs(matches[:, 6]))), 3e-4)
            step, constrained, size = _step(matches, spread, turning)
            motion = step @ motion
            if size < _CONVERGED * distance:
                break
    total = len(points) + len(on_plane)
    matches = _matches(motion, points, normals, on_plane, grid, directions, flat, distance)
    residual = float(np.sqrt(np.mean(matches[:, 6] ** 2))) if len(matches) else math.nan
    return Fit(motion, residual, len(matches) / total if total else 0.0, constrained)


def _step(matches: Array, spread: float, turning: bool) -> tuple[Array, int, float]:
    """One Gauss-Newton step, the number of determined directions, and how far it moves the overlap [m].

    Args:
        matches: (N, 7) moved points, target normals, distances to the target's planes.
        spread: distance from which on a match has no weight [m].
        turning: False to shift only.
    """
    if len(matches) < 6:
        return np.eye(4), 0, 0.0
    moved, n, r = matches[:, :3], matches[:, 3:6], matches[:, 6]
    weights = np.square(np.maximum(0.0, 1.0 - np.square(r / spread)))
    weights /= max(float(weights.sum()), 1e-12)
    center = moved.mean(axis=0)
    arms = moved - center
    # Rotations in units of the overlap's size, so that one threshold serves all six directions.
    scale = max(float(np.sqrt(np.mean(np.sum(arms**2, axis=1)))), 1e-3)
    jacobian = np.hstack([np.cross(arms, n) / scale if turning else np.zeros(n.shape), n])
    weighted = jacobian * weights[:, None]
    values, vectors = np.linalg.eigh(weighted.T @ jacobian)
    kept = values > _LEAST_INFORMATION
    change = -vectors[:, kept] @ ((vectors[:, kept].T @ (weighted.T @ r)) / values[kept])
    rotation = matrix_from_rotation_vector(change[:3] / scale)
    step = make_transform(rotation, center - rotation @ center + change[3:])
    return step, int(kept.sum()), float(np.linalg.norm(change))


@njit(cache=True, nogil=True)
def _matches(motion, points, normals, on_plane, grid, directions, flat, distance):  # type: ignore[no-untyped-def]
    """Moved point, target normal and distance to the target's plane (N, 7) of every point that has a match."""
    rows = np.empty((points.shape[0] + on_plane.shape[0], 7))
    count = 0
    rotation, shift = motion[:3, :3], motion[:3, 3]
    for row in range(points.shape[0]):
        x = rotation[0, 0] * points[row, 0] + rotation[0, 1] * points[row, 1] + rotation[0, 2] * points[row, 2]
        y = rotation[1, 0] * points[row, 0] + rotation[1, 1] * points[row, 1] + rotation[1, 2] * points[row, 2]
        z = rotation[2, 0] * points[row, 0] + rotation[2, 1] * points[row, 1] + rotation[2, 2] * points[row, 2]
        x, y, z = x + shift[0], y + shift[1], z + shift[2]
        a = rotation[0, 0] * normals[row, 0] + rotation[0, 1] * normals[row, 1] + rotation[0, 2] * normals[row, 2]
        b = rotation[1, 0] * normals[row, 0] + rotation[1, 1] * normals[row, 1] + rotation[1, 2] * normals[row, 2]
        c = rotation[2, 0] * normals[row, 0] + rotation[2, 1] * normals[row, 1] + rotation[2, 2] * normals[row, 2]
        match = nearest_facing(grid, directions, (x, y, z), (a, b, c), distance, _LEAST_NORMAL_COSINE)
        if match < 0:
            continue
        rows[count, 0], rows[count, 1], rows[count, 2] = x, y, z
        offset = 0.0
        for axis in range(3):
            rows[count, 3 + axis] = directions[match, axis]
            offset += (rows[count, axis] - grid.points[match, axis]) * directions[match, axis]
        rows[count, 6] = offset
        count += 1
    for row in range(on_plane.shape[0]):
        offset = -flat[3]
        for axis in range(3):
            moved = shift[axis]
            for other in range(3):
                moved += rotation[axis, other] * on_plane[row, other]
            rows[count, axis] = moved
            rows[count, 3 + axis] = flat[axis]
            offset += moved * flat[axis]
        rows[count, 6] = offset
        if abs(offset) < distance:
            count += 1
    return rows[:count]
