"""The point of a superovoid's surface that is nearest to a given point, inside or outside.

A point and its nearest surface point lie in the same quadrant (mirroring the latter at x = 0 or y = 0 would only
bring it nearer), so two angles of `arcs` in a rectangle describe all candidates. From inside, and outside of dents,
the distance has several minima: the lowest ones of a grid over the rectangle are refined by Newton's method, damped
so that the distance falls in every step, and the best is taken. Upper and lower half are searched apart, because the
arcs of large squareness stand still at their ends: a step onto an end, or across the equator, could be held there by
a slope of zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.arcs import arc_derivatives, arc_point
from morphit_ros.superovoid.shapes.kernels import level

# Squares and products with coordinates below this cannot overflow [m].
_FARTHEST = 1e100
_CELLS = 24
_STARTS_INSIDE, _STARTS_OUTSIDE = 32, 8
_ITERATIONS = 60
_QUARTER = 0.5 * math.pi
_INSET = 0.02
# No step covers more than this share of the way to the end of an arc.
_APPROACH = 0.95


@dataclass(frozen=True)
class ClosestPoints:
    """Nearest surface points of N query points.

    Attributes:
        points: (N, 3) [m]; where several are equally near, one of them.
        distances: (N,) [m], negative for query points inside.
    """

    points: Array
    distances: Array


def closest_points(parameters: Array, points: ArrayLike) -> ClosestPoints:
    """The surface points of a superovoid (7,) nearest to points (N, 3) [m] in its frame.

    Raises:
        InvalidInputError: points of another shape, not finite or farther than 1e100 m.
    """
    queries = np.ascontiguousarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3:
        raise InvalidInputError("points", f"shape {queries.shape}", "shape (N, 3)")
    if not (np.abs(queries) <= _FARTHEST).all():
        raise InvalidInputError("points", "values that are not finite or too large", f"numbers up to {_FARTHEST:g} m")
    found, distances = np.empty_like(queries), np.empty(len(queries))
    a1, a2, a3, *rest = parameters.tolist()
    if a1 == a2 == a3 and rest == [1.0, 1.0, 0.0, 0.0]:
        _project_on_sphere(a1, queries, found, distances)
    else:
        _find_all(parameters, queries, found, distances)
    return ClosestPoints(found, distances)


@njit(cache=True, nogil=True)
def _project_on_sphere(radius, queries, found, distances):  # type: ignore[no-untyped-def]
    for i in range(len(queries)):
        x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
        length = math.hypot(math.hypot(x, y), z)
        if length == 0.0:
            x, length = 1.0, 1.0
            distances[i] = -radius
        else:
            distances[i] = length - radius
        found[i, 0], found[i, 1], found[i, 2] = x / length * radius, y / length * radius, z / length * radius


@njit(cache=True, nogil=True)
def _find_all(parameters, queries, found, distances):  # type: ignore[no-untyped-def]
    table = np.empty((2, _CELLS, _CELLS, 3))
    for half in range(2):
        for i in range(_CELLS):
            for j in range(_CELLS):
                along = _grid_angle(j) if half == 0 else -_grid_angle(j)
                table[half, i, j] = grid_point(parameters, _grid_angle(i), along)
    values = np.empty((_CELLS, _CELLS))
    tapered = parameters[5] != 0.0 or parameters[6] != 0.0
    for i in range(len(queries)):
        x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
        inside = level(parameters, x, y, z) < 1.0
        starts = _STARTS_INSIDE if inside else _STARTS_OUTSIDE
        best, sx, sy, sz = math.inf, 0.0, 0.0, 0.0
        for half in range(2):
            # Untapered, the other half is the mirror image of the point's own.
            if tapered or (half == 0) == (z >= 0.0):
                side = 1.0 if half == 0 else -1.0
                value, px, py, pz = _nearest(parameters, table[half], side, values, starts, abs(x), abs(y), z)
                if value < best:
                    best, sx, sy, sz = value, px, py, pz
        sx, sy = math.copysign(sx, x), math.copysign(sy, y)
        found[i, 0], found[i, 1], found[i, 2] = sx, sy, sz
        distance = math.hypot(math.hypot(sx - x, sy - y), sz - z)
        distances[i] = -distance if inside else distance


@njit(cache=True, nogil=True)
def _grid_angle(i):  # type: ignore[no-untyped-def]
    return _QUARTER * (i + 0.5) / _CELLS


@njit(cache=True, nogil=True)
def grid_point(parameters, around, along):  # type: ignore[no-untyped-def]
    """Surface point (3 numbers) [m] at the angles of two arcs."""
    c1, s1 = arc_point(around, parameters[3])
    c2, s2 = arc_point(along, parameters[4])
    return (
        parameters[0] * (1.0 + parameters[5] * s2) * c2 * c1,
        parameters[1] * (1.0 + parameters[6] * s2) * c2 * s1,
        parameters[2] * s2,
    )


@njit(cache=True, nogil=True)
def _nearest(parameters, table, side, values, starts, x, y, z):  # type: ignore[no-untyped-def]
    """Objective [m²] and surface point refined from the lowest minima of one half's grid, for x, y ≥ 0."""
    for i in range(_CELLS):
        for j in range(_CELLS):
            sx, sy, sz = table[i, j, 0], table[i, j, 1], table[i, j, 2]
            # Half the squared distance but for a constant that would hide it for far points.
            values[i, j] = sx * (0.5 * sx - x) + sy * (0.5 * sy - y) + sz * (0.5 * sz - z)
    best, bx, by, bz = math.inf, 0.0, 0.0, 0.0
    taken = -math.inf
    for _ in range(starts):
        row, column, lowest = -1, -1, math.inf
        for i in range(_CELLS):
            for j in range(_CELLS):
                if taken < values[i, j] < lowest and _is_minimum(values, i, j):
                    row, column, lowest = i, j, values[i, j]
        if row < 0:
            break
        taken = lowest
        value, _, _, px, py, pz = refine(parameters, _grid_angle(row), _grid_angle(column), side, x, y, z)
        if value < best:
            best, bx, by, bz = value, px, py, pz
    return best, bx, by, bz


@njit(cache=True, nogil=True)
def _is_minimum(values, i, j):  # type: ignore[no-untyped-def]
    """Whether a value is lowest among its neighbours around the axis, or among those along it.

    Both would be too much to ask: on a slender shape, cells are far apart in one direction.
    """
    value = values[i, j]
    around = values[max(i - 1, 0), j] >= value and values[min(i + 1, _CELLS - 1), j] >= value
    along = values[i, max(j - 1, 0)] >= value and values[i, min(j + 1, _CELLS - 1)] >= value
    return around or along


@njit(cache=True, nogil=True)
def refine(parameters, around, along, side, x, y, z):  # type: ignore[no-untyped-def]
    """A local minimum of the distance to (x, y, z), x, y ≥ 0, from two angles in [0, π/2].

    Args:
        parameters: (7,).
        around, along: angles around the axis, and from the equator towards the top (side 1) or the bottom (side −1).
        side: which half to stay in.
        x, y, z: the query point [m].

    Returns:
        half the squared distance [m²], both angles [rad], surface point (3 numbers) [m].
    """
    around = min(max(around, _INSET), _QUARTER - _INSET)
    along = min(max(along, _INSET), _QUARTER - _INSET)
    value = _objective(parameters, around, along, side, x, y, z)
    for _ in range(_ITERATIONS):
        g1, g2, h11, h12, h22, m11, m12, m22 = _derivatives(parameters, around, along, side, x, y, z)
        step1, step2, _ = _newton_step(g1, g2, h11, h12, h22, m11, m12, m22)
        share, moved = 1.0, False
        for _ in range(30):
            next1, next2 = _approached(around, around + share * step1), _approached(along, along + share * step2)
            next_value = _objective(parameters, next1, next2, side, x, y, z)
            if next_value < value:
                moved = True
                break
            share *= 0.35
        if not moved:
            break
        change = abs(next1 - around) + abs(next2 - along)
        around, along, value = next1, next2, next_value
        if change < 1e-13:
            break
    around, along = _polish(parameters, around, along, side, x, y, z)
    value = _objective(parameters, around, along, side, x, y, z)
    # The ends themselves, that steps only approach: poles and planes of symmetry.
    for end1, end2 in ((True, True), (True, False), (False, True)):
        next1 = _snapped(around) if end1 else around
        next2 = _snapped(along) if end2 else along
        next_value = _objective(parameters, next1, next2, side, x, y, z)
        if next_value <= value:
            around, along, value = next1, next2, next_value
    sx, sy, sz = grid_point(parameters, around, side * along)
    return value, around, along, sx, sy, sz


@njit(cache=True, nogil=True)
def _snapped(angle):  # type: ignore[no-untyped-def]
    if angle < _INSET:
        return 0.0
    return _QUARTER if angle > _QUARTER - _INSET else angle


@njit(cache=True, nogil=True)
def _polish(parameters, around, along, side, x, y, z):  # type: ignore[no-untyped-def]
    """Newton steps that lower the slope: near a minimum, the distance itself tells half of the digits only."""
    least = math.inf
    kept1, kept2 = around, along
    for _ in range(6):
        g1, g2, h11, h12, h22, m11, m12, m22 = _derivatives(parameters, around, along, side, x, y, z)
        step1, step2, newton = _newton_step(g1, g2, h11, h12, h22, m11, m12, m22)
        # The slope's length in the metric of the Hessian.
        slope = -(g1 * step1 + g2 * step2)
        if not newton or not slope < least:
            break
        least, kept1, kept2 = slope, around, along
        around, along = _approached(around, around + step1), _approached(along, along + step2)
    return kept1, kept2


@njit(cache=True, nogil=True)
def _objective(parameters, around, along, side, x, y, z):  # type: ignore[no-untyped-def]
    """Half the squared distance [m²] to a surface point."""
    sx, sy, sz = grid_point(parameters, around, side * along)
    return 0.5 * ((sx - x) ** 2 + (sy - y) ** 2 + (sz - z) ** 2)


@njit(cache=True, nogil=True)
def _derivatives(parameters, around, along, side, x, y, z):  # type: ignore[no-untyped-def]
    """Gradient (2), Hessian (3) and metric (3) of the objective by both angles [m²]."""
    a1, a2, a3 = parameters[0], parameters[1], parameters[2]
    taper_x, taper_y = side * parameters[5], side * parameters[6]
    c1, s1, dc1, ds1, ddc1, dds1 = arc_derivatives(around, parameters[3])
    c2, s2, dc2, ds2, ddc2, dds2 = arc_derivatives(along, parameters[4])
    fx, fy = 1.0 + taper_x * s2, 1.0 + taper_y * s2
    # Width of sections and its derivatives along the axis.
    wx, wy = a1 * fx * c2, a2 * fy * c2
    dwx, dwy = a1 * (taper_x * ds2 * c2 + fx * dc2), a2 * (taper_y * ds2 * c2 + fy * dc2)
    ddwx = a1 * (taper_x * (dds2 * c2 + 2.0 * ds2 * dc2) + fx * ddc2)
    ddwy = a2 * (taper_y * (dds2 * c2 + 2.0 * ds2 * dc2) + fy * ddc2)
    rx, ry, rz = wx * c1 - x, wy * s1 - y, a3 * s2 - side * z
    ux, uy = wx * dc1, wy * ds1
    vx, vy, vz = dwx * c1, dwy * s1, a3 * ds2
    m11, m12, m22 = ux * ux + uy * uy, ux * vx + uy * vy, vx * vx + vy * vy + vz * vz
    return (
        rx * ux + ry * uy,
        rx * vx + ry * vy + rz * vz,
        m11 + rx * wx * ddc1 + ry * wy * dds1,
        m12 + rx * dwx * dc1 + ry * dwy * ds1,
        m22 + rx * ddwx * c1 + ry * ddwy * s1 + rz * a3 * dds2,
        m11,
        m12,
        m22,
    )


@njit(cache=True, nogil=True)
def _approached(angle, wanted):  # type: ignore[no-untyped-def]
    """The wanted angle, but in [0, π/2] and not at once at its ends."""
    return min(max(wanted, (1.0 - _APPROACH) * angle), _QUARTER - (1.0 - _APPROACH) * (_QUARTER - angle))


@njit(cache=True, nogil=True)
def _newton_step(g1, g2, h11, h12, h22, m11, m12, m22):  # type: ignore[no-untyped-def]
    """Newton's step and True where the Hessian h is positive definite, otherwise that of the metric m and False."""
    determinant = h11 * h22 - h12 * h12
    if h11 > 0.0 and h22 > 0.0 and determinant > 1e-12 * h11 * h22:
        return (h12 * g2 - h22 * g1) / determinant, (h12 * g1 - h11 * g2) / determinant, True
    # Gauss-Newton: towards the foot in the tangent plane.
    m11, m22 = m11 * 1.0001 + 1e-300, m22 * 1.0001 + 1e-300
    determinant = m11 * m22 - m12 * m12
    if determinant > 0.0:
        return (m12 * g2 - m22 * g1) / determinant, (m12 * g1 - m11 * g2) / determinant, False
    return -g1 / m11, -g2 / m22, False
