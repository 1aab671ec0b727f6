"""What of a surface bears the pads at every pose within the errors, as four places a pad.

The bearing surface of a finger is what lies within `BEARING_DEPTH` of the highest place that its pad can meet at any
of those poses. A cloud is too sparse to show that of a bent surface: where a quadric through the points near the top
leaves no larger errors, it takes their place as far as they reach; else the points themselves are the surface.

Along each of the pad's axes either the part is taken that lies on the pad at every pose, at rest on the object (a
narrow thing), or the part of the pad that has bearing surface before it at every pose, at rest on the pad (a face that
goes on beyond it); in the second case the object moves against the pads by as much. Forces that act on the hull of this
part alone are forces that the contact can supply at every one of the poses, if the bearing surface is convex.

Evenly pressed, the part holds what four points at c ± a e₁ ± b e₂ hold at least: e₁, e₂ its principal axes, a : b as
its extents, √(a² + b²) = ℓ, the mean distance of its points from its middle c. Their limit surface lies inside that of
a disc and of every rectangle (test_hold.py).
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

BEARING_DEPTH = 8e-5
"""How deep a pad is pressed [m]: on a ball of 21 mm radius the cap that lies within it holds the torque of Hertz's
circle at 40 N (morphit_ros/simulation/pad_patches.py)."""
POINT_LEVER = 5e-4
"""Least ℓ [m], Hertz's 3π/16 b of a pad that presses a ball of 5 mm radius with 10 N."""
# A quadric goes through what lies within this depth of the highest point [m], by so many points at least.
_TOP, _LEAST_POINTS = 6e-4, 9
# Points are believed to be so far off their surface at most [m].
_LARGEST_NOISE = 1e-3
# Places of it: their distance [m], unless there were more than so many along an axis.
_STEP, _MOST_STEPS = 0.0015, 40
# Directions in which a quadric's places must keep within its points.
_SIDES = 24


@njit(cache=True, nogil=True)
def bearing_places(points: Array, normals: Array, side: float, half: Array, noise: float) -> tuple[Array, float, float]:
    """What bears a finger's pad wherever it is within a window.

    Args:
        points, normals: (M, 3) in the gripper's frame.
        side: 1 for finger 1, -1 for finger 2.
        half: (2,) half of the window along x and z [m].
        noise: of the points along their normals [m].

    Returns:
        (K, 2) evenly spread places, x and z [m]; distance of the highest one from the gripper's middle [m]; angle
        between their mean normal and the closing direction [rad].
    """
    highest, count, noise = -math.inf, 0, min(3.0 * noise, _LARGEST_NOISE)
    for i in range(len(points)):
        inside = abs(points[i, 0]) <= half[0] and abs(points[i, 2]) <= half[1]
        # A surface stands before the finger that it faces; what it shows its side to is in the way of both.
        if inside and side * normals[i, 1] > -0.3:
            highest = max(highest, side * points[i, 1])
    top = np.empty((len(points), 3))
    for i in range(len(points)):
        inside = abs(points[i, 0]) <= half[0] and abs(points[i, 2]) <= half[1]
        if inside and side * normals[i, 1] > 0.5 and highest - side * points[i, 1] <= _TOP + noise:
            top[count, 0], top[count, 1], top[count, 2] = points[i, 0], points[i, 2], side * points[i, 1]
            count += 1
    if count >= _LEAST_POINTS:
        places, height, angle = _of_quadric(top[:count], noise)
        if len(places):
            return places, height, angle
    return _of_points(points, normals, side, half, highest, noise)


@njit(cache=True, nogil=True)
def _of_quadric(top: Array, noise: float) -> tuple[Array, float, float]:
    """Bearing places of a quadric through points (M, 3), x, z and height; none where it is not their surface."""
    none = np.empty((0, 2))
    x, z = top[:, 0].mean(), top[:, 1].mean()
    size = max(np.abs(top[:, 0] - x).max(), np.abs(top[:, 1] - z).max())
    if size < _STEP:
        return none, 0.0, 0.0
    terms = np.empty((len(top), 6))
    for i in range(len(top)):
        u, v = (top[i, 0] - x) / size, (top[i, 1] - z) / size
        terms[i, 0], terms[i, 1], terms[i, 2], terms[i, 3], terms[i, 4], terms[i, 5] = 1.0, u, v, u * u, u * v, v * v
    matrix = terms.T @ terms
    for k in range(6):
        # Points on a line say nothing of the surface beside it.
        matrix[k, k] += 1e-6 * len(top)
    weights = np.linalg.solve(matrix, terms.T @ np.ascontiguousarray(top[:, 2]))
    if np.abs(terms @ weights - top[:, 2]).max() > 0.5 * BEARING_DEPTH + noise:
        return none, 0.0, 0.0
    limits = np.empty(_SIDES)
    for k in range(_SIDES):
        c, s = math.cos(2.0 * math.pi * k / _SIDES), math.sin(2.0 * math.pi * k / _SIDES)
        limits[k] = (c * top[:, 0] + s * top[:, 1]).max()
    low_x, high_x, low_z, high_z = top[:, 0].min(), top[:, 0].max(), top[:, 1].min(), top[:, 1].max()
    columns = max(int(min((high_x - low_x) / _STEP, _MOST_STEPS)), 1)
    rows = max(int(min((high_z - low_z) / _STEP, _MOST_STEPS)), 1)
    grid, number, height = np.empty(((columns + 1) * (rows + 1), 3)), 0, -math.inf
    for column in range(columns + 1):
        for row in range(rows + 1):
            px, pz = low_x + (high_x - low_x) * column / columns, low_z + (high_z - low_z) * row / rows
            within = True
            for k in range(_SIDES):
                c, s = math.cos(2.0 * math.pi * k / _SIDES), math.sin(2.0 * math.pi * k / _SIDES)
                within = within and c * px + s * pz <= limits[k] + 1e-12
            if within:
                u, v = (px - x) / size, (pz - z) / size
                grid[number, 0], grid[number, 1] = px, pz
                grid[number, 2] = (
                    weights[0] + weights[1] * u + weights[2] * v + weights[3] * u * u + weights[4] * u * v
                    + weights[5] * v * v
                )  # fmt: skip
                height = max(height, grid[number, 2])
                number += 1
    places, count, slope_u, slope_v = np.empty((number, 2)), 0, 0.0, 0.0
    for i in range(number):
        if height - grid[i, 2] <= BEARING_DEPTH:
            places[count] = grid[i, :2]
            u, v = (grid[i, 0] - x) / size, (grid[i, 1] - z) / size
            slope_u += weights[1] + 2.0 * weights[3] * u + weights[4] * v
            slope_v += weights[2] + 2.0 * weights[5] * v + weights[4] * u
            count += 1
    return places[:count], height, math.atan(math.hypot(slope_u, slope_v) / (size * max(count, 1)))


@njit(cache=True, nogil=True)
def _of_points(
    points: Array, normals: Array, side: float, half: Array, height: float, noise: float
) -> tuple[Array, float, float]:
    """Those of the points that bear."""
    rows, count, x, z, nx, nz = np.empty(len(points), np.int64), 0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(points)):
        inside = abs(points[i, 0]) <= half[0] and abs(points[i, 2]) <= half[1]
        if inside and side * normals[i, 1] > 0.5 and height - side * points[i, 1] <= BEARING_DEPTH + noise:
            rows[count] = i
            count += 1
            x, z, nx, nz = x + points[i, 0], z + points[i, 2], nx + normals[i, 0], nz + normals[i, 2]
    places, kept, n0, n1, n2 = np.empty((count, 2)), 0, 0.0, 0.0, 0.0
    for k in range(count):
        i = rows[k]
        if height - side * points[i, 1] > BEARING_DEPTH:
            # Noise hides how far a bent surface falls away; its normals tell.
            along = (points[i, 0] - x / count) * (normals[i, 0] - nx / count)
            across = (points[i, 2] - z / count) * (normals[i, 2] - nz / count)
            if along + across > 2.0 * BEARING_DEPTH * side * normals[i, 1]:
                continue
        places[kept, 0], places[kept, 1] = points[i, 0], points[i, 2]
        n0, n1, n2 = n0 + normals[i, 0], n1 + normals[i, 1], n2 + normals[i, 2]
        kept += 1
    length = max(math.sqrt(n0 * n0 + n1 * n1 + n2 * n2), 1e-12)
    return places[:kept], height, math.acos(min(max(side * n1 / length, -1.0), 1.0))


@njit(cache=True, nogil=True)
def patch_corners(bearing: Array, box: Array, places: Array) -> bool:
    """The four places of the patch that lies in a box; whether there is one.

    Args:
        bearing: (K, 2) evenly spread places, x and z [m].
        box: (2, 2) lowest and highest x and z of the patch [m].
        places: (4, 3) out [m]; their y is left as it is.
    """
    count, x, z, xx, zz, xz = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(bearing)):
        if _within(bearing[i], box):
            count += 1
            x, z = x + bearing[i, 0], z + bearing[i, 1]
            xx, zz, xz = xx + bearing[i, 0] ** 2, zz + bearing[i, 1] ** 2, xz + bearing[i, 0] * bearing[i, 1]
    if count == 0:
        return False
    x, z = x / count, z / count
    xx, zz, xz = max(xx / count - x * x, 0.0), max(zz / count - z * z, 0.0), xz / count - x * z
    lever = 0.0
    for i in range(len(bearing)):
        if _within(bearing[i], box):
            lever += math.hypot(bearing[i, 0] - x, bearing[i, 1] - z) / count
    angle = 0.5 * math.atan2(2.0 * xz, xx - zz)
    cosine, sine = math.cos(angle), math.sin(angle)
    long = xx * cosine * cosine + 2.0 * xz * cosine * sine + zz * sine * sine
    short = max(xx + zz - long, 0.0)
    if lever < POINT_LEVER:
        a = b = POINT_LEVER * math.sqrt(0.5)
    else:
        a, b = lever * math.sqrt(long / (long + short)), lever * math.sqrt(short / (long + short))
    for k in range(4):
        one, other = a * (1.0 - 2.0 * (k % 2)), b * (1.0 - 2.0 * (k // 2))
        places[k, 0] = x + one * cosine - other * sine
        places[k, 2] = z + one * sine + other * cosine
    return True


@njit(cache=True, nogil=True)
def mean_distance(places: Array) -> float:
    """Of places (K, 2) from their middle [m]."""
    x, z, total = places[:, 0].mean(), places[:, 1].mean(), 0.0
    for i in range(len(places)):
        total += math.hypot(places[i, 0] - x, places[i, 1] - z)
    return total / len(places)


@njit(cache=True, nogil=True)
def _within(place: Array, box: Array) -> bool:
    return box[0, 0] <= place[0] <= box[1, 0] and box[0, 1] <= place[1] <= box[1, 1]
