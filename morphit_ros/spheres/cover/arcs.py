"""Proof of cover, step 2: bare arcs of the circles in which two spheres meet (see `cover_certificate`)."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.jit import njit
from morphit_ros.spheres.cover.intervals import add_arc, ray_entry, uncovered_stretches


@njit(cache=True, nogil=True)
def bare_arcs(centers, radii, size, unit):  # type: ignore[no-untyped-def]
    """Arcs of the circles in which two spheres meet that may be outside all other balls.

    Returns:
        middles (A, 3) of the arcs, points (A, 3) farther outside all balls, and whether each arc (A,) is known
        well enough: rounding moves it by less than `unit`.
    """
    count = len(radii)
    points, beyond = np.empty((64, 3)), np.empty((64, 3))
    sure = np.empty(64, dtype=np.bool_)
    used = 0
    starts, ends = np.empty(2 * count + 2), np.empty(2 * count + 2)
    gaps = np.empty((2 * count + 3, 2))
    kept = np.ones(count, dtype=np.bool_)
    # Balls within others add nothing, and equal ones have no circle: leaving balls out is safe.
    for i in range(count):
        kept[i] = radii[i] > 0.0
        for j in range(count):
            if j != i and kept[i] and kept[j]:
                distance = 0.0
                for axis in range(3):
                    distance += (centers[i, axis] - centers[j, axis]) ** 2
                if math.sqrt(distance) + radii[i] <= radii[j] + 0.1 * unit:
                    kept[i] = False
    near = np.empty(count, dtype=np.int64)
    alone = kept.copy()
    axis_x, axis_y, normal, middle = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for i in range(count):
        if not kept[i]:
            continue
        close = 0
        for k in range(count):
            if k != i and kept[k]:
                squared = 0.0
                for axis in range(3):
                    squared += (centers[i, axis] - centers[k, axis]) ** 2
                if squared <= (radii[i] + radii[k] + 1e-3 * unit) ** 2:
                    near[close] = k
                    close += 1
        for n in range(close):
            j = near[n]
            if j < i:
                continue
            distance = 0.0
            for axis in range(3):
                normal[axis] = centers[j, axis] - centers[i, axis]
                distance += normal[axis] * normal[axis]
            distance = math.sqrt(distance)
            along = 0.5 * (distance + (radii[i] - radii[j]) * (radii[i] + radii[j]) / distance)
            squared = (radii[i] - along) * (radii[i] + along)
            # What rounding does to the circle's place and radius.
            shift = 1e-15 * size * size / distance + 1e-15 * size
            doubt = 4.0 * size * shift
            if squared <= -doubt:
                continue
            alone[i] = alone[j] = False
            radius = math.sqrt(max(squared, 0.0))
            error = shift + (doubt / radius if squared > doubt else math.sqrt(2.0 * doubt))
            for axis in range(3):
                normal[axis] /= distance
                middle[axis] = centers[i, axis] + along * normal[axis]
            _fill_basis(normal, axis_x, axis_y)
            intervals = 0
            for m in range(close):
                k = near[m]
                inner = radii[k] - 1e-2 * unit - 2.0 * error
                if k == j or inner <= 0.0:
                    continue
                squared, x, y = radius * radius - inner * inner, 0.0, 0.0
                for axis in range(3):
                    offset = middle[axis] - centers[k, axis]
                    squared += offset * offset
                    x -= 2.0 * radius * offset * axis_x[axis]
                    y -= 2.0 * radius * offset * axis_y[axis]
                intervals = add_arc(x, y, squared, starts, ends, intervals)
                if intervals < 0:
                    break
            if intervals < 0:
                continue
            for g in range(uncovered_stretches(starts, ends, intervals, -math.pi, math.pi, gaps)):
                if used == len(points):
                    points, beyond, sure = _doubled(points), _doubled(beyond), np.concatenate((sure, sure))
                angle = 0.5 * (gaps[g, 0] + gaps[g, 1])
                for axis in range(3):
                    normal[axis] = math.cos(angle) * axis_x[axis] + math.sin(angle) * axis_y[axis]
                    points[used, axis] = middle[axis] + radius * normal[axis]
                # Halfway along the ray away from both balls to the next: outside for sure if anything is.
                reach = np.inf
                for m in range(close):
                    k = near[m]
                    if k != j:
                        x, squared = 0.0, -radii[k] * radii[k]
                        for axis in range(3):
                            offset = points[used, axis] - centers[k, axis]
                            x += offset * normal[axis]
                            squared += offset * offset
                        reach = min(reach, ray_entry(x, squared))
                if reach == np.inf:
                    reach = 8.0 * unit
                for axis in range(3):
                    beyond[used, axis] = points[used, axis] + 0.5 * reach * normal[axis]
                sure[used] = 2.0 * error + 1e-2 * unit < unit
                used += 1
    # The whole surface of a ball that meets no other has no arc.
    for i in range(count):
        if alone[i]:
            if used == len(points):
                points, beyond, sure = _doubled(points), _doubled(beyond), np.concatenate((sure, sure))
            points[used] = centers[i]
            points[used, 0] += radii[i]
            beyond[used] = points[used]
            beyond[used, 0] += 4.0 * unit
            sure[used] = True
            used += 1
    return points[:used], beyond[:used], sure[:used]


@njit(cache=True, nogil=True)
def _doubled(rows):  # type: ignore[no-untyped-def]
    """Space for twice as many rows."""
    return np.concatenate((rows, rows))


@njit(cache=True, nogil=True)
def _fill_basis(normal, axis_x, axis_y):  # type: ignore[no-untyped-def]
    """Two unit vectors that are perpendicular to a unit vector and to each other."""
    least = 0
    for axis in range(1, 3):
        if abs(normal[axis]) < abs(normal[least]):
            least = axis
    length = 0.0
    for axis in range(3):
        axis_x[axis] = (1.0 if axis == least else 0.0) - normal[least] * normal[axis]
        length += axis_x[axis] * axis_x[axis]
    length = math.sqrt(length)
    for axis in range(3):
        axis_x[axis] /= length
    axis_y[0] = normal[1] * axis_x[2] - normal[2] * axis_x[1]
    axis_y[1] = normal[2] * axis_x[0] - normal[0] * axis_x[2]
    axis_y[2] = normal[0] * axis_x[1] - normal[1] * axis_x[0]
