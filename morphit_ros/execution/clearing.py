"""Which object of a table is picked next, until none is left outside of the region that they are put into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from morphit_ros.execution.places import PlaceRegion
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points

# Objects whose middles are nearer than this in two looks are the same one [m].
_SAME = 0.03
# Of a pick of one object, since a success beside it.
_ATTEMPTS = 2
# Of what cannot be picked, since the last success.
_PUSHES = 4
# Looks at an object where it lies that find nothing but grasps on sides that no camera saw, before these are tried.
_PUT_OFF = 2
# What has less room beside it may lean on something, or hide it [m].
_ALONE = 0.04
# Straight way down to a place: on the table, and over a bin, where objects fall the rest [m].
_DOWN, _OVER_BIN = 0.1, 0.03
# A region this far above the table is one to fall into [m].
_BIN = 0.05
# Share of the points of what leans on the rim of a bin that are over it, at least.
_OVER_RIM = 0.05
# More room than this beside it does not make an object easier to pick [m].
_ROOM = 0.1
# What is taken away makes room for the hand at objects whose middle is no further from it [m].
_NEAR = 0.15


@dataclass
class Clearing:
    """What has been picked and tried so far.

    Attributes:
        region: where objects are put; see `outside`.
        table_height: of the table in the frame of the region, told by whoever sees it [m].
        cleared: objects that were picked and put down.
        attempts: picks that were tried.
        pushed: objects that were pushed, as often as they were.
    """

    region: PlaceRegion
    table_height: float = 0.0
    cleared: int = 0
    attempts: int = 0
    pushed: int = 0
    _in_vain: int = 0
    _failed: list[Array] = field(default_factory=list)
    _put_off: list[Array] = field(default_factory=list)
    # Of these, since the last push.
    _waiting: list[Array] = field(default_factory=list)
    _pushing: Array | None = None
    _grasps: list[tuple[Array, Array]] = field(default_factory=list)

    @property
    def way_down(self) -> float:
        """Of the straight way down to a place [m]."""
        return _OVER_BIN if self.is_bin else _DOWN

    @property
    def is_bin(self) -> bool:
        """Whether objects fall into the region, so that what is larger than it, or seems so, goes over its middle."""
        return float(self.region.T_base_region[2, 3]) - self.table_height > _BIN

    def outside(self, objects: Sequence[Array]) -> list[int]:
        """Indices of clouds (N, 3) in the frame of the region that are not in it yet.

        On the table the middle counts. What reaches into a bin was put there: it leans on the rim, over which cameras
        see no more than what is outside.
        """
        least = _OVER_RIM if self.is_bin else np.inf
        return [
            index
            for index, points in enumerate(objects)
            if not self._inside(_middle(points)[None])[0] and self._inside(points).mean() < least
        ]

    def choose(self, objects: Sequence[Array], up: Array) -> int | None:
        """Index of the object that is picked next, None if none is left that has not failed too often.

        What has failed twice waits until it lies elsewhere, or something beside it is gone. The one that reaches
        highest, with room around it: what lies on others comes first, what stands close together last.

        Args:
            objects: their clouds (N, 3) in the frame of the region.
            up: (3,) away from the table.
        """
        left = [index for index in self.outside(objects) if self._tries(_middle(objects[index])) < _ATTEMPTS]
        return max(left, key=lambda index: self._ease(objects, index, up), default=None)

    def cautious(self, objects: Sequence[Array], index: int) -> bool:
        """Whether an object is put off if all its grasps touch sides that no camera saw; objects as of `choose`.

        Where something is beside it, hidden sides are not where they would be on a table. What hides them may be gone
        at the next try; only where both tries, and a push, have changed nothing they are tried.
        """
        return crowded(objects, index) and self._count(self._put_off, _middle(objects[index])) < _PUT_OFF

    def tried(self, points: Array) -> list[Array]:
        """Grasps (4, 4) that failed at an object of this cloud (N, 3) where it is now: others come first."""
        middle = _middle(points)
        return [pose for place, pose in self._grasps if self._same(place, middle)]

    def note(self, points: Array, success: bool, grasp: Array | None = None, put_off: bool = False) -> None:
        """What became of an attempt at an object of this cloud (N, 3), with a grasp (4, 4) in the frame of the region.

        None stands for none that was made; `put_off`: as `cautious` wanted it.
        """
        self.attempts += 1
        if success:
            # Those beside it have more room now.
            self.cleared += 1
            self._in_vain = 0
            for known in (self._failed, self._put_off, self._waiting):
                known[:] = self._away(known, points)
            return
        middle = _middle(points)
        for known in (self._put_off, self._waiting) if put_off else (self._failed,):
            known.append(middle)
        if grasp is not None:
            self._grasps.append((_middle(points), grasp))

    def choose_push(self, objects: Sequence[Array], up: Array) -> tuple[int, bool] | None:
        """Index of the object that is pushed where none can be picked, and whether to tip it over; None to give up.

        Arguments as of `choose`. Each is pushed aside before one is tipped over.
        """
        left = self.outside(objects)
        if not left or self._in_vain >= _PUSHES:
            return None
        left.sort(key=lambda index: -self._ease(objects, index, up))
        chosen = left[self._in_vain % len(left)]
        self._pushing = objects[chosen]
        return chosen, self._in_vain >= len(left)

    def note_push(self, done: bool = True) -> None:
        """What `choose_push` chose was pushed, or could not be if it was not done.

        It and what lies beside it may lie otherwise now; elsewhere what failed would fail again. What was put off has
        waited long enough.
        """
        self.pushed += done
        self._in_vain += 1
        self._waiting.clear()
        if done and self._pushing is not None:
            self.note_change(self._pushing)

    def note_change(self, points: Array) -> None:
        """What lies beside a cloud (N, 3) that was moved may be tried again: it has other room, or lies otherwise."""
        self._waiting.clear()
        self._failed = self._away(self._failed, points)
        places = self._away([place for place, _ in self._grasps], points)
        self._grasps = [(place, pose) for place, pose in self._grasps if any(place is kept for kept in places)]

    @staticmethod
    def _away(middles: Sequence[Array], points: Array) -> list[Array]:
        """Those of some places that are not near a cloud (N, 3)."""
        from scipy.spatial import cKDTree

        tree = cKDTree(points)
        return [middle for middle in middles if tree.query(middle)[0] > _NEAR]

    @staticmethod
    def _same(middle: Array, other: Array) -> bool:
        return float(np.linalg.norm(middle - other)) < _SAME

    def _inside(self, points: Array) -> NDArray[np.bool_]:
        local = transform_points(invert_transform(self.region.T_base_region), points)
        return np.asarray((np.abs(local[:, :2]) <= 0.5 * self.region.size).all(axis=1))

    def _tries(self, middle: Array) -> int:
        return self._count(self._failed, middle) + self._count(self._waiting, middle)

    def _count(self, known: Sequence[Array], middle: Array) -> int:
        return sum(self._same(middle, other) for other in known)

    def _ease(self, objects: Sequence[Array], index: int, up: Array) -> float:
        room = min(_ROOM, _room(objects, index))
        return float((objects[index] @ up).max()) + room - 2.0 * _ROOM * self._tries(_middle(objects[index]))


def crowded(objects: Sequence[Array], index: int) -> bool:
    """Whether something lies so close to one of some clouds (N, 3) that it may lean on it, or be hidden by it."""
    return _room(objects, index) < _ALONE


def _room(objects: Sequence[Array], index: int) -> float:
    """From one of some clouds to the nearest other one, infinite if there is none [m]."""
    from scipy.spatial import cKDTree

    others = [points for number, points in enumerate(objects) if number != index]
    return float(cKDTree(np.concatenate(others)).query(objects[index])[0].min()) if others else np.inf


def _middle(points: Array) -> Array:
    return np.asarray(0.5 * (points.min(axis=0) + points.max(axis=0)))
