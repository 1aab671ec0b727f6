"""How well a relative pose of two views explains what each of them saw."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.perception.tabletop.table_view import TableView, clearance, over_bare_table
from morphit_ros.perception.views.turn_alignment import NearestPoints, nearest_row

# A point confirms a surface at most this far from its tangent plane, and from the point itself [m].
_CONFIRMED = 0.004
_CONFIRMED_BESIDE = 0.009
# A point this far before what the other camera saw contradicts it [m].
_CLEARANCE = 0.015
# Lower points above a bare part of the table are the table's noise [m].
_BARE_HEIGHT = 0.008


class Explanation(NamedTuple):
    """Numbers of object points of both views.

    Attributes:
        confirmed: on a surface of the other view, facing the same way.
        contradicted: where the other camera saw that nothing is.
        total: all; the rest is hidden from the other camera, or near a surface but not on it.
        shared: smaller of the confirmed parts of the two views.
        refuted: larger of the contradicted parts of the two views.
    """

    confirmed: int
    contradicted: int
    total: int
    shared: float
    refuted: float

    @property
    def score(self) -> float:
        """Part confirmed, less four times the part contradicted."""
        return (self.confirmed - 4.0 * self.contradicted) / max(1, self.total)


def explain(
    pose: Array, left: TableView, right: TableView, left_points: NearestPoints, right_points: NearestPoints
) -> Explanation:
    """Judge yaw, x, y of the right view's table frame in the left one's."""
    c, s = math.cos(pose[0]), math.sin(pose[0])
    forth = np.array([pose[0], pose[1], pose[2]])
    back = np.array([-pose[0], -(c * pose[1] + s * pose[2]), s * pose[1] - c * pose[2]])
    confirmed, contradicted = np.zeros(2), np.zeros(2)
    sizes = np.array([len(right_points.points), len(left_points.points)])
    for side, (motion, moving, fixed, view) in enumerate(
        ((forth, right_points, left_points, left), (back, left_points, right_points, right))
    ):
        confirmed[side], contradicted[side] = _judge(motion, moving, fixed, view.T_camera_table, view.depth, view.bare)
    parts, against = confirmed / np.maximum(sizes, 1), contradicted / np.maximum(sizes, 1)
    return Explanation(
        int(confirmed.sum()), int(contradicted.sum()), int(sizes.sum()), float(parts.min()), float(against.max())
    )


@njit(cache=True)
def _judge(pose, moving, fixed, camera, depth, bare):  # type: ignore[no-untyped-def]
    confirmed = contradicted = 0
    c, s = math.cos(pose[0]), math.sin(pose[0])
    for row in range(moving.points.shape[0]):
        px, py, z = moving.points[row, 0], moving.points[row, 1], moving.points[row, 2]
        nx, ny, nz = moving.normals[row, 0], moving.normals[row, 1], moving.normals[row, 2]
        x, y = c * px - s * py + pose[1], s * px + c * py + pose[2]
        other = nearest_row(fixed, x, y, z, c * nx - s * ny, s * nx + c * ny, nz, _CONFIRMED_BESIDE)
        if other >= 0:
            offset = (
                (x - fixed.points[other, 0]) * fixed.normals[other, 0]
                + (y - fixed.points[other, 1]) * fixed.normals[other, 1]
                + (z - fixed.points[other, 2]) * fixed.normals[other, 2]
            )
            if abs(offset) < _CONFIRMED:
                confirmed += 1
                continue
        before = clearance(x, y, z, camera, depth)
        if before > _CLEARANCE or (before > 0.0 and z > _BARE_HEIGHT and over_bare_table(x, y, bare)):
            contradicted += 1
    return confirmed, contradicted
