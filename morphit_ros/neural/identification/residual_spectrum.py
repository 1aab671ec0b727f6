"""Spectrum of autocorrelated residuals: a track tells less than its number of poses says.

Residuals are autocorrelated where the noise is (a tracker's filter) and where the model misses something. Least
squares stays unbiased under the first, but s² (JᵀJ)⁻¹ is then too small: what a parameter does to a motion is slow, and
so is that part of the residuals. The covariance is that of the sandwich, (JᵀJ)⁻¹ JᵀVJ (JᵀJ)⁻¹ (White, Econometrica 48,
1980), V being the residuals' own. Here V is diagonal in the cosine transform of each track: white noise and a process
of first order, w + v (1 - ρ²) / (1 - 2 ρ cos θ + ρ²), for each channel, by Whittle's likelihood of its spectrum (Arkiv
för Matematik 2, 1953). What the fit has taken out of the residuals, mostly at low frequencies, is allowed for by its
leverage there; the spectrum is a (geometric) mean over the likelihood, so that few poses don't pretend to know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array

# Frames over which a process forgets, up to the length of the longest track; shares of the variance that it makes up.
_MEMORIES = 2.0 ** np.arange(-0.5, 14.0, 0.5)
_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 1.0])
# Probability, before any data, that noise is white.
_WHITE = 0.5
# An octave is raised where it is stronger by so many deviations of chance, if so many residuals are left of it.
_CHANCE, _LEAST_FREEDOM = 2.5, 0.5
# Of a channel with less than this share of the residuals' variance nothing is said: it is zero.
_SILENT = 1e-24
# Probability of calling white residuals correlated, over all channels and octaves.
_FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class Series:
    """Residuals of one track.

    Attributes:
        residuals: (T, C) at T times of C channels, in units of the stated noise. Channels are the same in all series.
        jacobian: (T, C, L).
        columns: (L,) which of all unknowns these are.
    """

    residuals: Array
    jacobian: Array
    columns: NDArray[np.int64]

    def moved(self, step: Array) -> Series:
        """After a step (K,) of all unknowns, to first order."""
        return Series(self.residuals + self.jacobian @ step[self.columns], self.jacobian, self.columns)

    def transformed(self) -> Series:
        """The same in frequencies: the orthonormal cosine transform over time."""
        from scipy.fft import dct

        return Series(
            np.asarray(dct(self.residuals, axis=0, norm="ortho")),
            np.asarray(dct(self.jacobian, axis=0, norm="ortho")),
            self.columns,
        )


def residual_information(series: Sequence[Series], root: Array, floor: float) -> Array:
    """(K, K) JᵀVJ of the residuals' covariance V.

    Args:
        series: of each track; finite.
        root: (K, K) R with R Rᵀ = (JᵀJ)⁻¹, rows of zeros for unknowns that are held.
        floor: least deviation that is believed.
    """
    parts = [item.transformed() for item in series]
    leverages = [((part.jacobian @ root[part.columns]) ** 2).sum(axis=-1) for part in parts]
    total = np.zeros((len(root), len(root)))
    for channel in range(parts[0].residuals.shape[1]):
        squares = [part.residuals[:, channel] ** 2 for part in parts]
        freedoms = [np.clip(1.0 - leverage[:, channel], 0.0, 1.0) for leverage in leverages]
        for part, spectrum in zip(parts, channel_spectra(squares, freedoms), strict=True):
            slopes, columns = part.jacobian[:, channel], part.columns
            weights = np.maximum(spectrum, floor**2)
            total[columns[:, None], columns] += slopes.T @ (weights[:, None] * slopes)
    return total


class ColoredBand(NamedTuple):
    """Frequencies at which residuals are stronger than white ones.

    Attributes:
        channel: of the series.
        first, last: waves over the length of a track, in halves, the last one not included.
        times: how many times as strong, as a variance.
    """

    channel: int
    first: int
    last: int
    times: float


def are_white(series: Sequence[Series], root: Array, floor: float = 1.0) -> bool:
    """Whether there is no `colored_band`."""
    return colored_band(series, root, floor) is None


def colored_band(series: Sequence[Series], root: Array, floor: float = 1.0) -> ColoredBand | None:
    """The octave of a channel that is least likely of white residuals of the stated noise, or more; None if all may be.

    The level of a channel is that of the upper half of its frequencies, at least the floor: model errors are slow, and
    those below the stated noise don't matter. Octaves are held against it by the F distribution (chi squared
    where the stated noise is the level), with the false alarms of all of them together bounded.

    Args:
        series: of each track; finite.
        root: (K, K) R with R Rᵀ = (JᵀJ)⁻¹, rows of zeros for unknowns that are held.
        floor: least deviation that noise may have, as a part of the stated noise.
    """
    from scipy.stats import chi2, f

    parts = [item.transformed() for item in series]
    leverages = [((part.jacobian @ root[part.columns]) ** 2).sum(axis=-1) for part in parts]
    longest = max(len(part.residuals) for part in parts)
    octaves = [(0, 1), *((2**power, 2 ** (power + 1)) for power in range(longest.bit_length()))]
    chances: list[tuple[float, ColoredBand]] = []
    for channel in range(parts[0].residuals.shape[1]):
        squares = [part.residuals[:, channel] ** 2 for part in parts]
        freedoms = [np.clip(1.0 - leverage[:, channel], 0.0, 1.0) for leverage in leverages]
        halves = [len(square) // 2 for square in squares]
        upper = sum(float(item[half:].sum()) for item, half in zip(squares, halves, strict=True))
        freedom = sum(float(item[half:].sum()) for item, half in zip(freedoms, halves, strict=True))
        level = max(upper / freedom if freedom >= 1.0 else 1.0, floor**2)
        for first, last in octaves:
            rows = [slice(min(first, half), min(last, half)) for half in halves]
            left = sum(float(item[part].sum()) for item, part in zip(freedoms, rows, strict=True))
            energy = sum(float(item[part].sum()) for item, part in zip(squares, rows, strict=True))
            if left <= _LEAST_FREEDOM:
                continue
            ratio = energy / level
            chance = f.sf(ratio / left, left, freedom) if level > floor**2 else chi2.sf(ratio, left)
            chances.append((float(chance), ColoredBand(channel, first, last, ratio / left)))
    if not chances:
        return None
    least, band = min(chances, key=lambda item: item[0])
    return None if least >= _FALSE_ALARM / len(chances) else band


def channel_spectra(squares: Sequence[Array], freedoms: Sequence[Array]) -> list[Array]:
    """(T,) expected squares of a channel's transformed noise, for each track.

    Args:
        squares: (T,) of its transformed residuals, of each track.
        freedoms: (T,) in [0, 1] what the fit leaves of each of them.
    """
    lengths = [len(item) for item in squares]
    freedom = sum(float(item.sum()) for item in freedoms)
    if freedom <= 0.0 or sum(float(item.sum()) for item in squares) <= _SILENT:
        return [np.zeros(length) for length in lengths]
    memories = _MEMORIES[max(lengths) >= _MEMORIES]
    shares = np.append(0.0, _SHARES)
    candidates = {
        length: 1.0 + shares[None, :, None] * (process_spectra(length, np.exp(-1.0 / memories)) - 1.0)[:, None, :]
        for length in set(lengths)
    }
    prior = np.where(shares == 0.0, _WHITE / len(memories), (1.0 - _WHITE) / (len(memories) * len(_SHARES)))
    scores = np.tile(-2.0 * np.log(prior), (len(memories), 1))
    variances = np.zeros_like(scores)
    for square, left in zip(squares, freedoms, strict=True):
        tried = candidates[len(square)]
        scores += np.log(tried) @ left
        variances += (1.0 / tried) @ square / freedom
    scores += freedom * np.log(variances)
    weights = np.exp(-0.5 * (scores - scores.min()))
    weights /= weights.sum()
    level = float((weights * np.log(variances)).sum())
    spectra = [
        np.asarray(np.exp(level + np.einsum("ms,mst->t", weights, np.log(candidates[length])))) for length in lengths
    ]
    return _raised(spectra, squares, freedoms)


def _raised(spectra: list[Array], squares: Sequence[Array], freedoms: Sequence[Array]) -> list[Array]:
    """The spectra, raised in octaves where residuals are stronger than chance: what is missed is often steeper."""
    raised = [spectrum.copy() for spectrum in spectra]
    first, last = 0, 1
    while first < max(len(spectrum) for spectrum in spectra):
        band = slice(first, last)
        freedom = sum(float(left[band].sum()) for left in freedoms)
        ratios = [float((square[band] / part[band]).sum()) for square, part in zip(squares, spectra, strict=True)]
        if freedom > _LEAST_FREEDOM and sum(ratios) > freedom + _CHANCE * np.sqrt(2.0 * freedom):
            for part in raised:
                part[band] *= sum(ratios) / freedom
        first, last = last, 2 * last
    return raised


def process_spectra(length: int, correlations: Array) -> Array:
    """(M, T) variances of the cosine transform of a unit process of first order, for correlations (M,) of neighbours.

    Exact for T samples. With γ_k = ρᵏ and θ = π f / T, they are Σ_k γ_k of the autocorrelation of the f-th cosine,
    ((T - k) cos kθ - sin kθ / sin θ) / T for |k| < T, and (T - |k|) / T for f = 0.
    """
    lags = np.arange(length)
    powers = np.asarray(correlations)[:, None] ** lags
    turned = np.fft.fft(powers * (length - lags), 2 * length, axis=1)[:, :length].real
    sines = -np.fft.fft(powers, 2 * length, axis=1)[:, :length].imag
    spectra = 2.0 * turned / length - 1.0
    angles = np.pi * np.arange(1, length) / length
    spectra[:, 1:] -= 2.0 * sines[:, 1:] / (length * np.sin(angles))
    return np.asarray(np.maximum(spectra, 1e-12))
