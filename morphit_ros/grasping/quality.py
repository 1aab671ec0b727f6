"""What makes a grasp hold, in numbers between 0 and 1: the terms of the planner's score.

Measured at the final pose on what the pads touch, not on DISF's correspondences: those are
filtered by their normals and so cannot tell that half of a pad meets an edge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numba
import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.correspondences import Index, crop_between_pads


@dataclass(frozen=True)
class ScoreWeights(Config):
    """Weights of the score's terms; each term lies in [0, 1], the score is their weighted mean."""

    alignment: float = parameter(2.0, "Contact normals inside the friction cone", minimum=0.0, maximum=100.0)
    overlap: float = parameter(2.5, "Area of the pads that meets the object", minimum=0.0, maximum=100.0)
    balance: float = parameter(
        2.5, "Small lever arm between the grasp and the centre of mass", minimum=0.0, maximum=100.0
    )
    fit: float = parameter(0.5, "Small E_p a correspondence", minimum=0.0, maximum=100.0)
    clearance: float = parameter(
        1.0, "Distance of palm and fingers to the object on the approach", minimum=0.0, maximum=100.0
    )
    approach: float = parameter(1.0, "Approach along the preferred direction", minimum=0.0, maximum=100.0)
    margin: float = parameter(0.5, "Opening left on each side of the object", minimum=0.0, maximum=100.0)
    seen: float = parameter(1.0, "Share of the contacts that a camera saw", minimum=0.0, maximum=100.0)


@dataclass(frozen=True)
class ContactQuality:
    """Per pose, both fingers (S, 2) unless said otherwise.

    Attributes:
        overlap: (S,) area that both pads press from opposite sides, the smaller of the pad and the
            reference area being 1. Where it is not empty, a line along the closing direction joins the
            two contacts: a pinch of a thin wall needs it as much as a grasp of a box.
        angle: angle between the mean contact normal and the pad's axis [rad].
        seen: share of observed (not virtual) points.
        residual: root mean square distance of the contact points to the pad plane [m].
        center: (S, 3) middle of the two contact centres, world [m].
    """

    overlap: Array
    angle: Array
    seen: Array
    residual: Array
    center: Array


@numba.njit(cache=True)
def _measure(
    points: Array,
    normals: Array,
    observed: Array,
    rotations: Array,
    translations: Array,
    apertures: Array,
    pad: Array,
    half_size: Array,
    depth: float,
    spacing: float,
    reference_points: float,
    overlap: Array,
    angle: Array,
    seen: Array,
    residual: Array,
    center: Array,
) -> None:
    local = np.empty((points.shape[0], 3))
    index = np.empty(points.shape[0], np.int64)
    means = np.empty((2, 3))
    covered = np.zeros((2, pad.shape[0]), np.bool_)
    box = np.empty(3)
    for s in range(rotations.shape[0]):
        rotation, translation = rotations[s], translations[s]
        box[0], box[1], box[2] = half_size[0], 0.5 * apertures[s] + depth, half_size[1]
        cropped = crop_between_pads(points, rotation, translation, box, local, index)
        covered[:] = False
        for finger in range(2):
            side = 1.0 if finger == 0 else -1.0
            inner = 0.5 * apertures[s] - depth
            touched, observed_points, squared = 0, 0.0, 0.0
            normal_sum = np.zeros(3)
            mean = np.zeros(3)
            for m in range(cropped):
                y = side * local[m, 1]
                # A thin object's other face is not this finger's contact.
                if y < inner or y < 0.0:
                    continue
                facing = 0.0
                for k in range(3):
                    facing += side * rotation[k, 1] * normals[index[m], k]
                if facing <= 0.0:
                    continue
                touched += 1
                observed_points += observed[index[m]]
                squared += (y - 0.5 * apertures[s]) ** 2
                for k in range(3):
                    normal_sum[k] += normals[index[m], k]
                    mean[k] += local[m, k]
                # Pads lie on a rim as much as on a face: only points whose normal meets the pad cover it.
                if facing > 0.7:
                    for p in range(pad.shape[0]):
                        dx, dz = pad[p, 0] - local[m, 0], pad[p, 2] - local[m, 2]
                        if dx * dx + dz * dz <= spacing * spacing:
                            covered[finger, p] = True
            if touched == 0:
                angle[s, finger] = math.pi / 2.0
                means[finger] = 0.0
                means[finger, 1] = side * 0.5 * apertures[s]
                continue
            along, length = 0.0, 0.0
            for k in range(3):
                along += side * rotation[k, 1] * normal_sum[k]
                length += normal_sum[k] ** 2
            angle[s, finger] = math.acos(min(max(along / math.sqrt(max(length, 1e-30)), -1.0), 1.0))
            seen[s, finger] = observed_points / touched
            residual[s, finger] = math.sqrt(squared / touched)
            means[finger] = mean / touched
        shared = 0
        for p in range(pad.shape[0]):
            if covered[0, p] and covered[1, p]:
                shared += 1
        overlap[s] = min(shared / reference_points, 1.0)
        for k in range(3):
            center[s, k] = translation[k]
            for axis in range(3):
                center[s, k] += rotation[k, axis] * 0.5 * (means[0, axis] + means[1, axis])


def measure_contacts(
    points: Array,
    normals: Array,
    observed: Array,
    rotations: Array,
    translations: Array,
    apertures: Array,
    pad: Array,
    half_size: Array,
    depth: float,
    spacing: float,
    reference_area: float,
) -> ContactQuality:
    """Contacts of both pads at S poses.

    Args:
        points, normals: (N, 3) cloud.
        observed: (N,) 1 for a seen point, 0 for a virtual one.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) poses.
        pad: (K, 3) canonical pad points.
        half_size: (2,) half width and height of the pad [m].
        depth: points this far from the pad plane count as touched [m].
        spacing: radius that a point covers on the pad [m].
        reference_area: contact area that counts as full [m²].
    """
    count = len(rotations)
    quality = ContactQuality(
        np.zeros(count), np.zeros((count, 2)), np.zeros((count, 2)), np.zeros((count, 2)), np.zeros((count, 3))
    )  # fmt: skip
    pad_area = 4.0 * float(np.prod(half_size))
    reference_points = len(pad) * min(1.0, reference_area / pad_area)
    _measure(
        points, normals, observed, rotations, translations, apertures, pad, half_size, depth, spacing,
        reference_points, quality.overlap, quality.angle, quality.seen, quality.residual, quality.center,
    )  # fmt: skip
    return quality


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


def weighted_mean(terms: dict[str, Array], weights: ScoreWeights) -> Array:
    """The score (S,) of terms (S,) in [0, 1]."""
    total = sum(getattr(weights, name) for name in terms)
    score: Array = sum((getattr(weights, name) * term for name, term in terms.items()), np.zeros(1))
    return score / max(total, 1e-12)


def diverse_top(
    rotations: Array, translations: Array, scores: Array, count: int, distance: float, angle: float
) -> Index:
    """Indices of the best poses, none within both `distance` [m] and `angle` [rad] of a better one."""
    chosen: list[int] = []
    cosine = math.cos(angle)
    for candidate in np.argsort(-scores, kind="stable"):
        if len(chosen) == count:
            break
        kept = np.array(chosen, dtype=np.int64)
        near = np.linalg.norm(translations[kept] - translations[candidate], axis=1) < distance
        turn = 0.5 * (np.einsum("sij,ij->s", rotations[kept], rotations[candidate]) - 1.0)
        if not (near & (turn > cosine)).any():
            chosen.append(int(candidate))
    return np.array(chosen, dtype=np.int64)
