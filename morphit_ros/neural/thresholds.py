"""Which density counts as inside: given, halfway between two levels, by likelihood of samples, or by silhouettes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Threshold:
    """A density above which a field is inside of the object.

    Attributes:
        value: the threshold, positive.
        lowest, highest: what it may as well be, given what it was chosen by; equal to the value if it was given.
        agreement: of what it was chosen by, in [0, 1]: share of samples, or of silhouettes, explained; 1 if given.

    Raises:
        InvalidInputError: numbers that are not positive and finite, or a value out of its range.
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

    @property
    def range(self) -> tuple[float, float]:
        """Lowest and highest."""
        return (
            self.value if self.lowest is None else self.lowest,
            self.value if self.highest is None else self.highest,
        )


def check_densities(densities: Array) -> None:
    """Refuse densities that tell no object from empty space.

    Raises:
        InvalidInputError: none, not finite, all the same, or none positive.
    """
    if densities.size == 0 or not np.isfinite(densities).all():
        raise InvalidInputError("field", "densities that are none or not finite", "finite densities")
    if densities.max() == densities.min():
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
