"""Volume and moments of what lies behind every side, in parts of cells: walls may be thinner than a cell."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.sided import SidedField
from morphit_ros.neural.solid.moments import VolumeMoments

# Around a solid that was cut from nodes, its walls go on for so many cells where they are thinner.
_AROUND = 2
# Parts of a cell along each side, for the result and for the estimate of its error.
PARTS, COARSE_PARTS = 4, 2
# A cell that is full to rounding.
_FULL = 1.0 - 1e-6


def sided_moments(field: SidedField, occupancy: Array, origin: Array, spacing: float, parts: int) -> VolumeMoments:
    """Sums of the field over parts of the cells at a solid.

    Args:
        field: what the solid was cut from.
        occupancy: (X, Y, Z) share of each cell that is inside; full cells are, hollows that were filled included.
        origin: (3,) lowest corner of the first cell [m].
        spacing: edge of a cell [m].
        parts: of a cell, along each side.
    """
    full = occupancy >= _FULL
    near = ndimage.binary_dilation(occupancy > 0.0, np.ones((3, 3, 3)), iterations=_AROUND) & ~full
    middle = origin + 0.5 * spacing * np.array(occupancy.shape)
    cells = np.argwhere(near)
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    steps = (np.moveaxis(np.indices((parts,) * 3), 0, -1).reshape(-1, 3) + 0.5) / parts
    for step in steps:
        places = origin + spacing * (cells + step)
        weights = field.density(places) / parts**3
        offsets = places - middle
        volume += weights.sum()
        first += weights @ offsets
        second += (offsets * weights[:, None]).T @ offsets
    offsets = origin + spacing * (np.argwhere(full) + 0.5) - middle
    volume += len(offsets)
    first += offsets.sum(axis=0)
    second += offsets.T @ offsets + len(offsets) * spacing**2 / 12.0 * np.eye(3)
    if volume <= 0.0:
        return VolumeMoments(0.0, middle, np.zeros((3, 3)))
    center = first / volume
    cell = spacing**3
    return VolumeMoments(volume * cell, middle + center, (second - volume * np.outer(center, center)) * cell)
