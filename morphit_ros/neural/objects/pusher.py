"""A ball that pushes an object: where it is when, or which forces drive it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Pusher:
    """A ball that pushes, driven or free.

    Attributes:
        radius: [m].
        times: (K,) increasing [s].
        positions: (K, 3) of its centre in the world [m]; of a free ball the first two count: place and velocity.
        mass: [kg]; 0 for a driven one.
        forces: (K, 3) on a free one from each time to the next, besides gravity [N].

    Raises:
        InvalidInputError: a radius that is not positive, a negative mass, no time, times that do not increase (with
            the row), numbers of times, positions and forces that differ, values that are not finite (with the row).
    """

    radius: float
    times: Array
    positions: Array
    mass: float
    forces: Array

    def __post_init__(self) -> None:
        if not (math.isfinite(self.radius) and self.radius > 0.0):
            raise InvalidInputError("pusher radius", self.radius, "a positive number [m]")
        if not (math.isfinite(self.mass) and self.mass >= 0.0):
            raise InvalidInputError("pusher mass", self.mass, "a number from 0 up [kg]", "0 is a driven pusher.")
        count = np.size(self.times)
        if count == 0:
            raise InvalidInputError("pusher times", "none", "one or more [s]")
        for name, shape in (("times", (count,)), ("positions", (count, 3)), ("forces", (count, 3))):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape:
                raise InvalidInputError(f"pusher {name}", f"shape {values.shape}", f"shape {shape} for {count} times")
            bad = np.flatnonzero(~np.isfinite(values.reshape(count, -1)).all(axis=1))
            if len(bad):
                found = f"values that are not finite in row {bad[0]}"
                raise InvalidInputError(f"pusher {name}", found, "finite numbers")
            object.__setattr__(self, name, values)
        falls = np.flatnonzero(np.diff(self.times) <= 0.0)
        if len(falls):
            row = int(falls[0]) + 1
            found = f"{self.times[row]:g} s in row {row} after {self.times[row - 1]:g} s"
            raise InvalidInputError("pusher times", found, "times that increase")

    @property
    def velocity(self) -> Array:
        """(3,) at the start [m/s]."""
        if len(self.times) < 2:
            return np.zeros(3)
        return np.asarray((self.positions[1] - self.positions[0]) / (self.times[1] - self.times[0]))

    def positions_at(self, times: Array) -> Array:
        """(N, 3), linear in between, held before and after [m]."""
        return np.column_stack([np.interp(times, self.times, self.positions[:, axis]) for axis in range(3)])

    def forces_at(self, times: Array) -> Array:
        """(N, 3), constant from each time to the next, zero before the first [N]."""
        rows = np.searchsorted(self.times, times + 1e-9, side="right") - 1
        return np.where((rows >= 0)[:, None], self.forces[np.maximum(rows, 0)], 0.0)
