"""What a camera saw in each direction, to tell where nothing can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array

# Width of a direction bin, as a tangent. Several voxels of a view fall into one.
_BIN = 0.01
# Points this much nearer than the measured surface contradict it [m].
_CLEARANCE = 0.02
_WIDEST_TANGENT = 2.0


class NearestSurface:
    """Depth of the nearest surface in each direction of a camera.

    Args:
        points: (N, 3) in the camera's optical frame [m].
    """

    def __init__(self, points: Array) -> None:
        from scipy.ndimage import minimum_filter

        side = int(2 * _WIDEST_TANGENT / _BIN)
        depth = np.full((side, side), np.inf)
        rows, columns, inside = _bins(points)
        np.minimum.at(depth, (rows, columns), points[inside, 2])
        # Where nothing was measured, nothing is contradicted.
        depth[np.isinf(depth)] = 0.0
        # At an outline, a bin and its neighbours may show either surface: believe the nearest.
        self._depth = minimum_filter(depth, size=3)

    def contradicted(self, points: Array) -> float:
        """Part of the points (N, 3), same frame, that lie well in front of the surface measured behind them."""
        if len(points) == 0:
            return 0.0
        rows, columns, inside = _bins(points)
        return float((points[inside, 2] < self._depth[rows, columns] - _CLEARANCE).sum() / len(points))


def _bins(points: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Row and column of the bins of those points that lie before the camera, and their mask (N,)."""
    ahead = points[:, 2] > 1e-3
    tangents = points[:, :2] / np.where(ahead, points[:, 2], 1.0)[:, None]
    inside = ahead & (np.abs(tangents) < _WIDEST_TANGENT - _BIN).all(axis=1)
    bins = ((tangents[inside] + _WIDEST_TANGENT) / _BIN).astype(np.int64)
    return bins[:, 1], bins[:, 0], inside
