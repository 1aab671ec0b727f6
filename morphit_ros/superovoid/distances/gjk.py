"""Nearest points of two bodies by Gilbert, Johnson and Keerthi (1988), on their difference set body 2 - body 1.

Every iterate is a point of the set, so that its length bounds the distance from above; the support point met on the
way bounds it from below. A step never makes the upper bound worse, and gains at least what a Frank-Wolfe step would.
"""

from __future__ import annotations

import math

from numpy.typing import NDArray

from morphit_ros.superovoid.distances.support import inner


@inner
def _segment(simplex: NDArray, weights: NDArray, i: int, j: int) -> float:
    """Squared distance of the origin to an edge; weights of its ends."""
    ax, ay, az = simplex[i, 0], simplex[i, 1], simplex[i, 2]
    dx, dy, dz = simplex[j, 0] - ax, simplex[j, 1] - ay, simplex[j, 2] - az
    dd = dx * dx + dy * dy + dz * dz
    t = -(ax * dx + ay * dy + az * dz) / dd if dd > 0.0 else 0.0
    t = min(max(t, 0.0), 1.0)
    weights[i] = 1.0 - t
    weights[j] = t
    x, y, z = ax + t * dx, ay + t * dy, az + t * dz
    return x * x + y * y + z * z


@inner
def triangle_weights(simplex: NDArray, weights: NDArray, i: int, j: int, k: int) -> float:
    """Squared distance of the origin to a triangle; weights of its corners."""
    # Around the corner nearest to the origin: differences are then as exact as they can be.
    ax, ay, az = simplex[i, 0], simplex[i, 1], simplex[i, 2]
    bx, by, bz = simplex[j, 0] - ax, simplex[j, 1] - ay, simplex[j, 2] - az
    cx, cy, cz = simplex[k, 0] - ax, simplex[k, 1] - ay, simplex[k, 2] - az
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    nn = nx * nx + ny * ny + nz * nz
    if nn > 0.0:
        # Barycentric coordinates of the projected origin.
        v = (-ay * cz + az * cy) * nx + (-az * cx + ax * cz) * ny + (-ax * cy + ay * cx) * nz
        w = (-by * az + bz * ay) * nx + (-bz * ax + bx * az) * ny + (-bx * ay + by * ax) * nz
        v /= nn
        w /= nn
        if v >= 0.0 and w >= 0.0 and v + w <= 1.0:
            weights[i] = 1.0 - v - w
            weights[j] = v
            weights[k] = w
            x, y, z = ax + v * bx + w * cx, ay + v * by + w * cy, az + v * bz + w * cz
            return x * x + y * y + z * z
    best = _segment(simplex, weights, i, j)
    wi, wj, wk = weights[i], weights[j], 0.0
    other = _segment(simplex, weights, i, k)
    if other < best:
        best, wi, wj, wk = other, weights[i], 0.0, weights[k]
    other = _segment(simplex, weights, j, k)
    if other < best:
        best, wi, wj, wk = other, 0.0, weights[j], weights[k]
    weights[i], weights[j], weights[k] = wi, wj, wk
    return best


@inner
def _volume(simplex: NDArray, i: int, j: int, k: int, x: float, y: float, z: float) -> float:
    """Six times the signed volume of a triangle and a point."""
    ax, ay, az = simplex[i, 0] - x, simplex[i, 1] - y, simplex[i, 2] - z
    bx, by, bz = simplex[j, 0] - x, simplex[j, 1] - y, simplex[j, 2] - z
    cx, cy, cz = simplex[k, 0] - x, simplex[k, 1] - y, simplex[k, 2] - z
    return ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)


@inner
def reduce_simplex(simplex: NDArray, count: int, weights: NDArray) -> int:
    """Keep the corners that carry the point nearest to the origin; weights (4,) of them. 5 if the origin is inside.

    Rows of `simplex` (4, 15) beyond the count returned are undefined.
    """
    for i in range(4):
        weights[i] = 0.0
    if count == 1:
        weights[0] = 1.0
        return 1
    if count == 2:
        _segment(simplex, weights, 0, 1)
    elif count == 3:
        triangle_weights(simplex, weights, 0, 1, 2)
    else:
        inside = True
        best = -1.0
        w0, w1, w2, w3 = 0.0, 0.0, 0.0, 0.0
        for face in range(4):
            i, j, k = (face + 1) % 4, (face + 2) % 4, (face + 3) % 4
            apex = _volume(simplex, i, j, k, simplex[face, 0], simplex[face, 1], simplex[face, 2])
            origin = _volume(simplex, i, j, k, 0.0, 0.0, 0.0)
            # A flat tetrahedron has no inside: all its faces are tried.
            if apex != 0.0 and (apex > 0.0) == (origin > 0.0) and origin != 0.0:
                continue
            inside = False
            for r in range(4):
                weights[r] = 0.0
            d = triangle_weights(simplex, weights, i, j, k)
            if best < 0.0 or d < best:
                best = d
                w0, w1, w2, w3 = weights[0], weights[1], weights[2], weights[3]
        if inside:
            return 5
        weights[0], weights[1], weights[2], weights[3] = w0, w1, w2, w3
    kept = 0
    for i in range(count):
        if weights[i] > 0.0:
            if kept != i:
                weights[kept] = weights[i]
                for c in range(simplex.shape[1]):
                    simplex[kept, c] = simplex[i, c]
            kept += 1
    return kept


@inner
def nearest_point(simplex: NDArray, count: int, weights: NDArray, column: int) -> tuple[float, float, float]:
    """The weighted sum of three columns of a simplex: its point nearest to the origin, or that point on a body."""
    x = y = z = 0.0
    for i in range(count):
        x += weights[i] * simplex[i, column]
        y += weights[i] * simplex[i, column + 1]
        z += weights[i] * simplex[i, column + 2]
    return x, y, z


@inner
def is_new(simplex: NDArray, count: int, vertex: NDArray) -> bool:
    """Whether a support point is none of a simplex's corners."""
    for i in range(count):
        if simplex[i, 0] == vertex[0] and simplex[i, 1] == vertex[1] and simplex[i, 2] == vertex[2]:
            return False
    return True


@inner
def length(x: float, y: float, z: float) -> float:
    """Length of a vector."""
    return math.sqrt(x * x + y * y + z * z)
