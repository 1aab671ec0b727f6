"""Valleys of a cost that searches end in: whether there are several, and what they leave unknown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from morphit_ros.neural.identification.least_squares import LeastSquaresConfig, LeastSquaresEstimate, white_covariance
from morphit_ros.neural.identification.tracking_problem import TrackingProblem
from morphit_ros.neural.identification.unknowns import Unknown, bounds_of

# Ends of searches nearer than this part of the bounds are one valley.
_APART = 1e-3
# Part of the stated noise below which residuals hide no valley beside the best one.
_NOISELESS = 0.1
# Looks at one deviation from a place, where the cost rises by half a variance; more than this is a jump.
_LOOKS, _JUMP = 16, 5.0
# Valleys that more is made of: how many, and by how much the cost may be higher [variances of the noise].
_MOST, _HARDLY_WORSE = 3, 20.0


def is_rough(found: Sequence[LeastSquaresEstimate], unknowns: Sequence[Unknown]) -> bool:
    """Whether searches from several places end in several valleys: apart by more than the best one's deviations."""
    lower, upper = bounds_of(unknowns)
    width = np.where(np.isfinite(upper - lower), upper - lower, np.inf)
    sure = np.maximum(found[0].uncertainty.standard_deviations[: len(unknowns)], _APART * width)
    return any((np.abs(item.values - found[0].values) > sure).any() for item in found[1:])


def is_settled(problem: TrackingProblem, estimate: LeastSquaresEstimate, config: LeastSquaresConfig) -> bool:
    """Whether no better search can be hoped for: what is left of the motion is noise, which hides no valley beside."""
    white = estimate.explained and estimate.uncertainty.bare
    return white and (estimate.residual_ratio < _NOISELESS or not is_jagged(problem, estimate, config))


def is_jagged(problem: TrackingProblem, estimate: LeastSquaresEstimate, config: LeastSquaresConfig) -> bool:
    """Whether the cost rises far more within the deviations than its curvature says: it jumps from valley to valley.

    Costs of such valleys differ by less than that of noise of one size varies: white residuals are not enough there.
    """
    covariance = white_covariance(estimate, problem.unknowns, config.noise_floor)
    values, vectors = np.linalg.eigh(covariance)
    draws = np.random.default_rng(0).normal(size=(_LOOKS, len(values)))
    draws /= np.linalg.norm(draws, axis=1)[:, None]
    steps = draws * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    places = np.clip(estimate.values + steps, *bounds_of(problem.unknowns))
    risen = np.median([problem.cost(place) for place in places]) - estimate.cost
    return bool(risen > _JUMP * max(estimate.residual_ratio, config.noise_floor) ** 2)


def valleys_of(found: Sequence[LeastSquaresEstimate], count: int, most: int = _MOST) -> list[LeastSquaresEstimate]:
    """The best of each valley of the parameters, cheapest first: of those that the cost hardly tells apart."""
    kept: list[LeastSquaresEstimate] = []
    for estimate in found:
        if len(kept) == most or estimate.cost > found[0].cost + _HARDLY_WORSE:
            break
        spread = estimate.uncertainty.standard_deviations[:count]
        if all((np.abs(estimate.values - other.values)[:count] > spread).any() for other in kept):
            kept.append(estimate)
    return kept


def told_apart(
    estimate: LeastSquaresEstimate, parts: Sequence[Sequence[LeastSquaresEstimate]], count: int
) -> LeastSquaresEstimate:
    """The estimate, with deviations of the parameters as large as the valleys of some part of the tracks lie about it.

    A rough cost is curved far more in its valleys than as a whole: the curvature of one says how well its own floor is
    known, and not which of them is the true one.
    """
    deviations = estimate.uncertainty.standard_deviations.copy()
    variances = deviations[:count] ** 2
    for valleys in parts:
        others = [item for item in valleys if item is not estimate]
        if others:
            offsets = np.array([item.values[:count] - estimate.values[:count] for item in others])
            own = np.array([item.uncertainty.standard_deviations[:count] for item in others])
            own[~np.isfinite(own)] = 0.0
            variances = np.maximum(variances, (offsets**2 + own**2).mean(axis=0))
    stretch = np.ones(len(deviations))
    known = np.isfinite(deviations[:count]) & (deviations[:count] > 0.0)
    stretch[:count][known] = np.sqrt(variances[known]) / deviations[:count][known]
    covariance = estimate.uncertainty.covariance * np.outer(stretch, stretch)
    uncertainty = dataclasses.replace(
        estimate.uncertainty, covariance=covariance, standard_deviations=deviations * stretch
    )
    return dataclasses.replace(estimate, uncertainty=uncertainty)
