"""Which density counts as inside: given, halfway between two levels, or by the likelihood of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField

# Samples or silhouettes that agree less do not belong to the field.
LEAST_AGREEMENT = 0.6
# Share of a typical density that counts as nothing.
_FLOOR = 1e-3
# A constant field that is interpolated differs by so much of its density.
_ROUNDING = 1e-9
# Share of the samples that a threshold of the range may explain worse.
_LOSS = 0.01
# Sums of weights pass one by so much.
_SUM_ROUNDING = 1e-9
# Keeps the logistic curve finite where a threshold explains every sample.
_RIDGE = 1e-4


@dataclass(frozen=True)
class Threshold:
    """A density above which a field is inside of the object.

    Attributes:
        value: the threshold, positive.
        lowest, highest: what it may as well be, given what it was chosen by; equal to the value if it was given.
        agreement: of what it was chosen by, in [0, 1]: share of samples, or of silhouettes, explained; 1 if given.

    Raises:
        InvalidInputError: numbers that are not positive and finite, a value out of its range, or an agreement out of
            [0, 1].
    """

    value: float
    lowest: float | None = None
    highest: float | None = None
    agreement: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.value) and self.value > 0.0):
            raise InvalidInputError("threshold", self.value, "a positive density")
        for name in ("lowest", "highest"):
            object.__setattr__(self, name, self.value if getattr(self, name) is None else float(getattr(self, name)))
        if not 0.0 < self.range[0] <= self.value <= self.range[1] < np.inf:
            raise InvalidInputError("threshold", f"{self.value:g} in {self.range}", "a value within its positive range")
        if not 0.0 <= self.agreement <= 1.0 + _SUM_ROUNDING:
            raise InvalidInputError("agreement of the threshold", self.agreement, "a share in [0, 1]")
        object.__setattr__(self, "agreement", min(float(self.agreement), 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest."""
        return (
            self.value if self.lowest is None else self.lowest,
            self.value if self.highest is None else self.highest,
        )


def as_threshold(threshold: float | Threshold | None) -> Threshold | None:
    """A threshold that was given, without a range if it is a number; None stays None.

    Raises:
        InvalidInputError: a number that is not positive and finite.
    """
    if threshold is None or isinstance(threshold, Threshold):
        return threshold
    return Threshold(float(threshold))


def check_densities(densities: Array) -> None:
    """Refuse densities that tell no object from empty space.

    Raises:
        InvalidInputError: none, not finite, all the same, or none positive.
    """
    if densities.size == 0 or not np.isfinite(densities).all():
        raise InvalidInputError("field", "densities that are none or not finite", "finite densities")
    if np.ptp(densities) <= _ROUNDING * np.abs(densities).max():
        raise InvalidInputError(
            "field",
            f"a constant density of {densities.max():.4g}",
            "higher densities inside of the object than outside",
            "A constant field has no surface: learn it from views that show the object and its surroundings.",
        )
    if densities.max() <= 0.0:
        raise InvalidInputError("field", f"densities of at most {densities.max():.4g}", "some above zero")


def two_level_threshold(densities: Array) -> Threshold:
    """Halfway between the medians of what lies below and above (Ridler and Calvard's choice, with medians).

    Right where the inside has about one density; of fields learned from images, whose inside has none, choose by
    silhouettes.

    Args:
        densities: on a grid or at random places over the bounds, any shape.

    Raises:
        InvalidInputError: see `check_densities`.
    """
    check_densities(densities)
    values = np.sort(np.maximum(densities, 0.0), axis=None)
    threshold = 0.5 * values[-1]
    for _ in range(50):
        split = int(np.searchsorted(values, threshold, side="right"))
        split = min(max(split, 1), len(values) - 1)
        below, above = np.median(values[:split]), np.median(values[split:])
        updated = 0.5 * (below + above)
        if abs(updated - threshold) <= 1e-9 * values[-1]:
            break
        threshold = updated
    threshold = float(max(threshold, 1e-12 * values[-1]))
    return Threshold(
        threshold, float(below + 0.3 * (above - below)) or threshold, float(below + 0.7 * (above - below)) or threshold
    )


def likelihood_threshold(field: DensityField, free: ArrayLike, occupied: ArrayLike) -> Threshold:
    """The density at which a sample is as likely occupied as free.

    A logistic curve of the logarithm of the density is fitted to both kinds of samples, each kind with the same weight;
    the range is of the thresholds that explain up to one percent fewer samples, at least twice the standard error of
    its middle. (The error alone would be too small: samples of one picture share theirs.)

    Args:
        field: the density.
        free: (N, 3) points known to be empty [m].
        occupied: (M, 3) points known to be inside, or on the surface [m].

    Raises:
        InvalidInputError: no samples of a kind, not finite, or densities that don't tell the kinds apart.
    """
    empty, full = (field.density(_samples(name, points)) for name, points in (("free", free), ("occupied", occupied)))
    check_densities(np.concatenate([empty, full]))
    # Densities below this share of a typical occupied one are as good as zero.
    floor = _FLOOR * max(float(np.median(full)), _FLOOR * float(full.max()))
    if floor <= 0.0:
        raise _no_difference(0.5)
    logs = np.log(np.maximum(np.concatenate([empty, full]), floor))
    labels = np.concatenate([np.zeros(len(empty)), np.ones(len(full))])
    weights = 0.5 / np.where(labels > 0.0, len(full), len(empty))
    middle, slope, error = _fit_logistic(logs, labels, weights)
    agreement = float((weights * ((logs > middle) == (labels > 0.0))).sum())
    if slope <= 0.0 or agreement < LEAST_AGREEMENT:
        raise _no_difference(agreement)
    low, high = _nearly_as_good(logs[labels == 0.0], logs[labels == 1.0], middle, agreement)
    low, high = min(low, middle - 2.0 * error), max(high, middle + 2.0 * error)
    return Threshold(float(np.exp(middle)), float(np.exp(low)), float(np.exp(high)), agreement)


def _nearly_as_good(empty: Array, full: Array, middle: float, agreement: float) -> tuple[float, float]:
    """Lowest and highest logarithm around the middle at which the agreement is nearly that at the middle."""
    candidates = np.unique(np.concatenate([empty, full, [middle]]))
    below = np.searchsorted(np.sort(empty), candidates, side="right") / len(empty)
    above = 1.0 - np.searchsorted(np.sort(full), candidates, side="right") / len(full)
    good = 0.5 * (below + above) >= agreement - _LOSS
    place = int(np.searchsorted(candidates, middle))
    before, after = np.flatnonzero(~good[:place]), np.flatnonzero(~good[place:])
    first = before[-1] + 1 if len(before) else 0
    last = place + after[0] - 1 if len(after) else len(candidates) - 1
    return float(candidates[first]), float(candidates[last])


def _samples(name: str, points: ArrayLike) -> Array:
    array = np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1:] != (3,) or len(array) == 0 or not np.isfinite(array).all():
        raise InvalidInputError(name, f"shape {array.shape}", "finite points (N, 3), at least one")
    return array


def _fit_logistic(values: Array, labels: Array, weights: Array) -> tuple[float, float, float]:
    """Middle, slope and standard error of the middle of a logistic curve, by Newton's method on a ridge likelihood."""
    center, spread = float(values.mean()), float(max(values.std(), 1e-9))
    design = np.stack([(values - center) / spread, np.ones(len(values))], axis=1)
    ridge = np.array([_RIDGE, _RIDGE])
    solution = np.zeros(2)

    def loss(candidate: Array) -> float:
        signal = design @ candidate
        return float(weights @ (np.logaddexp(0.0, signal) - labels * signal) + 0.5 * ridge @ candidate**2)

    for _ in range(60):
        probability = 0.5 * (1.0 + np.tanh(0.5 * (design @ solution)))
        slope = design.T @ (weights * (probability - labels)) + ridge * solution
        curvature = (design * (weights * probability * (1.0 - probability))[:, None]).T @ design + np.diag(ridge)
        step = np.linalg.solve(curvature, slope)
        length, before = 1.0, loss(solution)
        while loss(solution - length * step) > before and length > 1e-6:
            length *= 0.5
        solution = solution - length * step
        if np.abs(length * step).max() < 1e-9:
            break
    a, b = solution
    if a <= 0.0:
        return center, float(a), np.inf
    covariance = np.linalg.inv(curvature) / len(values)
    gradient = np.array([b / a**2, -1.0 / a])
    error = spread * float(np.sqrt(gradient @ covariance @ gradient))
    return center - spread * float(b / a), float(a), error


def _no_difference(agreement: float) -> InvalidInputError:
    return InvalidInputError(
        "free and occupied",
        f"samples that the density tells apart in {agreement:.0%} of the cases",
        f"at least {LEAST_AGREEMENT:.0%}",
        "Are samples and field in the same frame?",
    )
