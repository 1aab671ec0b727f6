"""Where a closed hand can push an object aside that cannot be grasped as it lies, over what it lies on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import Surroundings
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points

# How far an object is pushed where nobody says, and what may be asked for [m].
DISTANCE, DISTANCES = 0.08, (0.01, 0.4)
# Directions that are tried.
_DIRECTIONS = 16
# Between the hand and the object before, and between the fingertips and the table [m].
_BEFORE, _ABOVE = 0.02, 0.008
# Height of the pads on the object, as a share of its own: low to push it aside, high to tip it over. Where fingers pass
# under it there, or over it, others are tried in these steps, up and down; so many points make a surface to push.
_LOW, _HIGH, _HEIGHTS, _LEAST = 0.3, 0.85, 0.1, 5
# Kept free around the fingers where they come down [m].
_ROOM = 0.005
# More room than this at the end of a push makes it no better [m].
_ENOUGH = 0.1
# A table is known to go on by this much less than its slab, which is larger than what was seen of it [m].
_TABLE_MARGIN = 0.1
# What nobody says a direction for ends so far from the edge of the table as it was seen, with so far to go on, for what
# is round rolls; or farther from it than it lies, by the third. More than the last makes a push no better [m].
_EDGE, _ROLLS, _FARTHER, _WELL_INSIDE = 0.05, 0.15, 0.005, 0.3
# Pushes that a way is looked for to.
_MOST = 8


class ClosedFingers(NamedTuple):
    """The box around closed fingers, about the pads: half its depth along x, half its breadth along y, and beyond [m].

    Attributes:
        depth, breadth: half of each, along x and y of the gripper frame.
        beyond: how far the fingertips reach along z.
    """

    depth: float
    breadth: float
    beyond: float

    @classmethod
    def around(cls, centers: Array, sizes: Array) -> ClosedFingers:
        """Around boxes (B, 3), (B, 3) in the gripper frame: those of both fingers, closed [m]."""
        reach = np.abs(centers) + 0.5 * sizes
        return cls(float(reach[:, 0].max()), float(reach[:, 1].max()), float((centers + 0.5 * sizes)[:, 2].max()))


@dataclass(frozen=True)
class Push:
    """One straight push.

    Attributes:
        start: (4, 4) ``T_base_gripper`` beside the object, fingers closed.
        end: (4, 4) where it ends, turned as at the start.
    """

    start: Array
    end: Array


def pushes(
    points: Array,
    others: Array,
    around: Surroundings,
    fingers: ClosedFingers,
    distance: float = DISTANCE,
    direction: Array | None = None,
    tip: bool = False,
) -> list[Push]:
    """Pushes through the middle of an object, best first.

    The best is the one after which the object has most room around it, and of those with as much the one after which it
    is farthest from the edge of the table. Where no direction is given, it has room to roll on, or ends farther
    from the edge of the table, as it was seen, than it lies.

    The hand points down, closed, with the broad side of its fingers ahead. It comes down where nothing is and ends
    where the table has been seen. Whether the arm gets there, and what else of it would touch, is for its planner to
    say; how the object moves depends on friction, so that whoever asks looks again. What leans or overhangs is met at a
    height where it is in the fingers' way: `distance` is from there.

    Args:
        points: (N, 3) of the object in the base frame [m].
        others: (M, 3) of everything else that was seen but the table, in the base frame [m].
        around: with the table that the object stands on.
        fingers: what pushes.
        distance: that the object is pushed over [m].
        direction: (3,) in which alone, in the base frame; None for any.
        tip: push high, so that what is tall tips over, instead of low.

    Raises:
        InvalidInputError: no point, no table, a distance out of range, or a direction that is not along the table.
    """
    if not len(points) or not np.isfinite(points).all():
        raise InvalidInputError("object", f"{len(points)} points", "finite points of an object that was seen")
    if around.table is None:
        raise InvalidInputError("table", "none", "the table that the object stands on", "Look from where it is seen.")
    if not DISTANCES[0] <= distance <= DISTANCES[1]:
        raise InvalidInputError("distance", distance, f"in [{DISTANCES[0]:g}, {DISTANCES[1]:g}] m")
    ground = _Ground(points, others, around, fingers)
    angles: Sequence[float] = np.linspace(0.0, 2.0 * math.pi, _DIRECTIONS, endpoint=False).tolist()
    if direction is not None:
        along = around.table.T_base_table[:3, :3].T @ np.asarray(direction, dtype=np.float64)
        if not (np.isfinite(along).all() and float(np.hypot(*along[:2])) > abs(along[2])):
            raise InvalidInputError("direction", np.asarray(direction).tolist(), "a direction along the table")
        angles = [math.atan2(along[1], along[0])]
    rated = [
        found
        for angle in angles
        if direction is not None or ground.stays(angle, distance)
        for found in ground.rated(angle, distance, _HIGH if tip else _LOW)
    ]
    rated.sort(key=lambda item: item[0], reverse=True)
    return [push for _, push in rated[:_MOST]]


class _Ground:
    """Object, neighbours and hand in the frame of the table: z is the height above it."""

    def __init__(self, points: Array, others: Array, around: Surroundings, fingers: ClosedFingers) -> None:
        from scipy.spatial import cKDTree

        table = around.table
        assert table is not None
        self._T_base_table, self._half = table.T_base_table, 0.5 * table.size - _TABLE_MARGIN
        T_table_base = invert_transform(table.T_base_table)
        self._points = transform_points(T_table_base, points)
        self._fingers = fingers
        around_hand = transform_points(T_table_base, others) if len(others) else np.empty((0, 3))
        self._others = cKDTree(around_hand[:, :2]) if len(around_hand) else None
        self._all = np.concatenate([self._points[:, :2], around_hand[:, :2]])
        self._height = float(self._points[:, 2].max())
        low, high = self._points[:, :2].min(axis=0), self._points[:, :2].max(axis=0)
        self._middle = 0.5 * (low + high)

    def stays(self, angle: float, distance: float) -> bool:
        """Whether the object may roll on and stays on the table, or ends farther from its edge than it lies."""
        ahead = _ahead(angle)
        moved = self._points[:, :2] + distance * ahead
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = (self._half - np.sign(ahead) * moved) / np.abs(ahead)
        after = self._to_edge(distance * ahead)
        well = after >= _EDGE and float(np.nanmin(ways)) >= _ROLLS
        return well or after >= self._to_edge(np.zeros(2)) + _FARTHER

    def _to_edge(self, moved: Array) -> float:
        """From the object, once it was moved, to the edge of the table as it was seen; negative beyond it [m]."""
        return float((self._half - np.abs(self._points[:, :2] + moved)).min())

    def rated(self, angle: float, distance: float, share: float) -> Iterator[tuple[tuple[float, float], Push]]:
        """Pushes in a direction with how good they are, none where there is no room for one."""
        ahead = _ahead(angle)
        beside = np.array([-ahead[1], ahead[0]])
        away = self._points[:, :2] - self._middle
        along = away @ ahead
        in_way = np.abs(away @ beside) <= self._fingers.breadth
        if not in_way.any():
            # A ring, pushed through its empty middle.
            return
        front = float(along[in_way].min())
        height, met = self._met(along[in_way], self._points[in_way, 2], share)
        if height is None:
            return
        start = self._middle + (front - self._fingers.depth - _BEFORE) * ahead
        end = start + (_BEFORE + met - front + distance) * ahead
        if (np.abs(self._middle + distance * ahead) > self._half).any() or (np.abs(end) > self._half).any():
            return
        # Fingers that come down here touch nothing.
        around = self._all - start
        fingers = np.array([self._fingers.depth, self._fingers.breadth]) + _ROOM
        if (np.abs(np.stack([around @ ahead, around @ beside], axis=1)) < fingers).all(axis=1).any():
            return
        room = _ENOUGH
        if self._others is not None:
            room = float(self._others.query(self._points[:, :2] + distance * ahead)[0].min())
        goodness = min(room, _ENOUGH), min(self._to_edge(distance * ahead), _WELL_INSIDE)
        for sign in (1.0, -1.0):
            x = np.array([*(sign * ahead), 0.0])
            z = np.array([0.0, 0.0, -1.0])
            rotation = np.stack([x, np.cross(z, x), z], axis=1)
            poses = [self._T_base_table @ make_transform(rotation, (*place, height)) for place in (start, end)]
            yield goodness, Push(*poses)

    def _met(self, along: Array, heights: Array, share: float) -> tuple[float | None, float]:
        """Height of the pads above the table, and how far along the way points (K,), (K,) are met there [m].

        Of all heights at which fingers meet anything, the one nearest to that share of the object's height.
        """
        least = self._fingers.beyond + _ABOVE
        steps = np.arange(0.0, 1.0, _HEIGHTS)
        for other in share + np.stack([steps, -steps], axis=1).ravel():
            height = max(least, other * self._height)
            if height > max(self._height, least):
                continue
            band = (heights >= height - self._fingers.beyond) & (heights <= height + self._fingers.beyond)
            if np.count_nonzero(band) >= _LEAST:
                return height, float(along[band].min())
        return None, 0.0


def _ahead(angle: float) -> Array:
    return np.array([math.cos(angle), math.sin(angle)])
