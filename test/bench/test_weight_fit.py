"""The weights of the score are found again from outcomes that were made with them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from morphit_bench.picks.grasp_samples import HAND_SET, TERMS, GraspSample, SampleGroup
from morphit_bench.picks.weight_fit import (
    Tries,
    WeightFit,
    alternate_halves,
    cross_validate,
    fit_weights,
    normalised,
    plan_losses,
    tune_weights,
)
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.scoring.quality import ScoreWeights, weighted_score

TRUE = np.array([0.3, 0.25, 0.0, 0.2, 0.0, 0.15, 0.1, 0.0, 0.0, 0.0])
FLAT = np.full(len(TERMS), 0.1)
HAND_SET_ROW = normalised(HAND_SET)


def made_up(
    weights: Array, count: int, objects: int = 8, sharpness: float = 12.0, spread: float = 1.5, seed: int = 0
) -> Tries:
    """Grasps that hold with the probability that the model says; six of each plan."""
    rng = np.random.default_rng(seed)
    log_terms = np.log(rng.uniform(0.05, 1.0, (count, len(weights))))
    plans = np.arange(count) // 6
    odds = sharpness * (log_terms @ weights) + spread * rng.normal(size=plans[-1] + 1)[plans]
    success = rng.random(count) < 1.0 / (1.0 + np.exp(np.median(odds) - odds))
    return Tries(log_terms, success, np.array([f"object {k % objects}" for k in plans]), plans)


def test_known_weights_are_found_again_whatever_the_prior() -> None:
    tries = made_up(TRUE, 6000)
    for prior in (FLAT, TRUE[::-1]):
        found = fit_weights(tries, prior, 1e-6)
        assert np.abs(found.weights - TRUE).max() < 0.03
        assert found.sharpness == pytest.approx(12.0, rel=0.1)
        # Of the plans' own log odds and of the means of their terms.
        own = np.hypot(1.5, 12.0 * np.std((tries.log_terms - tries.within) @ TRUE))
        assert found.spread == pytest.approx(own, rel=0.1)


def test_what_a_plan_is_like_does_not_count_for_its_grasps() -> None:
    """The second term is high in plans that fail anyway; within a plan it makes grasps hold as much as the first."""
    rng = np.random.default_rng(5)
    plans = np.arange(6000) // 6
    hard = rng.normal(size=1000)[plans]
    log_terms = np.log(rng.uniform(0.05, 1.0, (6000, 2)))
    log_terms[:, 1] += 2.0 * hard
    odds = 3.0 * log_terms.sum(axis=1) - 9.0 * hard
    success = rng.random(6000) < 1.0 / (1.0 + np.exp(np.median(odds) - odds))
    tries = Tries(log_terms, success, np.array([f"object {k % 8}" for k in plans]), plans)
    assert np.corrcoef(log_terms[:, 1], success)[0, 1] < -0.2
    assert np.abs(fit_weights(tries, [0.9, 0.1], 1e-6).weights - 0.5).max() < 0.04


@pytest.mark.parametrize("spread", [0.0, 0.7, 2.0])
def test_losses_integrate_the_plans_own_intercepts_out(spread: float) -> None:
    tries = made_up(TRUE, 18)
    odds = np.random.default_rng(2).normal(0.0, 2.0, 18)
    losses = plan_losses(odds, tries, spread)
    own = np.linspace(-8.0, 8.0, 20001)
    density = np.exp(-0.5 * own**2) / np.exp(-0.5 * own**2).sum()
    for plan, loss in enumerate(losses):
        rows = tries.plans == plan
        sign = np.where(tries.success[rows], 1.0, -1.0)[:, None]
        chance = (1.0 / (1.0 + np.exp(-sign * (odds[rows][:, None] + spread * own)))).prod(axis=0)
        assert loss == pytest.approx(-np.log(density @ chance), rel=1e-3)
    if spread == 0.0:
        assert losses.sum() == pytest.approx(np.logaddexp(0.0, np.where(tries.success, -odds, odds)).sum())


@pytest.mark.parametrize("strength", [0.0, 1e-3, 1.0, np.inf])
@pytest.mark.parametrize("seed", [0])
def test_weights_are_not_negative_and_of_sum_one(strength: float, seed: int) -> None:
    tries = made_up(TRUE, 60, seed=seed)
    # A term that speaks against success would get a negative weight.
    tries.log_terms[:, 2] = np.where(tries.success, -3.0, -0.1)
    found = fit_weights(tries, HAND_SET_ROW, strength)
    assert (found.weights >= 0.0).all()
    assert found.weights.sum() == pytest.approx(1.0)
    if np.isfinite(strength):
        assert found.weights[2] < HAND_SET_ROW[2]


def test_a_strong_pull_ends_at_the_prior_and_a_weak_one_leaves_it() -> None:
    tries = made_up(TRUE, 600)
    away = [np.abs(fit_weights(tries, FLAT, strength).weights - FLAT).max() for strength in (1e-4, 1e-2, 1.0, 1e4)]
    assert away == sorted(away, reverse=True)
    assert away[0] > 0.1 and away[-1] < 1e-4
    bound, free = fit_weights(tries, FLAT, 1e4), fit_weights(tries, FLAT, np.inf)
    assert np.allclose(free.weights, FLAT, rtol=0.0, atol=1e-12)
    assert bound.sharpness == pytest.approx(free.sharpness, rel=1e-3)
    assert bound.intercept == pytest.approx(free.intercept, rel=1e-3)


@pytest.mark.parametrize("strength", [0.01, np.inf])
def test_the_fit_is_the_least_of_its_loss(strength: float) -> None:
    tries = made_up(TRUE, 300)
    found = fit_weights(tries, HAND_SET_ROW, strength)

    def loss(slopes: Array, intercept: float, spread: float) -> float:
        value = float(plan_losses(intercept + tries.within @ slopes, tries, spread).sum()) / len(tries)
        if np.isinf(strength):
            return value
        # The best sharpness for given slopes.
        away = slopes - float(slopes @ HAND_SET_ROW / (HAND_SET_ROW @ HAND_SET_ROW)) * HAND_SET_ROW
        return value + 0.5 * strength * float(away @ away)

    slopes = found.sharpness * found.weights
    least = loss(slopes, found.intercept, found.spread)
    rng = np.random.default_rng(3)
    for size in (0.3, 0.03, 0.003):
        for _ in range(60):
            moved = np.maximum(slopes + rng.normal(0.0, size, len(slopes)), 0.0)
            if np.isinf(strength):
                moved = max(found.sharpness + rng.normal(0.0, size), 0.0) * HAND_SET_ROW
            spread = max(found.spread + rng.normal(0.0, size), 0.05)
            assert loss(moved, found.intercept + rng.normal(0.0, size), spread) >= least - 1e-9


def test_tuning_beats_a_wrong_prior_on_new_objects_and_keeps_a_right_one() -> None:
    tries, unseen = made_up(TRUE, 600), made_up(TRUE, 600, seed=7)
    tuned, losses = tune_weights(tries, TRUE[::-1], (1e-4, 1e-2, np.inf))
    assert losses[tuned.strength] == min(losses.values())
    before = fit_weights(tries, TRUE[::-1], np.inf)
    assert _loss(tuned, unseen) < _loss(before, unseen) - 0.1
    kept, _ = tune_weights(made_up(TRUE, 200), TRUE, (1e-4, 1e-2, 1.0, np.inf))
    assert np.abs(kept.weights - TRUE).max() < 0.05


def _loss(fit: WeightFit, tries: Tries) -> float:
    return float(plan_losses(fit.log_odds(tries), tries, fit.spread).sum()) / len(tries)


def test_cross_validation_leaves_whole_objects_out() -> None:
    tries = made_up(TRUE, 480, objects=4)
    losses = cross_validate(tries, FLAT, (1e-3,))
    names = sorted(set(tries.objects.tolist()))
    parts = []
    for name in names:
        rest = tries.select(tries.objects == name)
        parts.append(_loss(fit_weights(tries.select(tries.objects != name), FLAT, 1e-3), rest) * len(rest))
    assert losses[1e-3] == pytest.approx(sum(parts) / len(tries), rel=1e-12)
    with pytest.raises(InvalidInputError, match="at least two"):
        cross_validate(made_up(TRUE, 60, objects=1), FLAT)


def test_the_model_is_the_planners_score() -> None:
    rng = np.random.default_rng(0)
    terms = {name: rng.random(50) for name in TERMS}
    terms["clearance"][:5] = 0.0
    group = SampleGroup(
        "mug",
        0,
        "umi",
        tuple(
            GraspSample("known", k, 50, 0.0, {name: float(terms[name][k]) for name in TERMS}, kind, "")
            for k, kind in enumerate(["success", "misgrasp", "contact-induced abort", "error", "success"] * 10)
        ),
    )
    tries = Tries.of([group])
    executed = np.arange(50) % 5 != 3
    assert len(tries) == 40 and tries.success.sum() == 20 and set(tries.plans.tolist()) == {0}
    score = weighted_score({name: values[executed] for name, values in terms.items()}, HAND_SET)
    fit = WeightFit(HAND_SET_ROW, 2.0, 0.5, 1.0, 1.0)
    assert np.allclose(fit.log_odds(tries), 0.5 + 2.0 * (np.log(score) - np.log(score).mean()))
    # As a configuration it makes the same score, but for rounding.
    again = weighted_score(
        {name: values[executed] for name, values in terms.items()},
        fit.as_score_weights(sum(HAND_SET.to_flat().values())),
    )
    assert np.allclose(again, score, rtol=2e-3)


def test_halves_alternate_in_the_sorted_names() -> None:
    assert alternate_halves(["d", "a", "c", "b", "e", "a"]) == (("a", "c", "e"), ("b", "d"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prior": FLAT[:3]}, "prior"),
        ({"prior": -FLAT}, "prior"),
        ({"prior": 0.0 * FLAT}, "prior"),
        ({"prior": FLAT * np.nan}, "prior"),
        ({"strength": -1.0}, "strength"),
        ({"strength": float("nan")}, "strength"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, object], told: str) -> None:
    arguments: dict[str, object] = {"prior": FLAT, "strength": 0.1}
    with pytest.raises(InvalidInputError, match=told):
        fit_weights(made_up(TRUE, 60), **(arguments | change))  # type: ignore[arg-type]


def test_outcomes_that_say_nothing_are_refused() -> None:
    tries = made_up(TRUE, 60)
    with pytest.raises(InvalidInputError, match="alike"):
        fit_weights(tries.select(tries.success), FLAT, 0.1)
    with pytest.raises(InvalidInputError, match="Collect"):
        Tries.of([])
    with pytest.raises(InvalidInputError, match="zero"):
        normalised(ScoreWeights(**dict.fromkeys(TERMS, 0.0)))
    with pytest.raises(InvalidInputError, match="shapes"):
        dataclasses.replace(tries, plans=tries.plans[:3])
    with pytest.raises(InvalidInputError, match="finite"):
        dataclasses.replace(tries, log_terms=np.full_like(tries.log_terms, -np.inf))
