"""The least-squares problem of tracks: residuals of all motions over parameters and what is unknown of the starts.

Nothing is remembered between calls: an evaluation carries the residuals of each motion that it was made of, an estimate
the evaluation that it ends with.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.least_squares import (
    EstimationStatus,
    Evaluation,
    LeastSquaresEstimate,
    compress,
    finish,
    stretched,
    white_covariance,
)
from morphit_ros.neural.identification.motion import stepped
from morphit_ros.neural.identification.probing import stretch_of
from morphit_ros.neural.identification.residual_spectrum import Series
from morphit_ros.neural.identification.residuals import (
    ParameterTrial,
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
# The cost counts as lower where it is lower by this [variances of the residuals].
_LOWER = 0.5

_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class TrackEvaluation(Evaluation):
    """An evaluation of all experiments.

    Attributes:
        parts: residuals of each experiment, not compressed.
    """

    parts: tuple[Residuals, ...] = ()


def parts_of(estimate: LeastSquaresEstimate) -> tuple[Residuals, ...]:
    """The residuals of each experiment at an estimate of a `TrackingProblem`."""
    assert isinstance(estimate.evaluation, TrackEvaluation)
    return estimate.evaluation.parts


class TrackingProblem:
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

    def evaluate(self, values: Array) -> TrackEvaluation:
        """Residuals and Jacobian at values (K,) of all unknowns."""
        return self._assembled(self._each(lambda index, trial: residuals_of(trial), values), len(values))

    def cost(self, values: Array) -> float:
        """Half the sum of squared residuals at values (K,), without derivatives; infinite where there is no motion."""
        residuals = self._plain(values)
        return np.inf if residuals is None else 0.5 * sum(float(item @ item) for item in residuals)

    def correct(self, estimate: LeastSquaresEstimate) -> LeastSquaresEstimate:
        """The estimate for a vanishing step: Gauss-Newton on residuals of finer rollouts, with the Jacobian at hand.

        Errors of the Jacobian slow this down but don't shift where it ends.
        """
        from scipy.optimize import lsq_linear

        begin = time.perf_counter()
        finer = [
            (motion.finer(self._config.divisions), motion.finer(2 * self._config.divisions))
            for motion in (stepped(item.motion, "corrections") for item in self._experiments)
        ]
        coarse = parts_of(estimate)
        lower, upper = bounds_of(self.unknowns)
        values, history = estimate.values, [estimate.history]
        for _ in range(self._config.corrections):
            try:
                refined = self._each(
                    lambda index, trial: coarse[index].with_residuals(*refined_residuals(trial, finer[index])), values
                )
            except InvalidInputError as error:
                # The coarse rollouts led to where the finer ones break down: what they found stands, and says so.
                return dataclasses.replace(
                    estimate, status=EstimationStatus.ITERATION_LIMIT, message=f"Not corrected for the step: {error}"
                )
            evaluation = self._assembled(refined, len(values))
            step = lsq_linear(evaluation.jacobian, -evaluation.residuals, (lower - values, upper - values)).x
            values = np.clip(values + step, lower, upper)
            history.append(values[None])
            if (np.abs(step) <= _SMALL_CORRECTION * estimate.uncertainty.standard_deviations).all():
                break
        # What the last step leaves, to first order.
        return finish(
            evaluation.moved(step), values, self.unknowns, self._config.search, estimate.start_cost,
            estimate.iterations + len(history) - 1, np.vstack(history), estimate.seconds + time.perf_counter() - begin,
        )  # fmt: skip

    def look_around(self, estimate: LeastSquaresEstimate) -> tuple[LeastSquaresEstimate, Array | None]:
        """The estimate with deviations widened to where the cost rises; values where it is lower, or None.

        Corrections for the step shift the cost's least place, not its shape: its linear part is left out.
        """
        values = estimate.values
        config = self._config.search
        base = self._plain(values)
        if base is None:
            return estimate, None
        gradient = np.zeros(len(values))
        for item, residuals in zip(estimate.evaluation.series, base, strict=True):
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
        covariance = white_covariance(estimate, self.unknowns, config.noise_floor)
        margins = (lower - values, upper - values)
        stretch = stretch_of(increase, covariance, len(self._names), margins, self._config.looks)
        return stretched(estimate, self.unknowns, config, stretch), lowest[1]

    def _plain(self, values: Array) -> list[Array] | None:
        """Residuals (N,) of all experiments, None where a motion cannot be computed."""
        try:
            found = self._each(lambda index, trial: plain_residuals(trial), values)
        except InvalidInputError:
            return None
        return found if all(np.isfinite(item).all() for item in found) else None

    def _each(self, compute: Callable[[int, ParameterTrial], _T], values: Array) -> list[_T]:
        """What is computed for each experiment, given its index and its trial at values (K,); in parallel."""
        count = len(self._names)

        def one(index: int) -> _T:
            trial = ParameterTrial(
                self._experiments[index], self._names, values[:count], self._directions[index],
                values[self._slices[index]], self._config.position_noise, self._config.rotation_noise,
            )  # fmt: skip
            return compute(index, trial)

        if len(self._experiments) == 1:
            return [one(0)]  # a thread takes longer to hear of a short one and to answer than this takes
        return list(self._pool.map(one, range(len(self._experiments))))

    def _assembled(self, parts: list[Residuals], size: int) -> TrackEvaluation:
        """The evaluation of all experiments: each one's residuals compressed, its derivatives in their columns."""
        known = len(self._names)
        residuals, jacobians, series, total = [], [], [], 0
        failures = []
        for index, (part, columns) in enumerate(zip(parts, self._slices, strict=True)):
            if part.failure:
                failures.append(f"motion {index}: {part.failure}" if len(parts) > 1 else part.failure)
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
        return TrackEvaluation(
            np.concatenate(residuals), np.vstack(jacobians), total, tuple(series), "; ".join(failures), tuple(parts)
        )

    def _series(self, part: Residuals, columns: slice) -> Series:
        """One track's residuals by time and channel: position and turn of each body."""
        channels = 6 * part.position_errors.shape[1]
        known = np.arange(len(self._names))
        return Series(
            part.residuals.reshape(-1, channels),
            part.jacobian.reshape(-1, channels, part.jacobian.shape[1]),
            np.concatenate([known, np.arange(columns.start, columns.stop)]),
        )
