"""Searches that don't depend on where they begin: a scan between the bounds, then several starts, then longer tracks.

A least-squares search ends in the valley that it begins in, and contact makes many: a block that stops before it is
seen to, a bunny that tumbles the other way. So the cost is evaluated all over the bounds first, without derivatives,
and searches begin at its least places. Where a motion amplifies what it begins with (tumbling, impacts), the cost of a
whole track is rough everywhere but that of its first part is not: there, candidates are carried from short parts to
longer ones, as far as the motion stays explained.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.evolution import evolve
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.identification_config import IdentificationConfig
from morphit_ros.neural.identification.least_squares import (
    EstimationStatus,
    LeastSquaresConfig,
    LeastSquaresEstimate,
    solve_least_squares,
)
from morphit_ros.neural.identification.tracking_problem import TrackingProblem
from morphit_ros.neural.identification.unknowns import Unknown, bounds_of
from morphit_ros.neural.identification.valleys import is_jagged, is_settled, told_apart, valleys_of

# Bounds that are positive and this far apart are scanned by ratios.
_BY_RATIO = 10.0
# Places of a scan nearer than this part of the bounds are one.
_APART = 0.1
# Parts of a track that candidates are carried along, each longer than the one before.
_GROWTH, _SHORTEST, _FEWEST_POSES = 1.35, 0.08, 12
# Candidates that cost this many times as much as the best one are given up; so are those this near to a better one.
_HOPELESS, _SAME, _FEWEST, _MOST = 4.0, 1e-4, 3, 6
# Draws from what a shorter part leaves possible, and how many of them searches begin at.
_DRAWS, _BEST_DRAWS = 64, 4
# Evaluations of one of many searches; searches with draws of their own: where these end apart, none is to be believed.
_PART_EVALUATIONS, _SEARCHES = 20, 3
# Candidates that searches of whole tracks begin at: the cheapest ones.
_LAST = 5
# A motion amplifies where a change of its first velocities becomes this many times what free flight makes of it.
_AMPLIFIES = 10.0


def scan_places(unknowns: Sequence[Unknown], count: int) -> Array:
    """(M, K) places all over the bounds, the same for every start; unknowns without bounds stay at their start.

    One unknown is scanned evenly, bounds included; several by a Sobol sequence of as many for each.
    """
    lower, upper = bounds_of(unknowns)
    bounded = np.flatnonzero(np.isfinite(upper - lower))
    places = np.tile([item.start for item in unknowns], (1, 1)).astype(np.float64)
    if count == 0 or len(bounded) == 0:
        return places
    if len(bounded) == 1:
        shares = np.linspace(0.0, 1.0, count)[:, None]
    else:
        from scipy.stats import qmc

        drawn = qmc.Sobol(len(bounded), seed=0).random_base2(int(np.ceil(np.log2(count * len(bounded)))))
        shares = np.asarray(drawn, dtype=np.float64)
    places = np.repeat(places, len(shares), axis=0)
    for column, index in enumerate(bounded):
        low, high = lower[index], upper[index]
        if low > 0.0 and high >= _BY_RATIO * low:
            places[:, index] = np.clip(low * (high / low) ** shares[:, column], low, high)
        else:
            places[:, index] = low + shares[:, column] * (high - low)
    return places


def lowest_places(places: Array, costs: Array, unknowns: Sequence[Unknown], most: int) -> Array:
    """(S, K) of the places those that cost least, none near a better one; least first."""
    lower, upper = bounds_of(unknowns)
    width = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
    kept: list[Array] = []
    for index in np.argsort(costs, kind="stable"):
        if not np.isfinite(costs[index]) or len(kept) == most:
            break
        if all((np.abs(places[index] - other) / width).max() > _APART for other in kept):
            kept.append(places[index])
    return np.array(kept) if kept else places[:0]


def scanned_starts(problem: TrackingProblem, unknowns: Sequence[Unknown], scan: int, most: int) -> Array:
    """(S, K) where searches for the parameters begin, starts of the motions as the tracks show them."""
    places = scan_places(unknowns, scan)
    if len(places) == 1:
        return places
    rest = np.zeros(len(problem.unknowns) - len(unknowns))
    costs = np.array([problem.cost(np.append(place, rest)) for place in places])
    found = lowest_places(places, costs, unknowns, most)
    return found if len(found) else np.array([[item.start for item in unknowns]])


def searches(
    evaluate: Callable[[Array], object], unknowns: Sequence[Unknown], places: Sequence[Array] | Array,
    search: LeastSquaresConfig,
) -> list[LeastSquaresEstimate]:  # fmt: skip
    """What searches from places (S, K) end in, cheapest first; those from which no motion can be computed are left out.

    Raises:
        InvalidInputError: of the first place, if there are any and a motion can be computed from none.
    """
    found: list[LeastSquaresEstimate] = []
    refusal: InvalidInputError | None = None
    for place in places:
        try:
            found.append(solve_least_squares(evaluate, begun_at(unknowns, place), search))  # type: ignore[arg-type]
        except InvalidInputError as error:
            refusal = refusal or error
    if refusal is not None and not found:
        raise refusal
    return sorted(found, key=_cost)


def amplifies(experiments: Sequence[Experiment], names: Sequence[str], values: Array) -> bool:
    """Whether some motion grows a change of its first velocities far beyond what free flight would make of it."""
    for experiment in experiments:
        assert experiment.start is not None
        with np.errstate(over="ignore", invalid="ignore"):
            prediction = experiment.motion.predict(names, values, experiment.start, experiment.times)
        times = experiment.times - experiment.times[0]
        for body in experiment.seen:
            by_velocity = prediction.by_start[1:, body, :, 12 * body + 6 : 12 * body + 12] / times[1:, None, None]
            for rows, columns in ((slice(0, 3), slice(0, 3)), (slice(3, 6), slice(3, 6))):
                block = by_velocity[:, rows, columns]
                if not np.isfinite(block).all() or np.abs(block).max() > _AMPLIFIES:
                    return True
    return False


def first_part(experiment: Experiment, share: float) -> Experiment:
    """The motion up to a share of its time, its start unchanged."""
    times = experiment.times - experiment.times[0]
    count = int(np.searchsorted(times, share * times[-1] * (1.0 + 1e-9), side="right"))
    count = min(max(count, _FEWEST_POSES), len(times))
    tracks = tuple(None if track is None else track.part(0, count) for track in experiment.tracks)
    return dataclasses.replace(experiment, tracks=tracks)


def grown_search(
    experiments: Sequence[Experiment],
    unknowns: Sequence[Unknown],
    config: IdentificationConfig,
    pool: ThreadPoolExecutor,
    whole: tuple[TrackingProblem, LeastSquaresEstimate],
) -> tuple[TrackingProblem, LeastSquaresEstimate, float]:
    """Candidates from all over the bounds, carried from the first part of the tracks to longer ones, several times.

    Args:
        whole: problem of the whole tracks and what a search there found: what these candidates have to be better than.
        experiments, unknowns, config, pool: as of the problem.

    Returns:
        Problem, estimate, share of the time: of the whole tracks, or, where the motion amplifies errors and these are
        not explained, of their longest part that is.
    """
    shares = [1.0]
    while shares[-1] > _SHORTEST:
        shares.append(shares[-1] / _GROWTH)
    shares.reverse()
    problems = [
        TrackingProblem([first_part(item, share) for item in experiments], unknowns, config, pool) for share in shares
    ]
    # What all searches found of each part.
    ends: list[list[LeastSquaresEstimate]] = [[] for _ in shares]
    jagged = False
    for seed in range(_SEARCHES):
        for end, found in zip(ends, _grown(problems, unknowns, config, whole[1], seed), strict=True):
            end += found
        best = min(ends[-1], key=_cost)
        if is_settled(problems[-1], best, config.search):
            return problems[-1], best, 1.0
        jagged = is_jagged(problems[-1], best, config.search)
        if not jagged:
            break
    rivals = [valleys_of(sorted(end, key=_cost), len(unknowns), len(end)) for end in ends]
    chosen = len(shares) - 1
    explained = [
        index
        for index, valleys in enumerate(rivals)
        if valleys and valleys[0].explained and valleys[0].status is not EstimationStatus.NOT_IDENTIFIABLE
    ]
    if explained and explained[-1] < chosen:
        values = rivals[explained[-1]][0].values[: len(unknowns)]
        if amplifies(experiments, [item.name for item in unknowns], values):
            chosen = explained[-1]
    # Where the cost of a part jumps its curvature tells too much: what the one before or after says counts as well.
    first = max(min(chosen, len(shares) - 2), 0) if jagged else chosen
    last = first + 2 if jagged else chosen + 1
    estimate = told_apart(rivals[chosen][0], rivals[first:last], len(unknowns))
    if estimate.status is EstimationStatus.ITERATION_LIMIT:
        places = begun_at(problems[chosen].unknowns, estimate.values)
        estimate = min(solve_least_squares(problems[chosen].evaluate, places, config.search), estimate, key=_cost)
    return problems[chosen], estimate, shares[chosen]


def _grown(
    problems: Sequence[TrackingProblem],
    unknowns: Sequence[Unknown],
    config: IdentificationConfig,
    whole: LeastSquaresEstimate,
    seed: int,
) -> list[list[LeastSquaresEstimate]]:
    """What one search found of each part, cheapest first; nothing of those before the parameters show."""
    rest = np.zeros(len(problems[0].unknowns) - len(unknowns))
    candidates = [np.append(place, rest) for place in scan_places(unknowns, (config.scan + 1) // 2)]
    # In a rough valley the last per cent of a search is lost in the next stage.
    search = dataclasses.replace(config.search, max_evaluations=min(config.search.max_evaluations, _PART_EVALUATIONS))
    touched = False
    ends: list[list[LeastSquaresEstimate]] = []
    for problem in problems:
        last = problem is problems[-1]
        if last:
            candidates.append(whole.values)
        elif not touched:
            # Before anything of the parameters shows, one search finds the start for all candidates.
            only = solve_least_squares(problem.evaluate, begun_at(problem.unknowns, candidates[0]), config.search)
            touched = bool(only.uncertainty.influences[: len(unknowns)].any())
            if not touched:
                rest = only.values[len(unknowns) :]
                candidates = [np.append(values[: len(unknowns)], rest) for values in candidates]
                ends.append([])
                continue
        # A valley that is a little worse on a part of the track may be the best one of a longer part.
        for valley in valleys_of(ends[-1], len(unknowns)) if ends and ends[-1] else ():
            candidates += _drawn(valley, problem, seed)
        if last:
            # What follows does not need a search from each.
            costs = [problem.cost(place) for place in candidates]
            candidates = [candidates[index] for index in np.argsort(costs, kind="stable")[:_LAST]]
        found = searches(problem.evaluate, problem.unknowns, candidates, search)
        if last and not is_settled(problem, found[0], config.search):
            covariance = _finite_covariance(found[0])
            least = evolve(problem.cost, found[0].values, covariance, bounds_of(problem.unknowns), seed)
            found = sorted(found + searches(problem.evaluate, problem.unknowns, [least], search), key=_cost)
        ends.append(found)
        candidates = _carried(found, problem, len(unknowns))
    return ends


def _carried(found: Sequence[LeastSquaresEstimate], problem: TrackingProblem, count: int) -> list[Array]:
    """Values (K,) of the estimates that are worth more of the track: cheap enough, and not twice the same."""
    lower, upper = bounds_of(problem.unknowns)
    width = np.where(np.isfinite(upper - lower), upper - lower, 1.0)[:count]
    kept: list[Array] = []
    for estimate in found:
        if len(kept) == _MOST:
            break
        if len(kept) >= _FEWEST and estimate.cost > _HOPELESS * (found[0].cost + 0.5 * estimate.evaluation.count):
            break
        if all((np.abs(estimate.values[:count] - other[:count]) / width).max() > _SAME for other in kept):
            kept.append(estimate.values)
    return kept


def _drawn(estimate: LeastSquaresEstimate, problem: TrackingProblem, seed: int) -> list[Array]:
    """Values (K,) that a shorter part of the tracks leaves possible and that cost least over a longer one.

    Impacts make the cost of the longer part rough within what the shorter one leaves open: its least place among many
    draws is nearer to the best valley than the middle is.
    """
    values, vectors = np.linalg.eigh(_finite_covariance(estimate))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = np.random.default_rng(seed).normal(size=(_DRAWS, len(root)))
    places = np.clip(estimate.values + draws @ root.T, *bounds_of(problem.unknowns))
    costs = np.array([problem.cost(place) for place in places])
    return [places[index] for index in np.argsort(costs, kind="stable")[:_BEST_DRAWS] if np.isfinite(costs[index])]


def _finite_covariance(estimate: LeastSquaresEstimate) -> Array:
    """(K, K) covariance, zero where the data say nothing."""
    return np.where(np.isfinite(estimate.uncertainty.covariance), estimate.uncertainty.covariance, 0.0)


def begun_at(unknowns: Sequence[Unknown], values: Array) -> list[Unknown]:
    """The unknowns, starting from values (K, or more) within their bounds."""
    return [
        dataclasses.replace(item, start=min(max(float(value), item.lower), item.upper))
        for item, value in zip(unknowns, values, strict=False)
    ]


def _cost(estimate: LeastSquaresEstimate) -> float:
    return estimate.cost
