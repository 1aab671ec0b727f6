"""Derivatives of the forces by point, by the pose of their body and by the pair's parameters: compiled.

See `point_forces` for the force and its symbols.
"""

from __future__ import annotations

import math

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import summand, summing
from morphit_ros.neural.contact.point_forces import (
    ARM,
    DAMPER,
    GAP,
    NO_BLOCKS,
    NORMAL,
    SLIP_SPEED,
    SPRING,
    STEEPNESS,
    WEIGHT,
    Matrix,
    Vector,
    add_blocks,
    cross,
    point_force,
)

_NO_COLUMNS = (0.0,) * 24


@summand
def _add_columns(
    sums: tuple[float, ...], r: Vector, slip: Vector, push: Vector, friction: float, spring: float, damper: float,
    drag: float,
) -> tuple[float, ...]:  # fmt: skip
    """sums (24 by rows of a 4 × 6 matrix) plus the wrench by friction, spring, damper and sliding drag: multiples of
    the slip and of the force's direction."""
    s, u, d = sums, slip, push
    v, e = cross(r, slip), cross(r, push)
    return (
        s[0] - friction * u[0], s[1] - friction * u[1], s[2] - friction * u[2],
        s[3] - friction * v[0], s[4] - friction * v[1], s[5] - friction * v[2],
        s[6] + spring * d[0], s[7] + spring * d[1], s[8] + spring * d[2],
        s[9] + spring * e[0], s[10] + spring * e[1], s[11] + spring * e[2],
        s[12] + damper * d[0], s[13] + damper * d[1], s[14] + damper * d[2],
        s[15] + damper * e[0], s[16] + damper * e[1], s[17] + damper * e[2],
        s[18] - drag * u[0], s[19] - drag * u[1], s[20] - drag * u[2],
        s[21] - drag * v[0], s[22] - drag * v[1], s[23] - drag * v[2],
    )  # fmt: skip


@summand
def _by_motion(
    z: float, d: Vector, n: Vector, a: Vector, x: Vector, m: float, u: Vector, y: Vector, C: Matrix
) -> Matrix:
    """z d nᵀ + a xᵀ + m C + u yᵀ."""
    return (
        (
            z * d[0] * n[0] + a[0] * x[0] + m * C[0][0] + u[0] * y[0],
            z * d[0] * n[1] + a[0] * x[1] + m * C[0][1] + u[0] * y[1],
            z * d[0] * n[2] + a[0] * x[2] + m * C[0][2] + u[0] * y[2],
        ),
        (
            z * d[1] * n[0] + a[1] * x[0] + m * C[1][0] + u[1] * y[0],
            z * d[1] * n[1] + a[1] * x[1] + m * C[1][1] + u[1] * y[1],
            z * d[1] * n[2] + a[1] * x[2] + m * C[1][2] + u[1] * y[2],
        ),
        (
            z * d[2] * n[0] + a[2] * x[0] + m * C[2][0] + u[2] * y[0],
            z * d[2] * n[1] + a[2] * x[1] + m * C[2][1] + u[2] * y[1],
            z * d[2] * n[2] + a[2] * x[2] + m * C[2][2] + u[2] * y[2],
        ),
    )


@summand
def _transposed_times(C: Matrix, a: Vector) -> Vector:
    """Cᵀ a."""
    return (
        C[0][0] * a[0] + C[1][0] * a[1] + C[2][0] * a[2],
        C[0][1] * a[0] + C[1][1] * a[1] + C[2][1] * a[2],
        C[0][2] * a[0] + C[1][2] * a[1] + C[2][2] * a[2],
    )


@summand
def _turned(Q: Vector, G: Vector, o: Vector) -> Vector:
    """A row of Q + G [o]."""
    turn = cross(G, o)
    return Q[0] + turn[0], Q[1] + turn[1], Q[2] + turn[2]


@summing
def fill_sensitivity(
    first: int, last: int, contacts: Array, curvatures: Array, p: Array, step: float, twist: Array, by_pose: Array,
    by_parameters: Array,
) -> None:  # fmt: skip
    """Fills the wrench's derivatives by a motion of the body (translation, rotation about its centre of mass, in the
    world; shape and relative twist held), by_pose (6, 6), and by the pair's parameters, by_parameters (6, 6).

    curvatures (9, N): the derivative of the normal by the point, by rows.
    """
    r0, r1, r2 = contacts[ARM, first:last], contacts[ARM + 1, first:last], contacts[ARM + 2, first:last]
    n0, n1, n2 = contacts[NORMAL, first:last], contacts[NORMAL + 1, first:last], contacts[NORMAL + 2, first:last]
    gaps, steep, weights = contacts[GAP, first:last], contacts[STEEPNESS, first:last], contacts[WEIGHT, first:last]
    xx, xy, xz = curvatures[0, first:last], curvatures[1, first:last], curvatures[2, first:last]
    yx, yy, yz = curvatures[3, first:last], curvatures[4, first:last], curvatures[5, first:last]
    zx, zy, zz = curvatures[6, first:last], curvatures[7, first:last], curvatures[8, first:last]
    o = (twist[3], twist[4], twist[5])
    per_spring, ratio, slow = 1.0 / p[SPRING], p[DAMPER] / p[SPRING], p[SLIP_SPEED] * p[SLIP_SPEED]
    sums, columns = NO_BLOCKS, _NO_COLUMNS
    t0, t1, t2, t3, t4, t5, t6, t7, t8 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(last - first):
        r, n = (r0[i], r1[i], r2[i]), (n0[i], n1[i], n2[i])
        w, u, speed, d, N, by_gap, a, k, Nb, soft, G = point_force(r, n, gaps[i], weights[i], p, step, twist)
        by_damper = -N * speed / soft * per_spring
        by_friction = N / math.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + slow)
        columns = _add_columns(columns, r, u, d, by_friction, N * per_spring - ratio * by_damper, by_damper, N)
        # Q = d ∂N/∂z nᵀ + ∂F/∂n · curvature, with ∂F/∂n = d ∂N/∂u_n uᵀ + (N + N b u_n) 1 + N b n uᵀ − k u_n u_t u_tᵀ
        C = ((xx[i], xy[i], xz[i]), (yx[i], yy[i], yz[i]), (zx[i], zy[i], zz[i]))
        bend = _transposed_times(C, (-k * speed * u[0], -k * speed * u[1], -k * speed * u[2]))
        Q = _by_motion(by_gap * steep[i], d, n, a, _transposed_times(C, w), N + Nb * speed, u, bend, C)
        # The arm turns with the body: its velocity changes by Ω × (φ × r). In Q + G [Ω] that is the rotation's part.
        sums = add_blocks(sums, r, Q, (_turned(Q[0], G[0], o), _turned(Q[1], G[1], o), _turned(Q[2], G[2], o)))
        # And the arm of the force: φ × r × F, [f][r] = r fᵀ − (f · r) 1.
        f = (N * d[0], N * d[1], N * d[2])
        dot = f[0] * r[0] + f[1] * r[1] + f[2] * r[2]
        t0, t1, t2 = t0 + (r[0] * f[0] - dot), t1 + r[0] * f[1], t2 + r[0] * f[2]
        t3, t4, t5 = t3 + r[1] * f[0], t4 + (r[1] * f[1] - dot), t5 + r[1] * f[2]
        t6, t7, t8 = t6 + r[2] * f[0], t7 + r[2] * f[1], t8 + (r[2] * f[2] - dot)
    for i in range(36):
        by_pose[i // 6, i % 6] = sums[i]
    turn = (t0, t1, t2, t3, t4, t5, t6, t7, t8)
    for i in range(9):
        by_pose[3 + i // 3, 3 + i % 3] += turn[i]
    for i in range(24):
        by_parameters[i % 6, i // 6] = columns[i]
    for i in range(6):
        by_parameters[i, 4], by_parameters[i, 5] = 0.0, 0.0
