"""Point-to-plane ICP in the three directions of motion that a common support plane leaves: a turn and two shifts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.nearest_grid import NearestGrid, nearest_grid
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.perception.views.view import Surface

# Matches must face the same way: the two sides of a wall are different surfaces. A stricter bound would
# leave out the rounded normals at edges, which hold what flat faces leave open.
_LEAST_COSINE = 0.6
_STEPS = np.array([(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)])
_MOST_CELLS = 6_000_000


class NearestPoints(NamedTuple):
    """Points (N, 3) and normals (N, 3) of a surface, and the grid that finds those near a place."""

    grid: NearestGrid
    points: Array
    normals: Array


class TurnFit(NamedTuple):
    """Outcome of `align_turn`.

    Attributes:
        pose: (3,) yaw, x, y of the source's frame in the target's.
        residual: RMS point-to-plane distance of the matches [m], NaN without matches.
        matched: number of matches, both ways.
        information: (3, 3) Σ w JᵀJ of the matches, for a turn about `center` [m/rad] and shifts.
        center: (2,) of the matches in the target's frame.
    """

    pose: Array
    residual: float
    matched: int
    information: Array
    center: Array


def nearest_points(surface: Surface, size: float, reach: float) -> NearestPoints:
    """The lookup of a surface's points, for places up to about `reach` from one [m]."""
    low = surface.points.min(axis=0) - reach
    shape = np.ceil((surface.points.max(axis=0) + reach - low) / size).astype(np.int64) + 1
    while int(np.prod(shape)) > _MOST_CELLS:
        size *= 1.3
        shape = np.ceil((surface.points.max(axis=0) + reach - low) / size).astype(np.int64) + 1
    grid = nearest_grid(surface.points, low, shape, size, math.ceil(reach / size), reach)
    return NearestPoints(grid, surface.points, surface.normals)


def align_turn(
    pose: Array,
    source: NearestPoints,
    target: NearestPoints,
    distances: tuple[float, ...],
    iterations: int,
    most_points: int,
) -> TurnFit:
    """Fit a source to a target, matching both ways, from a start pose.

    Minimises Σ w ((R p + t − q)·n)² over yaw and shift, where q is the target's point near R p + t and n the
    mean of both normals (symmetric ICP, Rusinkiewicz 2019: at an edge, one view's normal stands for the other
    face), and the same for the target's points among the source's; w is Tukey's biweight.

    Args:
        pose: (3,) yaw, x, y to start from.
        source, target: lookups of both surfaces, their points in random order.
        distances: largest distance of a match [m], one stage each.
        iterations: largest number of steps at each stage.
        most_points: of each surface that are matched to the other.
    """
    current = np.array(pose, dtype=np.float64)
    for distance in distances:
        for _ in range(iterations):
            information, gradient, center, _, _ = _normal_equations(current, source, target, distance, most_points)
            damped = information + np.diag([1e-9, 1e-9, 1e-9]) + 1e-6 * np.diag(np.diag(information))
            step = -np.linalg.solve(damped, gradient)
            turn = min(0.1, max(-0.1, step[0]))
            shift = step[1:] * min(1.0, 0.02 / max(float(np.hypot(step[1], step[2])), 1e-12))
            c, s = math.cos(turn), math.sin(turn)
            arm = current[1:] - center
            current[1:] = center + shift + np.array([c * arm[0] - s * arm[1], s * arm[0] + c * arm[1]])
            current[0] += turn
            if abs(turn) < 2e-5 and np.hypot(*shift) < 2e-6:
                break
    information, _, center, squares, matched = _normal_equations(current, source, target, distances[-1], most_points)
    residual = math.sqrt(squares / matched) if matched else math.nan
    return TurnFit(current, residual, matched, information, center)


@njit(cache=True)
def nearest_row(fixed, x, y, z, nx, ny, nz, distance):  # type: ignore[no-untyped-def]
    """Row of the nearest compatible point that this cell or one beside it knows, −1 for none within the distance."""
    grid = fixed.grid
    i = math.floor((x - grid.low[0]) / grid.size)
    j = math.floor((y - grid.low[1]) / grid.size)
    k = math.floor((z - grid.low[2]) / grid.size)
    found = -1
    nearest = distance * distance
    for step in range(7):
        a, b, c = i + _STEPS[step, 0], j + _STEPS[step, 1], k + _STEPS[step, 2]
        if a < 0 or b < 0 or c < 0 or a >= grid.rows.shape[0] or b >= grid.rows.shape[1] or c >= grid.rows.shape[2]:
            continue
        other = grid.rows[a, b, c]
        if other < 0:
            continue
        dx, dy, dz = x - fixed.points[other, 0], y - fixed.points[other, 1], z - fixed.points[other, 2]
        squared = dx * dx + dy * dy + dz * dz
        if squared >= nearest:
            continue
        cosine = nx * fixed.normals[other, 0] + ny * fixed.normals[other, 1] + nz * fixed.normals[other, 2]
        if cosine < _LEAST_COSINE:
            continue
        found, nearest = other, squared
    return found


@njit(cache=True)
def _normal_equations(pose, source, target, distance, most_points):  # type: ignore[no-untyped-def]
    """Information (3, 3), gradient (3,), centre of the matches (2,), sum of squared offsets, number of matches."""
    most = min(source.points.shape[0], most_points) + min(target.points.shape[0], most_points)
    rows = np.empty((most, 5))
    count = 0
    c, s = math.cos(pose[0]), math.sin(pose[0])
    center = np.zeros(2)
    for side in range(2):
        moving, fixed = (source, target) if side == 0 else (target, source)
        for row in range(min(moving.points.shape[0], most_points)):
            px, py, pz = moving.points[row, 0], moving.points[row, 1], moving.points[row, 2]
            nx, ny, nz = moving.normals[row, 0], moving.normals[row, 1], moving.normals[row, 2]
            if side == 0:
                qx, qy = c * px - s * py + pose[1], s * px + c * py + pose[2]
                mx, my = c * nx - s * ny, s * nx + c * ny
            else:
                qx, qy = c * (px - pose[1]) + s * (py - pose[2]), -s * (px - pose[1]) + c * (py - pose[2])
                mx, my = c * nx + s * ny, -s * nx + c * ny
            other = nearest_row(fixed, qx, qy, pz, mx, my, nz, distance)
            if other < 0:
                continue
            ox, oy, oz = fixed.normals[other, 0] + mx, fixed.normals[other, 1] + my, fixed.normals[other, 2] + nz
            length = math.sqrt(ox * ox + oy * oy + oz * oz)
            ox, oy, oz = ox / length, oy / length, oz / length
            dx, dy, dz = qx - fixed.points[other, 0], qy - fixed.points[other, 1], pz - fixed.points[other, 2]
            offset = dx * ox + dy * oy + dz * oz
            if side == 0:
                x, y, hx, hy = qx, qy, ox, oy
            else:
                # In the target's frame: the matched source point's plane moves, the target's point stays.
                x, y = px, py
                hx, hy = -(c * ox - s * oy), -(s * ox + c * oy)
            rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = x, y, hx, hy
            rows[count, 4] = offset
            center[0] += x
            center[1] += y
            count += 1
    information, gradient = np.zeros((3, 3)), np.zeros(3)
    if count == 0:
        return information, gradient, center, 0.0, 0
    center /= count
    spread = 3.0 * max(1.4826 * np.median(np.abs(rows[:count, 4])), 3e-4)
    squares = 0.0
    for m in range(count):
        offset = rows[m, 4]
        squares += offset * offset
        scaled = offset / spread
        if abs(scaled) >= 1.0:
            continue
        weight = (1.0 - scaled * scaled) ** 2
        hx, hy = rows[m, 2], rows[m, 3]
        turn = (rows[m, 0] - center[0]) * hy - (rows[m, 1] - center[1]) * hx
        information[0, 0] += weight * turn * turn
        information[0, 1] += weight * turn * hx
        information[0, 2] += weight * turn * hy
        information[1, 1] += weight * hx * hx
        information[1, 2] += weight * hx * hy
        information[2, 2] += weight * hy * hy
        gradient[0] += weight * turn * offset
        gradient[1] += weight * hx * offset
        gradient[2] += weight * hy * offset
    information[1, 0], information[2, 0], information[2, 1] = information[0, 1], information[0, 2], information[1, 2]
    return information, gradient, center, squares, count
