"""How deep the dents of a superovoid are: the distance between it and its convex hull.

Sections of the hull have as support function the concave envelope of k(s) (see `convexity`), direction by direction
ψ. Where envelope and k part, a chord joins two sections; points of chords are points of the hull, and their distances
from the shape are the depth. Measured within the section's plane instead, the gap bounds it from above.
"""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.arcs import arc_point
from morphit_ros.superovoid.shapes.bounds import bounding_sphere
from morphit_ros.superovoid.shapes.closest_point import closest_points
from morphit_ros.superovoid.shapes.kernels import norm_of_two, power

_DIRECTIONS, _HEIGHTS = 25, 600
# Zooms onto the deepest place, each this much closer.
_ZOOMS, _CLOSER = 4, 5.0
_PLACES = 9
# The bound is raised by what the grids of directions and heights may leave out.
_BOUND_MARGIN = 1.01
# Share of the size below which a dent may be narrower than the grid: its depth falls with the fourth power of its
# width.
_UNRESOLVED = 1e-9


def measure_dents(parameters: Array) -> tuple[float, float]:
    """Depth [m] of the deepest dent of a superovoid (7,), and an upper bound of it [m]."""
    heights = _heights(float(parameters[4]))
    low, high = 0.0, 0.5 * math.pi
    depth = bound = 0.0
    for _ in range(_ZOOMS):
        angles = np.linspace(low, high, _DIRECTIONS)
        gaps, chords = np.empty(_DIRECTIONS), np.empty((_DIRECTIONS, _PLACES, 3))
        for i, angle in enumerate(angles):
            gaps[i] = _chord_points(parameters, heights, angle, chords[i])
        distances = closest_points(parameters, chords.reshape(-1, 3)).distances.reshape(_DIRECTIONS, _PLACES)
        distances[gaps == 0.0] = 0.0
        best = int(distances.max(axis=1).argmax())
        depth, bound = max(depth, float(distances.max())), max(bound, float(gaps.max()))
        reach = (high - low) / (2.0 * _CLOSER)
        low, high = max(angles[best] - reach, 0.0), min(angles[best] + reach, 0.5 * math.pi)
    return depth, max(bound * _BOUND_MARGIN, depth) + _UNRESOLVED * bounding_sphere(parameters)[1]


def _heights(e2: float) -> Array:
    """Heights s in (−1, 1), even along the meridian and crowded at the equator, where dents of e2 < 1 may be narrow."""
    even = [arc_point(angle, e2)[1] for angle in np.linspace(-0.5 * np.pi, 0.5 * np.pi, _HEIGHTS)]
    fine = np.geomspace(1e-9, 0.1, _HEIGHTS // 4)
    return np.unique(np.concatenate([even, fine, -fine]))


@njit(cache=True, nogil=True)
def _chord_points(parameters, heights, angle, points):  # type: ignore[no-untyped-def]
    """Widest gap [m] below the envelope in one direction, and points (P, 3) [m] of the hull along its chord."""
    count = len(heights)
    widths = np.empty(count)
    for i in range(count):
        widths[i] = _section_support(parameters, heights[i], angle)[0]
    # Upper hull of the points (s, k), from left to right.
    hull = np.empty(count, dtype=np.int64)
    size = 0
    for i in range(count):
        while size >= 2:
            a, b = hull[size - 2], hull[size - 1]
            turn = (heights[b] - heights[a]) * (widths[i] - widths[a]) - (widths[b] - widths[a]) * (
                heights[i] - heights[a]
            )
            if turn < 0.0:
                break
            size -= 1
        hull[size] = i
        size += 1
    widest, first, last = -1.0, 0, 0
    for k in range(size - 1):
        a, b = hull[k], hull[k + 1]
        for i in range(a + 1, b):
            share = (heights[i] - heights[a]) / (heights[b] - heights[a])
            gap = widths[a] + share * (widths[b] - widths[a]) - widths[i]
            if gap > widest:
                widest, first, last = gap, a, b
    _, x0, y0 = _section_support(parameters, heights[first], angle)
    _, x1, y1 = _section_support(parameters, heights[last], angle)
    for i in range(len(points)):
        share = (i + 1.0) / (len(points) + 1.0)
        points[i, 0], points[i, 1] = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
        points[i, 2] = parameters[2] * (heights[first] + share * (heights[last] - heights[first]))
    # Rounding alone makes shallow dents of a straight or convex profile.
    return widest if widest > 1e-15 * widths.max() else 0.0


@njit(cache=True, nogil=True)
def _section_support(parameters, s, angle):  # type: ignore[no-untyped-def]
    """Support value [m] of a section in the direction `angle` of its plane, and its support point (2 numbers) [m]."""
    e1, e2 = parameters[3], parameters[4]
    ring = power(max(1.0 - power(abs(s), 2.0 / e2), 0.0), 0.5 * e2)
    wide, deep = parameters[0] * (1.0 + parameters[5] * s) * ring, parameters[1] * (1.0 + parameters[6] * s) * ring
    along, across = wide * abs(math.cos(angle)), deep * abs(math.sin(angle))
    value = norm_of_two(along, across, 2.0 / (2.0 - e1))
    if value == 0.0:
        return 0.0, 0.0, 0.0
    dual = e1 / (2.0 - e1)
    return value, wide * power(along / value, dual), deep * power(across / value, dual)
