"""How fast a robot may go along a planned trajectory so that it can always stop on it before it is too near.

The trajectory's time is slowed, its path stays. Piece by piece, ahead of the robot, the path is proven to keep all
least separations, as of `separation`: chords by `is_way_clear`, less what the path bends away from them and what the
robot is beside it. The scale is the greatest with which the robot, after its reaction time, stops on what is proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.motion_types import Trajectory
from morphit_ros.superovoid.robots.separation import SeparationFilter

# Pieces of a path, of its own time: those tried first, the least, and how many proofs a step may try [s].
_LONGEST, _SHORTEST, _PROOFS = 0.05, 0.0005, 24


@dataclass(frozen=True)
class ScaleStep:
    """How a trajectory may go on.

    Attributes:
        scale: speed over that of the trajectory, 0 to 1.
        time: of the trajectory, where the robot is on it [s].
        proven: time of the trajectory up to which all separations are proven to be kept [s].
        on_path: whether the robot is within `tracking_error` of the path; if not, nothing is proven and the scale is 0.
    """

    scale: float
    time: float
    proven: float
    on_path: bool


class SeparationScale:
    """Follows one trajectory with the robot, the world and the limits of a `SeparationFilter`.

    Objects stand still but for people, who may walk at their speeds from where they are until the robot stands, from
    whatever scale. After `SeparationFilter.set_world` what is ahead is proven anew. The filter is not stepped by this.

    The scale falls at most by `rate`; joints then brake by no more than their acceleration limits beside what the
    trajectory itself accelerates them by.

    Raises:
        InvalidInputError: joints of the trajectory that the robot does not have, velocities that are not finite, or a
            joint of which neither says where it is.
    """

    def __init__(self, kept: SeparationFilter, trajectory: Trajectory, others: Mapping[str, float]) -> None:
        """
        Args:
            kept: of the same robot.
            trajectory: of some or all of its joints.
            others: name → position of the joints that stand [rad or m]; further names are ignored.
        """
        names = kept.joint_names
        unknown = set(trajectory.joint_names) - set(names)
        missing = set(names) - set(trajectory.joint_names) - set(others)
        if unknown or missing or not np.isfinite(trajectory.velocities).all():
            found = ", ".join(sorted(unknown | missing)) or "velocities that are not finite"
            raise InvalidInputError("trajectory", found, f"the joints {', '.join(names)}, in it or beside it")
        columns = [names.index(name) for name in trajectory.joint_names]
        self._standing = np.setdiff1d(np.arange(len(names)), columns)
        count = len(trajectory.times)
        self._positions = np.tile([others.get(name, 0.0) for name in names], (count, 1))
        self._velocities = np.zeros((count, len(names)))
        self._positions[:, columns], self._velocities[:, columns] = trajectory.positions, trajectory.velocities
        self._path = Trajectory(names, trajectory.times, self._positions, self._velocities)
        self._kept, self._query = kept, kept.query
        fastest = np.max(np.abs(self._peak_velocities()), axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            self.rate = float(min(np.min(kept.acceleration_limits / fastest), 1e3))
        self._scale, self._blocked = 0.0, False
        # A path that begins at rest may begin at any scale: what has no velocity is not accelerated by it.
        self._may_leap = not self._velocities[0].any()
        self._time = self._proven = float(trajectory.times[0])

    @property
    def duration(self) -> float:
        """Time of the path's end [s]."""
        return float(self._path.times[-1])

    def step(self, positions: ArrayLike) -> ScaleStep:
        """The scale for one period.

        Args:
            positions: (J,) where the robot is, in the order of the filter's joints [rad or m].
        """
        config = self._kept.config
        here = np.asarray(positions, dtype=np.float64)
        self._follow_standing(here)
        self._time, away = self._nearest(here)
        if self._query is not self._kept.query:
            self._query, self._proven, self._blocked = self._kept.query, self._time, False
        reaction, period, rate = config.reaction_time, config.period, self.rate
        self._prove(self._time + reaction + period + 0.5 / rate)
        room = self._proven - self._time if self._proven < self._path.duration else math.inf
        # Until a command takes effect, the last one goes on.
        scale = self._stopping_within(room, reaction + period)
        if scale < self._scale:
            scale = min(self._stopping_within(room - reaction * self._scale, period), self._scale)
        scale = min(scale, 1.0, 1.0 if self._may_leap else self._scale + rate * period)
        self._may_leap = False
        on_path = bool((away <= config.tracking_error).all())
        # What is not proven any more: braking on the path is the best that is known.
        self._scale = max(scale if on_path else 0.0, self._scale - rate * period, 0.0)
        return ScaleStep(self._scale, self._time, self._proven, on_path)

    def _follow_standing(self, here: Array) -> None:
        """Joints beside the trajectory, such as fingers, are where they are measured; what is ahead is proven anew."""
        rest = self._standing
        if (np.abs(here[rest] - self._positions[0, rest]) > self._kept.config.tracking_error).any():
            self._positions[:, rest] = here[rest]
            self._path = Trajectory(self._path.joint_names, self._path.times, self._positions, self._velocities)
            self._proven, self._blocked = self._time, False

    def _stopping_within(self, room: float, held: float) -> float:
        """The greatest scale that, held so long and then braked, needs no more than some time of the trajectory."""
        if room <= 0.0 or math.isinf(room):
            return 0.0 if room <= 0.0 else 1.0
        return self.rate * (math.sqrt(held * held + 2.0 * room / self.rate) - held)

    def _nearest(self, positions: Array) -> tuple[float, Array]:
        """Time of the path's point nearest to the robot, not before the last one, and what each joint is beside it."""
        config, path = self._kept.config, self._path
        ahead = min(2.0 * (config.period + config.reaction_time) + 0.1, path.duration - self._time)
        low, high = self._time, self._time + max(ahead, 0.0)
        for _ in range(5):
            times = np.linspace(low, high, 17)
            gaps = np.array([np.abs(path.sample(time) - positions).max() for time in times])
            best = int(gaps.argmin())
            low, high = times[max(best - 1, 0)], times[min(best + 1, 16)]
        return float(times[best]), np.abs(path.sample(float(times[best])) - positions)

    def _prove(self, horizon: float) -> None:
        """Prove pieces up to a time, or to the first that cannot be; a bounded number of tries."""
        horizon, length = min(horizon, self._path.duration), _LONGEST
        for _ in range(_PROOFS):
            if self._blocked or self._proven >= horizon:
                return
            end = min(self._proven + length, self._row_end(self._proven))
            if self._is_clear(self._proven, end):
                self._proven = end
            elif end - self._proven <= _SHORTEST:
                self._blocked = True
            else:
                length = 0.5 * (end - self._proven)

    def _row_end(self, time: float) -> float:
        times = self._path.times
        return float(times[min(int(np.searchsorted(times, time, side="right")), len(times) - 1)])

    def _is_clear(self, begin: float, end: float) -> bool:
        """Whether all separations are kept on the path from one time to another, between two rows of it."""
        kept, path = self._kept, self._path
        start, goal = path.sample(begin), path.sample(end)
        distances = self._query.distances(start)
        # Beside the chord the path is at most this.
        bent = self._peak_accelerations(begin) * (end - begin) ** 2 / 8.0
        # A point goes farther by that where its reach has grown on the chord: what both together can move it, less
        # what the chord alone can, holds this too.
        moved, beside = np.abs(goal - start), bent + kept.config.tracking_error
        both = self._query.approach_bounds(distances.joints, moved + beside, 1.0)[:, 0]
        aside = both - self._query.approach_bounds(distances.joints, moved, 1.0)[:, 0]
        stop = kept.config.period + kept.config.reaction_time + 1.0 / self.rate
        needed = kept.separations + kept.walking_speeds * stop + aside
        nothing = np.full(len(needed), -np.inf)
        duration = max(end - begin, 1e-9)
        return self._query.is_way_clear(distances.joints, start, (goal - start) / duration, duration, needed, nothing)

    def _peak_accelerations(self, time: float) -> Array:
        """(J,) greatest accelerations of the path between the rows around a time: at one of both."""
        times, q, v = self._path.times, self._positions, self._velocities
        row = min(max(int(np.searchsorted(times, time, side="right")) - 1, 0), len(times) - 2)
        step = times[row + 1] - times[row]
        mean = (q[row + 1] - q[row]) / step
        first, last = 6.0 * mean - 4.0 * v[row] - 2.0 * v[row + 1], -6.0 * mean + 2.0 * v[row] + 4.0 * v[row + 1]
        peak: Array = np.maximum(np.abs(first), np.abs(last)) / step
        return peak

    def _peak_velocities(self) -> Array:
        """Velocities (., J), among which those of the path that are the greatest."""
        if len(self._path.times) < 2:
            return self._velocities
        mean = np.diff(self._positions, axis=0) / np.diff(self._path.times)[:, None]
        # Parabolas between the rows; what they have in the middle as Bézier curves.
        first, last = self._velocities[:-1], self._velocities[1:]
        middle = 3.0 * mean - first - last
        bend = first - 2.0 * middle + last
        share = np.clip((first - middle) / np.where(bend == 0.0, 1.0, bend), 0.0, 1.0)
        turning = first + 2.0 * share * (middle - first) + share**2 * bend
        return np.concatenate([self._velocities, turning])
