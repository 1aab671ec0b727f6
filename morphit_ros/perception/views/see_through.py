"""Where a camera saw the table behind a point, nothing opaque can be at that point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import Array, plane_axes
from morphit_ros.jit import njit

# Cells of the plane in which a camera saw it [m]; larger than the distance of the points that tell.
_CELL = 0.01
# A point this much nearer than the table behind it is before it, whatever the noise [m].
_CLEARANCE = 0.015
# A camera less than this higher than a point sees no table behind it [m].
_LEAST_FALL = 1e-3


class SeenTable:
    """The part of the support plane that one camera saw.

    Args:
        plane: the support plane, in the frame of the points.
        points: (N, 3) what the camera saw of it, no further apart than a few millimetres [m].
        eye: (3,) the camera's position [m].
    """

    def __init__(self, plane: PlaneFit, points: Array, eye: Array) -> None:
        from scipy.ndimage import binary_erosion

        self._plane, self._eye = plane, eye
        self._axes = plane_axes(plane.normal)
        self._seen = np.zeros((1, 1), np.bool_)
        self._low = np.zeros(2)
        if len(points):
            # One row an axis: NumPy is many times slower along the short one.
            flat = self._axes @ points.T
            self._low = flat.min(axis=1)
            cells = ((flat - self._low[:, None]) / _CELL).astype(np.int64)
            seen = np.zeros(cells.max(axis=1) + 1, np.bool_)
            seen[cells[0], cells[1]] = True
            # At an outline, the table shows beside the point rather than behind it.
            self._seen = binary_erosion(seen, np.ones((3, 3)))

    def behind(self, points: Array) -> NDArray[np.bool_]:
        """(N,) mask of the points (N, 3) through which the camera saw the table."""
        axes, plane = self._axes, self._plane
        # Coordinates along the plane from the corner of its cells, and over it.
        frame = np.stack([*axes, plane.normal])
        origin = np.array([*self._low, plane.offset])
        points = np.ascontiguousarray(points)
        return np.asarray(_behind(points, frame, origin, frame @ self._eye - origin, self._seen), dtype=np.bool_)


@njit(cache=True, nogil=True)
def _behind(points, frame, origin, eye, seen):  # type: ignore[no-untyped-def]
    """Mask (N,) of the points; `eye` (3,) is in the frame of the plane."""
    found = np.zeros(points.shape[0], np.bool_)
    for row in range(points.shape[0]):
        x, y, z = points[row, 0], points[row, 1], points[row, 2]
        height = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z - origin[2]
        fall = eye[2] - height
        if fall <= _LEAST_FALL:
            continue
        u = frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z - origin[0]
        v = frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z - origin[1]
        # The ray through the point meets the plane at hit = point + (point - eye) * height / fall.
        beyond = height / fall
        along_u, along_v = (u - eye[0]) * beyond, (v - eye[1]) * beyond
        if along_u * along_u + along_v * along_v + height * height <= _CLEARANCE * _CLEARANCE:
            continue
        i, j = int(np.floor((u + along_u) / _CELL)), int(np.floor((v + along_v) / _CELL))
        if 0 <= i < seen.shape[0] and 0 <= j < seen.shape[1]:
            found[row] = seen[i, j]
    return found
