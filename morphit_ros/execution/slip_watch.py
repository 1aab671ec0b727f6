"""Is what was grasped still held: total change, drift and effort of the fingers since the grasp."""

from __future__ import annotations

import numpy as np

from morphit_ros.execution.failure import OBJECT_LOST, FailureMode, PickFailed
from morphit_ros.execution.sequence_config import SlipConfig

# A gripper that reports less than this reports no force at all [N, or the unit of its driver].
_LEAST_EFFORT = 0.05


class SlipWatch:
    """Begins when the fingers rest on the object.

    Args:
        config: bounds.
        aperture: at the grasp [m].
        empty: aperture at which the fingers hold nothing [m].
        effort: of the fingers at the grasp, None where it is not reported.
    """

    def __init__(self, config: SlipConfig, aperture: float, empty: float, effort: float | None) -> None:
        self._config = config
        self._grasped, self._empty = aperture, empty
        self._effort = effort if effort is not None and effort > _LEAST_EFFORT else None
        self._history: list[tuple[float, float]] = []
        self._weak_since: float | None = None
        self._begin: float | None = None

    def check(self, now: float, aperture: float, effort: float | None) -> None:
        """Look at the fingers.

        Raises:
            PickFailed: LOST if they hold nothing any longer, SLIPPED while the object may still be between them.
        """
        self._begin = now if self._begin is None else self._begin
        self._history.append((now, aperture))
        before, after = 1000.0 * self._grasped, 1000.0 * aperture
        if aperture <= self._empty:
            raise PickFailed(FailureMode.LOST, f"{OBJECT_LOST}: the fingers closed from {before:.1f} to {after:.1f} mm")
        if abs(aperture - self._grasped) > self._config.margin:
            verb = "closed" if aperture < self._grasped else "were forced open"
            raise PickFailed(
                FailureMode.SLIPPED, f"the object slips: the fingers {verb} from {before:.1f} to {after:.1f} mm"
            )
        drift = self._drift(now)
        if abs(drift) > self._config.rate:
            raise PickFailed(FailureMode.SLIPPED, f"the object slips: the aperture drifts by {1000.0 * drift:.1f} mm/s")
        self._check_effort(now, effort)

    def _drift(self, now: float) -> float:
        """Slope of the aperture over the window [m/s], zero before a whole one has passed since the object settled."""
        first = next((i for i, (time, _) in enumerate(self._history) if time > now - self._config.window), 0)
        self._history = self._history[max(0, first - 1) :]
        times, apertures = np.array(self._history).T
        settled = now - (self._begin or 0.0) >= self._config.settle_time + self._config.window
        if not settled or now - times[0] < self._config.window:
            return 0.0
        times = times - times.mean()
        return float(times @ apertures / (times @ times))

    def _check_effort(self, now: float, effort: float | None) -> None:
        if self._effort is None or effort is None or effort >= self._config.effort_share * self._effort:
            self._weak_since = None
            return
        if self._weak_since is None:
            self._weak_since = now
        elif now - self._weak_since >= 0.5 * self._config.window:
            fallen = f"from {self._effort:.1f} to {effort:.1f}"
            raise PickFailed(FailureMode.SLIPPED, f"the object slips: the effort of the fingers fell {fallen}")
