"""What cubes have of a solid, as the corners of these parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
# A triangle that six planes have cut has at most so many corners.
_MOST_CORNERS = 9
# Cubes are this much larger than they are where triangles are cut off, so that no point falls between two.
_LARGER = 1.0 + 1e-9

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class CubeParts:
    """The parts of a solid in equal cubes.

    Attributes:
        solid: the solid.
        half: half the side of the cubes [m].
        cubes: (C, 3) the centres of those that have a part [m].
        points: (P, 3) the corners of the parts [m]: those of cubes inside of the solid, and those of triangles cut off
            at the sides of their cube. The part lies within their convex hull.
        owners: (P,) the cube of each, ascending.
        triangles, starts: (T,) and (C + 1,): those that meet the k-th cube are triangles[starts[k] : starts[k + 1]].
    """

    solid: Solid
    half: float
    cubes: Array
    points: Array
    owners: Indices
    triangles: Indices
    starts: Indices

    @staticmethod
    def whole(solid: Solid) -> CubeParts:
        """One cube around the solid."""
        half = 0.5 * float((solid.bounds[1] - solid.bounds[0]).max())
        center = solid.bounds.mean(axis=0)[None]
        count = len(solid.triangles)
        return _parts(solid, half, center, np.arange(count), np.array([0, count]))

    def divided(self, rows: Indices) -> CubeParts:
        """The parts in the eighths of some of the cubes."""
        half = 0.5 * self.half
        cubes = (self.cubes[rows][:, None] + half * CORNERS).reshape(-1, 3)
        lengths = np.repeat((self.starts[1:] - self.starts[:-1])[rows], 8)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        # Each eighth is given all triangles of its cube.
        places = (
            np.arange(starts[-1])
            - np.repeat(starts[:-1], lengths)
            + np.repeat(self.starts[:-1][np.repeat(rows, 8)], lengths)
        )
        return _parts(self.solid, half, cubes, self.triangles[places], starts)

    def maxima(self, values: Array) -> Array:
        """Of values (P,) of the points the greatest of each cube, (C,)."""
        return np.maximum.reduceat(values, self._firsts) if len(self.cubes) else np.empty(0)

    def any(self, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any of a cube's points has its mark (P,), (C,)."""
        return np.logical_or.reduceat(marks, self._firsts) if len(self.cubes) else np.empty(0, dtype=np.bool_)

    @property
    def _firsts(self) -> Indices:
        """(C,) the first point of each cube."""
        return np.searchsorted(self.owners, np.arange(len(self.cubes)))


def _parts(solid: Solid, half: float, cubes: Array, triangles: Indices, starts: Indices) -> CubeParts:
    """The parts in cubes that are met by no other triangles than those given."""
    points, owners, meeting, lengths = _cut_off(
        solid.triangles, np.ascontiguousarray(cubes), half * _LARGER, triangles, starts
    )
    whole = lengths == 0
    inside = np.zeros(len(cubes), dtype=np.bool_)
    inside[whole] = solid.contains(cubes[whole])
    corners = (cubes[:, None] + half * CORNERS).reshape(-1, 3)
    of_corners = np.repeat(np.arange(len(cubes)), 8)
    held = inside[of_corners]
    crossing = np.flatnonzero(~whole[of_corners])
    held[crossing] = solid.contains(corners[crossing])
    points = np.concatenate([points, corners[held]])
    owners = np.concatenate([owners, of_corners[held]])
    kept = np.unique(owners)
    order = np.argsort(owners, kind="stable")
    return CubeParts(
        solid,
        half,
        cubes[kept],
        points[order],
        np.searchsorted(kept, owners[order]),
        meeting,
        np.concatenate([[0], np.cumsum(lengths[kept])]),
    )


@njit(cache=True, nogil=True)
def _cut_off(triangles, cubes, half, candidates, starts):  # type: ignore[no-untyped-def]
    """Corners (P, 3) of triangles cut off at cubes, the cube of each (P,), the triangles left (T,), how many a cube."""
    points, owners = np.empty((max(3 * len(candidates), 64), 3)), np.empty(max(3 * len(candidates), 64), dtype=np.int64)
    meeting, lengths = np.empty(len(candidates), dtype=np.int64), np.zeros(len(cubes), dtype=np.int64)
    polygon, other = np.empty((_MOST_CORNERS + 1, 3)), np.empty((_MOST_CORNERS + 1, 3))
    used = left = 0
    for c in range(len(cubes)):
        for place in range(starts[c], starts[c + 1]):
            triangle = candidates[place]
            count = 3
            for corner in range(3):
                for axis in range(3):
                    polygon[corner, axis] = triangles[triangle, corner, axis] - cubes[c, axis]
            for axis in range(3):
                for side in (-1.0, 1.0):
                    count = _clip(polygon, count, axis, side, half, other)
                    polygon, other = other, polygon
                    if count == 0:
                        break
                if count == 0:
                    break
            if count == 0:
                continue
            if used + count > len(points):
                points = np.concatenate((points, np.empty_like(points)))
                owners = np.concatenate((owners, np.empty_like(owners)))
            for corner in range(count):
                for axis in range(3):
                    points[used, axis] = polygon[corner, axis] + cubes[c, axis]
                owners[used] = c
                used += 1
            meeting[left] = triangle
            left += 1
            lengths[c] += 1
    return points[:used].copy(), owners[:used].copy(), meeting[:left].copy(), lengths


@njit(cache=True, nogil=True)
def _clip(polygon, count, axis, side, half, out):  # type: ignore[no-untyped-def]
    """What a convex polygon has in the half-space side · x ≤ half: number of its corners."""
    kept = 0
    for i in range(count):
        j = i + 1 if i + 1 < count else 0
        here, there = half - side * polygon[i, axis], half - side * polygon[j, axis]
        if here >= 0.0:
            for k in range(3):
                out[kept, k] = polygon[i, k]
            kept += 1
        if (here >= 0.0) != (there >= 0.0):
            share = here / (here - there)
            for k in range(3):
                out[kept, k] = polygon[i, k] + share * (polygon[j, k] - polygon[i, k])
            kept += 1
    return kept
