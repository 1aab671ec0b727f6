"""Where in a region an object that the hand holds can be put, standing as it stood where it was grasped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.held import HELD, HeldGrasp, Surroundings
from morphit_ros.execution.obstacles import object_obstacle
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    rotation_angle,
    transform_points,
)

# A region that lies on the table by this much is on it: tables are measured better than regions are told [m].
_ON_TABLE = 0.02
# What stands on one that leans more might slide [rad].
_LEAN = np.radians(5.0)
# Places are this far apart at least, and at most so many along each side of a region; an odd number, so that its middle
# is one of them, however tightly an object fits [m].
_STEP, _STEPS = 0.02, 11
# Turns about the vertical that are tried, in the order in which they are, and those from where it lies along the sides
# of the region, with the angles at which the least rectangle around it is looked for [rad].
_TURNS = np.radians([0.0, 45.0, -45.0, 90.0, -90.0, 135.0, -135.0, 180.0])
_QUARTERS, _ANGLES = np.radians([0.0, 90.0, -90.0, 180.0]), np.radians(np.arange(-45.0, 45.0, 3.0))
# Kept free beside what stands there: open fingers, and what was not seen of the object [m].
_CLEARANCE = 0.015
# What the hand opens further to let go in a region than it did before the grasp, half of it on each side, where that is
# free: what has turned in the hand does not stay between fingers that just clear it [m].
OPENS_FURTHER = 0.02
# More room than this does not make a place better; what it counts against the way from the middle, which is 0.7 in the
# corners of a region [m]. Objects that crowd around the first leave no room for the last, and what topples hits them.
_ROOM, _ROOM_COUNTS = 0.15, 1.0
# Places that a way is looked for to, and how far apart they are unless they are turned [m].
_MOST, _APART = 12, 0.05


@dataclass(frozen=True)
class PlaceRegion:
    """A rectangle on what an object is put on.

    Attributes:
        T_base_region: (4, 4), its centre, z away from the support.
        size: (2,) along its x and y; both zero for exactly its centre, with the heading that the object has [m].
    """

    T_base_region: Array
    size: Array

    def __post_init__(self) -> None:
        if self.size.shape != (2,) or not np.isfinite(self.size).all() or (self.size < 0.0).any():
            raise InvalidInputError("region_size", self.size.tolist(), "two numbers of at least 0 [m]")

    @property
    def exact(self) -> bool:
        """Whether it is but a place."""
        return not self.size.any()


def free_places(held: HeldGrasp, region: PlaceRegion, hand: tuple[Array, Array] | None = None) -> list[Array]:
    """``T_base_gripper`` (4, 4) of where the hand may let go, best first: near the middle of the region, with room.

    The object is turned about the vertical alone: it stands as it stood where it was grasped, on the same face, with
    the heading that it had, along the sides of the region, or between. Its middle is that of the rectangle around its
    points along the sides of the region. What is in its way by the spheres around it is no place; whether an arm gets
    there is for its planner to say. Over a bin, where it falls, its middle is that of `balanced` where it was weighed.

    Args:
        held: what is held, with its points.
        region: where to.
        hand: centres and sizes (B, 3) of boxes around the hand in the gripper's frame, as far open as it lets go;
            where it would meet what stands there comes last. A low object has a low hand, which is wider. None: not
            looked at.

    Raises:
        InvalidInputError: the object's shape is not known, the region leans, is too small, or has no free place.
    """
    if not len(held.points):
        raise InvalidInputError("region", "an object of unknown shape in the hand", "one that was seen", "Give a pose.")
    up = held.around.up
    lean = float(np.arccos(np.clip(region.T_base_region[:3, 2] @ up, -1.0, 1.0)))
    if lean > _LEAN:
        raise InvalidInputError(
            "region", f"leaning by {np.degrees(lean):.1f}°", f"at most {np.degrees(_LEAN):g}° against the table"
        )
    places = _free(held, region, hand)
    if places:
        return places
    least = _least_size(replace(held, load=None), region)
    if not region.exact and (least > region.size).any():
        sides = " × ".join(f"{1e3 * side:.0f}" for side in region.size)
        needed = " × ".join(f"{1e3 * side:.0f}" for side in least)
        raise InvalidInputError("region_size", f"{sides} mm", f"at least {needed} mm for what is held")
    what = "the place" if region.exact else "every place in it"
    raise InvalidInputError(
        "region", f"{what} within {1e3 * _CLEARANCE:.0f} mm of what stands there", "room for what is held",
        "Give another region.",
    )  # fmt: skip


def balanced(points: Array, center: Array, deviation: float, up: Array) -> Array:
    """Points of an object, and as many where it has to go on unseen: on the other side of its centre of mass.

    Of what lies in a heap cameras see a part, which may be one end of it. What was weighed tells where its middle is.

    Args:
        points: (N, 3) that were seen [m].
        center: (3,) any point of the vertical through the centre of mass.
        deviation: of it along the table: by two of them it is taken nearer to the middle of the points [m].
        up: (3,) away from the table.

    Returns:
        (N, 3) or (2 N, 3), the points and themselves turned by half a turn about the vertical through the centre.
    """
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    offset = center - middle
    offset = offset - (offset @ up) * up
    length = float(np.linalg.norm(offset))
    if length <= 2.0 * deviation:
        return points
    away = points - middle - offset * (1.0 - 2.0 * deviation / length)
    return np.concatenate([points, points - 2.0 * (away - np.outer(away @ up, up))])


def standing_on_table(held: HeldGrasp, T_base_gripper: Array) -> Array:
    """A place (4, 4) of the gripper, moved up or down so that the object stands on the table if it is over that."""
    table = held.around.table
    if table is None or not len(held.points):
        return T_base_gripper
    T_table_base = invert_transform(table.T_base_table)
    points = transform_points(T_table_base @ T_base_gripper, held.points)
    if (np.abs(points[:, :2]) > 0.5 * table.size).any():
        return T_base_gripper
    # As high as it stood where it was grasped: clouds do not show its underside.
    stood = transform_points(T_table_base @ held.T_base_gripper, held.points)[:, 2].min()
    lowered = T_base_gripper.copy()
    lowered[:3, 3] += (stood - points[:, 2].min()) * held.around.up
    return lowered


def _free(held: HeldGrasp, region: PlaceRegion, hand: tuple[Array, Array] | None) -> list[Array]:
    """Free places, best first, each away from or turned against all before."""
    if held.load is not None:
        # Where there is no room for what was not seen of it, by what was.
        return _places(held, region, hand) or _places(replace(held, load=None), region, hand)
    return _places(held, region, hand)


def _places(held: HeldGrasp, region: PlaceRegion, hand: tuple[Array, Array] | None) -> list[Array]:
    body = object_obstacle(HELD, held.points, np.eye(4))
    others = _Others(held.around)
    rated = []
    for T_base_gripper, away in _candidates(held, region):
        gap = others.gap(transform_points(T_base_gripper, body.centers), body.radii)
        if gap >= _CLEARANCE:
            # The hand needs room too.
            rated.append((away - _ROOM_COUNTS * gap / _ROOM, T_base_gripper))
    places: list[Array] = []
    meeting: list[Array] = []
    for _, place in sorted(rated, key=lambda item: item[0]):
        if len(places) == _MOST:
            break
        if not all(_differ(place, other) for other in places):
            continue
        if hand is None or not others.meet(place, *hand):
            places.append(place)
        elif all(_differ(place, other) for other in meeting):
            meeting.append(place)
    return [*places, *meeting][:_MOST]


def _differ(first: Array, second: Array) -> bool:
    return bool(
        np.linalg.norm(first[:3, 3] - second[:3, 3]) > _APART or rotation_angle(first[:3, :3].T @ second[:3, :3]) > 0.5
    )


def _candidates(held: HeldGrasp, region: PlaceRegion) -> Iterator[tuple[Array, float]]:
    """Places inside of the region, and how far each is from its middle, in shares of its sides."""
    grid = _grid(region.size)
    away = np.linalg.norm(grid / np.maximum(region.size, 1e-9), axis=1)
    for number, standing in enumerate(_standing(held, region)):
        inside = (np.abs(grid) + 0.5 * standing.sides <= 0.5 * region.size + 1e-9).all(axis=1) | region.exact
        for row in np.flatnonzero(inside):
            # A heading counts little: it is a matter of taste.
            yield standing.at(grid[row]), float(away[row]) + 0.02 * number


def _grid(size: Array) -> Array:
    """Middles (N, 2) in the frame of a region of this size."""
    axes = []
    for side in size:
        count = int(min(side // _STEP, _STEPS))
        count = max(1, count - 1 + count % 2)
        axes.append((np.arange(count) - 0.5 * (count - 1)) * side / count)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def _least_size(held: HeldGrasp, region: PlaceRegion) -> Array:
    """Sides (2,) of the smallest rectangle for it by area, of the headings that are tried [m]."""
    sides = np.array([standing.sides for standing in _standing(held, region)])
    return np.asarray(sides[sides.prod(axis=1).argmin()])


def _standing(held: HeldGrasp, region: PlaceRegion) -> list[_Standing]:
    """As it may stand in a region: with the heading that it has, along the region's sides, and turned by eighths."""
    if region.exact:
        return [_Standing(held, region, 0.0)]
    least = min((_Standing(held, region, angle) for angle in _ANGLES), key=lambda standing: standing.sides.prod())
    turns = [_TURNS[0], *(least.turn + _QUARTERS), *_TURNS[1:]]
    return [_Standing(held, region, turn) for turn in turns]


class _Standing:
    """What is held, standing as it stood and turned by an angle about the vertical, anywhere in a region.

    Attributes:
        turn: the angle [rad].
        sides: (2,) of the rectangle around its points, along those of the region [m].
    """

    def __init__(self, held: HeldGrasp, region: PlaceRegion, turn: float) -> None:
        self.turn, around = turn, held.around
        # The ground on which it stood, with the sides of the region.
        up, origin = around.up, region.T_base_region[:3, 3]
        x = region.T_base_region[:3, 0] - (region.T_base_region[:3, 0] @ up) * up
        x /= np.linalg.norm(x)
        self._T_base_ground = make_transform(np.stack([x, np.cross(up, x), up], axis=1), origin)
        self._T_ground_gripper = (
            make_transform(matrix_from_rpy((0.0, 0.0, turn)))
            @ invert_transform(self._T_base_ground)
            @ held.T_base_gripper
        )
        table = around.table
        height = 0.0 if table is None else float((table.T_base_table[:3, 3] - origin) @ up)
        points, load = held.points, held.load
        if load is not None and height < -_ON_TABLE:
            points = balanced(points, load.center, load.center_deviation, load.T_base_gripper[2, :3])
        points = transform_points(self._T_ground_gripper, points)
        low, high = points.min(axis=0), points.max(axis=0)
        self.sides = (high - low)[:2]
        self._middle = 0.5 * (low + high)[:2]
        # Clouds do not show its underside: as high above its support as above the table where it was grasped.
        if table is None:
            self._rise = -float(low[2])
        else:
            self._rise = 0.0 if abs(height) <= _ON_TABLE else -height

    def at(self, middle: Array) -> Array:
        """``T_base_gripper`` (4, 4) with the object's middle (2,) there in the region's frame."""
        moved = self._T_ground_gripper.copy()
        moved[:3, 3] += (*(middle - self._middle), self._rise)
        return np.asarray(self._T_base_ground @ moved)


class _Others:
    """What stands around, as spheres."""

    def __init__(self, around: Surroundings) -> None:
        self._items = [(item.centers, item.radii, *_box(item.centers, item.radii)) for item in around.obstacles]

    def gap(self, centers: Array, radii: Array) -> float:
        """What spheres (N, 3), (N,) are apart from all of them [m], no more than counts for the room of a place."""
        from scipy.spatial.distance import cdist

        low, high = _box(centers, radii)
        # No sphere is nearer than the boxes around them: few of what stands there has to be looked at.
        bounds = [
            float(np.linalg.norm(np.maximum(np.maximum(lowest - high, low - highest), 0.0)))
            for _, _, lowest, highest in self._items
        ]
        gap = _ROOM
        for number in np.argsort(bounds):
            if bounds[number] >= gap:
                break
            others, sizes, _, _ = self._items[number]
            gap = min(gap, float((cdist(centers, others) - radii[:, None] - sizes).min()))
        return gap

    def meet(self, T_base_hand: Array, centers: Array, sizes: Array) -> bool:
        """Whether any of them is in boxes with centres and sizes (B, 3) in the frame of a hand."""
        T_hand_base, hand = invert_transform(T_base_hand), T_base_hand[:3, 3]
        reach = float(np.linalg.norm(np.abs(centers) + 0.5 * sizes, axis=1).max())
        for others, radii, low, high in self._items:
            if np.linalg.norm(hand - np.clip(hand, low, high)) >= reach:
                continue
            local = transform_points(T_hand_base, others)
            beyond = np.maximum(np.abs(local[:, None] - centers) - 0.5 * sizes, 0.0)
            if (np.linalg.norm(beyond, axis=2) < radii[:, None]).any():
                return True
        return False


def _box(centers: Array, radii: Array) -> tuple[Array, Array]:
    """Corners (3,) of the box around spheres (N, 3), (N,)."""
    return (centers - radii[:, None]).min(axis=0), (centers + radii[:, None]).max(axis=0)
