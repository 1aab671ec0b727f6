"""What is to be identified: a named number with its start and its bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Unknown:
    """One number to identify.

    Attributes:
        name: what it is, such as "friction".
        start: where the search starts, within the bounds.
        lower, upper: bounds of the estimate, both inclusive; infinite where there is none.

    Raises:
        InvalidInputError: reversed or empty bounds, a start that is not finite or outside of them.
    """

    name: str
    start: float
    lower: float = -math.inf
    upper: float = math.inf

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper) or not self.lower < self.upper:
            raise InvalidInputError(
                f"bounds of {self.name}", f"[{self.lower:g}, {self.upper:g}]", "a lower bound below the upper one"
            )
        if not (math.isfinite(self.start) and self.lower <= self.start <= self.upper):
            raise InvalidInputError(
                f"start of {self.name}", self.start, f"a finite number in [{self.lower:g}, {self.upper:g}]"
            )

    @property
    def bounded(self) -> bool:
        """Whether both bounds are finite."""
        return math.isfinite(self.upper - self.lower)

    @property
    def ignorance(self) -> float:
        """Standard deviation of a uniform distribution between the bounds: what is known without any data."""
        return (self.upper - self.lower) / math.sqrt(12.0)


def check_unknowns(unknowns: Sequence[Unknown]) -> None:
    """Refuse an empty list and a name that occurs twice.

    Raises:
        InvalidInputError: says which.
    """
    names = [unknown.name for unknown in unknowns]
    if not names:
        raise InvalidInputError("unknowns", "none", "at least one unknown")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidInputError("unknowns", f"{', '.join(twice)} more than once", "names that occur once")


def bounds_of(unknowns: Sequence[Unknown]) -> tuple[Array, Array]:
    """The lower (K,) and the upper (K,) bounds."""
    return np.array([item.lower for item in unknowns]), np.array([item.upper for item in unknowns])
