"""Whether palm and fingers hit object, neighbours or table: boxes of the gripper against points and a plane.

The approach is straight along z, the closing straight along y: in the gripper frame the space
that a box sweeps is again a box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.blocks import PointBlocks, group_points
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.jit import njit


class GripperBoxes(NamedTuple):
    """Collision boxes as the compiled code sees them, corners in the gripper frame [m].

    Attributes:
        palm_lower, palm_upper: (P, 3).
        finger_lower, finger_upper: (F, 3) of finger 1 at aperture 0; finger 2 is their mirror image in y.
    """

    palm_lower: Array
    palm_upper: Array
    finger_lower: Array
    finger_upper: Array


def gripper_boxes(gripper: Gripper) -> GripperBoxes:
    """The boxes of a gripper."""
    palm, finger = (
        np.array([[box.center - 0.5 * box.size, box.center + 0.5 * box.size] for box in boxes]).reshape(-1, 2, 3)
        for boxes in (gripper.palm_boxes, gripper.finger_boxes)
    )
    return GripperBoxes(
        *(np.ascontiguousarray(corners) for corners in (palm[:, 0], palm[:, 1], finger[:, 0], finger[:, 1]))
    )


@dataclass(frozen=True)
class Hits:
    """What S sweeps met.

    Attributes:
        inside: (S,) points inside, counted up to the limit given.
        clearance: (S,) distance of the nearest point outside, at most the reach given [m]; 0 if one is inside.
    """

    inside: Index
    clearance: Array


@njit(cache=True, nogil=True)
def _hits(
    blocks: PointBlocks,
    rotation: Array,
    translation: Array,
    lower: Array,
    upper: Array,
    count: int,
    reach: float,
    stop_at: int,
) -> tuple[int, float]:
    inside, nearest, bound = 0, reach * reach, reach
    close = np.empty(count, np.int64)
    for block in range(blocks.radii.size):
        x, y, z = _local(blocks.centers[:, block], rotation, translation)
        # Boxes that no point of the block can be inside of, or nearer to than what was met so far, are left out.
        limit = (blocks.radii[block] + bound) ** 2
        candidates = 0
        for b in range(count):
            if _squared_gap(lower[b], upper[b], x, y, z) <= limit:
                close[candidates] = b
                candidates += 1
        if candidates == 0:
            continue
        for row in range(blocks.starts[block], blocks.starts[block + 1]):
            x, y, z = _local(blocks.points[row], rotation, translation)
            for k in range(candidates):
                squared = _squared_gap(lower[close[k]], upper[close[k]], x, y, z)
                if squared < nearest:
                    nearest = squared
                if squared == 0.0:
                    inside += 1
                    break
            if inside >= stop_at:
                return inside, 0.0
        bound = np.sqrt(nearest)
    return inside, bound


@njit(cache=True, nogil=True, inline="always")
def _local(point, rotation, translation):  # type: ignore[no-untyped-def]
    """A point's coordinates in the gripper's frame."""
    dx, dy, dz = point[0] - translation[0], point[1] - translation[1], point[2] - translation[2]
    return (
        rotation[0, 0] * dx + rotation[1, 0] * dy + rotation[2, 0] * dz,
        rotation[0, 1] * dx + rotation[1, 1] * dy + rotation[2, 1] * dz,
        rotation[0, 2] * dx + rotation[1, 2] * dy + rotation[2, 2] * dz,
    )


@njit(cache=True, nogil=True, inline="always")
def _squared_gap(lower, upper, x, y, z):  # type: ignore[no-untyped-def]
    """Square of the distance of a place to a box, 0 inside."""
    gx = max(lower[0] - x, x - upper[0], 0.0)
    gy = max(lower[1] - y, y - upper[1], 0.0)
    gz = max(lower[2] - z, z - upper[2], 0.0)
    return gx * gx + gy * gy + gz * gz


@njit(cache=True, nogil=True)
def _approach_boxes(
    boxes: GripperBoxes, aperture: float, sweep: float, shrink: float, lower: Array, upper: Array
) -> int:
    """Palm and both fingers at an aperture, drawn out backwards along z and shrunk on all sides."""
    count = 0
    for b in range(boxes.palm_lower.shape[0]):
        for axis in range(3):
            lower[count, axis] = boxes.palm_lower[b, axis] + shrink
            upper[count, axis] = boxes.palm_upper[b, axis] - shrink
        count += 1
    for b in range(boxes.finger_lower.shape[0]):
        for side in (1.0, -1.0):
            for axis in range(3):
                lower[count, axis] = boxes.finger_lower[b, axis] + shrink
                upper[count, axis] = boxes.finger_upper[b, axis] - shrink
            inner, outer = lower[count, 1] + 0.5 * aperture, upper[count, 1] + 0.5 * aperture
            lower[count, 1] = inner if side > 0.0 else -outer
            upper[count, 1] = outer if side > 0.0 else -inner
            count += 1
    for b in range(count):
        lower[b, 2] -= sweep
    return count


@njit(cache=True, nogil=True)
def _closing_boxes(
    boxes: GripperBoxes, opening: float, aperture: float, tolerance: float, lower: Array, upper: Array
) -> int:
    """What the fingers sweep from the open to the contact aperture; stops `tolerance` before the pad plane."""
    count = 0
    for b in range(boxes.finger_lower.shape[0]):
        inner = max(boxes.finger_lower[b, 1], tolerance) + 0.5 * aperture
        outer = boxes.finger_upper[b, 1] + 0.5 * opening
        if outer <= inner:
            continue
        for side in (1.0, -1.0):
            for axis in range(3):
                lower[count, axis] = boxes.finger_lower[b, axis]
                upper[count, axis] = boxes.finger_upper[b, axis]
            lower[count, 1] = inner if side > 0.0 else -outer
            upper[count, 1] = outer if side > 0.0 else -inner
            count += 1
    return count


@njit(cache=True, nogil=True)
def _approach_batch(
    points: Array, rotations: Array, translations: Array, apertures: Array, boxes: GripperBoxes, sweep: float,
    shrink: float, reach: float, stop_at: int, inside: Index, clearance: Array,
) -> None:  # fmt: skip
    blocks = group_points(points)
    size = boxes.palm_lower.shape[0] + 2 * boxes.finger_lower.shape[0]
    lower, upper = np.empty((size, 3)), np.empty((size, 3))
    for s in range(rotations.shape[0]):
        count = _approach_boxes(boxes, apertures[s], sweep, shrink, lower, upper)
        inside[s], clearance[s] = _hits(blocks, rotations[s], translations[s], lower, upper, count, reach, stop_at)


@njit(cache=True, nogil=True)
def _closing_batch(
    points: Array, rotations: Array, translations: Array, openings: Array, apertures: Array, boxes: GripperBoxes,
    tolerance: float, stop_at: int, inside: Index, clearance: Array,
) -> None:  # fmt: skip
    blocks = group_points(points)
    size = 2 * boxes.finger_lower.shape[0]
    lower, upper = np.empty((size, 3)), np.empty((size, 3))
    for s in range(rotations.shape[0]):
        count = _closing_boxes(boxes, openings[s], apertures[s], tolerance, lower, upper)
        inside[s], clearance[s] = _hits(blocks, rotations[s], translations[s], lower, upper, count, 0.0, stop_at)


def approach_hits(
    points: Array,
    rotations: Array,
    translations: Array,
    apertures: Array,
    boxes: GripperBoxes,
    sweep: float,
    shrink: float = 0.0,
    reach: float = 0.0,
    stop_at: int = 1 << 30,
) -> Hits:
    """Points that palm and fingers meet on the last `sweep` [m] of straight approaches.

    Args:
        points: (N, 3) in the frame of the poses.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) poses and openings on the way.
        boxes: of the gripper.
        shrink: boxes are smaller by this on all sides [m].
        reach: clearances beyond this are not told apart [m].
        stop_at: counting ends when so many points are inside.
    """
    hits = Hits(np.zeros(len(rotations), np.int64), np.zeros(len(rotations)))
    _approach_batch(
        points, np.ascontiguousarray(rotations), np.ascontiguousarray(translations), apertures, boxes, sweep, shrink,
        reach, stop_at, hits.inside, hits.clearance,
    )  # fmt: skip
    return hits


def closing_hits(
    points: Array,
    rotations: Array,
    translations: Array,
    openings: Array,
    apertures: Array,
    boxes: GripperBoxes,
    tolerance: float,
    stop_at: int = 1 << 30,
) -> Hits:
    """Points that the fingers meet on their way from the opening to contact, other than with their pads.

    Each box stops `tolerance` [m] before the pad plane: there the object is meant to be.
    """
    hits = Hits(np.zeros(len(rotations), np.int64), np.zeros(len(rotations)))
    _closing_batch(
        points, np.ascontiguousarray(rotations), np.ascontiguousarray(translations), openings, apertures, boxes,
        tolerance, stop_at, hits.inside, hits.clearance,
    )  # fmt: skip
    return hits


def lowest_heights(
    boxes: GripperBoxes,
    rotations: Array,
    translations: Array,
    apertures: Array,
    T_world_table: Array,
    sweep: float = 0.0,
) -> Array:
    """(S,) height [m] of the lowest corner of palm and fingers above the table's plane, at each pose and aperture.

    With a sweep [m], the lowest on the last so much of the straight approach: a hand that comes up from below is lower
    before than at its pose.
    The plane counts as infinite: a gripper beside the edge of the table is kept above it, too.
    """
    up, origin = T_world_table[:3, 2], T_world_table[:3, 3]
    # Height of a corner = up·t + (Rᵀup)·corner: over a box the lowest corner is chosen axis by axis.
    direction = np.einsum("sji,j->si", rotations, up)
    palm = np.minimum(direction[:, None] * boxes.palm_lower, direction[:, None] * boxes.palm_upper).sum(axis=2)
    lowest = palm.min(axis=1)
    for side in (1.0, -1.0):
        mirrored = direction * np.array([1.0, side, 1.0])
        finger = np.minimum(mirrored[:, None] * boxes.finger_lower, mirrored[:, None] * boxes.finger_upper).sum(axis=2)
        lowest = np.minimum(lowest, finger.min(axis=1) + 0.5 * apertures * mirrored[:, 1])
    heights: Array = (translations - origin) @ up + lowest - sweep * np.maximum(direction[:, 2], 0.0)
    return heights
