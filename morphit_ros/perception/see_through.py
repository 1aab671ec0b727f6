"""Where a camera saw the table behind a point, nothing opaque can be at that point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.perception.table import Plane, plane_axes

# Cells of the plane in which a camera saw it [m]; larger than the distance of the points that tell.
_CELL = 0.01
# A point this much nearer than the table behind it is before it, whatever the noise [m].
_CLEARANCE = 0.015


class SeenTable:
    """The part of the support plane that one camera saw.

    Args:
        plane: the support plane, in the frame of the points.
        points: (N, 3) what the camera saw of it, no further apart than a few millimetres [m].
        eye: (3,) the camera's position [m].
    """

    def __init__(self, plane: Plane, points: Array, eye: Array) -> None:
        from scipy.ndimage import binary_erosion

        self._plane, self._eye = plane, eye
        self._axes = plane_axes(plane.normal)
        self._seen = np.zeros((1, 1), np.bool_)
        self._low = np.zeros(2)
        if len(points):
            flat = points @ self._axes.T
            self._low = flat.min(axis=0)
            cells = ((flat - self._low) / _CELL).astype(np.int64)
            seen = np.zeros(cells.max(axis=0) + 1, np.bool_)
            seen[cells[:, 0], cells[:, 1]] = True
            # At an outline, the table shows beside the point rather than behind it.
            self._seen = binary_erosion(seen, np.ones((3, 3)))

    def behind(self, points: Array) -> NDArray[np.bool_]:
        """(N,) mask of the points (N, 3) through which the camera saw the table."""
        height = points @ self._plane.normal - self._plane.offset
        eye_height = float(self._eye @ self._plane.normal) - self._plane.offset
        fall = eye_height - height
        ahead = fall > 1e-3
        # Where the ray through the point meets the plane: eye + (point - eye) * eye_height / fall.
        stretch = eye_height / np.where(ahead, fall, 1.0)
        hit = self._eye + (points - self._eye) * stretch[:, None]
        far_enough = np.linalg.norm(hit - points, axis=1) > _CLEARANCE
        cells = np.floor((hit @ self._axes.T - self._low) / _CELL)
        inside = ahead & far_enough & ((cells >= 0) & (cells < self._seen.shape)).all(axis=1)
        chosen = np.where(inside[:, None], cells, 0).astype(np.int64)
        return np.asarray(inside & self._seen[chosen[:, 0], chosen[:, 1]], dtype=np.bool_)
