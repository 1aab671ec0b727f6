"""What a cover cannot reach, said while it moves: how near it came, and that it comes no nearer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.goals.targets import SurfaceTarget, TargetSample
from morphit_ros.geometry.transforms import Array

# A target whose normals turn [rad/s] or whose points move [m/s] faster than this isn't at rest.
_STILL_TURN, _STILL_SPEED = 1e-3, 1e-4
# The error has to fall by this share to count as nearer.
_NEARER = 0.01
# An error that rises by more than this in a period [rad, pitches], and by more than joints can turn in so many, is that
# of another shape: the next phase of a target.
_JUMP, _JUMP_PERIODS = 0.05, 20.0


@dataclass(frozen=True)
class Reach:
    """How near a cover comes to a target.

    Attributes:
        angle: mean angle between normals and the target's [rad].
        distance: mean position error [m].
        within: whether both are within `ControllerConfig.reach_angle` and `reach_distance`.
        settled: false for a forecast that ran out of time, while the cover still came nearer.
    """

    angle: float
    distance: float
    within: bool
    settled: bool = True

    @property
    def description(self) -> str:
        """For people."""
        if not np.isfinite(self.angle + self.distance):
            return "no way to it is known"
        best = "best is" if self.settled else "best so far is"
        return f"{best} {np.degrees(self.angle):.1f} degrees and {1e3 * self.distance:.1f} mm"


class ReachWatch:
    """Follows whether a cover still comes nearer to a target at rest.

    Args:
        config: tolerances and the time after which a cover that comes no nearer has reached what it can.
        pitch: of the cover [m]; an error of a pitch counts like one of a radian.
    """

    def __init__(self, config: ControllerConfig, pitch: float) -> None:
        self._config, self._pitch = config, pitch
        self.reset()

    def reset(self) -> None:
        """Forget how near the cover came."""
        self._target: SurfaceTarget | None = None
        self._least, self._waited, self._last = np.inf, 0.0, np.inf
        self.best = Reach(np.inf, np.inf, False)

    def update(self, target: SurfaceTarget, sample: TargetSample, angles: Array) -> bool:
        """Take in a period; whether the cover has come no nearer for the configured time and is beyond tolerances."""
        config = self._config
        angle, distance = float(angles.mean()), float(sample.distances.mean())
        error = angle + distance / self._pitch
        jump = max(_JUMP, _JUMP_PERIODS * config.rate_limit * config.period)
        if target is not self._target or _moves(sample) or error - self._last > jump:
            self.reset()
            self._target = target
        self._last = error
        if error < (1.0 - _NEARER) * self._least:
            self._least, self._waited = error, 0.0
            within = angle <= config.reach_angle and distance <= config.reach_distance
            self.best = Reach(angle, distance, within)
        else:
            self._waited += config.period
        return config.reach_time > 0.0 and self._waited > config.reach_time and not self.best.within


def _moves(sample: TargetSample) -> bool:
    return bool(
        np.abs(sample.normal_rates).max(initial=0.0) > _STILL_TURN
        or np.abs(sample.velocities).max(initial=0.0) > _STILL_SPEED
    )
