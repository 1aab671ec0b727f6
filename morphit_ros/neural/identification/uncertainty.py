"""How sure an estimate is: covariance at the solution, bounds that hold, directions without information.

With residuals r and Jacobian J in units of the stated noise, the covariance of the free parameters is s² (JᵀJ)⁻¹ with
s² = rᵀr / (N - K), the variance that the residuals show (Bard, Nonlinear Parameter Estimation, 1974, chapter 7).
What a model misses leaves residuals that hang together over time. N measurements of correlation c with their
neighbours tell as much as N (1 - c)/(1 + c) independent ones, so s² grows by the inverse of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.unknowns import Unknown

Mask = NDArray[np.bool_]

# Singular values of the column-scaled Jacobian below this part of the largest carry no information.
_NO_INFORMATION = 1e-9
# A parameter takes part in a direction without information from this component on.
_TAKES_PART = 1e-3
# A deviation above this part of what the bounds alone leave tells hardly more than they do.
_HARDLY_BETTER = 0.5
# Correlations are believed up to here: a factor of ten in standard deviations.
_LARGEST_CORRELATION = 0.98


@dataclass(frozen=True)
class Uncertainty:
    """Attributes:
    covariance: (K, K) of the estimates; infinite variances for what the data don't determine, zero rows and columns
        for parameters held at a bound.
    standard_deviations: (K,); of a parameter at its bound the one that it would have without the bound.
    at_bound: (K,) whether the parameter is held at a bound.
    influences: (K,) whether the residuals depend on the parameter at all.
    unidentifiable: names of the bounded parameters about which the data say hardly more than their bounds do: whose
        deviation is more than half of that between the bounds.
    confounded: names of parameters that only show in combination.
    residual_ratio: s, root of the residual variance in units of the stated noise.
    """

    covariance: Array
    standard_deviations: Array
    at_bound: Mask
    influences: Mask
    unidentifiable: tuple[str, ...]
    confounded: tuple[str, ...]
    residual_ratio: float


def estimate_uncertainty(
    residuals: Array,
    jacobian: Array,
    count: int,
    correlation: float,
    unknowns: Sequence[Unknown],
    held: Mask,
    noise_floor: float,
) -> Uncertainty:
    """The uncertainty of a least-squares solution.

    Args:
        residuals: (N,) in units of the stated noise.
        jacobian: (N, K).
        count: number of measurements behind the residuals.
        correlation: of residuals with their neighbours in time; chance alone, 2/√N, is not taken for one.
        unknowns: (K) with bounds.
        held: (K,) whether the solution is at a bound: such parameters are taken as known for the others.
        noise_floor: least s that is believed: a perfect fit is not proof of perfect data.
    """
    size = len(unknowns)
    freedom = count - size
    ratio = float(np.sqrt(residuals @ residuals / freedom)) if freedom > 0 else 1.0
    chance = 2.0 / np.sqrt(max(count, 1))
    correlation = min(correlation, _LARGEST_CORRELATION) if correlation > chance else 0.0
    scale = max(ratio * float(np.sqrt((1.0 + correlation) / (1.0 - correlation))), noise_floor)
    free = ~held
    covariance = np.zeros((size, size))
    indices = np.flatnonzero(free)
    covariance[np.ix_(indices, indices)], _ = _inverse_information(jacobian[:, free], scale)
    whole, lost = _inverse_information(jacobian, scale)
    deviations = np.sqrt(np.where(free, np.diag(covariance), np.diag(whole)))
    influences = np.linalg.norm(jacobian, axis=0) > 0.0
    ignorance = np.array([item.ignorance for item in unknowns])
    names = np.array([item.name for item in unknowns])
    unknown = (deviations >= _HARDLY_BETTER * ignorance) | ~np.isfinite(deviations)
    return Uncertainty(
        covariance, deviations, held, influences,
        tuple(names[unknown & np.isfinite(ignorance)].tolist()),
        tuple(names[lost & influences].tolist()), ratio,
    )  # fmt: skip


def _inverse_information(jacobian: Array, scale: float) -> tuple[Array, Mask]:
    """s² (JᵀJ)⁻¹ with infinite variances along directions without information, and which parameters these touch."""
    size = jacobian.shape[1]
    norms = np.linalg.norm(jacobian, axis=0)
    norms[norms == 0.0] = 1.0
    if size == 0:
        return np.zeros((0, 0)), np.zeros(0, dtype=bool)
    # Column scaling: what is small must not depend on units.
    _, singular, directions = np.linalg.svd(jacobian / norms, full_matrices=True)
    known = np.zeros(size, dtype=bool)
    known[: len(singular)] = singular > _NO_INFORMATION * max(float(singular[0]), 1e-300)
    inverse = np.zeros(size)
    inverse[known] = 1.0 / singular[known[: len(singular)]]
    root = scale * (directions.T * inverse) / norms[:, None]
    covariance = root @ root.T
    lost = (np.abs(directions[~known]) > _TAKES_PART).any(axis=0)
    covariance[lost, lost] = np.inf
    return covariance, lost
