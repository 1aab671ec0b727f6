"""Ways to a target over a shape in between, where the straight way ends in a local optimum.

The controller goes downhill: folds that it made for the last shape stay where they hold each other (the paper's 4 x 8
cover is told to become a cylinder along its mount and keeps folds across it). A shape in between that is told for some
of the time lets them change. It is searched for by trying: quadrics between the present shape and the target, bent
and twisted by chance, and then ever closer to the best ones (cross-entropy method), in steps longer than the
controller's. The best are tried at the controller's own period, without and with noise: which folds come is often
decided by little, and a way that noise leads elsewhere is none.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.reach import Reach
from morphit_ros.cover.control.step import StepResult
from morphit_ros.cover.goals.targets import DetourTarget, HeightTarget, LaterTarget, SurfaceTarget
from morphit_ros.cover.model import Cover
from morphit_ros.cover.noise import PAPER_NOISE, NoiseConfig
from morphit_ros.cover.simulation import CoverSimulationResult, SimulationConfig, simulate_cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Deviation of the first curvatures, as a share of the curvature at which joints reach the end of their range, and of
# the first slopes at the mount.
_CURVATURE_SHARE, _SLOPE = 0.15, 0.1
# Shares of the time that the shape in between may have, and the deviation of the first.
_LEAST_SHARE, _GREATEST_SHARE, _SHARE_SPREAD = 0.1, 0.7, 0.12
# Of a round these shares are the best, which the next one is drawn around, and of the deviation at least this is kept.
_ELITE, _KEPT_SPREAD = 0.25, 0.3
# Normals of a mount that leans further than this are no height function's.
_LEAST_UPRIGHT = 0.2


@dataclass(frozen=True)
class DetourConfig(Config):
    """How long ways over a shape in between are searched for."""

    shapes: int = parameter(0, "Shapes in between that are tried in a round; 0: none", minimum=0, maximum=10_000)
    rounds: int = parameter(3, "Rounds, each drawn around the best of the one before", minimum=1, maximum=100)
    coarse: int = parameter(4, "Periods of the controller in a step of the search", minimum=1, maximum=20)
    checked: int = parameter(3, "Best ones that are tried at the controller's own period", minimum=1, maximum=100)
    disturbed: int = parameter(3, "Tries with the paper's noise of each of these", minimum=0, maximum=100)
    enough_angle: float = parameter(
        float(np.radians(1.0)), "No search where the straight way ends nearer than this [rad]", minimum=0.0, maximum=3.2
    )
    least_gain: float = parameter(
        0.2, "Share of the straight way's error that another has to take away", minimum=0.0, maximum=1.0
    )
    time_limit: float = parameter(0.0, "Longest search [s of wall time]; 0: no limit", minimum=0.0)


def motion_time(cover: Cover, state: CoverState, target: SurfaceTarget, rate_limit: float) -> float:
    """How long a cover should be given for a target [s]: twice what its farthest normal would need by itself."""
    sample = target.sample(state.positions(cover), 0.0)
    angles = np.arccos(np.clip(np.einsum("ij,ij->i", state.normals(), sample.normals), -1.0, 1.0))
    return max(2.0 * float(angles.max()) / rate_limit, 1.0)


@dataclass(frozen=True)
class Detour:
    """The better way of those that were tried.

    Attributes:
        target: what to hand to the controller.
        formula: height of the shape in between; empty where the straight way is taken.
        start, end: when the shape in between is told [s].
        straight: how near the straight way ends, the mean of all tries.
        reached: likewise of the way that is taken.
        straight_errors, errors: (K, 2) mean angle [rad] and mean distance [m] of each try, the first without noise;
            none where the time limit ended the first.
        ends: where the tries of the way that is taken end.
        rates: (M,) motor rates of each at its end [rad/s].
        tries: runs that were simulated.
        seconds: process time of the search.
    """

    target: SurfaceTarget
    formula: str
    start: float
    end: float
    straight: Reach
    reached: Reach
    straight_errors: Array
    errors: Array
    ends: tuple[CoverState, ...]
    rates: tuple[Array, ...]
    tries: int
    seconds: float

    @property
    def description(self) -> str:
        """For people."""
        if not self.formula:
            return f"straight, {self.reached.description}"
        return (
            f"by way of {self.formula} until {self.end:.1f} s, {self.reached.description}, "
            f"straight {self.straight.description}"
        )


def plan_detour(
    cover: Cover,
    states: Sequence[CoverState],
    target: SurfaceTarget,
    duration: float,
    controller: ControllerConfig | None = None,
    config: DetourConfig | None = None,
    seed: int = 0,
    time: float = 0.0,
    noise: NoiseConfig = PAPER_NOISE,
    before: Sequence[Array] = (),
) -> Detour:
    """Whether a way over a shape in between ends nearer to a target than the straight one.

    Args:
        cover: with motors.
        states: where it may start, the likeliest first: that one is tried without noise, all by turns with it.
        target: where to.
        duration: until the cover shall be there [s].
        controller: gains, weights, limits and the period.
        config: how long is searched: at most as long as ``rounds * shapes / coarse + (checked + 1) * (1 + disturbed)``
            runs of that duration take. Where its time limit ends the search, what was checked by then counts, and the
            result is not `Reach.settled`.
        seed: of shapes and noise; the same seed gives the same way, unless the time limit ends the search.
        time: of the target at the start [s].
        noise: of the tries.
        before: (M,) motor rates before each of the starts [rad/s]; none for motors at rest. With a weight of their
            changes motors go on as before for seconds.

    Raises:
        InvalidInputError: no state, open joints, no motors.
    """
    if not states:
        raise InvalidInputError("states", "none", "at least one configuration")
    search = _Search(
        cover, states, target, duration, controller or ControllerConfig(), config or DetourConfig(), seed, time, noise,
        before,
    )  # fmt: skip
    return search.run()


def plan_detours(
    cover: Cover,
    state: CoverState,
    target: SurfaceTarget,
    duration: float,
    controller: ControllerConfig | None = None,
    config: DetourConfig | None = None,
    seed: int = 0,
) -> list[Detour]:
    """Ways for every phase of a target in turn, each from where those before end; the last one's target has them all.

    Args, Raises: as `plan_detour`, from t = 0; the time limit is that of all phases together.
    """
    phases = target.ends if isinstance(target, HeightTarget) else ()
    ends = [*(end for end in phases if end < duration), duration]
    controller, config = controller or ControllerConfig(), config or DetourConfig()
    found: list[Detour] = []
    states: Sequence[CoverState] = (state,)
    before: Sequence[Array] = ()
    begun, last = 0.0, clock.monotonic() + (config.time_limit or np.inf)
    for number, end in enumerate(ends):
        start = begun
        # A phase holds until its end, inclusive.
        begun = duration if end == duration else controller.period * (np.floor(end / controller.period + 1e-9) + 1.0)
        left = max(last - clock.monotonic(), 1e-9) if config.time_limit else 0.0
        limited = replace(config, time_limit=left)
        detour = plan_detour(
            cover, states, target, begun - start, controller, limited, seed + number, start, before=before
        )
        found.append(detour)
        if not detour.ends:
            break
        target, states, before = detour.target, detour.ends, detour.rates
    return found


@dataclass(frozen=True)
class _Way:
    """A shape in between: share of the time, slopes at the mount and second derivatives xx, xy, yy [1/m]."""

    values: Array

    def target(self, center: Array) -> HeightTarget:
        return HeightTarget(self.formula(center))

    def formula(self, center: Array) -> str:
        _, gx, gy, xx, xy, yy = (float(value) for value in self.values)
        x, y = f"(x - {center[0]:g})".replace("- -", "+ "), f"(y - {center[1]:g})".replace("- -", "+ ")
        return (
            f"{0.5 * xx:.4g}*{x}**2 + {xy:.4g}*{x}*{y} + {0.5 * yy:.4g}*{y}**2 + {gx:.4g}*{x} + {gy:.4g}*{y} "
            f"+ {center[2]:g}"
        ).replace("+ -", "- ")


class _TimeOverError(Exception):
    """Ends a run within the search."""


class _Search:
    def __init__(
        self, cover: Cover, states: Sequence[CoverState], target: SurfaceTarget, duration: float,
        controller: ControllerConfig, config: DetourConfig, seed: int, time: float, noise: NoiseConfig,
        before: Sequence[Array],
    ) -> None:  # fmt: skip
        self._cover, self._states, self._target, self._duration = cover, states, target, duration
        self._controller, self._config, self._seed, self._time = controller, config, seed, time
        self._before = before
        self._noise, self._begun, self._spent = noise, clock.monotonic(), clock.process_time()
        self._rng = np.random.default_rng(seed)
        self._tries = 0
        fixed = states[0].positions(cover)[list(cover.fixed_nodes)]
        # To a tenth of a millimetre: what is printed is what is told.
        self._center = np.round(fixed.mean(axis=0), 4) + 0.0

    @property
    def _late(self) -> bool:
        """Whether the time limit is over."""
        limit = self._config.time_limit
        return 0.0 < limit < clock.monotonic() - self._begun

    def _watch(self, _time: float, _step: StepResult) -> None:
        if self._late:
            raise _TimeOverError

    def run(self) -> Detour:
        config, (errors, runs) = self._config, self._tried(None, np.inf)
        straight = _reach(errors, self._controller, True)
        straight_errors = errors
        target, formula, until = self._target, "", self._time
        ways = [] if straight.angle <= config.enough_angle or not len(errors) else self._drawn()
        least = (1.0 - config.least_gain) * self._cost(errors)
        for way in ways:
            found, tries = self._tried(way, least)
            cost = self._cost(found)
            if len(found) == len(straight_errors) and cost < least:
                least, errors, runs = cost, found, tries
                formula, until = way.formula(self._center), self._time + way.values[0] * self._duration
                target = DetourTarget(self._target, way.target(self._center), self._time, until)
        best = _reach(errors, self._controller, not self._late)
        return Detour(
            target, formula, self._time, until, straight, best, straight_errors, errors,
            tuple(run.state for run in runs), tuple(run.rates[-1] for run in runs), self._tries,
            clock.process_time() - self._spent,
        )  # fmt: skip

    def _drawn(self) -> list[_Way]:
        """The best ways of a search in long steps, the best first; none where the mount is no height function's."""
        config, prior = self._config, self._prior()
        if prior is None or not config.shapes:
            return []
        mean, spread, between = prior
        kept: list[tuple[float, int, _Way]] = []
        for number in range(config.rounds):
            for _ in range(config.shapes):
                values = mean + spread * self._rng.normal(size=len(mean))
                if number == 0:
                    values += (self._rng.uniform() - 0.5) * between
                values[0] = np.clip(values[0], _LEAST_SHARE, _GREATEST_SHARE)
                way = _Way(values)
                # Each with a noise of its own: what the best have in common stands it.
                run = self._simulate(way, len(kept), config.coarse, len(kept) + 1)
                if run is None:
                    break
                kept.append((self._cost(self._error(run)[None]), len(kept), way))
            kept.sort(key=lambda entry: entry[:2])
            elite = np.array([way.values for _, _, way in kept[: max(2, round(_ELITE * config.shapes))]])
            if not len(elite):
                return []
            mean, spread = elite.mean(axis=0), np.maximum(elite.std(axis=0), _KEPT_SPREAD ** (number + 1) * spread)
        return [_Way(mean), *(way for _, _, way in kept[: config.checked])][: config.checked]

    def _prior(self) -> tuple[Array, Array, Array] | None:
        """Mean and deviation of the first ways' values, and what leads from the start to the target."""
        positions, normal = self._states[0].positions(self._cover), self._states[0].normals()[self._cover.father]
        if normal[2] < _LEAST_UPRIGHT:
            return None
        sample = self._target.sample(positions, self._time + self._duration - self._controller.period)
        if not sample.finite:
            return None
        here, there = self._quadric(positions), self._quadric(positions - sample.offsets)
        slope = -normal[:2] / normal[2]
        greatest = self._cover.range_of_motion / self._cover.pitch
        mean = np.concatenate([[0.35], slope, 0.5 * (here + there)])
        spread = np.array([_SHARE_SPREAD, _SLOPE, _SLOPE, *[_CURVATURE_SHARE * greatest] * 3])
        return mean, spread, np.concatenate([np.zeros(3), there - here])

    def _quadric(self, points: Array) -> Array:
        """(3,) second derivatives xx, xy, yy of the quadric that fits points (N, 3) best [1/m]."""
        x, y, z = (points - self._center).T
        columns = np.stack([0.5 * x * x, x * y, 0.5 * y * y, x, y, np.ones_like(x)], axis=1)
        greatest = self._cover.range_of_motion / self._cover.pitch
        found = np.linalg.lstsq(columns / self._cover.pitch, z / self._cover.pitch, rcond=1e-6)[0][:3]
        return np.clip(found, -greatest, greatest)

    def _tried(self, way: _Way | None, least: float) -> tuple[Array, list[CoverSimulationResult]]:
        """Errors (K, 2) and runs of a way's tries, the first without noise; fewer where it cannot be below `least`."""
        errors: list[Array] = []
        runs: list[CoverSimulationResult] = []
        count = 1 + self._config.disturbed
        for number in range(count):
            run = self._simulate(way, number, 1, number)
            if run is None:
                break
            errors.append(self._error(run))
            runs.append(run)
            if len(errors) / count * self._cost(np.array(errors)) > least:
                break
        return np.array(errors).reshape(-1, 2), runs

    def _simulate(self, way: _Way | None, state: int, coarse: int, noisy: int) -> CoverSimulationResult | None:
        """A run from one of the states; `noisy` 0 is without noise, others have theirs. None: no time is left."""
        self._tries += 1
        target = self._target
        if way is not None:
            end = self._time + way.values[0] * self._duration
            target = DetourTarget(target, way.target(self._center), self._time, end)
        config = SimulationConfig(duration=self._duration, forecast_time=0.0)
        try:
            return simulate_cover(
                self._cover, self._states[state % len(self._states)], LaterTarget(target, self._time), config,
                _in_long_steps(self._controller, coarse), self._noise if noisy else None, self._seed + noisy,
                progress=self._watch, before=self._before[state % len(self._before)] if self._before else None,
            )  # fmt: skip
        except _TimeOverError:
            return None

    def _error(self, run: CoverSimulationResult) -> Array:
        """(2,) mean angle [rad] and mean distance [m] where a run ends."""
        # The last time at which the target is told: then there may be another phase.
        last = self._time + self._duration - self._controller.period
        sample = self._target.sample(run.state.positions(self._cover), last)
        angles = np.arccos(np.clip(np.einsum("ij,ij->i", run.state.normals(), sample.normals), -1.0, 1.0))
        return np.array([angles.mean(), sample.distances.mean()])

    def _cost(self, errors: Array) -> float:
        """Of the errors of tries: an error of a pitch counts like one of a radian, as in `ReachWatch`."""
        return float(np.mean(errors[:, 0] + errors[:, 1] / self._cover.pitch)) if len(errors) else np.inf


def _in_long_steps(config: ControllerConfig, count: int) -> ControllerConfig:
    """The same controller with a period `count` times as long; its gains are no higher than that allows."""
    period = min(count * config.period, 1.0)
    slower = min(1.0, (1.0 + config.gain_offset) / (max(config.gain, 1e-9) * period)) if count > 1 else 1.0
    return replace(
        config, period=period, gain=slower * config.gain, position_gain=slower * config.position_gain,
        # What it weighs is a change a period: its time constant stays.
        variation_weight=config.variation_weight * config.period / period,
        reach_time=0.0,
    )  # fmt: skip


def _reach(errors: Array, controller: ControllerConfig, settled: bool) -> Reach:
    if not len(errors):
        return Reach(np.inf, np.inf, False, False)
    angle, distance = (float(value) for value in errors.mean(axis=0))
    within = angle <= controller.reach_angle and distance <= controller.reach_distance
    return Reach(angle, distance, within, settled)
