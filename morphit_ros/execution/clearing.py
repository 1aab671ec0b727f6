"""Which object of a table is picked next, until none is left outside of the region that they are put into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from morphit_ros.execution.places import PlaceRegion, balanced
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy, transform_points

# Of a pick of one object, since a success beside it.
_ATTEMPTS = 2
# Of what cannot be picked, since the last success; those that the arm cannot make don't count.
_PUSHES = 6
# Looks at an object where it lies that find nothing but grasps on sides that no camera saw, before these are tried.
PUT_OFF = 2
# So often it recovers from a fault of the robot, or drops what can neither be put away nor back, since a success.
FAULTS = 2
# What has less room beside it may lean on something, or hide it [m].
_ALONE = 0.04
# Straight way down to a place: on the table, and over a bin, where objects fall the rest [m].
_DOWN, _OVER_BIN = 0.1, 0.03
# A region this far above the table is one to fall into [m].
_BIN = 0.05
# Share of the points of what leans on the rim of a bin that are over it, at least.
_OVER_RIM = 0.05
# Of what is put away on the table no more sticks out of the region, as a share of its own extent; less than this is the
# clouds' noise [m]. What cameras miss of it is on top of that.
_STICKS_OUT, _BORDER = 0.15, 0.01
# Over a bin: as far apart are places; so much is kept free around what was seen of an object, and above what lies
# there; what fell in lies so high at least where cameras do not see it; so much lower is as good as the whole way from
# the rim to the middle; so many places are offered, so far from each other [m].
_STEP, _FREE, _FALLEN, _FROM_RIM, MOST_DROPS, _ELSEWHERE = 0.025, 0.015, 0.03, 0.05, 4, 0.08
# About the vertical; what fits as it lies is not turned [rad].
_TURNS = np.radians([0.0, 45.0, -45.0, 90.0])
# More room than this beside it does not make an object easier to pick [m].
_ROOM = 0.1
# What is taken away makes room for the hand at objects whose middle is no further from it [m].
_NEAR = 0.15


@dataclass
class Clearing:
    """What has been picked and tried so far, by the numbers that objects keep between looks.

    Objects are number → cloud (N, 3) in the frame of the region.

    Attributes:
        region: where objects are put; see `outside`.
        table_height: of the table in the frame of the region, told by whoever sees it [m].
        can_push: whether the hand can: a suction cup would bend its lip.
        cleared: objects that were picked and put down.
        attempts: picks that were tried.
        pushed: objects that were pushed, as often as they were.
    """

    region: PlaceRegion
    table_height: float = 0.0
    can_push: bool = True
    cleared: int = 0
    attempts: int = 0
    pushed: int = 0
    _in_vain: int = 0
    _push_tries: int = 0
    _failed: Counter[int] = field(default_factory=Counter)
    _put_off: Counter[int] = field(default_factory=Counter)
    _pushing: int | None = None
    # As they were seen last, those too that are not seen now.
    _seen: dict[int, Array] = field(default_factory=dict)
    _drops: list[PlaceRegion] = field(default_factory=list)

    @property
    def way_down(self) -> float:
        """Of the straight way down to a place [m]."""
        return _OVER_BIN if self.is_bin else _DOWN

    @property
    def is_bin(self) -> bool:
        """Whether objects fall into the region, so that what is larger than it, or seems so, goes over its middle."""
        return float(self.region.T_base_region[2, 3]) - self.table_height > _BIN

    def outside(self, objects: Mapping[int, Array]) -> list[int]:
        """Numbers of objects that are not in the region yet.

        On the table that is what sticks out of it by more than 15 % of its own extent along a side of the region, if it
        fits there. What reaches into a bin was put there: it leans on the rim, over which cameras see no more than what
        is outside.
        """
        inside = self._reaches_into if self.is_bin else self._lies_in
        return [number for number, points in objects.items() if not inside(points)]

    def see(self, objects: Mapping[int, Array]) -> None:
        """Take in a look that another tool than this one's chooses from."""
        self._seen |= objects

    def choose(
        self, objects: Mapping[int, Array], up: Array, without: Collection[int] = (), put_off: bool = True
    ) -> int | None:
        """Number of the object that is picked next, None if none is left that has not failed too often.

        What has failed twice waits until it was pushed, or something beside it is gone, wherever it is by then. The one
        that reaches highest, with room around it: what lies on others comes first, what stands close together last.
        What was put off twice comes where nothing else is left: what hides its sides may be gone before, and no push
        shows them.

        Args:
            objects: that are seen.
            up: (3,) away from the table.
            without: those that are not for the hand.
            put_off: whether what was put off comes where nothing else is left.
        """
        self.see(objects)
        outside = [number for number in self.outside(objects) if number not in without]
        left = [number for number in outside if self._tries(number) < _ATTEMPTS]
        if put_off and not left:
            left = [n for n in outside if self._failed[n] < _ATTEMPTS and self._put_off[n] < 2 * PUT_OFF]
        return max(left, key=lambda number: self._ease(objects, number, up), default=None)

    def places(
        self, objects: Mapping[int, Array], number: int, center: Array | None = None, deviation: float = 0.0
    ) -> list[PlaceRegion]:
        """Where an object is put, best first; objects as of `choose`.

        `center` (3,) is a point of the vertical through its centre of mass, with the standard deviation of that, where
        it was weighed [m]: what of it was not seen does not stick out over the rim then (`places.balanced`).

        On the table anywhere in the region. Over a bin, where what lies in it is lowest below the object, and above
        that, so that bins fill up evenly and never refuse: parts of the region as large as the object, raised where
        it is heaped. What is larger than the bin goes over its middle.
        """
        if not self.is_bin:
            return [self.region]
        T_region_base = invert_transform(self.region.T_base_region)
        seen = {other: transform_points(T_region_base, points) for other, points in objects.items()}
        own = seen.pop(number)
        others = np.concatenate([np.empty((0, 3)), *seen.values()])
        places = self._over_bin(own, others)
        if center is not None:
            center = transform_points(T_region_base, center[None])[0]
            whole = balanced(own, center, deviation, np.array([0.0, 0.0, 1.0]))
            # Where the arm reaches none of these, by what was seen of it.
            places = [*self._over_bin(whole, others), *places] if len(whole) > len(own) else places
        return places[:MOST_DROPS]

    def _over_bin(self, own: Array, others: Array) -> list[PlaceRegion]:
        """Where points (N, 3) of an object go among others (M, 3), in the frame of the region, best first."""
        rated: list[tuple[float, float, Array, Array]] = []
        for turn in _TURNS:
            sides = np.ptp(own[:, :2] @ matrix_from_rpy((0.0, 0.0, turn))[:2, :2].T, axis=0) + 2.0 * _FREE
            room = 0.5 * (self.region.size - sides)
            if (room < 0.0).any():
                continue
            axes = [np.linspace(-side, side, 2 * int(side / _STEP) + 1) for side in room]
            for at in np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2):
                level = self._level(others, at, sides)
                away = float((np.abs(at) / (0.5 * self.region.size)).max())
                rated.append((level + _FROM_RIM * away, level, at, sides))
        if not rated:
            level = self._level(others, np.zeros(2), np.maximum(self.region.size, np.ptp(own[:, :2], axis=0)))
            rated = [(level, level, np.zeros(2), np.zeros(2))]
        chosen: list[tuple[float, Array, Array]] = []
        for _, level, at, sides in sorted(rated, key=lambda item: item[0]):
            if all(np.linalg.norm(at - other) >= _ELSEWHERE for _, other, _ in chosen):
                chosen.append((level, at, sides))
        return [
            PlaceRegion(self.region.T_base_region @ make_transform(translation=(*at, max(0.0, level + _FREE))), sides)
            for level, at, sides in chosen[:MOST_DROPS]
        ]

    def note(
        self,
        number: int,
        success: bool,
        put_off: bool = False,
        place: PlaceRegion | None = None,
    ) -> None:
        """What became of an attempt at an object that was chosen.

        `put_off`: its grasps touch sides that no camera saw, and something lies beside it; `place`: of `places`, where
        it was put.
        """
        self.attempts += 1
        if place is not None:
            self._drops.append(place)
        if success:
            # Those beside it have more room now.
            self.cleared += 1
            self._in_vain = self._push_tries = 0
            self.note_change(number)
            return
        (self._put_off if put_off else self._failed)[number] += 1

    def choose_push(self, objects: Mapping[int, Array], up: Array) -> tuple[int, bool] | None:
        """Number of the object that is pushed where none can be picked, and whether to tip it over; None to give up.

        Arguments as of `choose`. Each is pushed aside before one is tipped over; where the arm can do neither with any,
        this ends.
        """
        self.see(objects)
        left = self.outside(objects)
        if not self.can_push or not left or self._in_vain >= _PUSHES or self._push_tries >= max(_PUSHES, 2 * len(left)):
            return None
        left.sort(key=lambda number: -self._ease(objects, number, up))
        self._pushing = chosen = left[self._push_tries % len(left)]
        return chosen, self._push_tries >= len(left)

    def note_push(self, done: bool = True) -> None:
        """What `choose_push` chose was pushed, or could not be if it was not done.

        It and what lies beside it may lie otherwise now; elsewhere what failed would fail again.
        """
        self.pushed += done
        self._in_vain += done
        self._push_tries += 1
        if done and self._pushing is not None:
            self.note_change(self._pushing)

    def note_change(self, number: int) -> None:
        """An object was moved: it and what lay beside it may be tried again, with other room, or lying otherwise."""
        from scipy.spatial import cKDTree

        tree = cKDTree(self._seen[number])
        for other, points in self._seen.items():
            if tree.query(middle(points))[0] <= _NEAR:
                self._failed.pop(other, None)
                self._put_off.pop(other, None)

    def _reaches_into(self, points: Array) -> bool:
        over = self._over(np.concatenate([points, middle(points)[None]]))
        return bool(over[-1] or over[:-1].mean() >= _OVER_RIM)

    def _lies_in(self, points: Array) -> bool:
        along = transform_points(invert_transform(self.region.T_base_region), points)[:, :2]
        low, high, half = along.min(axis=0), along.max(axis=0), 0.5 * self.region.size
        out = np.maximum(-half - low, 0.0) + np.maximum(high - half, 0.0)
        # What is longer than the region sticks out wherever it is put.
        sides = np.minimum(high - low, self.region.size)
        out -= high - low - sides
        return bool((out <= np.maximum(_STICKS_OUT * sides, _BORDER)).all())

    def _over(self, points: Array) -> NDArray[np.bool_]:
        local = transform_points(invert_transform(self.region.T_base_region), points)
        return np.asarray((np.abs(local[:, :2]) <= 0.5 * self.region.size).all(axis=1))

    def _level(self, others: Array, at: Array, sides: Array) -> float:
        """Height of what lies below a rectangle in the frame of the region, by what is seen and by what was dropped."""
        below = others[(np.abs(others[:, :2] - at) <= 0.5 * sides).all(axis=1), 2]
        bottom = self.table_height - float(self.region.T_base_region[2, 3])
        dropped = 0
        for place in self._drops:
            apart = np.abs((invert_transform(self.region.T_base_region) @ place.T_base_region)[:2, 3] - at)
            dropped += int((apart < 0.5 * (sides + place.size)).all())
        return float(max(bottom + dropped * _FALLEN, below.max(initial=-np.inf)))

    def _tries(self, number: int) -> int:
        return self._failed[number] + self._put_off[number]

    def _ease(self, objects: Mapping[int, Array], number: int, up: Array) -> float:
        room = min(_ROOM, _room(objects, number))
        return float((objects[number] @ up).max()) + room - 2.0 * _ROOM * self._tries(number)


def crowded(objects: Mapping[int, Array], number: int) -> bool:
    """Whether something lies so close to one of some clouds (N, 3) that it may lean on it, or be hidden by it."""
    return _room(objects, number) < _ALONE


def _room(objects: Mapping[int, Array], number: int) -> float:
    """From one of some clouds to the nearest other one, infinite if there is none [m]."""
    from scipy.spatial import cKDTree

    others = [points for other, points in objects.items() if other != number]
    return float(cKDTree(np.concatenate(others)).query(objects[number])[0].min()) if others else np.inf


def middle(points: Array) -> Array:
    """(3,) of the box around a cloud (N, 3) [m]."""
    return np.asarray(0.5 * (points.min(axis=0) + points.max(axis=0)))
