"""Derivatives of the forces by point, by the pose of their body and by the pair's parameters: compiled.

See `point_forces` for the force and its symbols.
"""

from __future__ import annotations

import math

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner
from morphit_ros.neural.contact.point_forces import (
    CUTOFF,
    DAMPER,
    FRICTION,
    SLIDING_DRAG,
    SLIP_SPEED,
    SOFT,
    SPRING,
    WIDTH,
    point_overlap,
)


@inner
def _add_columns(
    out: Array,
    r0: float,
    r1: float,
    r2: float,
    u0: float,
    u1: float,
    u2: float,
    d0: float,
    d1: float,
    d2: float,
    drag: float,
    friction: float,
    spring: float,
    damper: float,
    scale: float,
) -> None:
    """Adds the wrench by the parameters to out (6, 7): multiples of the slip u and of the force's direction d."""
    slip = (u0, u1, u2, r1 * u2 - r2 * u1, r2 * u0 - r0 * u2, r0 * u1 - r1 * u0)
    push = (d0, d1, d2, r1 * d2 - r2 * d1, r2 * d0 - r0 * d2, r0 * d1 - r1 * d0)
    for i in range(6):
        out[i, 0] -= friction * slip[i]
        out[i, 1] += spring * push[i]
        out[i, 2] += damper * push[i]
        out[i, 3] -= drag * slip[i]
        out[i, 6] += scale * push[i]


@inner
def add_sensitivity(
    first: int,
    last: int,
    arms: Array,
    normals: Array,
    gaps: Array,
    steepness: Array,
    curvatures: Array,
    weights: Array,
    scale: float,
    p: Array,
    step: float,
    twist: Array,
    by_pose: Array,
    by_parameters: Array,
) -> None:
    """Adds the wrench's derivatives by a motion of the body (translation, rotation about its centre of mass, in the
    world; shape and relative twist held) to by_pose (6, 6) and by the pair's parameters to by_parameters (6, 7)."""
    friction, drag, slip = p[FRICTION], p[SLIDING_DRAG], p[SLIP_SPEED] * p[SLIP_SPEED]
    spring, ratio, width = p[SPRING], p[DAMPER] / p[SPRING], p[WIDTH]
    v0, v1, v2, o0, o1, o2 = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    for i in range(first, last):
        r0, r1, r2 = arms[i, 0], arms[i, 1], arms[i, 2]
        n0, n1, n2 = normals[i, 0], normals[i, 1], normals[i, 2]
        w0 = v0 + o1 * r2 - o2 * r1
        w1 = v1 + o2 * r0 - o0 * r2
        w2 = v2 + o0 * r1 - o1 * r0
        speed = n0 * w0 + n1 * w1 + n2 * w2
        e = (gaps[i] + step * speed) / width
        if e >= CUTOFF:
            continue
        inside, slope = point_overlap(e)
        bracket = 1.0 - ratio * speed
        soft = math.sqrt(bracket * bracket + SOFT * SOFT)
        damping = 0.5 * (bracket + soft)
        tilt = damping / soft
        weight = scale * weights[i]
        N = weight * spring * inside * damping
        by_gap = -weight * spring * slope * damping / width
        by_speed = step * by_gap - weight * spring * inside * tilt * ratio
        by_spring = weight * inside * (damping + tilt * ratio * speed)
        by_damper = -weight * inside * tilt * speed
        u0, u1, u2 = w0 - n0 * speed, w1 - n1 * speed, w2 - n2 * speed
        root = math.sqrt(u0 * u0 + u1 * u1 + u2 * u2 + slip)
        rate = friction / root
        b = rate + drag
        d0, d1, d2 = n0 - b * u0, n1 - b * u1, n2 - b * u2
        _add_columns(by_parameters, r0, r1, r2, u0, u1, u2, d0, d1, d2, N, N / root, by_spring, by_damper, N / scale)
        k = N * rate / (root * root)
        Nb = N * b
        # Q = d ∂N/∂z nᵀ + ∂F/∂n · curvature, with ∂F/∂n = d ∂N/∂u_n uᵀ + (N + N b u_n) 1 + N b n uᵀ − k u_n u_t u_tᵀ
        z = by_gap * steepness[i]
        C = curvatures[i]
        a0 = by_speed * d0 + Nb * n0
        a1 = by_speed * d1 + Nb * n1
        a2 = by_speed * d2 + Nb * n2
        m = N + Nb * speed
        e = -k * speed
        x0 = w0 * C[0, 0] + w1 * C[1, 0] + w2 * C[2, 0]
        x1 = w0 * C[0, 1] + w1 * C[1, 1] + w2 * C[2, 1]
        x2 = w0 * C[0, 2] + w1 * C[1, 2] + w2 * C[2, 2]
        y0 = e * (u0 * C[0, 0] + u1 * C[1, 0] + u2 * C[2, 0])
        y1 = e * (u0 * C[0, 1] + u1 * C[1, 1] + u2 * C[2, 1])
        y2 = e * (u0 * C[0, 2] + u1 * C[1, 2] + u2 * C[2, 2])
        z0, z1, z2 = z * d0, z * d1, z * d2
        q00 = z0 * n0 + a0 * x0 + m * C[0, 0] + u0 * y0
        q01 = z0 * n1 + a0 * x1 + m * C[0, 1] + u0 * y1
        q02 = z0 * n2 + a0 * x2 + m * C[0, 2] + u0 * y2
        q10 = z1 * n0 + a1 * x0 + m * C[1, 0] + u1 * y0
        q11 = z1 * n1 + a1 * x1 + m * C[1, 1] + u1 * y1
        q12 = z1 * n2 + a1 * x2 + m * C[1, 2] + u1 * y2
        q20 = z2 * n0 + a2 * x0 + m * C[2, 0] + u2 * y0
        q21 = z2 * n1 + a2 * x1 + m * C[2, 1] + u2 * y1
        q22 = z2 * n2 + a2 * x2 + m * C[2, 2] + u2 * y2
        # The arm turns with the body: its velocity changes by Ω × (φ × r). In Q + G [Ω] that is the rotation's part.
        k0, k1, k2 = k * u0, k * u1, k * u2
        g00 = a0 * n0 + k0 * u0 - Nb
        g01 = a0 * n1 + k0 * u1
        g02 = a0 * n2 + k0 * u2
        g10 = a1 * n0 + k1 * u0
        g11 = a1 * n1 + k1 * u1 - Nb
        g12 = a1 * n2 + k1 * u2
        g20 = a2 * n0 + k2 * u0
        g21 = a2 * n1 + k2 * u1
        g22 = a2 * n2 + k2 * u2 - Nb
        s00, s01, s02 = q00 + g01 * o2 - g02 * o1, q01 + g02 * o0 - g00 * o2, q02 + g00 * o1 - g01 * o0
        s10, s11, s12 = q10 + g11 * o2 - g12 * o1, q11 + g12 * o0 - g10 * o2, q12 + g10 * o1 - g11 * o0
        s20, s21, s22 = q20 + g21 * o2 - g22 * o1, q21 + g22 * o0 - g20 * o2, q22 + g20 * o1 - g21 * o0
        f0, f1, f2 = N * d0, N * d1, N * d2
        add_pose_blocks(
            by_pose, r0, r1, r2, f0, f1, f2,
            q00, q01, q02, q10, q11, q12, q20, q21, q22, s00, s01, s02, s10, s11, s12, s20, s21, s22,
        )  # fmt: skip


@inner
def add_pose_blocks(
    out: Array,
    r0: float,
    r1: float,
    r2: float,
    f0: float,
    f1: float,
    f2: float,
    q00: float,
    q01: float,
    q02: float,
    q10: float,
    q11: float,
    q12: float,
    q20: float,
    q21: float,
    q22: float,
    s00: float,
    s01: float,
    s02: float,
    s10: float,
    s11: float,
    s12: float,
    s20: float,
    s21: float,
    s22: float,
) -> None:
    """Adds [Q, −S[r]; [r]Q, −[r]S[r] + [f][r]] to out (6, 6)."""
    c00, c01, c02 = r1 * s02 - r2 * s01, r2 * s00 - r0 * s02, r0 * s01 - r1 * s00
    c10, c11, c12 = r1 * s12 - r2 * s11, r2 * s10 - r0 * s12, r0 * s11 - r1 * s10
    c20, c21, c22 = r1 * s22 - r2 * s21, r2 * s20 - r0 * s22, r0 * s21 - r1 * s20
    out[0, 0] += q00
    out[0, 1] += q01
    out[0, 2] += q02
    out[1, 0] += q10
    out[1, 1] += q11
    out[1, 2] += q12
    out[2, 0] += q20
    out[2, 1] += q21
    out[2, 2] += q22
    out[0, 3] += c00
    out[0, 4] += c01
    out[0, 5] += c02
    out[1, 3] += c10
    out[1, 4] += c11
    out[1, 5] += c12
    out[2, 3] += c20
    out[2, 4] += c21
    out[2, 5] += c22
    out[3, 0] += r1 * q20 - r2 * q10
    out[3, 1] += r1 * q21 - r2 * q11
    out[3, 2] += r1 * q22 - r2 * q12
    out[4, 0] += r2 * q00 - r0 * q20
    out[4, 1] += r2 * q01 - r0 * q21
    out[4, 2] += r2 * q02 - r0 * q22
    out[5, 0] += r0 * q10 - r1 * q00
    out[5, 1] += r0 * q11 - r1 * q01
    out[5, 2] += r0 * q12 - r1 * q02
    # [f][r] = r fᵀ − (f · r) 1
    dot = f0 * r0 + f1 * r1 + f2 * r2
    out[3, 3] += r1 * c20 - r2 * c10 + r0 * f0 - dot
    out[3, 4] += r1 * c21 - r2 * c11 + r0 * f1
    out[3, 5] += r1 * c22 - r2 * c12 + r0 * f2
    out[4, 3] += r2 * c00 - r0 * c20 + r1 * f0
    out[4, 4] += r2 * c01 - r0 * c21 + r1 * f1 - dot
    out[4, 5] += r2 * c02 - r0 * c22 + r1 * f2
    out[5, 3] += r0 * c10 - r1 * c00 + r2 * f0
    out[5, 4] += r0 * c11 - r1 * c01 + r2 * f1
    out[5, 5] += r0 * c12 - r1 * c02 + r2 * f2 - dot
