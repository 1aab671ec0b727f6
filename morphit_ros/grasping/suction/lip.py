"""The lip of a cup on a cloud, compiled: where it has surface, how high that is, and the quadric under the cup.

Heights are those of the surface along the cup's axis, away from what it is laid on; `seal` says what they are for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.spatial_hash import CellList, adjacent_ranges, pack
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Columns of what is told of a lip.
COVERAGE, TRAVEL, STRAIN, MISALIGNMENT, FLATNESS, CURVATURE, HEIGHT = range(7)
COLUMNS = 7
# Surface that a cup meets is turned towards it by so much at least [cosine].
_FACING = 0.3
# Points of a plane, and under a lip, at least.
_PLANE_POINTS, _LIP_POINTS = 6, 12
# A place of the ring is a mean of points, weighted by a Gaussian of this share of `near`; beyond so many of its widths
# squared a point weighs nothing.
_SMOOTHING, _FARTHEST = 0.5, 36.0
# Points within so many times `near` about a place of the ring tell on which side of an edge it is: beyond one they are
# all on one side, and half of these sectors about the place or more, one beside the other, are empty.
_AROUND, _SECTORS = 2.0, 16


class Lip(NamedTuple):
    """A cup's lip, as it is asked about.

    Attributes:
        ring: (V, 2) places of the lip across the axis [m].
        inside: (M, 2) places inside of it [m].
        radius: [m].
        reach: points farther than this from the middle are not looked at [m].
        near: a place has surface if a point is as near as this, across the axis [m]; one of the ring if there are
            besides points all around it.
        gaps: share of `ring` or `inside` that may be without.
    """

    ring: Array
    inside: Array
    radius: float
    reach: float
    near: float
    gaps: float


@njit(cache=True, nogil=True)
def lay_lips(
    cells: CellList, normals: Array, middles: Array, axes: Array, rounds: int, lip: Lip, told: Array, rims: Array
) -> None:
    """Lay a lip onto each of many places.

    Args:
        cells: points of the surface, cells as wide as the lip's reach.
        normals: (N, 3) of the sorted points, outwards.
        middles: (S, 3) where the middle of the lip is moved to [m].
        axes: (S, 3) towards the surface; in each round they are turned to the normal of the plane under the lip.
        rounds: how many.
        lip: which.
        told: (S, `COLUMNS`) out; NaN but for the coverage where that is too little.
        rims: (S, V, 3) out, the surface under the ring [m]; NaN where there is none.
    """
    ranges = np.empty((27, 2), np.int64)
    ball, under = np.empty((len(cells.points), 6)), np.empty((len(cells.points), 3))
    around = np.empty((len(cells.points), 2))
    frame, heights = np.empty((3, 3)), np.empty(len(lip.ring))
    for s in range(len(middles)):
        count = _gather(cells, normals, middles[s], lip.reach, ranges, ball)
        _stand(axes[s], frame)
        found, beside = _face(ball[:count], frame, lip, under, around)
        for _ in range(rounds):
            if found < _PLANE_POINTS:
                break
            _turn_to_plane(under[:found], frame, axes[s])
            _stand(axes[s], frame)
            found, beside = _face(ball[:count], frame, lip, under, around)
        _lay(under[:found], around[:beside], lip, told[s], heights)
        for k in range(len(heights)):
            x, y = lip.ring[k]
            for i in range(3):
                rims[s, k, i] = middles[s, i] + x * frame[0, i] + y * frame[1, i] + heights[k] * frame[2, i]


@njit(cache=True, nogil=True)
def lip_frames(axes: Array) -> Array:
    """Rotations (S, 3, 3) whose columns are two directions across each axis (S, 3), and the axis itself."""
    rotations, frame = np.empty((len(axes), 3, 3)), np.empty((3, 3))
    for s in range(len(axes)):
        _stand(axes[s], frame)
        for i in range(3):
            rotations[s, i, 0], rotations[s, i, 1], rotations[s, i, 2] = frame[0, i], -frame[1, i], axes[s, i]
    return rotations


@njit(cache=True, nogil=True)
def _gather(cells: CellList, normals: Array, middle: Array, reach: float, ranges: Array, ball: Array) -> int:
    """How many points are within the reach; they, from the middle, and their normals in the first rows of `ball`."""
    key = pack(
        np.int64(np.floor(middle[0] / cells.size)),
        np.int64(np.floor(middle[1] / cells.size)),
        np.int64(np.floor(middle[2] / cells.size)),
    )
    count = 0
    for part in range(adjacent_ranges(cells, key, ranges)):
        for row in range(ranges[part, 0], ranges[part, 1]):
            x, y, z = (
                cells.points[row, 0] - middle[0],
                cells.points[row, 1] - middle[1],
                cells.points[row, 2] - middle[2],
            )
            if x * x + y * y + z * z <= reach * reach:
                ball[count, 0], ball[count, 1], ball[count, 2] = x, y, z
                for k in range(3):
                    ball[count, 3 + k] = normals[row, k]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _stand(axis: Array, frame: Array) -> None:
    """Rows of a right-handed frame (3, 3): two directions across an axis (3,), and against it."""
    k = 0
    for i in range(1, 3):
        if abs(axis[i]) < abs(axis[k]):
            k = i
    # The axis times the unit vector that is least along it.
    x, y, z = axis[0], axis[1], axis[2]
    if k == 0:
        a, b, c = 0.0, z, -y
    elif k == 1:
        a, b, c = -z, 0.0, x
    else:
        a, b, c = y, -x, 0.0
    length = math.sqrt(a * a + b * b + c * c)
    a, b, c = a / length, b / length, c / length
    frame[0, 0], frame[0, 1], frame[0, 2] = a, b, c
    frame[1, 0], frame[1, 1], frame[1, 2] = b * z - c * y, c * x - a * z, a * y - b * x
    frame[2, 0], frame[2, 1], frame[2, 2] = -x, -y, -z


@njit(cache=True, nogil=True)
def _face(ball: Array, frame: Array, lip: Lip, under: Array, around: Array) -> tuple[int, int]:
    """How many points under the cup show themselves to it, and how many about its ring.

    In a frame (3, 3): in the first rows of `under` (N, 3) and, across the axis, of `around` (N, 2).
    """
    count, widest = 0, (lip.radius + lip.near) ** 2
    beside, margin = 0, _AROUND * lip.near
    innermost, outermost = max(lip.radius - margin, 0.0) ** 2, (lip.radius + margin) ** 2
    for i in range(len(ball)):
        x = ball[i, 0] * frame[0, 0] + ball[i, 1] * frame[0, 1] + ball[i, 2] * frame[0, 2]
        y = ball[i, 0] * frame[1, 0] + ball[i, 1] * frame[1, 1] + ball[i, 2] * frame[1, 2]
        towards = ball[i, 3] * frame[2, 0] + ball[i, 4] * frame[2, 1] + ball[i, 5] * frame[2, 2]
        if towards <= _FACING:
            continue
        if innermost <= x * x + y * y <= outermost:
            around[beside, 0], around[beside, 1] = x, y
            beside += 1
        if x * x + y * y <= widest:
            under[count, 0], under[count, 1] = x, y
            under[count, 2] = ball[i, 0] * frame[2, 0] + ball[i, 1] * frame[2, 1] + ball[i, 2] * frame[2, 2]
            count += 1
    return count, beside


@njit(cache=True, nogil=True)
def _surrounded(place: Array, around: Array, reach: float, sectors: Array) -> bool:
    """Whether points (N, 2) within a reach lie all around a place (2,), not on one side of it only."""
    sectors[:] = False
    for i in range(len(around)):
        x, y = around[i, 0] - place[0], around[i, 1] - place[1]
        if x * x + y * y <= reach * reach:
            sectors[int((math.atan2(y, x) / (2.0 * math.pi) + 0.5) * _SECTORS) % _SECTORS] = True
    empty = 0
    for k in range(2 * _SECTORS):
        empty = 0 if sectors[k % _SECTORS] else empty + 1
        if 2 * empty >= _SECTORS:
            return False
    return True


@njit(cache=True, nogil=True)
def _turn_to_plane(under: Array, frame: Array, axis: Array) -> None:
    """Turn an axis (3,) to the normal of the plane through points (M, 3) of its frame."""
    x, y, z = under[:, 0].mean(), under[:, 1].mean(), under[:, 2].mean()
    moments = np.zeros((3, 3))
    for i in range(len(under)):
        a, b, c = under[i, 0] - x, under[i, 1] - y, under[i, 2] - z
        moments[0, 0] += a * a
        moments[0, 1] += a * b
        moments[0, 2] += a * c
        moments[1, 1] += b * b
        moments[1, 2] += b * c
        moments[2, 2] += c * c
    moments[1, 0], moments[2, 0], moments[2, 1] = moments[0, 1], moments[0, 2], moments[1, 2]
    normal = np.linalg.eigh(moments)[1][:, 0]
    sign = -1.0 if normal[2] > 0.0 else 1.0
    for k in range(3):
        axis[k] = sign * (normal[0] * frame[0, k] + normal[1] * frame[1, k] + normal[2] * frame[2, k])


@njit(cache=True, nogil=True)
def _lay(under: Array, around: Array, lip: Lip, told: Array, rim: Array) -> None:
    """What is told (`COLUMNS`,) of a lip on points (M, 3) in its frame, and its heights (V,) at the ring.

    Points (N, 2) across the axis are those about the ring.
    """
    told[:], rim[:] = math.nan, math.nan
    places, near = len(lip.ring), lip.near * lip.near
    covered, bulge = 0, -math.inf
    for k in range(len(lip.inside)):
        nearest, height = math.inf, 0.0
        for i in range(len(under)):
            squared = (under[i, 0] - lip.inside[k, 0]) ** 2 + (under[i, 1] - lip.inside[k, 1]) ** 2
            if squared < nearest:
                nearest, height = squared, under[i, 2]
        if nearest <= near:
            covered += 1
            bulge = max(bulge, height)
    on_rim, width = 0, (_SMOOTHING * lip.near) ** 2
    sectors = np.empty(_SECTORS, np.bool_)
    for k in range(places):
        nearest, total, height = math.inf, 0.0, 0.0
        for i in range(len(under)):
            squared = (under[i, 0] - lip.ring[k, 0]) ** 2 + (under[i, 1] - lip.ring[k, 1]) ** 2
            nearest = min(nearest, squared)
            if squared <= _FARTHEST * width:
                weight = math.exp(-0.5 * squared / width)
                total, height = total + weight, height + weight * under[i, 2]
        if nearest <= near and _surrounded(lip.ring[k], around, _AROUND * lip.near, sectors):
            on_rim += 1
            rim[k] = height / total
    told[COVERAGE] = min(covered / len(lip.inside), on_rim / places)
    if told[COVERAGE] < 1.0 - lip.gaps or len(under) < _LIP_POINTS:
        return
    heights = _filled(rim)
    told[TRAVEL] = max(heights.max(), bulge) - heights.min()
    told[STRAIN] = max(_stretch(lip.ring, heights, 1), _stretch(lip.ring, heights, 2))
    told[HEIGHT] = heights.mean()
    slope = _fitted(under, lip.radius, 3)
    told[MISALIGNMENT] = math.atan(math.hypot(slope[1], slope[2]) / lip.radius)
    squares = 0.0
    for i in range(len(under)):
        plane = slope[0] + (slope[1] * under[i, 0] + slope[2] * under[i, 1]) / lip.radius
        squares += (under[i, 2] - plane) ** 2
    told[FLATNESS] = math.sqrt(squares / len(under))
    quadric = _fitted(under, lip.radius, 6)
    # Eigenvalues of [[2 a, b], [b, 2 c]].
    a, b, c = quadric[3], quadric[4], quadric[5]
    told[CURVATURE] = (abs(a + c) + math.hypot(a - c, b)) / lip.radius**2


@njit(cache=True, nogil=True)
def _filled(rim: Array) -> Array:
    """Heights (V,) of a ring, along it between those (V,) that are known."""
    count = len(rim)
    heights = rim.copy()
    for k in range(count):
        if math.isnan(rim[k]):
            before, after = 1, 1
            while math.isnan(rim[k - before]):
                before += 1
            while math.isnan(rim[(k + after) % count]):
                after += 1
            heights[k] = (after * rim[k - before] + before * rim[(k + after) % count]) / (before + after)
    return heights


@njit(cache=True, nogil=True)
def _stretch(ring: Array, heights: Array, step: int) -> float:
    """Largest stretch of springs between places of the ring (V, 2) that are so many apart."""
    largest, count = 0.0, len(ring)
    for k in range(count):
        other = (k + step) % count
        flat = math.hypot(ring[other, 0] - ring[k, 0], ring[other, 1] - ring[k, 1])
        largest = max(largest, math.hypot(flat, heights[other] - heights[k]) / flat - 1.0)
    return largest


@njit(cache=True, nogil=True)
def _fitted(under: Array, radius: float, terms: int) -> Array:
    """Least squares of heights over 1, u, v (and u², uv, v² if `terms` is 6), u and v in radii: coefficients [m]."""
    matrix, right, row = np.zeros((terms, terms)), np.zeros(terms), np.ones(6)
    for i in range(len(under)):
        u, v = under[i, 0] / radius, under[i, 1] / radius
        row[1], row[2], row[3], row[4], row[5] = u, v, u * u, u * v, v * v
        for k in range(terms):
            right[k] += row[k] * under[i, 2]
            for j in range(terms):
                matrix[k, j] += row[k] * row[j]
    for k in range(terms):
        # That few points on a line are no error: of two surfaces through them the flatter one.
        matrix[k, k] += 1e-9 * len(under)
    coefficients = np.empty(terms)
    coefficients[:] = np.linalg.solve(matrix, right)
    return coefficients
