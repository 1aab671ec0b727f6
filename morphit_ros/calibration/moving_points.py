"""Which points of a fixed camera's clouds belong to something that moved between the clouds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morphit_ros.calibration.angular_grid import AngularGrid
from morphit_ros.geometry.transforms import Array

# Depths that differ by less are one surface: a share of the depth squared covers stereo cameras [m], [1/m].
_SAME, _SAME_GROWTH = 0.02, 0.008
# A surface that so many of the clouds show which could show it has not moved.
_STANDS_STILL = 0.3
_FEWEST_WITNESSES = 2


def moving_points(clouds: Sequence[Array], grid: AngularGrid) -> list[NDArray[np.bool_]]:
    """For each cloud (N, 3), in the optical frame, which of its points moved: (N,).

    Another cloud is a witness of a point unless something nearer hides the place from it. The point stood still if
    enough witnesses saw a surface there; those that saw through it, or nothing at all, speak against it.
    """
    nearest = [grid.nearest(cloud) for cloud in clouds]
    farthest = [grid.farthest(cloud) for cloud in clouds]
    moving = []
    for k, cloud in enumerate(clouds):
        depth = cloud[:, 2]
        same = _SAME + _SAME_GROWTH * depth**2
        witnesses, supports = np.zeros(len(cloud), np.int64), np.zeros(len(cloud), np.int64)
        for j in range(len(clouds)):
            if j == k:
                continue
            low, high = nearest[j].around(cloud), farthest[j].at(cloud)
            # An empty cell has an infinite farthest depth; its neighbours still tell what hides it.
            hidden = np.where(np.isfinite(high), high, low) < depth - same
            support = ~hidden & (low < depth + same) & (np.where(np.isfinite(high), high, low) > depth - same)
            witnesses += ~hidden
            supports += support
        moving.append((witnesses >= _FEWEST_WITNESSES) & (supports < _STANDS_STILL * witnesses))
    return moving
