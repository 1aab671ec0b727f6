"""Whether palm and fingers hit object, neighbours or table: boxes of the gripper against points and a plane.

The approach is straight along z, the closing straight along y: the space that a box sweeps is again a box. Fingers that
turn sweep arcs: what they sweep between two rows of their table is taken for the box around both.

Poses here are of the middle between the pads at contact, with the axes of the gripper frame; the palm, and fingers that
are further open, are where they are then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.checking.blocks import PointBlocks, group_points
from morphit_ros.grasping.fitting.correspondences import Index
from morphit_ros.grasping.gripper import Gripper, GripperBox
from morphit_ros.jit import njit


class GripperBoxes(NamedTuple):
    """Collision boxes as the compiled code sees them, corners [m].

    Attributes:
        palm_lower, palm_upper: (P, 3) in the gripper frame.
        finger_lower, finger_upper: (R, F, 3) of finger 1 about the centre of its pad; finger 2 is their mirror image.
        apertures, advances: (R,) openings of these rows, and z of the pads in the gripper frame; one row where fingers
            slide.
        pad_root: z of the pads' end at the palm, from their centre.
    """

    palm_lower: Array
    palm_upper: Array
    finger_lower: Array
    finger_upper: Array
    apertures: Array
    advances: Array
    pad_root: float


def gripper_boxes(gripper: Gripper) -> GripperBoxes:
    """The boxes of a gripper."""
    motion = gripper.pad_motion
    apertures = np.zeros(1) if motion is None else np.ascontiguousarray(motion.apertures)
    palm = box_corners(gripper.palm_boxes)
    finger = np.array([box_corners(gripper.boxes_of_finger(float(opening))) for opening in apertures])
    return GripperBoxes(
        np.ascontiguousarray(palm[:, 0]),
        np.ascontiguousarray(palm[:, 1]),
        np.ascontiguousarray(finger[:, :, 0]),
        np.ascontiguousarray(finger[:, :, 1]),
        apertures,
        np.zeros(1) if motion is None else np.ascontiguousarray(motion.advances),
        -0.5 * gripper.pad_height,
    )


def box_corners(boxes: Sequence[GripperBox]) -> Array:
    """Lowest and highest corner (B, 2, 3) of boxes."""
    return np.array([[box.center - 0.5 * box.size, box.center + 0.5 * box.size] for box in boxes]).reshape(-1, 2, 3)


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
def _row(boxes: GripperBoxes, aperture: float) -> tuple[int, float]:
    """Row of the table of openings that an aperture lies behind, and its share of the way to the next."""
    openings = boxes.apertures
    last = openings.size - 1
    if last == 0:
        return 0, 0.0
    row = 0
    while row < last - 1 and openings[row + 1] <= aperture:
        row += 1
    share = (aperture - openings[row]) / (openings[row + 1] - openings[row])
    return row, min(max(share, 0.0), 1.0)


@njit(cache=True, nogil=True, inline="always")
def _between(table, row, share):  # type: ignore[no-untyped-def]
    """A value of a table (R,) between two rows."""
    return table[row] if share == 0.0 else (1.0 - share) * table[row] + share * table[row + 1]


@njit(cache=True, nogil=True)
def _approach_boxes(
    boxes: GripperBoxes, opening: float, contact: float, sweep: float, shrink: float, lower: Array, upper: Array
) -> int:
    """Palm and both fingers at an opening, drawn out backwards along z and shrunk on all sides."""
    count = 0
    row, share = _row(boxes, contact)
    pads = _between(boxes.advances, row, share)
    for b in range(boxes.palm_lower.shape[0]):
        for axis in range(3):
            lower[count, axis] = boxes.palm_lower[b, axis] + shrink
            upper[count, axis] = boxes.palm_upper[b, axis] - shrink
        lower[count, 2] -= pads
        upper[count, 2] -= pads
        count += 1
    row, share = _row(boxes, opening)
    ahead = _between(boxes.advances, row, share) - pads
    for b in range(boxes.finger_lower.shape[1]):
        for side in (1.0, -1.0):
            for axis in range(3):
                lower[count, axis] = _between(boxes.finger_lower[:, b, axis], row, share) + shrink
                upper[count, axis] = _between(boxes.finger_upper[:, b, axis], row, share) - shrink
            inner, outer = lower[count, 1] + 0.5 * opening, upper[count, 1] + 0.5 * opening
            lower[count, 1] = inner if side > 0.0 else -outer
            upper[count, 1] = outer if side > 0.0 else -inner
            lower[count, 2] += ahead
            upper[count, 2] += ahead
            count += 1
    for b in range(count):
        lower[b, 2] -= sweep
    return count


@njit(cache=True, nogil=True)
def _closing_boxes(
    boxes: GripperBoxes, opening: float, aperture: float, tolerance: float, lower: Array, upper: Array
) -> int:
    """What the fingers sweep from the open to the contact aperture; beside the pads it stops `tolerance` before their
    plane."""
    row, share = _row(boxes, aperture)
    pads = _between(boxes.advances, row, share)
    count, near = 0, aperture
    while True:
        # From one row of the table to the next; all at once where fingers slide.
        far, next_row = opening, row + 1
        if next_row < boxes.apertures.size - 1 and boxes.apertures[next_row] < opening:
            far = boxes.apertures[next_row]
        count = _closing_step(boxes, near, far, pads, tolerance, lower, upper, count)
        if far >= opening:
            return count
        near, row = far, next_row


@njit(cache=True, nogil=True)
def _closing_step(
    boxes: GripperBoxes, near: float, far: float, pads: float, tolerance: float, lower: Array, upper: Array, count: int
) -> int:
    """Boxes around the fingers at two openings, from number `count` on; the new number."""
    row, share = _row(boxes, near)
    other_row, other_share = _row(boxes, far)
    ahead = _between(boxes.advances, row, share) - pads
    other_ahead = _between(boxes.advances, other_row, other_share) - pads
    for b in range(boxes.finger_lower.shape[1]):
        low, high = boxes.finger_lower[:, b], boxes.finger_upper[:, b]
        bottom = min(_between(low[:, 2], row, share) + ahead, _between(low[:, 2], other_row, other_share) + other_ahead)
        top = max(_between(high[:, 2], row, share) + ahead, _between(high[:, 2], other_row, other_share) + other_ahead)
        inner = _between(low[:, 1], row, share)
        if boxes.apertures.size == 1 or top > boxes.pad_root:
            inner = max(inner, tolerance)
        inner += 0.5 * near
        outer = max(
            _between(high[:, 1], row, share) + 0.5 * near, _between(high[:, 1], other_row, other_share) + 0.5 * far
        )
        if outer <= inner:
            continue
        for side in (1.0, -1.0):
            lower[count, 0] = min(_between(low[:, 0], row, share), _between(low[:, 0], other_row, other_share))
            upper[count, 0] = max(_between(high[:, 0], row, share), _between(high[:, 0], other_row, other_share))
            lower[count, 1] = inner if side > 0.0 else -outer
            upper[count, 1] = outer if side > 0.0 else -inner
            lower[count, 2], upper[count, 2] = bottom, top
            count += 1
    return count


@njit(cache=True, nogil=True)
def _approach_batch(
    points: Array, rotations: Array, translations: Array, apertures: Array, contacts: Array, boxes: GripperBoxes,
    sweep: float, shrink: float, reach: float, stop_at: int, inside: Index, clearance: Array,
) -> None:  # fmt: skip
    blocks = group_points(points)
    size = boxes.palm_lower.shape[0] + 2 * boxes.finger_lower.shape[1]
    lower, upper = np.empty((size, 3)), np.empty((size, 3))
    for s in range(rotations.shape[0]):
        count = _approach_boxes(boxes, apertures[s], contacts[s], sweep, shrink, lower, upper)
        inside[s], clearance[s] = _hits(blocks, rotations[s], translations[s], lower, upper, count, reach, stop_at)


@njit(cache=True, nogil=True)
def _closing_batch(
    points: Array, rotations: Array, translations: Array, openings: Array, apertures: Array, boxes: GripperBoxes,
    tolerance: float, stop_at: int, inside: Index, clearance: Array,
) -> None:  # fmt: skip
    blocks = group_points(points)
    size = 2 * boxes.finger_lower.shape[1] * boxes.apertures.size
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
    contacts: Array | None = None,
) -> Hits:
    """Points that palm and fingers meet on the last `sweep` [m] of straight approaches.

    Args:
        points: (N, 3) in the frame of the poses.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) poses and openings on the way.
        boxes: of the gripper.
        shrink: boxes are smaller by this on all sides [m].
        reach: clearances beyond this are not told apart [m].
        stop_at: counting ends when so many points are inside.
        contacts: (S,) openings at which the pads' middles are at the poses [m]; the openings on the way if None.
    """
    hits = Hits(np.zeros(len(rotations), np.int64), np.zeros(len(rotations)))
    _approach_batch(
        points, np.ascontiguousarray(rotations), np.ascontiguousarray(translations), apertures,
        apertures if contacts is None else contacts, boxes, sweep, shrink, reach, stop_at, hits.inside, hits.clearance,
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
    contacts: Array | None = None,
) -> Array:
    """(S,) height [m] of the lowest corner of palm and fingers above the table's plane, at each pose and aperture.

    With a sweep [m], the lowest on the last so much of the straight approach: a hand that comes up from below is lower
    before than at its pose. Fingers that turn are taken at all openings from there to contact.
    The plane counts as infinite: a gripper beside the edge of the table is kept above it, too.

    Args:
        boxes: of the gripper.
        rotations, translations, apertures: (S, 3, 3), (S, 3), (S,) poses and openings on the way.
        T_world_table: (4, 4), z of the table is up.
        sweep: see above [m].
        contacts: (S,) openings at which the pads' middles are at the poses [m]; the openings on the way if None.
    """
    up, origin = T_world_table[:3, 2], T_world_table[:3, 3]
    # Height of a corner = up·t + (Rᵀup)·corner: over a box the lowest corner is chosen axis by axis.
    direction = np.einsum("sji,j->si", rotations, up)
    palm = np.minimum(direction[:, None] * boxes.palm_lower, direction[:, None] * boxes.palm_upper).sum(axis=2)
    lowest = palm.min(axis=1, initial=np.inf)
    if boxes.apertures.size == 1:
        lowest = np.minimum(lowest, _finger_heights(boxes.finger_lower, boxes.finger_upper, direction, apertures))
    else:
        touching = apertures if contacts is None else contacts
        pads = np.interp(touching, boxes.apertures, boxes.advances)
        lowest = lowest - pads * direction[:, 2]
        for opening in (apertures, *np.clip(boxes.apertures[:, None], touching, np.maximum(apertures, touching))):
            rows = np.clip(np.searchsorted(boxes.apertures, opening, side="right"), 1, boxes.apertures.size - 1)
            shares = (opening - boxes.apertures[rows - 1]) / (boxes.apertures[rows] - boxes.apertures[rows - 1])
            share = np.clip(shares, 0.0, 1.0)[:, None, None]
            low, high = (
                (1.0 - share) * table[rows - 1] + share * table[rows]
                for table in (boxes.finger_lower, boxes.finger_upper)
            )
            ahead = np.interp(opening, boxes.apertures, boxes.advances) - pads
            fingers = _finger_heights(low, high, direction, opening) + ahead * direction[:, 2]
            lowest = np.minimum(lowest, fingers)
    heights: Array = (translations - origin) @ up + lowest - sweep * np.maximum(direction[:, 2], 0.0)
    return heights


def _finger_heights(lower: Array, upper: Array, direction: Array, apertures: Array) -> Array:
    """(S,) of the lowest corner of both fingers' boxes (S or 1, F, 3) along directions (S, 3), at openings (S,) [m]."""
    heights = []
    for side in (1.0, -1.0):
        mirrored = direction * np.array([1.0, side, 1.0])
        finger = np.minimum(mirrored[:, None] * lower, mirrored[:, None] * upper).sum(axis=2)
        heights.append(finger.min(axis=1, initial=np.inf) + 0.5 * apertures * mirrored[:, 1])
    return np.minimum(*heights)
