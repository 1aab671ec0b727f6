"""Which object of a look is which of the looks before: numbers that stay, and what became of what is not seen.

What lies where it lay keeps its number by the surface that both looks share; what has moved keeps it by its shape, as
the distribution of distances between its points, which no turn changes (Osada et al., "Shape distributions", 2002).
Both are assignments of least cost with a gate. What the hand let go of, which may have turned there and shows other
sides, is what has come to lie near that place. What is not found is let go of where a camera saw through the place
where it was; where no camera could see that, it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points

# Points of an object that are compared.
_SAMPLE = 300
# Surfaces of two looks are one where they are this near [m], and an object lies where it lay where they share this.
_NEAR, _LEAST_SHARED = 0.01, 0.3
# What moved between two looks went no farther than this [m], and the quantiles of its distances differ by no more, of
# its length.
_FARTHEST, _MOST_UNLIKE = 0.3, 0.05
# What the hand let go of lies no farther from there [m].
_LET_GO = 0.1
_QUANTILES = np.linspace(0.02, 0.98, 49)
# A camera saw through a place where what it saw is farther away by this, and could not see it where that is nearer by
# this [m]; in directions that are nearly the same [rad].
_BEHIND, _BEFORE, _BESIDE = 0.008, 0.015, 0.006
# An object is gone where so much of what was seen of it was seen through.
_GONE = 0.5
# Looks may come out of order by less than this; a clock that is set back by more is that of a new start [s].
_SET_BACK = 1.0
# Part of an object within what the hand took that makes it that; spheres of what it took reach so far [m].
_TAKEN, _AROUND = 0.5, 0.01


class View(NamedTuple):
    """All that one camera measured in a look: ``T_world_camera`` (4, 4), and points (N, 3) in its frame [m]."""

    T_world_camera: Array
    points: Array


class Carried(NamedTuple):
    """What a hand took: centres (K, 3) in the world when it was taken, radii (K,), and how it went from there [m].

    `T_now_taken` (4, 4) moves points of then to where it let go of them; None while it is held.
    """

    centers: Array
    radii: Array
    T_now_taken: Array | None = None


@dataclass(frozen=True, eq=False)
class Track:
    """One object over looks.

    Attributes:
        number: its own, for ever.
        cloud: where it was seen last, in the world; after it was carried, where it was let go of.
        seen: time of the look that it was seen in last [s].
        index: its place among the objects of the newest look; None where that did not show it.
        unseen: why not, empty if it did.
        held: the hand has it.
        let_go: the hand let go of it, and no look has shown it since.
    """

    number: int
    cloud: PointCloud
    seen: float
    index: int | None = None
    unseen: str = ""
    held: bool = False
    let_go: bool = False


class ObjectTracks:
    """Numbers of objects, look by look.

    Args:
        keep: what was not seen for so long is let go of, even where no camera can tell [s].

    Attributes:
        tracks: all that is there, or may be: those of the newest look in its order, then the unseen ones.
    """

    def __init__(self, keep: float = 60.0) -> None:
        self._keep, self._next = keep, 0
        self._carried: Carried | None = None
        self.tracks: list[Track] = []

    def see(
        self, clouds: Sequence[PointCloud], views: Sequence[View], stamp: float, carried: Carried | None = None
    ) -> list[Track]:
        """Take in a look; what was let go of by it.

        Args:
            clouds: its objects, in the world.
            views: all that its cameras measured, the robot included, which hides things too.
            stamp: of the look [s].
            carried: what the hand took last, and the same object until that changes; None for nothing yet.
        """
        gone = [track for track in self.tracks if track.seen > stamp + _SET_BACK]
        tracks = self._after(carried)
        self._carried = carried
        held = [track for track in tracks if track.held]
        tracks = [track for track in tracks if not track.held and track.number not in {item.number for item in gone}]
        known, found = _found(tracks, clouds)
        seen, unseen = [], [replace(track, index=None, unseen="held") for track in held]
        for index, cloud in enumerate(clouds):
            row = found.get(index)
            seen.append(Track(self._next if row is None else tracks[row].number, cloud, stamp, index))
            self._next += row is None
        for row in sorted(set(range(len(tracks))) - set(found.values())):
            track, reason = tracks[row], _why_unseen(known[row].points, views)
            if reason and stamp - track.seen <= self._keep:
                unseen.append(replace(track, index=None, unseen=reason))
            else:
                gone.append(track)
        self.tracks = seen + unseen
        return gone

    def find(self, number: int, clouds: Sequence[PointCloud], carried: Carried | None = None) -> int | None:
        """Index of the object with a number in a look that `see` is going to take in, None if it does not show it."""
        tracks = [track for track in self._after(carried) if not track.held]
        _, found = _found(tracks, clouds)
        return next((index for index, row in found.items() if tracks[row].number == number), None)

    def why_not_seen(self, number: int) -> str:
        """What became of an object that the newest look does not show, in words."""
        track = next((track for track in self.tracks if track.number == number), None)
        return "not there, or let go of" if track is None else track.unseen

    def new_numbers(self, count: int) -> list[int]:
        """Numbers that no object had: for a look at which nobody can tell who is who."""
        self._next += count
        return list(range(self._next - count, self._next))

    def _after(self, carried: Carried | None) -> list[Track]:
        """The tracks once the hand has done what is new of it."""
        new = carried is not None and carried is not self._carried
        return _carry(self.tracks, carried) if carried is not None and new else list(self.tracks)


class _Sample:
    """Some points of an object, and how far these are from each other."""

    def __init__(self, points: Array) -> None:
        from scipy.spatial import cKDTree

        self.points = points[:: max(1, len(points) // _SAMPLE)]
        self.tree = cKDTree(points) if len(points) else None
        self.middle = points.mean(axis=0) if len(points) else np.full(3, np.inf)

    @cached_property
    def distances(self) -> Array:
        """Quantiles of the distances between its points [m]; asked of those only that are not where they were."""
        apart = np.linalg.norm(self.points[:, None] - self.points[None], axis=2)
        apart = apart[np.triu_indices(len(apart), 1)]
        return np.quantile(apart, _QUANTILES) if len(apart) else np.zeros(len(_QUANTILES))

    def shared_with(self, other: _Sample) -> float:
        """Part of both surfaces that lies on the other, where they are."""
        if self.tree is None or other.tree is None:
            return 0.0
        shares = [
            np.isfinite(tree.query(points, distance_upper_bound=_NEAR)[0]).mean()
            for points, tree in ((self.points, other.tree), (other.points, self.tree))
        ]
        return float(np.mean(shares))

    def unlike(self, other: _Sample) -> float:
        """How much the distances within both differ, of the longer one's length."""
        length = max(self.distances[-1], other.distances[-1])
        return float(np.abs(self.distances - other.distances).mean() / length) if length > 0.0 else np.inf


def _found(tracks: Sequence[Track], clouds: Sequence[PointCloud]) -> tuple[list[_Sample], dict[int, int]]:
    """Samples of the tracks, and index of a cloud of a look → its row among them."""
    known, seen = ([_Sample(cloud.finite().points) for cloud in group] for group in ([t.cloud for t in tracks], clouds))
    found = _match(known, seen)
    for row in sorted(set(range(len(tracks))) - set(found.values())):
        # It turned in the hand, or fell over.
        new = [index for index in range(len(seen)) if index not in found] if tracks[row].let_go else []
        ways = {index: float(np.linalg.norm(seen[index].middle - known[row].middle)) for index in new}
        nearest = min(ways, key=lambda index: ways[index], default=None)
        if nearest is not None and ways[nearest] <= _LET_GO:
            found[nearest] = row
    return known, found


def _match(known: Sequence[_Sample], seen: Sequence[_Sample]) -> dict[int, int]:
    """Index of an object of the look → row of what was known: first by place, then what is left by shape."""
    shared = np.array([[old.shared_with(new) for new in seen] for old in known]).reshape(len(known), len(seen))
    found = _assign(1.0 - shared, 1.0 - _LEAST_SHARED)
    rows = [row for row in range(len(known)) if row not in found.values()]
    columns = [column for column in range(len(seen)) if column not in found]
    moved = np.full((len(rows), len(columns)), np.inf)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            way = float(np.linalg.norm(known[row].middle - seen[column].middle))
            unlike = known[row].unlike(seen[column])
            if way <= _FARTHEST and unlike <= _MOST_UNLIKE:
                moved[i, j] = way / _FARTHEST + unlike / _MOST_UNLIKE
    found.update({columns[j]: rows[i] for j, i in _assign(moved, 2.0).items()})
    return found


def _assign(costs: Array, gate: float) -> dict[int, int]:
    """Column → row of least cost in all; pairs that cost more than the gate are none."""
    from scipy.optimize import linear_sum_assignment

    # What is refused costs more than all that is not.
    rows, columns = linear_sum_assignment(np.where(costs <= gate, costs, 1e3))
    return {int(j): int(i) for i, j in zip(rows, columns, strict=True) if costs[i, j] <= gate}


def _carry(tracks: Sequence[Track], carried: Carried) -> list[Track]:
    """The tracks once the hand has taken one, or has let go of it elsewhere."""
    taken = [track.number for track in tracks if track.held]
    if not taken:
        taken = [track.number for track in tracks if _inside(track.cloud.finite().points, carried) >= _TAKEN]
    way = carried.T_now_taken
    return [
        track
        if track.number not in taken
        else replace(track, held=True)
        if way is None
        else replace(track, held=False, let_go=True, cloud=track.cloud.transformed(way))
        for track in tracks
    ]


def _inside(points: Array, carried: Carried) -> float:
    """Part of points (N, 3) in the spheres that the hand took."""
    if not len(points) or not len(carried.centers):
        return 0.0
    distances = np.linalg.norm(points[:, None] - carried.centers[None], axis=2) - carried.radii
    return float((distances.min(axis=1) <= _AROUND).mean())


def _why_unseen(points: Array, views: Sequence[View]) -> str:
    """Why an object that was at points (N, 3) is not seen there; empty if it is there no longer."""
    through, hidden, there = (np.zeros(len(points), np.bool_) for _ in range(3))
    for view in views:
        behind = _behind(points, view)
        through |= behind > _BEHIND
        hidden |= behind < -_BEFORE
        there |= (behind >= -_BEFORE) & (behind <= _BEHIND)
    if not len(points) or through.mean() >= _GONE:
        return ""
    if there.mean() >= _GONE:
        return "not told apart from what is there"
    return "hidden" if (hidden & ~there).mean() >= _GONE else "out of view"


def _behind(points: Array, view: View) -> NDArray[np.float64]:
    """(N,) how far behind points (N, 3) a camera saw something in their direction [m]; NaN where it saw nothing."""
    from scipy.spatial import cKDTree

    local = transform_points(invert_transform(view.T_world_camera), points)
    measured = view.points[np.isfinite(view.points).all(axis=1)]
    result = np.full(len(points), np.nan)
    ahead, along = local[:, 2] > 0.0, measured[:, 2] > 0.0
    measured = measured[along]
    if not len(measured) or not ahead.any():
        return result
    slopes, wanted = measured[:, :2] / measured[:, 2:], local[ahead, :2] / local[ahead, 2:]
    around = ((slopes >= wanted.min(axis=0) - _BESIDE) & (slopes <= wanted.max(axis=0) + _BESIDE)).all(axis=1)
    if not around.any():
        return result
    distances, rows = cKDTree(slopes[around]).query(wanted, distance_upper_bound=_BESIDE)
    seen = np.isfinite(distances)
    ranges = np.linalg.norm(measured[around], axis=1)
    result[np.flatnonzero(ahead)[seen]] = ranges[rows[seen]] - np.linalg.norm(local[ahead][seen], axis=1)
    return result
