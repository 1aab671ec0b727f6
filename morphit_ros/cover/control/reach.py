"""What a cover cannot reach: said before it moves, by a forecast, and while it moves, by how near it still comes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.goals.targets import SurfaceTarget, TargetSample
from morphit_ros.cover.model import Cover
from morphit_ros.cover.motion import MotorMotion
from morphit_ros.cover.state import CoverState
from morphit_ros.geometry.transforms import Array

# A target whose normals turn [rad/s] or whose points move [m/s] faster than this isn't at rest.
_STILL_TURN, _STILL_SPEED = 1e-3, 1e-4
# The error has to fall by this share to count as nearer.
_NEARER = 0.01
# Greatest turn of a joint in a step of a forecast [rad], its steps, and those without getting nearer that end it.
_FORECAST_TURN, _FORECAST_STEPS, _FORECAST_PATIENCE = 0.02, 250, 40
# Share of an error that a step of a forecast takes away at most.
_FORECAST_GAIN = 1.0


@dataclass(frozen=True)
class Reach:
    """How near a cover comes to a target.

    Attributes:
        angle: mean angle between normals and the target's [rad].
        distance: mean position error [m].
        within: whether both are within `ControllerConfig.reach_angle` and `reach_distance`.
    """

    angle: float
    distance: float
    within: bool

    @property
    def description(self) -> str:
        """For people."""
        return f"best is {np.degrees(self.angle):.1f} degrees and {1e3 * self.distance:.1f} mm"


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
        self._least, self._waited = np.inf, 0.0
        self.best = Reach(np.inf, np.inf, False)

    def update(self, target: SurfaceTarget, sample: TargetSample, angles: Array) -> bool:
        """Take in a period; whether the cover has come no nearer for the configured time and is beyond tolerances."""
        config = self._config
        if target is not self._target or _moves(sample):
            self.reset()
            self._target = target
        angle, distance = float(angles.mean()), float(sample.distances.mean())
        error = angle + distance / self._pitch
        if error < (1.0 - _NEARER) * self._least:
            self._least, self._waited = error, 0.0
            within = angle <= config.reach_angle and distance <= config.reach_distance
            self.best = Reach(angle, distance, within)
        else:
            self._waited += config.period
        return config.reach_time > 0.0 and self._waited > config.reach_time and not self.best.within


def forecast_reach(
    cover: Cover, state: CoverState, target: SurfaceTarget, config: ControllerConfig | None = None, time: float = 0.0
) -> Reach:
    """How near a cover comes to a target, found in large steps before anything moves.

    The target is held at `time` [s]. Limits of range, collision and motors count, rates don't: a cover that is given
    long enough. A local optimum, as the controller's own.

    Raises:
        InvalidInputError: no motors, or a state of another cover.
    """
    from morphit_ros.cover.control.controller import CoverController
    from morphit_ros.cover.kinematics.null_space import NullSpaceSolver

    config = config or ControllerConfig()
    held = _Held(target, time)
    # The same programme in longer periods. Gains fall together: their ratio decides where the cover comes to rest.
    period = max(config.period, _FORECAST_TURN / config.rate_limit)
    slower = min(1.0, _FORECAST_GAIN * (1.0 + config.gain_offset) / (max(config.gain, 1e-9) * period))
    coarse = replace(
        config, period=min(period, 1.0), gain=slower * config.gain, position_gain=slower * config.position_gain,
        acceleration_limit=0.0, variation_weight=0.0, greatest_rate=min(config.greatest_rate, 5.0),
        condition_time=10.0 * period, collision_time=10.0 * period, reach_time=0.0,
    )  # fmt: skip
    shared = NullSpaceSolver(cover)
    controller, motion = CoverController(cover, coarse, null_space=shared), MotorMotion(cover, state.rotations, shared)
    watch = ReachWatch(coarse, cover.pitch)
    stalled = 0
    for _ in range(_FORECAST_STEPS):
        found = controller.step(state, held, time)
        before = watch.best
        watch.update(held, held.sample(state.positions(cover), time), found.angles)
        stalled = 0 if watch.best is not before else stalled + 1
        if not found.status.moves or stalled > _FORECAST_PATIENCE:
            break
        rotations, moved = motion.advance(state.rotations, found.rates, coarse.period)
        if not moved:
            break
        state = CoverState(rotations, state.origin)
    return watch.best


class _Held:
    """A target that stands still."""

    def __init__(self, target: SurfaceTarget, time: float) -> None:
        self._target, self._time = target, time

    def sample(self, positions: Array, time: float) -> TargetSample:
        found = self._target.sample(positions, self._time)
        return replace(
            found, normal_rates=np.zeros_like(found.normal_rates), velocities=np.zeros_like(found.velocities)
        )


def _moves(sample: TargetSample) -> bool:
    return bool(
        np.abs(sample.normal_rates).max(initial=0.0) > _STILL_TURN
        or np.abs(sample.velocities).max(initial=0.0) > _STILL_SPEED
    )
