"""Weights of the grasp score from what became of executed grasps.

The score is a weighted geometric mean, so its logarithm is linear in the weights. Success of grasp i of plan p is
modelled as

    logit P(success) = b + u_p + Σ βₖ (log tᵢₖ − mean of log tₖ over the plan's grasps),   β ≥ 0,   u_p ~ N(0, τ²),

logistic regression on the terms' logarithms in which each plan has an intercept of its own: a heavy thing fails more
often than a light one and an observed one more often than a known one, whatever the terms. The score has to choose
among the grasps of one plan, so only how they differ tells about the weights: without the means, `seen` would take most
of the weight for telling known shapes from observed ones. The u_p are integrated out (Gauss–Hermite). Weights are
β / Σβ: the ranking does not change with their sum. Few objects say little about ten weights, so β is drawn towards
given weights w⁰ at whatever sharpness s fits best:

    min over b, τ, β ≥ 0, s ≥ 0 of   mean log loss + ½ λ ‖β − s w⁰‖²;

for λ → ∞ only b, τ and s are left, which is the score with weights w⁰ in its best calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_bench.picks.grasp_samples import TERMS, SampleGroup
from morphit_bench.picks.outcome import Outcome
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.scoring.quality import ScoreWeights

STRENGTHS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, np.inf)
"""λ that cross-validation chooses from."""

Mask = NDArray[np.bool_]

# Of the quadrature over a plan's own intercept.
_NODES = 31
# The loss is even in the spread: at zero its slope would say nothing.
_LEAST_SPREAD = 0.05
# The least value a term counts as, as in `weighted_score`.
_FLOOR = 0.02
EXECUTED = (Outcome.SUCCESS.value, Outcome.MISGRASP.value, Outcome.CONTACT_ABORT.value)
"""Outcomes that say something about the grasp."""


@dataclass(frozen=True)
class Tries:
    """Executed grasps.

    Attributes:
        log_terms: (N, K) logarithms of the terms, in the order of `TERMS`.
        success: (N,) whether the object was picked up.
        objects: (N,) name of the object.
        plans: (N,) number of the plan that the grasp is from.
    """

    log_terms: Array
    success: Mask
    objects: NDArray[np.str_]
    plans: NDArray[np.int64]

    def __post_init__(self) -> None:
        count = len(self.success)
        shapes = [np.shape(values) for values in (self.log_terms, self.success, self.objects, self.plans)]
        if np.ndim(self.log_terms) != 2 or any(shape[0] != count for shape in shapes):
            raise InvalidInputError("tries", f"shapes {shapes}", "(N, K) and three times (N,)")
        if not np.isfinite(self.log_terms).all():
            raise InvalidInputError("log_terms", "not finite", "finite numbers")

    def __len__(self) -> int:
        return len(self.success)

    @classmethod
    def of(cls, groups: Sequence[SampleGroup]) -> Tries:
        """Those of the samples that were executed."""
        rows = [
            ([sample.terms[name] for name in TERMS], sample.success, group.object, (*group.key, sample.setting))
            for group in groups
            for sample in group.samples
            if sample.kind in EXECUTED
        ]
        if not rows:
            raise InvalidInputError("samples", "no executed grasp", "at least one", "Collect some first.")
        terms, success, objects, plans = zip(*rows, strict=True)
        numbers = {plan: number for number, plan in enumerate(dict.fromkeys(plans))}
        return cls(
            np.log(np.maximum(np.array(terms, dtype=np.float64), _FLOOR)),
            np.array(success, dtype=bool),
            np.array(objects),
            np.array([numbers[plan] for plan in plans]),
        )

    @cached_property
    def within(self) -> Array:
        """(N, K) logarithms of the terms, less their means over each plan's grasps."""
        plans, which = np.unique(self.plans, return_inverse=True)
        sums = np.zeros((len(plans), self.log_terms.shape[1]))
        np.add.at(sums, which, self.log_terms)
        means: Array = sums / np.bincount(which)[:, None]
        return self.log_terms - means[which]

    def select(self, which: Mask) -> Tries:
        """Part of them."""
        return Tries(self.log_terms[which], self.success[which], self.objects[which], self.plans[which])


@dataclass(frozen=True)
class WeightFit:
    """Weights, and how the score they make translates into a probability.

    Attributes:
        weights: (K,) not negative, of sum one.
        sharpness: Σβ: of the logarithm of the score.
        intercept: log odds of a usual grasp of a usual plan.
        spread: τ, standard deviation of the plans' own log odds.
        strength: λ.
    """

    weights: Array
    sharpness: float
    intercept: float
    spread: float
    strength: float

    def log_odds(self, tries: Tries) -> Array:
        """(N,) of success, in a usual plan; they order the grasps of a plan as the score does."""
        odds: Array = self.intercept + self.sharpness * (tries.within @ self.weights)
        return odds

    def as_score_weights(self, total: float) -> ScoreWeights:
        """With a sum of `total`, rounded to two digits."""
        return ScoreWeights(
            **{name: round(total * value, 2) for name, value in zip(TERMS, self.weights.tolist(), strict=True)}
        )


def plan_losses(log_odds: Array, tries: Tries, spread: float) -> Array:
    """(P,) of each plan, in order: −log of the probability that was given to what became of its grasps [nat].

    Args:
        log_odds: (N,) of success in a usual plan.
        tries: what became of the grasps.
        spread: τ.
    """
    return _Marginal(tries)(log_odds, spread)[0]


class _Marginal:
    """−log likelihood of plans, their own intercepts integrated out, with its gradient."""

    def __init__(self, tries: Tries) -> None:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        self._nodes, self._log_weights = nodes, np.log(weights / weights.sum())
        self._sign = np.where(tries.success, -1.0, 1.0)[:, None]
        _, self._which = np.unique(tries.plans, return_inverse=True)
        # Plan by plan, for sums over each.
        self._order = np.argsort(self._which, kind="stable")
        self._firsts = np.flatnonzero(np.diff(self._which[self._order], prepend=-1))

    def __call__(self, log_odds: Array, spread: float) -> tuple[Array, Array, float]:
        """Losses (P,), and the derivatives of their sum by the log odds (N,) and by the spread."""
        signed = self._sign * (log_odds[:, None] + spread * self._nodes)
        # −log of the probability of what did happen, and that of what did not.
        losses = np.maximum(signed, 0.0) + np.log1p(np.exp(-np.abs(signed)))
        missed = np.exp(np.minimum(signed - losses, 0.0))
        likelihood = self._log_weights - np.add.reduceat(losses[self._order], self._firsts, axis=0)
        most = likelihood.max(axis=1, keepdims=True)
        share = np.exp(likelihood - most)
        total = share.sum(axis=1, keepdims=True)
        pull = self._sign * missed * (share / total)[self._which]
        return -(most + np.log(total))[:, 0], pull.sum(axis=1), float((pull @ self._nodes).sum())


def normalised(weights: ScoreWeights) -> Array:
    """(K,) in the order of `TERMS`, of sum one."""
    values = np.array([getattr(weights, name) for name in TERMS], dtype=np.float64)
    if values.sum() <= 0.0:
        raise InvalidInputError("weights", "all zero", "at least one above zero")
    return values / values.sum()


def fit_weights(tries: Tries, prior: ArrayLike, strength: float) -> WeightFit:
    """Weights that tell grasps that hold from those that don't.

    Args:
        tries: executed grasps.
        prior: (K,) weights to be drawn towards, w⁰; their sum does not count.
        strength: λ; infinite for the prior itself, calibrated.

    Raises:
        InvalidInputError: a prior of a wrong shape, with negative numbers or of sum zero, a negative strength, or all
            grasps ended alike.
    """
    from scipy.optimize import minimize

    start = np.asarray(prior, dtype=np.float64)
    count = tries.log_terms.shape[1]
    if start.shape != (count,) or not (start >= 0.0).all() or not start.sum() > 0.0:
        raise InvalidInputError("prior", start.tolist(), f"{count} numbers, not negative, one above zero")
    if not strength >= 0.0:
        raise InvalidInputError("strength", strength, "a number, not negative")
    if tries.success.all() or not tries.success.any():
        raise InvalidInputError("success", "all alike", "some that held and some that did not")
    start = start / start.sum()
    free = np.isfinite(strength)
    # Unknowns: b, τ, s, and where they are free β.
    rows = tries.within if free else (tries.within @ start)[:, None]
    marginal, size = _Marginal(tries), len(tries)

    def loss(unknowns: Array) -> tuple[float, Array]:
        intercept, spread, sharpness = unknowns[:3]
        slopes = unknowns[3:] if free else unknowns[2:3]
        losses, pull, by_spread = marginal(intercept + rows @ slopes, float(spread))
        value, gradient = float(losses.sum()) / size, np.zeros_like(unknowns)
        gradient[0], gradient[1] = pull.sum() / size, by_spread / size
        if not free:
            gradient[2] = float(pull @ rows[:, 0]) / size
            return value, gradient
        away = slopes - sharpness * start
        gradient[3:] = pull @ rows / size + strength * away
        gradient[2] = -strength * float(away @ start)
        return value + 0.5 * strength * float(away @ away), gradient

    first = np.concatenate([[0.0, 1.0, 1.0], start]) if free else np.array([0.0, 1.0, 1.0])
    # Unbounded slopes where grasps can be told apart without fail would never end.
    bounds = [(-50.0, 50.0), (_LEAST_SPREAD, 10.0)] + [(0.0, 200.0)] * (len(first) - 2)
    found = minimize(
        loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 5000, "ftol": 1e-12, "gtol": 1e-8}
    )
    slopes = found.x[3:] if free else found.x[2] * start
    total = float(slopes.sum())
    # Where no term says anything, the prior is as good as any.
    weights = slopes / total if total > 1e-9 else start
    return WeightFit(weights, total, float(found.x[0]), float(found.x[1]), strength)


def cross_validate(tries: Tries, prior: ArrayLike, strengths: Sequence[float] = STRENGTHS) -> dict[float, float]:
    """λ → mean log loss [nat] of the grasps of each object under weights fitted to the others.

    Raises:
        InvalidInputError: fewer than two objects.
    """
    names = sorted(set(tries.objects.tolist()))
    if len(names) < 2:
        raise InvalidInputError("objects", names, "at least two")
    losses = {}
    for strength in strengths:
        total = 0.0
        for name in names:
            out = tries.select(tries.objects == name)
            found = fit_weights(tries.select(tries.objects != name), prior, strength)
            total += float(plan_losses(found.log_odds(out), out, found.spread).sum())
        losses[strength] = total / len(tries)
    return losses


def tune_weights(
    tries: Tries, prior: ArrayLike, strengths: Sequence[float] = STRENGTHS
) -> tuple[WeightFit, dict[float, float]]:
    """The fit at the λ of least cross-validated loss (of equal ones the greatest), and the loss of each."""
    losses = cross_validate(tries, prior, strengths)
    least = min(losses.values())
    best = max(strength for strength, loss in losses.items() if loss <= least)
    return fit_weights(tries, prior, best), losses


def alternate_halves(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names to tune on and names to judge on: every other one of the sorted list, beginning with the first."""
    ordered = sorted(set(names))
    return tuple(ordered[::2]), tuple(ordered[1::2])
