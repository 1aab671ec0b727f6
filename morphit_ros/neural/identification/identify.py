"""Identification: which friction, mass and inertia make the predicted motion fit the observed one.

DANO section V.A: least squares over the differences between predicted and observed states. Here: poses only, in units
of the tracking noise, with starts estimated along with the parameters where they are not certain, and the uncertainty
of the result.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.experiments import Experiment, check_experiments, cut_windows
from morphit_ros.neural.identification.least_squares import (
    Estimate,
    EstimationStatus,
    Evaluation,
    LeastSquaresConfig,
    compress,
    finish,
    solve_least_squares,
    stretched,
    white_covariance,
)
from morphit_ros.neural.identification.motion import stepped
from morphit_ros.neural.identification.probing import stretch_of
from morphit_ros.neural.identification.residual_spectrum import Series
from morphit_ros.neural.identification.residuals import (
    Residuals,
    plain_residuals,
    refined_residuals,
    residuals_of,
    start_directions,
    start_names,
)
from morphit_ros.neural.identification.unknowns import Unknown, bounds_of

# Corrections end when they are this part of the standard deviations.
_SMALL_CORRECTION = 0.1
# Where a look shows a cost lower by this [variances of the residuals] the search begins again, so often at most.
_LOWER, _RESTARTS = 0.5, 4
# Searches for pushes; how far towards the bounds the further ones begin.
_PUSH_STARTS, _TOWARDS_BOUNDS = 3, 0.35


@dataclass(frozen=True)
class IdentificationConfig(Config):
    """How observed motions are weighed and searched."""

    position_noise: float = parameter(1e-3, "Standard deviation of tracked positions [m]", minimum=1e-9)
    rotation_noise: float = parameter(0.02, "Standard deviation of tracked rotations, each axis [rad]", minimum=1e-9)
    window: int = parameter(0, "Poses in a window of multiple shooting, 0 for whole tracks", minimum=0)
    corrections: int = parameter(
        0,
        "Most corrections towards a vanishing step after the search, each with two finer rollouts",
        minimum=0,
        maximum=20,
    )
    divisions: int = parameter(
        2, "Parts of a step in the first of the finer rollouts; the second has twice as many", minimum=1
    )
    pilot: int = parameter(
        2, "Experiments with which the search begins, where there are more than twice as many; 0 for all", minimum=0
    )
    starts: int = parameter(
        0,
        "Places that the search begins from, 0 for three for pushes of what lay still, else one",
        minimum=0,
        maximum=100,
    )
    looks: int = parameter(
        6,
        "Most looks at the cost on either side of the solution of pushes of what lay still, which is not quadratic",
        minimum=0,
        maximum=20,
    )
    threads: int = parameter(0, "Experiments predicted at the same time, 0 for one a core", minimum=0)
    search: LeastSquaresConfig = nested(LeastSquaresConfig)


@dataclass(frozen=True)
class IdentificationResult:
    """What was identified.

    Attributes:
        values: name → estimate.
        standard_deviations: name → standard deviation, infinite where the data say nothing.
        unidentifiable: names of what the data don't determine.
        position_residual: root mean square distance between predicted and observed positions [m].
        rotation_residual: root mean square angle between predicted and observed orientations [rad].
        starts: state (B, 13) of the bodies at the start of each experiment or window, as estimated.
        estimate: the least-squares solution behind it, start corrections included.
        seconds: wall-clock time.
    """

    values: dict[str, float]
    standard_deviations: dict[str, float]
    unidentifiable: tuple[str, ...]
    position_residual: float
    rotation_residual: float
    starts: tuple[Array, ...]
    estimate: Estimate
    seconds: float

    @property
    def status(self) -> EstimationStatus:
        """How the search ended."""
        return self.estimate.status

    @property
    def message(self) -> str:
        """The status in a sentence."""
        return self.estimate.message

    @property
    def success(self) -> bool:
        """Whether all that was asked for was identified."""
        return self.estimate.success

    @property
    def explained(self) -> bool:
        """Whether what the model leaves of the motion is about as large as the stated noise."""
        return self.estimate.explained


def identify(
    experiments: Experiment | Sequence[Experiment],
    unknowns: Unknown | Sequence[Unknown],
    config: IdentificationConfig | None = None,
) -> IdentificationResult:
    """Identify parameters from observed motions.

    Args:
        experiments: observed motions with their models.
        unknowns: what to identify, under the names that the models know ("friction", "mass_scale", ...).
        config: noise of the tracks, windows, search.

    Raises:
        InvalidInputError: no experiments or unknowns, a name that a model doesn't know, a motion that cannot be
            computed at the start.
    """
    begin = time.perf_counter()
    config = config or IdentificationConfig()
    unknowns = [unknowns] if isinstance(unknowns, Unknown) else list(unknowns)
    experiments = [experiments] if isinstance(experiments, Experiment) else list(experiments)
    check_experiments(experiments)
    if config.window:
        experiments = [part for whole in experiments for part in cut_windows(whole, config.window)]
    threads = min(config.threads or os.cpu_count() or 1, len(experiments))
    # Where contact begins and slides the cost has kinks and valleys.
    pushed = any(experiment.directions is not None for experiment in experiments)
    with ThreadPoolExecutor(threads) as pool:
        known = all(experiment.certain for experiment in experiments)
        begun, led = unknowns, False
        if config.pilot and len(experiments) > 2 * config.pilot:
            # A few experiments lead most of the way.
            few = experiments[:: -(-len(experiments) // config.pilot)]
            pilot = identify(few, unknowns, dataclasses.replace(config, pilot=0, window=0, looks=0))
            begun, led = _moved(unknowns, pilot.estimate), pilot.success
        elif not known:
            # Starts as the tracks show them are close; parameters need not be. All at once, a far parameter can be
            # made up for by a start that throws the body about, from where no small step leads back.
            held = [experiment.with_certain_start() for experiment in experiments]
            problem = _Problem(held, unknowns, config, pool)
            search = dataclasses.replace(config.search, cost_tolerance=1.0)
            begun = _moved(unknowns, _led(problem, unknowns, search, config.starts or (_PUSH_STARTS if pushed else 1)))
        problem = _Problem(experiments, begun, config, pool)
        search = config.search
        if config.corrections:
            # Corrections take it from where the step's own error begins to show; a pilot that converged was there.
            evaluations = 1 if led and known else search.max_evaluations
            search = dataclasses.replace(search, cost_tolerance=10.0, max_evaluations=evaluations)
        estimate = solve_least_squares(problem.evaluate, problem.unknowns, search)
        parts = problem.predict(estimate.values)
        if config.corrections:
            estimate, parts = problem.correct(estimate, parts)
        for attempt in range(_RESTARTS + 1 if config.looks and pushed else 0):
            estimate, lower = problem.look_around(estimate, parts)
            if lower is None or config.corrections or attempt == _RESTARTS:
                break
            try:
                estimate = solve_least_squares(problem.evaluate, _begun_at(problem.unknowns, lower), search)
            except InvalidInputError:
                # The motion can be computed there, but not its derivatives: what was found stays.
                break
            parts = problem.predict(estimate.values)
    count = len(unknowns)
    names = [item.name for item in unknowns]
    deviations = estimate.uncertainty.standard_deviations[:count]
    return IdentificationResult(
        dict(zip(names, estimate.values[:count].tolist(), strict=True)),
        dict(zip(names, deviations.tolist(), strict=True)),
        estimate.uncertainty.unidentifiable,
        float(np.sqrt(np.mean(np.concatenate([(part.position_errors**2).sum(axis=-1).ravel() for part in parts])))),
        float(np.sqrt(np.mean(np.concatenate([(part.rotation_errors**2).sum(axis=-1).ravel() for part in parts])))),
        tuple(part.start for part in parts), estimate, time.perf_counter() - begin,
    )  # fmt: skip


def _led(problem: _Problem, unknowns: Sequence[Unknown], search: LeastSquaresConfig, starts: int) -> Estimate:
    """The best of searches that begin at several places: as told first, then towards the bounds in turn.

    Where an object that is pushed turns the one way or the other, each has a valley of its own.
    """
    best = solve_least_squares(problem.evaluate, unknowns, search)
    for count in range(1, starts):
        share = _TOWARDS_BOUNDS / (1.0 + (count - 1) // 2)
        places = []
        for index, item in enumerate(unknowns):
            bound = item.upper if (index + count) % 2 else item.lower
            value = item.start + share * (bound - item.start) if np.isfinite(bound) else item.start
            places.append(dataclasses.replace(item, start=value))
        try:
            found = solve_least_squares(problem.evaluate, places, search)
        except InvalidInputError:
            # No motion can be computed from there.
            continue
        best = found if found.cost < best.cost else best
    return best


def _moved(unknowns: Sequence[Unknown], estimate: Estimate) -> list[Unknown]:
    """The unknowns, starting from where an estimate left them."""
    return _begun_at(unknowns, estimate.values)


def _begun_at(unknowns: Sequence[Unknown], values: Array) -> list[Unknown]:
    """The unknowns, starting from values (K, or more) within their bounds."""
    return [
        dataclasses.replace(item, start=min(max(float(value), item.lower), item.upper))
        for item, value in zip(unknowns, values, strict=False)
    ]


class _Problem:
    """Residuals of all experiments over the parameters and the corrections of their starts."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        parameters: Sequence[Unknown],
        config: IdentificationConfig,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._experiments = experiments
        self._names = [item.name for item in parameters]
        self._config = config
        self._directions = [start_directions(experiment) for experiment in experiments]
        ends = np.cumsum([len(parameters), *(item.shape[1] for item in self._directions)])
        self._slices = [slice(int(first), int(last)) for first, last in pairwise(ends)]
        self.unknowns = list(parameters)
        for index, experiment in enumerate(experiments):
            whose = f" of motion {index}" if len(experiments) > 1 else ""
            self.unknowns += [Unknown(name + whose, 0.0) for name in start_names(experiment)]
        self._pool = pool
        self._last: tuple[bytes, list[Residuals]] = (b"", [])
        self._corrected: Evaluation | None = None

    def predict(self, values: Array) -> list[Residuals]:
        """The experiments at some values; those of the last call are kept."""
        if self._last[0] == values.tobytes():
            return self._last[1]
        count = len(self._names)

        def one(index: int) -> Residuals:
            return residuals_of(
                self._experiments[index], self._names, values[:count], self._directions[index],
                values[self._slices[index]], self._config.position_noise, self._config.rotation_noise,
            )  # fmt: skip

        self._last = values.tobytes(), list(self._pool.map(one, range(len(self._experiments))))
        return self._last[1]

    def correct(self, estimate: Estimate, parts: list[Residuals]) -> tuple[Estimate, list[Residuals]]:
        """The estimate for a vanishing step: Gauss-Newton on residuals of finer rollouts, with the Jacobian at hand.

        Errors of the Jacobian slow this down but don't shift where it ends.
        """
        from scipy.optimize import lsq_linear

        begin = time.perf_counter()
        finer = [
            (motion.finer(self._config.divisions), motion.finer(2 * self._config.divisions))
            for motion in (stepped(item.motion, "corrections") for item in self._experiments)
        ]
        count = len(self._names)
        lower, upper = bounds_of(self.unknowns)
        values, history, coarse = estimate.values, [estimate.history], parts

        def one(index: int) -> Residuals:
            residuals, position_errors, rotation_errors = refined_residuals(
                self._experiments[index], finer[index], self._names, values[:count], self._directions[index],
                values[self._slices[index]], self._config.position_noise, self._config.rotation_noise,
            )  # fmt: skip
            return parts[index].with_residuals(residuals, position_errors, rotation_errors)

        for _ in range(self._config.corrections):
            try:
                parts = list(self._pool.map(one, range(len(parts))))
            except InvalidInputError as error:
                # The coarse rollouts led to where the finer ones break down: what they found stands, and says so.
                return dataclasses.replace(
                    estimate, status=EstimationStatus.ITERATION_LIMIT, message=f"Not corrected for the step: {error}"
                ), coarse
            evaluation = self._assembled(parts, len(values))
            step = lsq_linear(evaluation.jacobian, -evaluation.residuals, (lower - values, upper - values)).x
            values = np.clip(values + step, lower, upper)
            history.append(values[None])
            if (np.abs(step) <= _SMALL_CORRECTION * estimate.uncertainty.standard_deviations).all():
                break
        # What the last step leaves, to first order.
        last = self._corrected = evaluation.moved(step)
        refined = finish(
            last, values, self.unknowns, self._config.search, estimate.start_cost,
            estimate.iterations + len(history) - 1, np.vstack(history), estimate.seconds + time.perf_counter() - begin,
        )  # fmt: skip
        return refined, parts

    def look_around(self, estimate: Estimate, parts: list[Residuals]) -> tuple[Estimate, Array | None]:
        """The estimate with deviations as wide as the cost is low about it; values where it is lower, or None.

        Corrections for the step shift the cost's least place, not its shape: its linear part is left out.
        """
        values, count = estimate.values, len(self._names)
        config = self._config.search
        last = self._corrected or self._assembled(parts, len(values))
        base = self._plain(values)
        if base is None:
            return estimate, None
        gradient = np.zeros(len(values))
        for item, residuals in zip(last.series, base, strict=True):
            gradient[item.columns] += item.jacobian.reshape(len(residuals), -1).T @ residuals
        variance = max(estimate.residual_ratio, config.noise_floor) ** 2
        square = sum(float(item @ item) for item in base)

        lowest: tuple[float, Array | None] = (-_LOWER * variance, None)

        def increase(step: Array) -> float:
            nonlocal lowest
            there = self._plain(values + step)
            if there is None:
                return np.inf
            risen = 0.5 * (sum(float(item @ item) for item in there) - square)
            if risen < lowest[0]:
                lowest = risen, values + step
            return (risen - float(gradient @ step)) / variance

        lower, upper = bounds_of(self.unknowns)
        covariance = white_covariance(last, self.unknowns, estimate, config.noise_floor)
        stretch = stretch_of(increase, covariance, count, (lower - values, upper - values), self._config.looks)
        return stretched(estimate, last, self.unknowns, config, stretch), lowest[1]

    def _plain(self, values: Array) -> list[Array] | None:
        """Residuals (N,) of all experiments, None where a motion cannot be computed."""
        count = len(self._names)

        def one(index: int) -> Array:
            return plain_residuals(
                self._experiments[index], self._names, values[:count], self._directions[index],
                values[self._slices[index]], self._config.position_noise, self._config.rotation_noise,
            )  # fmt: skip

        try:
            found = list(self._pool.map(one, range(len(self._experiments))))
        except InvalidInputError:
            return None
        return found if all(np.isfinite(item).all() for item in found) else None

    def evaluate(self, values: Array) -> Evaluation:
        return self._assembled(self.predict(values), len(values))

    def _assembled(self, parts: list[Residuals], size: int) -> Evaluation:
        known = len(self._names)
        residuals, jacobians, series, total = [], [], [], 0
        for part, columns in zip(parts, self._slices, strict=True):
            if np.isfinite(part.residuals).all():
                short, slope = compress(part.residuals, part.jacobian)
            else:
                short, slope = np.full(1, np.inf), np.zeros((1, part.jacobian.shape[1]))
            wide = np.zeros((len(short), size))
            wide[:, :known] = slope[:, :known]
            wide[:, columns] = slope[:, known:]
            residuals.append(short)
            jacobians.append(wide)
            total += len(part.residuals)
            series.append(self._series(part, columns))
        return Evaluation(np.concatenate(residuals), np.vstack(jacobians), total, tuple(series))

    def _series(self, part: Residuals, columns: slice) -> Series:
        """One track's residuals by time and channel: position and turn of each body."""
        channels = 6 * part.position_errors.shape[1]
        known = np.arange(len(self._names))
        return Series(
            part.residuals.reshape(-1, channels),
            part.jacobian.reshape(-1, channels, part.jacobian.shape[1]),
            np.concatenate([known, np.arange(columns.start, columns.stop)]),
        )
