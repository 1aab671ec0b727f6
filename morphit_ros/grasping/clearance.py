"""Whether palm and fingers hit the object or the table: boxes of the gripper against points and a plane.

The approach is straight along z, the closing straight along y: in the gripper frame the space
that a box sweeps is again a box.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.gripper import Gripper


@dataclass(frozen=True)
class SweptBoxes:
    """Axis-aligned boxes in the gripper frame.

    Attributes:
        lower, upper: (B, 3) corners [m].
    """

    lower: Array
    upper: Array


def approach_boxes(gripper: Gripper, aperture: float, distance: float) -> SweptBoxes:
    """What palm and fingers sweep on the last `distance` [m] of a straight approach at one aperture."""
    boxes = gripper.collision_boxes(aperture)
    lower = np.array([box.center - box.size / 2.0 for box in boxes])
    upper = np.array([box.center + box.size / 2.0 for box in boxes])
    lower[:, 2] -= distance
    return SweptBoxes(lower, upper)


def closing_boxes(gripper: Gripper, open_aperture: float, aperture: float, contact_tolerance: float) -> SweptBoxes:
    """What the fingers sweep from the open to the contact aperture.

    Each box stops `contact_tolerance` [m] before the pad plane: there the object is meant to be.
    """
    lower, upper = [], []
    for side in (1.0, -1.0):
        for box in gripper.finger_boxes:
            low, high = box.center - box.size / 2.0, box.center + box.size / 2.0
            inner = max(low[1], contact_tolerance) + aperture / 2.0
            outer = high[1] + open_aperture / 2.0
            if outer <= inner:
                continue
            y = sorted((side * inner, side * outer))
            lower.append([low[0], y[0], low[2]])
            upper.append([high[0], y[1], high[2]])
    return SweptBoxes(np.array(lower).reshape(-1, 3), np.array(upper).reshape(-1, 3))


@numba.njit(cache=True)
def points_in_boxes(
    points: Array, rotation: Array, translation: Array, lower: Array, upper: Array, reach: float, stop_at: int
) -> tuple[int, float]:
    """Object points inside any of the boxes, and the distance of the nearest point outside them.

    Args:
        points: (N, 3) world.
        rotation, translation: pose of the gripper.
        lower, upper: (B, 3) boxes in the gripper frame.
        reach: distances beyond this are not told apart [m].
        stop_at: counting ends when so many points are inside.

    Returns:
        Number of points inside; least distance [m] of a point to a box, 0 if one is inside.
    """
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for b in range(lower.shape[0]):
        for axis in range(3):
            low[axis] = min(low[axis], lower[b, axis] - reach)
            high[axis] = max(high[axis], upper[b, axis] + reach)
    inside, nearest = 0, reach * reach
    local = np.empty(3)
    for i in range(points.shape[0]):
        near = True
        for axis in range(3):
            value = 0.0
            for k in range(3):
                value += rotation[k, axis] * (points[i, k] - translation[k])
            local[axis] = value
            if value < low[axis] or value > high[axis]:
                near = False
                break
        if not near:
            continue
        for b in range(lower.shape[0]):
            squared = 0.0
            for axis in range(3):
                gap = max(lower[b, axis] - local[axis], local[axis] - upper[b, axis], 0.0)
                squared += gap * gap
            nearest = min(nearest, squared)
            if squared == 0.0:
                inside += 1
                break
        if inside >= stop_at:
            break
    return inside, np.sqrt(nearest)


def lowest_heights(boxes: SweptBoxes, rotations: Array, translations: Array, T_world_table: Array) -> Array:
    """(S,) height [m] of the lowest corner of the boxes above the table's plane, for each pose.

    The plane counts as infinite: a gripper beside the edge of the table is kept above it, too.
    """
    up, origin = T_world_table[:3, 2], T_world_table[:3, 3]
    # Height of a corner = up·t + (Rᵀup)·corner: over a box the lowest corner is chosen axis by axis.
    direction = np.einsum("sji,j->si", rotations, up)[:, None, :]
    corners = np.minimum(direction * boxes.lower, direction * boxes.upper).sum(axis=2)
    heights: Array = (translations - origin) @ up + corners.min(axis=1)
    return heights
