"""Times along a joint path with corners: corners rounded by parabolas, then as fast as the joints allow.

Source: Pham and Pham 2018 (TOPP-RA). With the path q(s) and x = ṡ², u = s̈, joints accelerate by q' u + q'' x. Backwards
over the path the greatest x from which it can still be followed is found, forwards u is the greatest that stays below.
On straight pieces and parabolas q' is linear and q'' constant, so joints' accelerations are linear between grid points,
and limits that hold at both ends of a step hold within it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.robot.trajectory_timing import slowed_to_limits

# Grid points on a straight piece, per unit of its length and at least; and on a rounded corner.
_DENSITY, _LEAST, _CORNER = 30.0, 20, 6
# Corners nearer than this are one, and pieces within it of a line are straight, in the norm of joints.
_SAME = 1e-9
# Parts of a row's time in which speeds are averaged.
_FINE = 10
# Of the joints' accelerations in corners: rows are samples, and what was less than that was slowed down as a whole.
_IN_CORNERS = 0.6


class PathGrid(NamedTuple):
    """A path at grid points.

    Attributes:
        lengths: (N,) s, strictly increasing from 0.
        positions: (N, J) q.
        slopes: (N, J) q', continuous.
        curvatures: (N - 1, J) q'' of each step, constant there.
    """

    lengths: Array
    positions: Array
    slopes: Array
    curvatures: Array


def rounded_path(corners: Array, blend: float) -> PathGrid:
    """A path along straight pieces between corners, no joint further than `blend` from them where they are rounded.

    Args:
        corners: (N, J) [rad or m], at least two different ones in a row.
        blend: greatest deviation in the norm of joints; a parabola takes half of a piece at most.
    """
    rows = [corners[0]]
    rows += [row for before, row in pairwise(corners) if np.linalg.norm(row - before) > _SAME]
    steps = np.diff(rows, axis=0)
    ways = np.linalg.norm(steps, axis=1)
    units = steps / ways[:, None]
    # How far from each corner its parabola begins: its middle is a quarter of that times the turn away.
    turns = np.linalg.norm(np.diff(units, axis=0), axis=1)
    room = np.minimum(ways[:-1], ways[1:]) / 2.0
    cuts = np.where(turns > _SAME, np.minimum(4.0 * blend / np.maximum(turns, _SAME), room), 0.0)
    cuts = np.concatenate([[0.0], cuts, [0.0]])
    lengths, positions, slopes, curvatures = [0.0], [rows[0]], [units[0]], []
    for piece, (unit, way) in enumerate(zip(units, ways, strict=True)):
        straight = way - cuts[piece] - cuts[piece + 1]
        begin = rows[piece] + cuts[piece] * unit
        if straight > _SAME:
            count = max(_LEAST, math.ceil(_DENSITY * straight))
            for share in np.arange(1, count + 1) / count:
                lengths.append(lengths[-1] + straight / count)
                positions.append(begin + share * straight * unit)
                slopes.append(unit)
                curvatures.append(np.zeros_like(unit))
        if piece + 1 == len(ways) or cuts[piece + 1] == 0.0:
            continue
        cut, after = cuts[piece + 1], units[piece + 1]
        enter, bend = rows[piece + 1] - cut * unit, (after - unit) / (2.0 * cut)
        for share in np.arange(1, _CORNER + 1) / _CORNER:
            along = 2.0 * cut * share
            lengths.append(lengths[-1] + 2.0 * cut / _CORNER)
            positions.append(enter + along * unit + 0.5 * along**2 * bend)
            slopes.append(unit + along * bend)
            curvatures.append(bend)
    positions[-1] = rows[-1]
    return PathGrid(np.array(lengths), np.array(positions), np.array(slopes), np.array(curvatures))


@njit(cache=True, nogil=True)
def _bounds(
    slope: Array, curvature: Array, end_slope: Array, step: float, limits: Array, x: float, most: float, found: Array
) -> None:
    """Least and greatest u at x, and how fast each changes with x: [least, its rate, greatest, its rate].

    At both ends of a step joints keep their limits, and x is between 0 and `most` at its end.
    """
    found[0], found[1] = -x / (2.0 * step), -1.0 / (2.0 * step)
    found[2], found[3] = (most - x) / (2.0 * step), -1.0 / (2.0 * step)
    for j in range(len(slope)):
        for end in range(2):
            # a u + b x between the limits; at the end x has grown by 2 step u.
            a = slope[j] if end == 0 else end_slope[j] + 2.0 * step * curvature[j]
            b = curvature[j]
            if abs(a) < 1e-12:
                continue
            first, second = (-limits[j] - b * x) / a, (limits[j] - b * x) / a
            low, high = min(first, second), max(first, second)
            if low > found[0]:
                found[0], found[1] = low, -b / a
            if high < found[2]:
                found[2], found[3] = high, -b / a


@njit(cache=True, nogil=True)
def _speeds(grid: PathGrid, velocity_limits: Array, acceleration_limits: Array) -> Array:
    """Squares of ṡ (N,) at the grid points, from rest to rest."""
    count, joints = grid.slopes.shape
    most = np.empty(count)
    for n in range(count):
        most[n] = np.inf
        for j in range(joints):
            slope = abs(grid.slopes[n, j])
            if slope > 1e-12:
                most[n] = min(most[n], (velocity_limits[j] / slope) ** 2)
            # No u changes an acceleration that only the curvature makes.
            for step in range(max(n - 1, 0), min(n + 1, count - 1)):
                bend = abs(grid.curvatures[step, j])
                if slope <= 1e-12 and bend > 1e-12:
                    most[n] = min(most[n], acceleration_limits[j] / bend)
    most[0] = most[count - 1] = 0.0
    found = np.empty(4)
    for n in range(count - 2, -1, -1):
        step = grid.lengths[n + 1] - grid.lengths[n]
        x = most[n]
        # The room for u is concave in x: Newton's steps from above never pass its zero.
        for _ in range(100):
            _bounds(
                grid.slopes[n], grid.curvatures[n], grid.slopes[n + 1], step, acceleration_limits, x, most[n + 1], found
            )
            gap = found[2] - found[0]
            if gap >= -1e-12 * (abs(found[0]) + abs(found[2])):
                break
            rate = found[3] - found[1]
            x = max(x - gap / rate, 0.0) if rate < 0.0 else 0.0
        most[n] = x
    speeds = np.zeros(count)
    for n in range(count - 1):
        step = grid.lengths[n + 1] - grid.lengths[n]
        _bounds(
            grid.slopes[n], grid.curvatures[n], grid.slopes[n + 1], step, acceleration_limits, speeds[n],
            most[n + 1], found,
        )  # fmt: skip
        u = max(found[2], found[0])
        speeds[n + 1] = min(max(speeds[n] + 2.0 * step * u, 0.0), most[n + 1])
    return speeds


def time_path(
    joint_names: tuple[str, ...],
    corners: Array,
    blend: float,
    velocity_limits: Array,
    acceleration_limits: Array,
    time_step: float,
) -> Trajectory:
    """The fastest motion along a path from rest to rest within the joints' limits, its corners rounded.

    Args:
        joint_names: J names.
        corners: (N, J) [rad or m].
        blend: of `rounded_path`; with 0 the motion stops in each corner.
        velocity_limits, acceleration_limits: (J,) [rad/s], [rad/s²] (or m).
        time_step: between rows of the trajectory, at most [s].

    Raises:
        InvalidInputError: limits that are not positive, or a negative blend.
    """
    corners = np.ascontiguousarray(corners, dtype=np.float64)
    for name, limits in (("velocity_limits", velocity_limits), ("acceleration_limits", acceleration_limits)):
        if not (np.asarray(limits) > 0.0).all():
            raise InvalidInputError(name, np.asarray(limits).tolist(), "positive numbers")
    if not blend >= 0.0:
        raise InvalidInputError("blend", blend, "0 or more")
    if np.linalg.norm(np.diff(corners, axis=0), axis=1).sum() <= _SAME:
        return Trajectory(joint_names, np.zeros(1), corners[:1], np.zeros((1, corners.shape[1])))
    if blend == 0.0 and len(corners) > 2:
        pieces = [
            time_path(joint_names, corners[n : n + 2], 0.0, velocity_limits, acceleration_limits, time_step)
            for n in range(len(corners) - 1)
        ]
        return _joined([piece for piece in pieces if len(piece.times) > 1])
    grid = rounded_path(corners, blend)
    tightened = grid._replace(curvatures=grid.curvatures / _IN_CORNERS)
    speeds = np.sqrt(_speeds(tightened, np.asarray(velocity_limits, float), np.asarray(acceleration_limits, float)))
    times, lengths, rates = _smoothed(grid.lengths, speeds, time_step)
    row = np.clip(np.searchsorted(grid.lengths, lengths, side="right") - 1, 0, len(grid.lengths) - 2)
    along, curvatures = (lengths - grid.lengths[row])[:, None], grid.curvatures[row]
    positions = grid.positions[row] + along * grid.slopes[row] + 0.5 * along**2 * curvatures
    velocities = rates[:, None] * (grid.slopes[row] + along * curvatures)
    positions[0], positions[-1] = corners[0], corners[-1]
    velocities[0] = velocities[-1] = 0.0
    # A speed may have moved into a corner, and rows are samples: the cubics between them may ask for a little more.
    return slowed_to_limits(Trajectory(joint_names, times, positions, velocities), velocity_limits, acceleration_limits)


def _smoothed(lengths: Array, speeds: Array, time_step: float) -> tuple[Array, Array, Array]:
    """Rows of a motion along a path: times, way and speed (R,), the speed a mean over two rows.

    The fastest motion jumps from full acceleration to full deceleration, which no joint does, and no cubic follows.

    Args:
        lengths, speeds: (N,) at the grid points.
        time_step: between rows, at most [s].
    """
    ends = np.concatenate([[0.0], np.cumsum(2.0 * np.diff(lengths) / np.maximum(speeds[:-1] + speeds[1:], 1e-12))])
    rows = max(1, math.ceil(ends[-1] / time_step))
    step = ends[-1] / (rows * _FINE)
    fine = np.arange(-_FINE, rows * _FINE + _FINE + 1) * step
    piece = np.clip(np.searchsorted(ends, fine, side="right") - 1, 0, len(lengths) - 2)
    passed = np.clip(fine, 0.0, ends[-1]) - ends[piece]
    gain = (speeds[piece + 1] ** 2 - speeds[piece] ** 2) / (2.0 * (lengths[piece + 1] - lengths[piece]))
    way = np.clip(lengths[piece] + speeds[piece] * passed + 0.5 * gain * passed**2, 0.0, lengths[-1])
    # The mean of the way over a window, whose rate is the difference of its ends.
    window = 2 * _FINE
    padded = np.concatenate([np.zeros(_FINE), way, np.full(_FINE, lengths[-1])])
    sums = np.concatenate([[0.0], np.cumsum(0.5 * (padded[1:] + padded[:-1]))])
    mean = (sums[window:] - sums[:-window]) / window
    rate = (padded[window:] - padded[:-window]) / (window * step)
    chosen = np.arange(0, len(mean), _FINE)
    return np.arange(len(chosen)) * (step * _FINE), np.clip(mean[chosen], 0.0, lengths[-1]), rate[chosen]


def _joined(pieces: list[Trajectory]) -> Trajectory:
    """Trajectories that begin where the one before ends, at rest, one after the other."""
    times, begin = [np.zeros(1)], 0.0
    for piece in pieces:
        times.append(begin + piece.times[1:])
        begin = float(times[-1][-1])
    positions = np.concatenate([pieces[0].positions[:1], *(piece.positions[1:] for piece in pieces)])
    velocities = np.concatenate([pieces[0].velocities[:1], *(piece.velocities[1:] for piece in pieces)])
    return Trajectory(pieces[0].joint_names, np.concatenate(times), positions, velocities)
