"""Time along joint paths: speed profiles, and the exact peaks of a trajectory against its limits.

Between the rows of a `Trajectory` the motion is a cubic (Hermite): its acceleration is linear and
its velocity quadratic, so the peaks are known in closed form instead of being sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory

# Between two looks at what is carried [s].
_ROW_TIME = 0.01
# Stations between two positions of a line at which its speed is decided.
_STATIONS = 4


def peak_velocities(trajectory: Trajectory) -> Array:
    """Largest speed of each joint (J,) [rad/s], between rows included."""
    steps, start, end = _segments(trajectory)
    mean = np.diff(trajectory.positions, axis=0) / steps
    # v(s) = start + 2 s (3 mean - 2 start - end) + 3 s² (start + end - 2 mean), s in [0, 1].
    linear, quadratic = 2.0 * (3.0 * mean - 2.0 * start - end), 3.0 * (start + end - 2.0 * mean)
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.clip(np.nan_to_num(-linear / (2.0 * quadratic)), 0.0, 1.0)
    inner = start + vertex * linear + vertex**2 * quadratic
    peaks: Array = np.abs(np.concatenate([trajectory.velocities, inner])).max(axis=0)
    return peaks


def peak_accelerations(trajectory: Trajectory) -> Array:
    """Largest acceleration of each joint (J,) [rad/s²], between rows included."""
    steps, start, end = _segments(trajectory)
    if len(steps) == 0:
        return np.zeros(len(trajectory.joint_names))
    mean = np.diff(trajectory.positions, axis=0) / steps
    first = (6.0 * mean - 4.0 * start - 2.0 * end) / steps
    last = (-6.0 * mean + 2.0 * start + 4.0 * end) / steps
    peaks: Array = np.abs(np.concatenate([first, last])).max(axis=0)
    return peaks


def chord_deviations(trajectory: Trajectory) -> Array:
    """How far each joint is from the straight way between two rows at most (N - 1, J) [rad or m]."""
    steps, start, end = _segments(trajectory)
    mean = np.diff(trajectory.positions, axis=0) / steps
    # s (1 - s) step ((1 - s) (start - mean) - s (end - mean)), and s (1 - s)² is at most 4/27.
    deviations: Array = 4.0 / 27.0 * steps * (np.abs(start - mean) + np.abs(end - mean))
    return deviations


def _segments(trajectory: Trajectory) -> tuple[Array, Array, Array]:
    return np.diff(trajectory.times)[:, None], trajectory.velocities[:-1], trajectory.velocities[1:]


def slowed_to_limits(trajectory: Trajectory, velocity_limits: Array, acceleration_limits: Array) -> Trajectory:
    """The trajectory, slowed down as a whole until no joint exceeds a limit (J,); the path stays the same."""
    factor = max(
        1.0,
        float((peak_velocities(trajectory) / velocity_limits).max()),
        math.sqrt(float((peak_accelerations(trajectory) / acceleration_limits).max())),
    )
    return _slowed(trajectory, factor)


def slowed_for_load(trajectory: Trajectory, carried: Callable[[Array], Array], bound: float) -> Trajectory:
    """The trajectory, slowed down as a whole until what the arm carries is accelerated by no more than a bound.

    Args:
        trajectory: of the arm.
        carried: joint positions (J,) → the middle of what is carried (3,) [m].
        bound: of its acceleration [m/s²].
    """
    count = max(3, math.ceil(trajectory.duration / _ROW_TIME) + 1)
    times = np.linspace(0.0, trajectory.duration, count)
    step = times[1]
    places = np.array([carried(trajectory.sample(time)) for time in times])
    # It rests before and afterwards.
    places = np.concatenate([places[:1], places, places[-1:]])
    peak = float(np.linalg.norm(np.diff(places, 2, axis=0), axis=1).max()) / step**2 if step > 0.0 else 0.0
    return _slowed(trajectory, max(1.0, math.sqrt(peak / bound)))


def _slowed(trajectory: Trajectory, factor: float) -> Trajectory:
    if factor == 1.0:
        return trajectory
    return Trajectory(
        trajectory.joint_names, trajectory.times * factor, trajectory.positions, trajectory.velocities / factor
    )


def time_line(
    joint_names: tuple[str, ...],
    positions: Array,
    lengths: Array,
    speed: float,
    acceleration: float,
    velocity_limits: Array,
    acceleration_limits: Array,
    time_step: float,
) -> Trajectory:
    """Time a dense joint path so that the tip speeds up, cruises and slows down along it.

    Where the joints need more time, as near a singular position, it slows down there, and not all along.

    Args:
        joint_names: J names.
        positions: (N, J), N >= 2 [rad].
        lengths: (N,) way of the tip up to each position, strictly increasing from 0 [m or rad].
        speed, acceleration: largest of the tip, in the unit of `lengths`.
        velocity_limits, acceleration_limits: (J,) [rad/s], [rad/s²].
        time_step: of the rows [s].
    """
    from scipy.interpolate import CubicSpline

    path = CubicSpline(lengths, positions)
    total = float(lengths[-1])
    cruise = min(speed, math.sqrt(total * acceleration))
    ramp = cruise / acceleration
    duration = total / cruise + ramp
    times = np.linspace(0.0, duration, max(3, math.ceil(duration / time_step) + 1))
    # Distance and speed of a trapezoidal profile: the two ramps mirror each other.
    rising = np.minimum(times, duration - times)
    on_ramp = 0.5 * acceleration * np.minimum(rising, ramp) ** 2 + cruise * np.maximum(rising - ramp, 0.0)
    distance = np.where(times <= duration / 2.0, on_ramp, total - on_ramp)
    velocity = acceleration * np.minimum(rising, ramp)

    def timed(times: Array, distance: Array, velocity: Array) -> Trajectory:
        rows, rates = path(distance), path(distance, 1) * velocity[:, None]
        rows[0], rows[-1] = positions[0], positions[-1]
        rates[0] = rates[-1] = 0.0
        return slowed_to_limits(Trajectory(joint_names, times, rows, rates), velocity_limits, acceleration_limits)

    whole = timed(times, distance, velocity)
    if whole.duration <= times[-1]:
        return whole
    stations: Array = np.linspace(0.0, total, max(3, _STATIONS * (len(lengths) - 1) + 1))
    speeds = _speeds(stations, np.abs(path(stations, 1)), np.abs(path(stations, 2)), cruise, acceleration,
                     velocity_limits, acceleration_limits)  # fmt: skip
    return min(whole, timed(*_rows(stations, speeds, time_step)), key=lambda trajectory: trajectory.duration)


def _speeds(
    stations: Array, slopes: Array, bends: Array, cruise: float, acceleration: float, velocity_limits: Array,
    acceleration_limits: Array,
) -> Array:  # fmt: skip
    """Speeds (N,) of the tip at stations (N,) along a path, at rest at both ends, within the limits of time_line.

    `slopes` and `bends` (N, J) are magnitudes of each joint's first and second derivative along the path: half of its
    acceleration is for the bends, half for speeding up and slowing down.
    """
    least = 1e-12
    speeds = np.minimum(cruise, (velocity_limits / np.maximum(slopes, least)).min(axis=1))
    speeds = np.minimum(speeds, np.sqrt((0.5 * acceleration_limits / np.maximum(bends, least)).min(axis=1)))
    speeds[[0, -1]] = 0.0
    gains = np.minimum(acceleration, (0.5 * acceleration_limits / np.maximum(slopes, least)).min(axis=1))
    gains = 2.0 * np.minimum(gains[1:], gains[:-1]) * np.diff(stations)
    for step in range(len(gains)):
        speeds[step + 1] = min(speeds[step + 1], math.sqrt(speeds[step] ** 2 + gains[step]))
    for step in reversed(range(len(gains))):
        speeds[step] = min(speeds[step], math.sqrt(speeds[step + 1] ** 2 + gains[step]))
    return speeds


def _rows(stations: Array, speeds: Array, time_step: float) -> tuple[Array, Array, Array]:
    """Times, ways and speeds (M,) at about equal times, with constant accelerations between stations (N,)."""
    steps = 2.0 * np.diff(stations) / (speeds[1:] + speeds[:-1])
    ends = np.concatenate([[0.0], np.cumsum(steps)])
    times = np.linspace(0.0, ends[-1], max(3, math.ceil(ends[-1] / time_step) + 1))
    part = np.clip(np.searchsorted(ends, times, side="right") - 1, 0, len(steps) - 1)
    since, gains = times - ends[part], np.diff(speeds) / steps
    ways = stations[part] + (speeds[part] + 0.5 * gains[part] * since) * since
    return times, np.clip(ways, 0.0, stations[-1]), speeds[part] + gains[part] * since
