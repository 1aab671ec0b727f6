"""How well scores tell grasps that hold from those that don't, with intervals over objects.

Grasps of one object are alike, so intervals come from drawing whole objects again and again (bootstrap); scores that
are compared see the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_bench.picks.grasp_samples import SampleGroup
from morphit_bench.picks.weight_fit import EXECUTED, Mask, Tries, WeightFit, plan_losses
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

MEASURES = ("log_loss", "auc", "auc_within", "top_success")
"""Mean log loss [nat]; chance that a grasp that held scores above one that did not, anywhere, and in the same plan;
share of the plans whose best-scored grasp held, of those with one that held and one that did not."""

_RESAMPLES = 4000


@dataclass(frozen=True)
class Measure:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Judgement:
    """Of several fits on the same grasps.

    Attributes:
        measures: name of the fit → name of the measure → figure.
        differences: the same, less that of the first fit.
        grasps, held: executed, successful.
        plans, mixed: number of plans, and of those with both outcomes, in which the choice matters.
        chance: share of the mixed plans that a grasp drawn at random would hold in.
    """

    measures: dict[str, dict[str, Measure]]
    differences: dict[str, dict[str, Measure]]
    grasps: int
    held: int
    plans: int
    mixed: int
    chance: float


def judge_fits(tries: Tries, fits: Mapping[str, WeightFit], seed: int = 0) -> Judgement:
    """Measures of each fit, and how they differ from the first one's.

    Args:
        tries: executed grasps, of objects that no fit has seen.
        fits: by name, the reference first.
        seed: of the draws of objects.

    Raises:
        InvalidInputError: all grasps ended alike, or no fit is given.
    """
    if tries.success.all() or not tries.success.any() or not fits:
        raise InvalidInputError("tries, fits", [len(tries), len(fits)], "grasps of both outcomes and at least one fit")
    names = np.unique(tries.objects)
    counts = _draws(len(names), seed)
    drawn = {name: _measured(tries, fit, names, counts) for name, fit in fits.items()}
    reference = next(iter(drawn.values()))
    mixed = [held for _, held in _plans(tries) if 0 < held.sum() < len(held)]
    return Judgement(
        {name: {key: _with_interval(row) for key, row in rows.items()} for name, rows in drawn.items()},
        {
            name: {key: _with_interval(row - reference[key]) for key, row in rows.items()}
            for name, rows in drawn.items()
        },
        len(tries),
        int(tries.success.sum()),
        len(np.unique(tries.plans)),
        len(mixed),
        float(np.mean([held.mean() for held in mixed])) if mixed else float("nan"),
    )


@dataclass(frozen=True)
class TopComparison:
    """What became of the best-scored grasps of the same plans under two rankings.

    Attributes:
        plans: that both had a grasp for and executed.
        first, second: how many of them held.
        only_first, only_second: how many held under one ranking and not under the other.
        difference: of the success rates, second less first.
    """

    plans: int
    first: int
    second: int
    only_first: int
    only_second: int
    difference: Measure


def compare_tops(first: Sequence[SampleGroup], second: Sequence[SampleGroup], seed: int = 0) -> TopComparison:
    """The best-scored grasps of two collections of the same trials; trials that are in one of them only are left out.

    Raises:
        InvalidInputError: no plan is in both.
    """
    one, other = _tops(first), _tops(second)
    keys = [key for key in one if key in other]
    if not keys:
        raise InvalidInputError("samples", "no plan in common", "the same trials in both")
    held = np.array([[one[key], other[key]] for key in keys], dtype=np.float64)
    names, which = np.unique([key[0] for key in keys], return_inverse=True)
    counts = _draws(len(names), seed)
    change = counts @ np.bincount(which, held[:, 1] - held[:, 0], len(names)) / (counts @ np.bincount(which))
    a, b = held.astype(bool).T
    return TopComparison(
        len(keys), int(a.sum()), int(b.sum()), int((a & ~b).sum()), int((b & ~a).sum()), _with_interval(change)
    )


def _tops(groups: Sequence[SampleGroup]) -> dict[tuple[str, int, str, str], bool]:
    return {
        (*group.key, sample.setting): sample.success
        for group in groups
        for sample in group.samples
        if sample.rank == 0 and sample.kind in EXECUTED
    }


def _draws(size: int, seed: int) -> Array:
    """(R, size) how often each object is drawn; the first row is the sample as it is."""
    drawn = np.random.default_rng(seed).multinomial(size, np.full(size, 1.0 / size), size=_RESAMPLES)
    return np.concatenate([np.ones((1, size)), drawn.astype(np.float64)])


def _with_interval(row: Array) -> Measure:
    drawn = row[1:][np.isfinite(row[1:])]
    low, high = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else (np.nan, np.nan)
    return Measure(float(row[0]), float(low), float(high))


def _plans(tries: Tries) -> list[tuple[NDArray[np.int64], Mask]]:
    """Indices and outcomes of each plan."""
    plans = (np.flatnonzero(tries.plans == number).astype(np.int64) for number in np.unique(tries.plans))
    return [(rows, tries.success[rows]) for rows in plans]


def _measured(tries: Tries, fit: WeightFit, names: NDArray[np.str_], counts: Array) -> dict[str, Array]:
    """Measure → (R,) for each row of `counts` (R, objects), how often each object is in it."""
    odds, held = fit.log_odds(tries), tries.success
    which = np.searchsorted(names, tries.objects)
    size = len(names)
    _, firsts = np.unique(tries.plans, return_index=True)
    losses = np.bincount(which[firsts], plan_losses(odds, tries, fit.spread), size)
    amounts = np.bincount(which, minlength=size)
    # Pairs of one that held and one that did not, by their objects: won and all.
    score = tries.log_terms @ fit.weights
    wins = (score[held][:, None] > score[~held]) + 0.5 * (score[held][:, None] == score[~held])
    first, second = np.eye(size)[which[held]], np.eye(size)[which[~held]]
    won, pairs = first.T @ wins @ second, np.outer(first.sum(axis=0), second.sum(axis=0))
    inside, tops = np.zeros((size, 2)), np.zeros((size, 2))
    for rows, outcomes in _plans(tries):
        if not 0 < outcomes.sum() < len(outcomes):
            continue
        place = which[rows[0]]
        good, poor = odds[rows][outcomes][:, None], odds[rows][~outcomes]
        inside[place] += float(((good > poor) + 0.5 * (good == poor)).sum()), good.size * poor.size
        best = odds[rows] == odds[rows].max()
        tops[place] += float(outcomes[best].mean()), 1.0
    with np.errstate(invalid="ignore"):
        return {
            "log_loss": (counts @ losses) / (counts @ amounts),
            "auc": np.einsum("ri,ij,rj->r", counts, won, counts) / np.einsum("ri,ij,rj->r", counts, pairs, counts),
            "auc_within": (counts @ inside[:, 0]) / (counts @ inside[:, 1]),
            "top_success": (counts @ tops[:, 0]) / (counts @ tops[:, 1]),
        }
