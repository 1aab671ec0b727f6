"""Density control: spheres that matter little go to where spheres are missing; the count does not change by itself.

The authors prune and add, and lose count. Here each sphere's worth is what the losses would grow by without it (as in
the authors' reworked code), and a sphere that is taken away splits the one with the greatest error in two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.spheres.configuration import LossWeights
from morphit_ros.spheres.samples import TOUCH_RADIUS, FitSamples

# Halves of a split sphere: their distance from its centre and their radius, relative to its radius.
_HALF_OFFSET, _HALF_RADIUS = 0.5, 0.8
# Spread of the random factors (log-normal) on worth and error: rounds that failed are not tried again as they were.
_WORTH_SPREAD, _ERROR_SPREAD = 0.3, 0.5


@dataclass(frozen=True)
class Tally:
    """What each of N spheres does.

    Attributes:
        worth: (N,) growth of the losses were the sphere not there.
        error: (N,) share of the losses of the samples nearest to it.
        axes: (N, 3) unit vector along which that error is spread most.
    """

    worth: Array
    error: Array
    axes: Array


def tally_spheres(samples: FitSamples, centers: Array, radii: Array, weights: LossWeights) -> Tally:
    """Worth and error of each sphere by the coverage, surface, SQEM and contact terms."""
    worth, error, moments = _tally(
        samples.interior,
        samples.surface,
        samples.touches,
        np.ascontiguousarray(centers),
        np.ascontiguousarray(radii),
        weights.coverage / len(samples.interior),
        # A fit without either term still needs to know where it is far from the surface.
        max(weights.surface, 1e-6) / len(samples.surface),
        weights.sqem / len(samples.surface),
        weights.contact / max(len(samples.touches), 1),
    )
    mass = np.maximum(moments[:, 0], 1e-300)
    mean = moments[:, 1:4] / mass[:, None]
    spread = moments[:, 4:].reshape(-1, 3, 3) / mass[:, None, None] - mean[:, :, None] * mean[:, None, :]
    axes: Array = np.linalg.eigh(spread)[1][:, :, -1]
    # An eigenvector's sign is arbitrary; fixed, so that every machine splits alike.
    return Tally(worth, error, axes * np.where(axes.sum(axis=1) < 0.0, -1.0, 1.0)[:, None])


def move_useless(
    samples: FitSamples,
    centers: Array,
    radii: Array,
    free: NDArray[np.bool_],
    weights: LossWeights,
    count: int,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Take about the `count` least worthy free spheres and split those of greatest error with them.

    Returns:
        centers (N, 3) and radii (N,); spheres that are not free are as they were.
    """
    tally = tally_spheres(samples, centers, radii, weights)
    worth = tally.worth * np.exp(rng.normal(0.0, _WORTH_SPREAD, len(radii)))
    error = tally.error * np.exp(rng.normal(0.0, _ERROR_SPREAD, len(radii)))
    worst = np.argsort(worth, kind="stable")
    culled = worst[free[worst]][: min(count, len(radii) // 2)]
    crowded = np.setdiff1d(np.arange(len(radii)), culled)
    split = crowded[np.argsort(-error[crowded], kind="stable")][: len(culled)]
    new_centers, new_radii = centers.copy(), radii.copy()
    for target, source in zip(culled, split, strict=True):
        _split(new_centers, new_radii, target, source, tally.axes[source], bool(free[source]))
    return new_centers, new_radii


def resize(
    samples: FitSamples,
    centers: Array,
    radii: Array,
    free: NDArray[np.bool_],
    weights: LossWeights,
    count: int,
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Thin spheres out, or split them, until there are `count`; those that are not free stay, and keep their order.

    Returns:
        centers (count, 3), radii (count,) and which of them are free (count,).
    """
    while len(radii) > count:
        tally = tally_spheres(samples, centers, radii, weights)
        # In portions: neighbours depend on each other's worth.
        portion = min(len(radii) - count, max(1, len(radii) // 8))
        worst = np.argsort(tally.worth, kind="stable")
        kept = np.setdiff1d(np.arange(len(radii)), worst[free[worst]][:portion])
        centers, radii, free = centers[kept], radii[kept], free[kept]
    while len(radii) < count:
        tally = tally_spheres(samples, centers, radii, weights)
        portion = min(count - len(radii), len(radii))
        split = np.argsort(-tally.error, kind="stable")[:portion]
        size = len(radii)
        centers, radii = np.concatenate([centers, centers[split]]), np.concatenate([radii, radii[split]])
        free = np.concatenate([free, np.ones(portion, dtype=np.bool_)])
        for target, source in enumerate(split, start=size):
            _split(centers, radii, target, source, tally.axes[source], bool(free[source]))
    return centers, radii, free


def _split(centers: Array, radii: Array, target: int, source: int, axis: Array, is_free: bool) -> None:
    """Make `target` one half of `source`, and `source` the other if it may move."""
    offset = _HALF_OFFSET * radii[source] * axis
    centers[target] = centers[source] + offset
    radii[target] = _HALF_RADIUS * radii[source]
    if is_free:
        centers[source] = centers[source] - offset
        radii[source] = _HALF_RADIUS * radii[source]


@njit(cache=True, nogil=True, error_model="numpy")
def _tally(interior, surface, touches, centers, radii, coverage, mean, quadric, contact):  # type: ignore[no-untyped-def]
    """Worth (N,), error (N,), and weight, first and second moments of the error about each centre (N, 13)."""
    count = len(radii)
    worth, error, moments = np.zeros(count), np.zeros(count), np.zeros((count, 13))
    offset = np.empty(3)
    for part in range(3):
        points = interior if part == 0 else surface if part == 1 else touches
        for i in range(len(points)):
            first, second, nearest = np.inf, np.inf, 0
            for k in range(count):
                dx = points[i, 0] - centers[k, 0]
                dy = points[i, 1] - centers[k, 1]
                dz = points[i, 2] - centers[k, 2]
                gap = math.sqrt(dx * dx + dy * dy + dz * dz) - radii[k]
                if gap < first:
                    first, second, nearest = gap, first, k
                elif gap < second:
                    second = gap
            if count == 1:
                second = first + radii[0]
            if part == 0:
                cost = coverage * max(first, 0.0)
                without = coverage * max(second, 0.0)
            elif part == 1:
                cost = mean * abs(first) + quadric * first * first
                without = mean * abs(second) + quadric * second * second
            else:
                cost = contact * abs(first - TOUCH_RADIUS)
                without = contact * abs(second - TOUCH_RADIUS)
            worth[nearest] += without - cost
            error[nearest] += cost
            moments[nearest, 0] += cost
            for a in range(3):
                offset[a] = points[i, a] - centers[nearest, a]
                moments[nearest, 1 + a] += cost * offset[a]
            for a in range(3):
                for b in range(3):
                    moments[nearest, 4 + 3 * a + b] += cost * offset[a] * offset[b]
    return worth, error, moments
