"""Measures that scores are compared by, against the same things counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from morphit_bench.picks.grasp_samples import GraspSample, SampleGroup
from morphit_bench.picks.weight_fit import Tries, WeightFit, plan_losses
from morphit_bench.picks.weight_judgement import compare_tops, judge_fits
from morphit_ros.errors import InvalidInputError

GOOD = WeightFit(np.array([1.0, 0.0]), 3.0, 2.0, 0.8, 1.0)
BLIND = WeightFit(np.array([0.0, 1.0]), 3.0, 2.0, 0.8, 1.0)


def made_up(objects: int = 6, plans: int = 5, each: int = 4) -> Tries:
    """The first term decides, the second says nothing."""
    rng = np.random.default_rng(1)
    count = objects * plans * each
    log_terms = np.log(rng.uniform(0.05, 1.0, (count, 2)))
    success = rng.random(count) < 1.0 / (1.0 + np.exp(-(3.0 + 4.0 * log_terms[:, 0])))
    numbers = np.arange(count)
    names = np.array([f"object {k}" for k in numbers // (plans * each)])
    return Tries(log_terms, success, names, (numbers // each).astype(np.int64))


def test_measures_are_what_counting_gives() -> None:
    tries = made_up()
    judged = judge_fits(tries, {"good": GOOD, "blind": BLIND})
    for name, fit in (("good", GOOD), ("blind", BLIND)):
        odds = fit.log_odds(tries)
        pairs, inside, tops = [], [], []
        for i in np.flatnonzero(tries.success):
            for j in np.flatnonzero(~tries.success):
                pairs.append(tries.log_terms[i] @ fit.weights > tries.log_terms[j] @ fit.weights)
                if tries.plans[i] == tries.plans[j]:
                    inside.append(odds[i] > odds[j])
        for plan in set(tries.plans.tolist()):
            rows = np.flatnonzero(tries.plans == plan)
            if 0 < tries.success[rows].sum() < len(rows):
                tops.append(tries.success[rows[np.argmax(odds[rows])]])
        measures = judged.measures[name]
        assert measures["log_loss"].value == pytest.approx(plan_losses(odds, tries, 0.8).sum() / len(tries))
        assert measures["auc"].value == pytest.approx(np.mean(pairs))
        assert measures["auc_within"].value == pytest.approx(np.mean(inside))
        assert measures["top_success"].value == pytest.approx(np.mean(tops))
        assert judged.mixed == len(tops)
    assert (judged.grasps, judged.held, judged.plans) == (len(tries), tries.success.sum(), 30)


def test_a_score_that_knows_is_told_from_one_that_does_not() -> None:
    judged = judge_fits(made_up(objects=12), {"blind": BLIND, "good": GOOD})
    change = judged.differences["good"]
    assert change["log_loss"].high < 0.0
    assert change["auc"].low > 0.0 and change["auc_within"].low > 0.0 and change["top_success"].low > 0.0
    for measure in judged.differences["blind"].values():
        assert measure.value == measure.low == measure.high == 0.0
    for measures in judged.measures.values():
        for measure in measures.values():
            assert measure.low <= measure.value <= measure.high and measure.low < measure.high


def test_equal_scores_are_worth_a_half() -> None:
    tries = made_up()
    flat = Tries(np.zeros_like(tries.log_terms), tries.success, tries.objects, tries.plans)
    judged = judge_fits(flat, {"flat": GOOD})
    assert judged.measures["flat"]["auc"].value == judged.measures["flat"]["auc_within"].value == 0.5
    assert judged.measures["flat"]["top_success"].value == pytest.approx(judged.chance)


def test_intervals_come_from_whole_objects() -> None:
    """Copies of the same grasps add no certainty, copies of objects do."""
    tries = made_up()

    def width(times: int, apart: bool) -> float:
        names = [np.char.add(tries.objects, f" {k}" if apart else "") for k in range(times)]
        plans = [tries.plans + 1000 * k for k in range(times)]
        copies = Tries(
            np.tile(tries.log_terms, (times, 1)), np.tile(tries.success, times), np.concatenate(names),
            np.concatenate(plans),
        )  # fmt: skip
        measure = judge_fits(copies, {"good": GOOD}).measures["good"]["log_loss"]
        return measure.high - measure.low

    assert width(4, apart=False) == pytest.approx(width(1, apart=False), rel=0.05)
    assert width(4, apart=True) == pytest.approx(0.5 * width(1, apart=True), rel=0.15)


def test_grasps_that_ended_alike_are_refused() -> None:
    tries = made_up()
    with pytest.raises(InvalidInputError, match="both outcomes"):
        judge_fits(tries.select(tries.success), {"good": GOOD})
    with pytest.raises(InvalidInputError, match="both outcomes"):
        judge_fits(tries, {})


def test_best_grasps_are_compared_plan_by_plan() -> None:
    def collected(outcomes: dict[tuple[str, int], str]) -> list[SampleGroup]:
        return [
            SampleGroup(
                name,
                number,
                "umi",
                (
                    GraspSample("known", 0, 9, 0.8, {}, kind, ""),
                    GraspSample("known", 3, 9, 0.5, {}, "misgrasp", "lift"),
                ),
            )
            for (name, number), kind in outcomes.items()
        ]

    first = collected(
        {
            ("mug", 0): "success",
            ("mug", 1): "misgrasp",
            ("box", 0): "misgrasp",
            ("box", 1): "success",
            ("T", 0): "error",
        }
    )
    second = collected({("mug", 0): "misgrasp", ("mug", 1): "success", ("box", 0): "success", ("T", 0): "success"})
    found = compare_tops(first, second)
    assert (found.plans, found.first, found.second, found.only_first, found.only_second) == (3, 1, 2, 1, 2)
    assert found.difference.value == pytest.approx(1.0 / 3.0)
    # Drawn by objects: from the mug's (0 of 2) to the box's (1 of 1).
    assert (found.difference.low, found.difference.high) == (0.0, 1.0)
    with pytest.raises(InvalidInputError, match="in common"):
        compare_tops(first[:1], second[2:])
