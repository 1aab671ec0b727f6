"""What was seen on a table, was not put away, and is seen no longer.

A table on which nothing is seen is not yet a table that was cleared: what was knocked off it, or fell behind something,
is not seen either. Names alone don't tell, since things get new ones when they turn, part from what they touched, or
were two pieces of one: what appeared since then, and what was put away beside a piece, accounts for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.execution.clearing import middle
from morphit_ros.geometry.transforms import Array

# What is seen in one look only may be the arm, or noise.
_LEAST_LOOKS = 2
# Another name within this of where it was may be its new one: as far as what moved is followed (memory.tracks) [m].
_FARTHEST = 0.3
# Pieces of one thing, as cameras see them, are no farther apart [m].
_PIECES = 0.02


@dataclass(frozen=True, eq=False)
class _Sight:
    """Of one number.

    Attributes:
        points: (N, 3) as seen last [m].
        start: (3,) middle of it as seen first [m].
        first, last: looks in which that was, from 1.
        looks: that it was seen in.
        home: whether it was where it belongs in the last one.
    """

    points: Array
    start: Array
    first: int
    last: int
    looks: int
    home: bool


class Missing:
    """Keeps account of the objects of a table, look by look, by the numbers that they keep between looks."""

    def __init__(self) -> None:
        self._look = 0
        self._sights: dict[int, _Sight] = {}
        # As what was put away was seen last before that.
        self._away: dict[int, _Sight] = {}

    def see(self, objects: Mapping[int, Array], home: Collection[int]) -> None:
        """Take in a look.

        Args:
            objects: number → cloud (N, 3), in a frame that stays [m].
            home: those of them that are where they belong: what is hidden there later is not missing.
        """
        self._look += 1
        for number, points in objects.items():
            before = self._sights.get(number) or _Sight(points, middle(points), self._look, self._look, 0, False)
            self._sights[number] = replace(
                before, points=points, last=self._look, looks=before.looks + 1, home=number in home
            )

    def put_away(self, number: int) -> None:
        """An object of the last look was taken from the table and put where it belongs."""
        self._away[number] = self._sights[number]

    def points(self, number: int) -> Array:
        """(N, 3) of an object where it was seen last [m]."""
        return self._sights[number].points

    def lost(self, handled: Collection[int] = ()) -> list[int]:
        """Numbers of objects that the last look does not show and nothing accounts for.

        What is accounted for: what was put away or seen where it belongs, what was seen once only, a piece of something
        that was put away right after, and what has another number by now, one for one: of those that appeared since,
        the nearest within 0.3 m, or anywhere for what is in `handled`, since a hand carries and drops things.
        """
        gone = {number: sight for number, sight in self._sights.items() if self._is_gone(number, sight)}
        ways = sorted(
            (float(np.linalg.norm(middle(sight.points) - later.start)), number, other)
            for number, sight in gone.items()
            for other, later in self._sights.items()
            if later.first > sight.last
        )
        renamed: dict[int, int] = {}
        for way, number, other in ways:
            near = way <= _FARTHEST or number in handled
            if near and number not in renamed and other not in renamed.values():
                renamed[number] = other
        return sorted(set(gone) - set(renamed))

    def _is_gone(self, number: int, sight: _Sight) -> bool:
        """Whether it is not seen, and was neither put away nor may have been a piece of what was."""
        if sight.last == self._look or sight.looks < _LEAST_LOOKS or sight.home:
            return False
        # What was put away and seen since then may have come back.
        if number in self._away and self._away[number].last == sight.last:
            return False
        together = [other.points for other in self._away.values() if other.last == sight.last]
        return not any(_gap(points, sight.points) <= _PIECES for points in together)


def _gap(points: Array, others: Array) -> float:
    """Between two clouds (N, 3), (M, 3) [m]."""
    from scipy.spatial import cKDTree

    return float(cKDTree(points).query(others)[0].min())
