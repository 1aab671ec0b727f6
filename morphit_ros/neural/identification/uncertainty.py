"""How sure an estimate is: covariance at the solution, bounds that hold, directions without information.

With residuals r and Jacobian J in units of the stated noise, the covariance of the free parameters is s² (JᵀJ)⁻¹ with
s² = rᵀr / (N - K), the variance that the residuals show (Bard, Nonlinear Parameter Estimation, 1974, chapter 7). Where
residuals are known over time, autocorrelated ones count for less: see `residual_spectrum`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.identification.residual_spectrum import ColoredBand, Series, colored_band, residual_information
from morphit_ros.neural.identification.unknowns import Unknown

Mask = NDArray[np.bool_]

# Singular values of the column-scaled Jacobian below this part of the largest carry no information.
_NO_INFORMATION = 1e-9
# Residuals below this part of the stated noise are none.
_BARE_FLOOR = 0.05
# Of each body's residuals.
CHANNELS = (*(f"position {axis}" for axis in "xyz"), *(f"turn about {axis}" for axis in "xyz"))
# A parameter takes part in a direction without information from this component on.
_TAKES_PART = 1e-3
# A deviation above this part of what the bounds alone leave tells hardly more than they do.
_HARDLY_BETTER = 0.5


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
    white: whether residuals over time are white, as far as is known: see `residual_spectrum.are_white`.
    colored: where they are not white, which of them and how fast, for people.
    bare: whether they are so at their own level too, however far below the stated noise: nothing is left to be found.
    """

    covariance: Array
    standard_deviations: Array
    at_bound: Mask
    influences: Mask
    unidentifiable: tuple[str, ...]
    confounded: tuple[str, ...]
    residual_ratio: float
    white: bool = True
    bare: bool = True
    colored: str = ""


def estimate_uncertainty(
    residuals: Array,
    jacobian: Array,
    count: int,
    series: Sequence[Series],
    unknowns: Sequence[Unknown],
    held: Mask,
    noise_floor: float,
    stretch: Array | None = None,
) -> Uncertainty:
    """The uncertainty of a least-squares solution.

    Args:
        residuals: (N,) in units of the stated noise.
        jacobian: (N, K).
        count: number of measurements behind the residuals.
        series: the residuals over time, with their Jacobians; none: all are independent.
        unknowns: (K) with bounds.
        held: (K,) whether the solution is at a bound: such parameters are taken as known for the others.
        noise_floor: least s that is believed: a perfect fit is not proof of perfect data.
        stretch: (K, K) by which deviations are widened, where the cost is not quadratic; None for none.
    """
    size = len(unknowns)
    freedom = count - size
    ratio = float(np.sqrt(residuals @ residuals / freedom)) if freedom > 0 else 1.0
    free = ~held
    indices = np.flatnonzero(free)
    root = np.zeros((size, size))
    root[np.ix_(indices, indices)], among_free = inverse_root(jacobian[:, free])
    whole_root, lost = inverse_root(jacobian)
    if series and freedom > 0:
        information = residual_information(series, root, noise_floor)
        covariance, whole = (_between(factor, information) for factor in (root, whole_root))
    else:
        variance = max(ratio, noise_floor) ** 2
        covariance, whole = (variance * factor @ factor.T for factor in (root, whole_root))
    if stretch is not None:
        covariance, whole = (stretch @ matrix @ stretch.T for matrix in (covariance, whole))
    gone = indices[among_free]
    covariance[gone, gone], whole[lost, lost] = np.inf, np.inf
    deviations = np.sqrt(np.where(free, np.diag(covariance), np.diag(whole)))
    influences = np.linalg.norm(jacobian, axis=0) > 0.0
    ignorance = np.array([item.ignorance for item in unknowns])
    names = np.array([item.name for item in unknowns])
    unknown = (deviations >= _HARDLY_BETTER * ignorance) | ~np.isfinite(deviations)
    bands = [
        colored_band(series, whole_root, floor) if series and freedom > 0 else None for floor in (1.0, _BARE_FLOOR)
    ]
    return Uncertainty(
        covariance, deviations, held, influences,
        tuple(names[unknown & np.isfinite(ignorance)].tolist()),
        tuple(names[lost & influences].tolist()), ratio,
        bands[0] is None, bands[1] is None, _told(bands[0]),
    )  # fmt: skip


def _told(band: ColoredBand | None) -> str:
    """Which residuals are correlated, and how slowly they change."""
    if band is None:
        return ""
    body, part = divmod(band.channel, len(CHANNELS))
    waves = "none" if band.last == 1 else f"{band.first / 2:g} to {band.last / 2:g}"
    whose = f" of body {body}" if body else ""
    return f" ({CHANNELS[part]}{whose}, {waves} waves over the track, {band.times:.2g} times as strong as noise)"


def inverse_root(jacobian: Array) -> tuple[Array, Mask]:
    """R with R Rᵀ = (JᵀJ)⁻¹, without directions that carry no information, and which parameters these touch."""
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
    root = (directions.T * inverse) / norms[:, None]
    lost = (np.abs(directions[~known]) > _TAKES_PART).any(axis=0)
    return root, lost


def _between(root: Array, information: Array) -> Array:
    """(JᵀJ)⁻¹ M (JᵀJ)⁻¹ of a root of (JᵀJ)⁻¹ and M (K, K)."""
    inverse = root @ root.T
    return np.asarray(inverse @ information @ inverse)
