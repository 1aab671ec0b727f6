"""How near a cover comes to a target, said before it moves."""

from __future__ import annotations

import time as clock
from dataclasses import replace

import numpy as np

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.controller import CoverController
from morphit_ros.cover.control.reach import Reach, ReachWatch
from morphit_ros.cover.goals.targets import SurfaceTarget, TargetSample
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.motion import MotorMotion
from morphit_ros.cover.state import CoverState
from morphit_ros.geometry.transforms import Array

# Greatest turn of a joint in a step of a forecast [rad], its steps, and those without getting nearer that end it.
_FORECAST_TURN, _FORECAST_STEPS, _FORECAST_PATIENCE = 0.02, 400, 100
# Share of an error that a step of a forecast takes away at most.
_FORECAST_GAIN = 1.0


def forecast_reach(
    cover: Cover,
    state: CoverState,
    target: SurfaceTarget,
    config: ControllerConfig | None = None,
    time: float = 0.0,
    time_limit: float = np.inf,
) -> Reach:
    """How near a cover comes to a target, found in large steps before anything moves.

    The target is held at `time` [s]. Limits of range, collision and motors count, rates don't: a cover that is given
    long enough. A local optimum, as the controller's own. Limits hold where a step begins, not all along it: steps of a
    forecast are too large to be predicted as a whole.

    Args:
        time_limit: of the search [s of wall time]; what was found by then is not `Reach.settled`.

    Raises:
        InvalidInputError: no motors, or a state of another cover.
    """
    config = config or ControllerConfig()
    held = _Held(target, time)
    # The same programme in longer periods. Gains fall together: their ratio decides where the cover comes to rest.
    period = max(config.period, _FORECAST_TURN / config.rate_limit)
    slower = min(1.0, _FORECAST_GAIN * (1.0 + config.gain_offset) / (max(config.gain, 1e-9) * period))
    coarse = replace(
        config, period=min(period, 1.0), gain=slower * config.gain, position_gain=slower * config.position_gain,
        whole_step=False, acceleration_limit=0.0, variation_weight=0.0,
        greatest_rate=min(config.greatest_rate, 5.0), condition_time=10.0 * period, collision_time=10.0 * period,
        reach_time=0.0,
    )  # fmt: skip
    shared = NullSpaceSolver(cover)
    controller, motion = CoverController(cover, coarse, null_space=shared), MotorMotion(cover, state.rotations, shared)
    watch = ReachWatch(coarse, cover.pitch)
    end, stalled, settled = clock.monotonic() + time_limit, 0, False
    for _ in range(_FORECAST_STEPS):
        found = controller.step(state, held, time)
        before = watch.best
        watch.update(held, held.sample(state.positions(cover), time), found.angles)
        stalled = 0 if watch.best is not before else stalled + 1
        if not found.status.moves or stalled > _FORECAST_PATIENCE:
            settled = True
            break
        if clock.monotonic() > end:
            break
        rotations, moved = motion.advance(state.rotations, found.rates, coarse.period)
        if not moved:
            settled = True
            break
        state = CoverState(rotations, state.origin)
    return replace(watch.best, settled=settled)


class _Held:
    """A target that stands still."""

    def __init__(self, target: SurfaceTarget, time: float) -> None:
        self._target, self._time = target, time

    def sample(self, positions: Array, time: float) -> TargetSample:
        found = self._target.sample(positions, self._time)
        return replace(
            found, normal_rates=np.zeros_like(found.normal_rates), velocities=np.zeros_like(found.velocities)
        )
