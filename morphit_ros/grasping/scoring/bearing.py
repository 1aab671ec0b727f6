"""What of a surface bears the pads at every pose within the errors, as four places a pad.

The bearing surface of a finger is what lies within `BEARING_DEPTH` of the highest place that its pad can meet at any of
those poses. Along each of the pad's axes either the part is taken that lies on the pad at every pose, at rest on the
object (a narrow thing), or the part of the pad that has bearing surface before it at every pose, at rest on the pad (a
face that goes on beyond it); in the second case the object moves against the pads by as much. Forces that act on this
part alone are forces that the contact can supply at every one of the poses, if the bearing surface is convex.

Evenly pressed, the part holds what four points at c ± a e₁ ± b e₂ hold at least: e₁, e₂ its principal axes, a : b as its
extents, √(a² + b²) = ℓ, the mean distance of its points from its middle c. Their limit surface lies inside that of a
disc and of every rectangle (test_hold.py).
"""

from __future__ import annotations

import math

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

BEARING_DEPTH = 8e-5
"""How deep a pad is pressed [m]: on a ball of 21 mm radius the cap that lies within it holds the torque of Hertz's
circle at 40 N (morphit_ros/simulation/pad_patches.py)."""
POINT_LEVER = 5e-4
"""Least ℓ [m], Hertz's 3π/16 b of a pad that presses a ball of 5 mm radius with 10 N."""


@njit(cache=True, nogil=True)
def find_bearing(points: Array, normals: Array, side: float, half: Array, noise: float, bears: Array) -> float:
    """Which points bear a finger's pad wherever it is within a window.

    Args:
        points, normals: (M, 3) in the gripper's frame.
        side: 1 for finger 1, -1 for finger 2.
        half: (2,) half of the window along x and z [m].
        noise: of the points along their normals [m].
        bears: (M,) out, 1 for those that bear.

    Returns:
        distance of the highest place from the gripper's middle [m]; negative infinity for none.
    """
    height = -math.inf
    for i in range(points.shape[0]):
        bears[i] = 0
        inside = abs(points[i, 0]) <= half[0] and abs(points[i, 2]) <= half[1]
        # A surface stands before the finger that it faces; what it shows its side to is in the way of both.
        if inside and side * normals[i, 1] > -0.3:
            height = max(height, side * points[i, 1])
    count, x, z, nx, nz = 0, 0.0, 0.0, 0.0, 0.0
    for i in range(points.shape[0]):
        inside = abs(points[i, 0]) <= half[0] and abs(points[i, 2]) <= half[1]
        if inside and side * normals[i, 1] > 0.5 and height - side * points[i, 1] <= BEARING_DEPTH + 3.0 * noise:
            bears[i] = 1
            count += 1
            x, z, nx, nz = x + points[i, 0], z + points[i, 2], nx + normals[i, 0], nz + normals[i, 2]
    for i in range(points.shape[0]):
        # Noise hides how far a bent surface falls away; its normals tell.
        if bears[i] == 1 and height - side * points[i, 1] > BEARING_DEPTH:
            along = (points[i, 0] - x / count) * (normals[i, 0] - nx / count)
            across = (points[i, 2] - z / count) * (normals[i, 2] - nz / count)
            if along + across > 2.0 * BEARING_DEPTH * side * normals[i, 1]:
                bears[i] = 0
    return height


@njit(cache=True, nogil=True)
def patch_places(points: Array, normals: Array, side: float, bears: Array, box: Array, places: Array) -> float:
    """The four places of a finger's patch.

    Args:
        points, normals: (M, 3) in the gripper's frame.
        side: 1 for finger 1, -1 for finger 2.
        bears: (M,) of `find_bearing`.
        box: (2, 2) lowest and highest x and z of the patch [m].
        places: (4, 3) out [m]; their y is left as it is.

    Returns:
        angle between the mean normal of the patch and the closing direction [rad]; infinite if nothing bears.
    """
    count, x, z, xx, zz, xz = 0, 0.0, 0.0, 0.0, 0.0, 0.0
    n0, n1, n2 = 0.0, 0.0, 0.0
    for i in range(points.shape[0]):
        if bears[i] == 1 and _within(points[i], box):
            count += 1
            x, z = x + points[i, 0], z + points[i, 2]
            xx, zz = xx + points[i, 0] ** 2, zz + points[i, 2] ** 2
            xz += points[i, 0] * points[i, 2]
            n0, n1, n2 = n0 + normals[i, 0], n1 + normals[i, 1], n2 + normals[i, 2]
    if count == 0:
        return math.inf
    x, z = x / count, z / count
    xx, zz, xz = max(xx / count - x * x, 0.0), max(zz / count - z * z, 0.0), xz / count - x * z
    lever = 0.0
    for i in range(points.shape[0]):
        if bears[i] == 1 and _within(points[i], box):
            lever += math.hypot(points[i, 0] - x, points[i, 2] - z) / count
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
    return math.acos(min(max(side * n1 / max(math.sqrt(n0 * n0 + n1 * n1 + n2 * n2), 1e-12), -1.0), 1.0))


@njit(cache=True, nogil=True)
def _within(point: Array, box: Array) -> bool:
    return box[0, 0] <= point[0] <= box[1, 0] and box[0, 1] <= point[2] <= box[1, 1]


@njit(cache=True, nogil=True)
def bearing_extent(points: Array, bears: Array, extent: Array) -> None:
    """Lowest and highest x and z of the points that bear, into `extent` (2, 2) [m]."""
    extent[0, :], extent[1, :] = math.inf, -math.inf
    for i in range(points.shape[0]):
        if bears[i] == 1:
            extent[0, 0], extent[1, 0] = min(extent[0, 0], points[i, 0]), max(extent[1, 0], points[i, 0])
            extent[0, 1], extent[1, 1] = min(extent[0, 1], points[i, 2]), max(extent[1, 1], points[i, 2])
