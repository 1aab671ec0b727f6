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

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.experiments import Experiment, check_experiments, cut_windows
from morphit_ros.neural.identification.global_search import (
    amplifies,
    begun_at,
    grown_search,
    scanned_starts,
    searches,
)
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.least_squares import (
    EstimationStatus,
    LeastSquaresConfig,
    LeastSquaresEstimate,
    solve_least_squares,
)
from morphit_ros.neural.identification.tracking_problem import TrackingProblem, parts_of
from morphit_ros.neural.identification.unknowns import Unknown
from morphit_ros.neural.identification.valleys import is_rough, is_settled

# Where a look shows a lower cost the search begins again, so often at most.
_RESTARTS = 4
# Searches where none are asked for; how far towards the bounds the further ones begin, for pushes.
_STARTS, _TOWARDS_BOUNDS = 3, 0.35


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
        share: of the tracks' time that this is of: less than 1 where the motion amplifies errors so much that the rest
            of it cannot be predicted.
    """

    values: dict[str, float]
    standard_deviations: dict[str, float]
    unidentifiable: tuple[str, ...]
    position_residual: float
    rotation_residual: float
    starts: tuple[Array, ...]
    estimate: LeastSquaresEstimate
    seconds: float
    share: float = 1.0

    @property
    def status(self) -> EstimationStatus:
        """How the search ended."""
        return self.estimate.status

    @property
    def message(self) -> str:
        """The status in a sentence."""
        if self.share == 1.0:
            return self.estimate.message
        return self.estimate.message + (
            f" From the first {100.0 * self.share:.0f} % of the time: later it amplifies errors until it cannot "
            "be predicted. Shorter tracks, or 'window', use the rest."
        )

    @property
    def success(self) -> bool:
        """Whether all that was asked for was identified."""
        return self.estimate.success

    @property
    def explained(self) -> bool:
        """Whether what the model leaves of the whole motion is white, and about as large as the stated noise."""
        return self.share == 1.0 and self.estimate.explained


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
    # Where contact begins and slides the cost has kinks and local minima.
    pushed = any(experiment.directions is not None for experiment in experiments)
    with ThreadPoolExecutor(threads) as pool:
        known = all(experiment.certain for experiment in experiments)
        begun, led, rough, share = unknowns, False, False, 1.0
        starts = config.starts or _STARTS
        if config.pilot and len(experiments) > 2 * config.pilot:
            # A few experiments lead most of the way.
            few = experiments[:: -(-len(experiments) // config.pilot)]
            pilot = identify(few, unknowns, dataclasses.replace(config, pilot=0, window=0, looks=0))
            begun, led = begun_at(unknowns, pilot.estimate.values), pilot.success
        elif pushed and not known:
            # Starts as the tracks show them are close; parameters need not be. All at once, a far parameter can be
            # made up for by a start that throws the body about, from where no small step leads back.
            held = [experiment.with_certain_start() for experiment in experiments]
            problem = TrackingProblem(held, unknowns, config, pool)
            search = dataclasses.replace(config.search, cost_tolerance=1.0)
            begun = begun_at(unknowns, _led(problem, unknowns, search, starts).values)
        elif config.scan and not pushed:
            held = [experiment.with_certain_start() for experiment in experiments]
            problem = TrackingProblem(held, unknowns, config, pool)
            places = scanned_starts(problem, unknowns, config.scan, starts)
            found = searches(problem.evaluate, unknowns, places, config.search)
            begun, rough = begun_at(unknowns, found[0].values), is_rough(found, unknowns)
        problem = TrackingProblem(experiments, begun, config, pool)
        search = config.search
        if config.corrections:
            # Corrections take it from where the step's own error begins to show; a pilot that converged was there.
            evaluations = 1 if led and known else search.max_evaluations
            search = dataclasses.replace(search, cost_tolerance=10.0, max_evaluations=evaluations)
        estimate = solve_least_squares(problem.evaluate, problem.unknowns, search)
        searched = config.scan and not (pushed or config.corrections)
        if searched and (rough or not known) and not is_settled(problem, estimate, search):
            # Searches may end together beside the best valley where unknown starts make many, or the motion amplifies
            # them: what the tracks show of a start is then too far off. White to the bottom and not settled: it jumps.
            names = [item.name for item in unknowns]
            doubted = rough or not estimate.explained or estimate.uncertainty.bare
            if doubted or amplifies(experiments, names, estimate.values[: len(names)]):
                problem, estimate, share = grown_search(experiments, unknowns, config, pool, (problem, estimate))
        if config.corrections:
            estimate = problem.correct(estimate)
        for attempt in range(_RESTARTS + 1 if config.looks and pushed else 0):
            estimate, lower = problem.look_around(estimate)
            if lower is None or config.corrections or attempt == _RESTARTS:
                break
            try:
                estimate = solve_least_squares(problem.evaluate, begun_at(problem.unknowns, lower), search)
            except InvalidInputError:
                # The motion can be computed there, but not its derivatives: what was found stays.
                break
    parts = parts_of(estimate)
    count = len(unknowns)
    names = [item.name for item in unknowns]
    deviations = estimate.uncertainty.standard_deviations[:count]
    return IdentificationResult(
        dict(zip(names, estimate.values[:count].tolist(), strict=True)),
        dict(zip(names, deviations.tolist(), strict=True)),
        estimate.uncertainty.unidentifiable,
        float(np.sqrt(np.mean(np.concatenate([(part.position_errors**2).sum(axis=-1).ravel() for part in parts])))),
        float(np.sqrt(np.mean(np.concatenate([(part.rotation_errors**2).sum(axis=-1).ravel() for part in parts])))),
        tuple(part.start for part in parts), estimate, time.perf_counter() - begin, share,
    )  # fmt: skip


def _led(
    problem: TrackingProblem, unknowns: Sequence[Unknown], search: LeastSquaresConfig, starts: int
) -> LeastSquaresEstimate:
    """The best of searches that begin at several places: from the given start, then towards the bounds in turn.

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
