"""What makes a grasp hold, in numbers between 0 and 1: the terms of the planner's score and their weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.correspondences import Index


@dataclass(frozen=True)
class ScoreWeights(Config):
    """Weights of the score's terms; each term lies in [0, 1], the score is their weighted geometric mean.

    Set by hand: weights tuned on outcomes with half of the objects chose no better grasps of the other half
    (benchmarks/grasp_weights.py, docs/grasping.md).
    """

    alignment: float = parameter(2.0, "Contact normals inside the friction cone", minimum=0.0, maximum=100.0)
    overlap: float = parameter(2.0, "Area that both pads press", minimum=0.0, maximum=100.0)
    balance: float = parameter(
        2.0, "Small lever arm between the grasp and the centre of mass", minimum=0.0, maximum=100.0
    )
    hold: float = parameter(3.0, "Small share of the grip that gravity takes", minimum=0.0, maximum=100.0)
    closure: float = parameter(1.0, "Ferrari-Canny measure of the grasp", minimum=0.0, maximum=100.0)
    robust: float = parameter(3.0, "Worst contact over perturbed copies", minimum=0.0, maximum=100.0)
    clearance: float = parameter(
        1.5, "Distance of palm and fingers to the object on the approach", minimum=0.0, maximum=100.0
    )
    approach: float = parameter(1.0, "Approach along the preferred direction", minimum=0.0, maximum=100.0)
    margin: float = parameter(1.0, "Opening left on each side of the object", minimum=0.0, maximum=100.0)
    seen: float = parameter(1.0, "Share of the contacts that a camera saw", minimum=0.0, maximum=100.0)


def lever_arms(centers: Array, center_of_mass: Array, up: Array | None) -> Array:
    """(S,) lever arm of gravity about each grasp [m].

    With a known vertical this is the horizontal distance of grasp and centre of mass (a load that
    hangs straight below does not turn in the hand) and a tenth of the vertical one; else the distance.
    """
    offsets = centers - center_of_mass
    if up is None:
        distance: Array = np.linalg.norm(offsets, axis=1)
        return distance
    vertical = offsets @ up
    horizontal = np.linalg.norm(offsets - vertical[:, None] * up, axis=1)
    lever: Array = horizontal + 0.1 * np.abs(vertical)
    return lever


def weighted_score(terms: dict[str, Array], weights: ScoreWeights, floor: float = 0.02) -> Array:
    """The score (S,) of terms (S,) in [0, 1]: their weighted geometric mean, so that one bad term spoils a grasp.

    Args:
        terms: name as in `ScoreWeights` → values.
        weights: of the terms.
        floor: the least value a term counts as, so that no single one decides alone.
    """
    total = sum(getattr(weights, name) for name in terms)
    logarithm: Array = sum(
        (getattr(weights, name) * np.log(np.maximum(term, floor)) for name, term in terms.items()), np.zeros(1)
    )
    score: Array = np.exp(logarithm / max(total, 1e-12))
    return score


def diverse_top(
    rotations: Array, translations: Array, scores: Array, count: int, distance: float, angle: float
) -> Index:
    """Indices of the best poses, none within both `distance` [m] and `angle` [rad] of a better one.

    A parallel gripper turned by half a turn about its approach is the same grasp.
    """
    chosen: list[int] = []
    cosine = math.cos(angle)
    half_turn = np.diag([-1.0, -1.0, 1.0])
    for candidate in np.argsort(-scores, kind="stable"):
        if len(chosen) == count:
            break
        kept = np.array(chosen, dtype=np.int64)
        near = np.linalg.norm(translations[kept] - translations[candidate], axis=1) < distance
        if near.any():
            others, this = rotations[kept[near]], rotations[candidate]
            turns = [0.5 * (np.einsum("sij,ij->s", others, turned) - 1.0) for turned in (this, this @ half_turn)]
            if (np.maximum(*turns) > cosine).any():
                continue
        chosen.append(int(candidate))
    return np.array(chosen, dtype=np.int64)
