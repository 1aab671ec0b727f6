"""Contacts of Newton's method from a simplex: the chart of a superovoid, the corner, edge or face of a primitive."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.superovoid.distances.bodies import Pair, RelativePose, turn_to_second, unit
from morphit_ros.superovoid.distances.common_normal import FACE, RIM, SIDE, Contact, chart_contact
from morphit_ros.superovoid.distances.support import CYLINDER, SUPEROVOID, Body, inner

# Which of two bodies. Not Python's True and False, nor 0: kernels are compiled once more for every literal.
FIRST, SECOND = np.False_, np.True_
NO_CORNERS = np.int64(0)
# Barycentric coordinates of a contact that has slid off its feature.
_OFF = -1e-9
# A cylinder is touched on its end where the simplex's middle is so far inside of the rim, as a share of the radius.
_INNER = 0.98


@inner
def _distinct(simplex: NDArray, count: int, column: int, chosen: NDArray) -> int:
    """Rows of a simplex whose points on one body (three columns) differ; at most three."""
    kept = 0
    for i in range(count):
        new = True
        for k in range(kept):
            j = int(chosen[k])
            if (
                simplex[i, column] == simplex[j, column]
                and simplex[i, column + 1] == simplex[j, column + 1]
                and simplex[i, column + 2] == simplex[j, column + 2]
            ):
                new = False
                break
        if new:
            if kept == 3:
                return 4
            chosen[kept] = i
            kept += 1
    return kept


@inner
def _into_second(pose: RelativePose, x: float, y: float, z: float) -> tuple[float, float, float]:
    return turn_to_second(pose, x - pose.x, y - pose.y, z - pose.z)


@inner
def _feature_contact(
    second: bool,
    pose: RelativePose,
    simplex: NDArray,
    count: int,
    chosen: NDArray,
    nx: float,
    ny: float,
    nz: float,
) -> tuple[bool, Contact]:
    """The contact of a primitive on the feature that a simplex's corners span, for the normal n (1 to 2, frame 1).

    False where the corners span no feature. `chosen` (4,) is working space.
    """
    column = 6 if second else 3
    kept = _distinct(simplex, count, column, chosen)
    mx, my, mz = nx, ny, nz
    if second:
        mx, my, mz = turn_to_second(pose, -nx, -ny, -nz)
    none = Contact(0.0, 0.0, 0.0, mx, my, mz, 0.0, 0.0, 0.0, 0)
    if kept > 3:
        return False, none
    i = int(chosen[0])
    ax, ay, az = simplex[i, column], simplex[i, column + 1], simplex[i, column + 2]
    if second:
        ax, ay, az = _into_second(pose, ax, ay, az)
    if kept == 1:
        return True, Contact(ax, ay, az, mx, my, mz, 0.0, 0.0, 0.0, 0)
    i = int(chosen[1])
    bx, by, bz = simplex[i, column], simplex[i, column + 1], simplex[i, column + 2]
    if second:
        bx, by, bz = _into_second(pose, bx, by, bz)
    length, ex, ey, ez = unit(bx - ax, by - ay, bz - az)
    if length == 0.0:
        return False, none
    if kept == 2:
        along = mx * ex + my * ey + mz * ez
        off, mx, my, mz = unit(mx - along * ex, my - along * ey, mz - along * ez)
        if off < 0.1:
            return False, none
        return True, Contact(0.5 * (ax + bx), 0.5 * (ay + by), 0.5 * (az + bz), mx, my, mz, ex, ey, ez, 1)
    i = int(chosen[2])
    cx, cy, cz = simplex[i, column], simplex[i, column + 1], simplex[i, column + 2]
    if second:
        cx, cy, cz = _into_second(pose, cx, cy, cz)
    dx, dy, dz = bx - ax, by - ay, bz - az
    gx, gy, gz = cx - ax, cy - ay, cz - az
    area, fx, fy, fz = unit(dy * gz - dz * gy, dz * gx - dx * gz, dx * gy - dy * gx)
    if area == 0.0:
        return False, none
    if fx * mx + fy * my + fz * mz < 0.0:
        fx, fy, fz = -fx, -fy, -fz
    return True, Contact((ax + bx + cx) / 3.0, (ay + by + cy) / 3.0, (az + bz + cz) / 3.0, fx, fy, fz, fx, fy, fz, 2)


@inner
def _cylinder_contact(
    body: Body, second: bool, pose: RelativePose, simplex: NDArray, count: int, nx: float, ny: float, nz: float
) -> Contact:
    """The contact of a cylinder that a simplex's corners mean, all of which are on its rims.

    On both rims: the side. On one of them, round about: the end. Otherwise the rim.
    """
    column = 6 if second else 3
    x = y = low = high = 0.0
    for i in range(count):
        cx, cy, cz = simplex[i, column], simplex[i, column + 1], simplex[i, column + 2]
        if second:
            cx, cy, cz = _into_second(pose, cx, cy, cz)
        x += cx / count
        y += cy / count
        low, high = (cz, high) if cz < 0.0 else (low, cz)
    mx, my, mz = nx, ny, nz
    if second:
        mx, my, mz = turn_to_second(pose, -nx, -ny, -nz)
    _, c, s, _ = unit(mx, my, 0.0)
    across = math.sqrt(mx * mx + my * my)
    if across < 1e-9:
        _, c, s, _ = unit(x, y, 0.0)
    r, h = body.a1, body.a3
    if low < 0.0 < high:
        if across > 0.7:
            return Contact(r * c, r * s, 0.0, c, s, 0.0, 0.0, 0.0, 0.0, SIDE)
        high = h if mz > 0.0 else 0.0
    up = 1.0 if high > 0.0 else -1.0
    if x * x + y * y < _INNER * r * r:
        return Contact(x, y, up * h, 0.0, 0.0, up, 0.0, 0.0, up, FACE)
    tilt = math.atan2(up * mz, across)
    _, dx, dy, _ = unit(x, y, 0.0)
    return Contact(
        r * dx, r * dy, up * h, math.cos(tilt) * dx, math.cos(tilt) * dy, up * math.sin(tilt), dx, dy, tilt, RIM
    )


@inner
def _contact_from(
    body: Body,
    second: bool,
    pose: RelativePose,
    simplex: NDArray,
    count: int,
    chosen: NDArray,
    vertex: NDArray,
    nx: float,
    ny: float,
    nz: float,
) -> tuple[bool, Contact]:
    """The contact to start Newton's method from: from the last support pair `vertex`, or from the simplex."""
    if body.kind == SUPEROVOID:
        if second:
            return True, chart_contact(vertex[12], vertex[13], vertex[14])
        return True, chart_contact(vertex[9], vertex[10], vertex[11])
    if body.kind == CYLINDER:
        return True, _cylinder_contact(body, second, pose, simplex, count, nx, ny, nz)
    return _feature_contact(second, pose, simplex, count, chosen, nx, ny, nz)


@inner
def _is_on_feature(
    body: Body,
    second: bool,
    pose: RelativePose,
    simplex: NDArray,
    count: int,
    chosen: NDArray,
    px: float,
    py: float,
    pz: float,
) -> bool:
    """Whether a point of the feature's line or plane (frame 1) lies between its corners; superovoids: always."""
    if body.kind == SUPEROVOID:
        return True
    if body.kind == CYLINDER:
        if second:
            px, py, pz = _into_second(pose, px, py, pz)
        slack = 1.0 - _OFF
        return abs(pz) <= slack * body.a3 and px * px + py * py <= slack * slack * body.a1 * body.a1
    column = 6 if second else 3
    kept = _distinct(simplex, count, column, chosen)
    if kept == 1:
        return True
    i, j = int(chosen[0]), int(chosen[1])
    ax, ay, az = simplex[i, column], simplex[i, column + 1], simplex[i, column + 2]
    bx, by, bz = simplex[j, column] - ax, simplex[j, column + 1] - ay, simplex[j, column + 2] - az
    dx, dy, dz = px - ax, py - ay, pz - az
    if kept == 2:
        t = (dx * bx + dy * by + dz * bz) / (bx * bx + by * by + bz * bz)
        return _OFF <= t <= 1.0 - _OFF
    i = int(chosen[2])
    cx, cy, cz = simplex[i, column] - ax, simplex[i, column + 1] - ay, simplex[i, column + 2] - az
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    nn = nx * nx + ny * ny + nz * nz
    v = (dy * cz - dz * cy) * nx + (dz * cx - dx * cz) * ny + (dx * cy - dy * cx) * nz
    w = (by * dz - bz * dy) * nx + (bz * dx - bx * dz) * ny + (bx * dy - by * dx) * nz
    v /= nn
    w /= nn
    return v >= _OFF and w >= _OFF and v + w <= 1.0 - _OFF and math.isfinite(nn)


@inner
def contacts_from(
    pair: Pair, simplex: NDArray, count: int, chosen: NDArray, vertex: NDArray, nx: float, ny: float, nz: float
) -> tuple[bool, Contact, Contact]:
    """The contacts of both bodies to start Newton's method from; False where the simplex spans no feature of one.

    Args:
        simplex: (4, 15) support pairs, the first `count` of which count.
        chosen: (4,) working space.
        vertex: (15,) the last support pair, which gives the charts of superovoids.
        nx, ny, nz: the normal, from 1 to 2.
    """
    ok1, contact1 = _contact_from(pair.body1, FIRST, pair.pose, simplex, count, chosen, vertex, nx, ny, nz)
    ok2, contact2 = _contact_from(pair.body2, SECOND, pair.pose, simplex, count, chosen, vertex, nx, ny, nz)
    return ok1 and ok2, contact1, contact2


@inner
def are_on_features(
    pair: Pair,
    simplex: NDArray,
    count: int,
    chosen: NDArray,
    p: tuple[float, float, float],
    q: tuple[float, float, float],
) -> bool:
    """Whether the points p of body 1 and q of body 2 (frame 1) lie between the corners of a simplex's features."""
    return _is_on_feature(pair.body1, FIRST, pair.pose, simplex, count, chosen, p[0], p[1], p[2]) and _is_on_feature(
        pair.body2, SECOND, pair.pose, simplex, count, chosen, q[0], q[1], q[2]
    )
