"""What a density field is: the protocol that learned, sampled and analytic fields keep."""

from __future__ import annotations

from typing import Protocol

from morphit_ros.geometry.transforms import Array


class DensityField(Protocol):
    """A density over space: near zero outside of an object, large inside.

    Densities need no unit: what is solid is decided by a threshold (`solid.extract_solid`), and masses are scaled to a
    known mass or mass density. All coordinates are in the field's own frame.
    """

    @property
    def bounds(self) -> Array:
        """(2, 3) lowest and highest corner of the box outside of which the density is zero [m]."""
        ...

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points, zero out of bounds; N may be zero or millions (computed in parts)."""
        ...

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients of the density at (N, 3) points [1/m]."""
        ...
