"""Gradient descent on the losses, compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.spheres.configuration import LossWeights
from morphit_ros.spheres.loss_kernels import evaluate_losses, sample_arrays
from morphit_ros.spheres.samples import REFERENCE_DIAGONAL, FitSamples

MIN_RADIUS, MAX_RADIUS = 1e-4 * REFERENCE_DIAGONAL, REFERENCE_DIAGONAL
# A plateau: the best loss has gained less than its share of the tolerance over so many steps.
_WINDOW = 20
_FIRST_MOMENT, _SECOND_MOMENT = 0.9, 0.99
# A radius' logarithm takes so many times the step of a centre over the diagonal: a sphere is smaller than the box.
_RADIUS_FACTOR = 3.0


@dataclass(frozen=True)
class Schedule:
    """Of one descent.

    Attributes:
        steps: most of them.
        rate: first step of Adam for centres, relative to the box's diagonal.
        floor: factor of the rate at the last step; it falls from 1 along a cosine.
        tolerance: relative gain of the loss below which a descent ends at a plateau.
    """

    steps: int
    rate: float
    floor: float
    tolerance: float


@dataclass(frozen=True)
class SphereDescent:
    """The best spheres on the way, centers (N, 3) and radii (N,), their loss, and the loss before each step."""

    centers: Array
    radii: Array
    loss: float
    history: Array


def descend(
    samples: FitSamples,
    centers: Array,
    radii: Array,
    free: NDArray[np.bool_],
    weights: LossWeights,
    schedule: Schedule,
) -> SphereDescent:
    """Follow the gradient with Adam until a plateau or the last step; spheres that are not `free` (N,) stay.

    Everything is in the samples' frame. Radii stay positive, as their logarithms are optimised; centres stay in the
    box.
    """
    best_centers, best_radii = np.array(centers, dtype=np.float64), np.array(radii, dtype=np.float64)
    history = np.empty(schedule.steps)
    done, loss = _descend(
        *sample_arrays(samples),
        samples.half_size,
        best_centers,
        best_radii,
        free,
        weights.to_array(),
        schedule.rate,
        schedule.floor,
        schedule.tolerance,
        history,
    )
    return SphereDescent(best_centers, best_radii, loss, history[:done])


@njit(cache=True, nogil=True, error_model="numpy")
def _descend(  # type: ignore[no-untyped-def]
    interior,
    surface,
    normals,
    touches,
    body,
    half_size,
    best_centers,
    best_radii,
    free,
    weights,
    rate,
    floor,
    tolerance,
    history,
):
    count, steps = len(best_radii), len(history)
    centers, radii, logs = best_centers.copy(), best_radii.copy(), np.log(best_radii)
    gradient, slope = np.empty((count, 3)), np.empty(count)
    first, second = np.zeros((count, 4)), np.zeros((count, 4))
    hints = np.zeros(interior.shape[1], dtype=np.int64)
    low, high = math.log(MIN_RADIUS), math.log(MAX_RADIUS)
    best, best_before = np.inf, np.inf
    change = np.empty(4)
    for step in range(steps):
        loss = evaluate_losses(
            interior, surface, normals, touches, body, centers, radii, weights, gradient, slope, hints
        )
        history[step] = loss
        if loss < best:
            best = loss
            best_centers[:] = centers
            best_radii[:] = radii
        if step % _WINDOW == _WINDOW - 1:
            if best_before - best < tolerance * abs(best):
                return step + 1, best
            best_before = best
        factor = rate * (floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * step / steps)))
        first_share = 1.0 - _FIRST_MOMENT ** (step + 1)
        second_share = 1.0 - _SECOND_MOMENT ** (step + 1)
        for k in range(count):
            if not free[k]:
                continue
            for a in range(4):
                value = gradient[k, a] if a < 3 else slope[k] * radii[k]
                first[k, a] = _FIRST_MOMENT * first[k, a] + (1.0 - _FIRST_MOMENT) * value
                second[k, a] = _SECOND_MOMENT * second[k, a] + (1.0 - _SECOND_MOMENT) * value * value
                change[a] = factor * first[k, a] / first_share / (math.sqrt(second[k, a] / second_share) + 1e-12)
            for a in range(3):
                moved = centers[k, a] - REFERENCE_DIAGONAL * change[a]
                # Bounds that no sensible sphere meets keep any rate from running away.
                centers[k, a] = min(max(moved, -half_size[a]), half_size[a])
            logs[k] = min(max(logs[k] - _RADIUS_FACTOR * change[3], low), high)
            radii[k] = math.exp(logs[k])
    return steps, best
