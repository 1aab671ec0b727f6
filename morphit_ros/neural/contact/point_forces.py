"""Force of each point of a body against a shape, and its derivatives: the corrected form, compiled.

At a point of weight w [kg], gap z, normal n and relative velocity u, with u_n = n · u and u_t the rest:

    N = w σ(−(z + h u_n)/ε) I_s (1 − (I_d/I_s) u_n)₊        F = N n − N (μ/√(u_t² + v_s²) + c) u_t

The overlap is linearly implicit in the velocity: no step is too long for the spring. No point pulls: the bracket is a
smooth maximum with zero. Wrenches are about the body's centre of mass; derivatives are with respect to the relative
twist (u = v + Ω × r) and to a small motion of the body with the shape held still.
"""

from __future__ import annotations

import math

import numba

from morphit_ros.geometry.transforms import Array

# Beyond this many widths of the indicator a point has no weight. So that nothing jumps, the indicator is multiplied by
# (1 − (e/CUTOFF)⁴)³ outside: 0.94 where a body rests (six widths), 0.6 at nine.
CUTOFF = 16.0
# Half width of the smooth maximum with zero of the bracket, which is 1 at rest.
SOFT = 0.05

# Columns of the parameters of a pair.
FRICTION, SPRING, DAMPER, SLIDING_DRAG, ROLLING_FRICTION, TORSIONAL_FRICTION, WIDTH, SLIP_SPEED = range(8)
COULOMB_SMOOTHING, COULOMB_REGULARIZER, ROLLING_DRAG = 8, 9, 10
# The first six have derivatives; the seventh column of them is for the weights' common scale.
DERIVED = 6


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _overlap(e: float) -> tuple[float, float]:
    """The smooth indicator at e widths and minus its derivative."""
    if e > 0.0:
        tail = math.exp(-e)
        below = 1.0 / (1.0 + tail)
        inside = tail * below
        share = e * e * e * (1.0 / CUTOFF**4)
        taper = 1.0 - share * e
        squared = taper * taper
        return inside * squared * taper, squared * inside * (taper * below + 12.0 * share)
    tail = math.exp(e)
    below = 1.0 / (1.0 + tail)
    return below, tail * below * below


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_force(
    first: int,
    last: int,
    arms: Array,
    normals: Array,
    gaps: Array,
    weights: Array,
    scale: float,
    p: Array,
    step: float,
    twist: Array,
    wrench: Array,
) -> None:
    """Adds the wrench (6,) of contacts first … last − 1 at a relative twist (6,)."""
    friction, drag, slip = p[FRICTION], p[SLIDING_DRAG], p[SLIP_SPEED] * p[SLIP_SPEED]
    per_width, ratio, stiffness = 1.0 / p[WIDTH], p[DAMPER] / p[SPRING], 0.5 * scale * p[SPRING]
    v0, v1, v2, o0, o1, o2 = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    w0, w1, w2, w3, w4, w5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(first, last):
        r0, r1, r2 = arms[i, 0], arms[i, 1], arms[i, 2]
        n0, n1, n2 = normals[i, 0], normals[i, 1], normals[i, 2]
        u0 = v0 + o1 * r2 - o2 * r1
        u1 = v1 + o2 * r0 - o0 * r2
        u2 = v2 + o0 * r1 - o1 * r0
        speed = n0 * u0 + n1 * u1 + n2 * u2
        e = (gaps[i] + step * speed) * per_width
        if e >= CUTOFF:
            continue
        inside, _ = _overlap(e)
        bracket = 1.0 - ratio * speed
        N = stiffness * weights[i] * inside * (bracket + math.sqrt(bracket * bracket + SOFT * SOFT))
        u0 -= n0 * speed
        u1 -= n1 * speed
        u2 -= n2 * speed
        b = N * (friction / math.sqrt(u0 * u0 + u1 * u1 + u2 * u2 + slip) + drag)
        f0, f1, f2 = N * n0 - b * u0, N * n1 - b * u1, N * n2 - b * u2
        w0 += f0
        w1 += f1
        w2 += f2
        w3 += r1 * f2 - r2 * f1
        w4 += r2 * f0 - r0 * f2
        w5 += r0 * f1 - r1 * f0
    wrench[0] += w0
    wrench[1] += w1
    wrench[2] += w2
    wrench[3] += w3
    wrench[4] += w4
    wrench[5] += w5


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_force_and_slope(
    first: int,
    last: int,
    arms: Array,
    normals: Array,
    gaps: Array,
    weights: Array,
    scale: float,
    p: Array,
    step: float,
    twist: Array,
    wrench: Array,
    by_twist: Array,
) -> None:
    """`add_force`, and adds the wrench's derivative by the twist to by_twist (6, 6)."""
    friction, drag, slip = p[FRICTION], p[SLIDING_DRAG], p[SLIP_SPEED] * p[SLIP_SPEED]
    per_width, ratio, stiffness = 1.0 / p[WIDTH], p[DAMPER] / p[SPRING], 0.5 * scale * p[SPRING]
    v0, v1, v2, o0, o1, o2 = twist[0], twist[1], twist[2], twist[3], twist[4], twist[5]
    w0, w1, w2, w3, w4, w5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(first, last):
        r0, r1, r2 = arms[i, 0], arms[i, 1], arms[i, 2]
        n0, n1, n2 = normals[i, 0], normals[i, 1], normals[i, 2]
        u0 = v0 + o1 * r2 - o2 * r1
        u1 = v1 + o2 * r0 - o0 * r2
        u2 = v2 + o0 * r1 - o1 * r0
        speed = n0 * u0 + n1 * u1 + n2 * u2
        e = (gaps[i] + step * speed) * per_width
        if e >= CUTOFF:
            continue
        inside, slope = _overlap(e)
        bracket = 1.0 - ratio * speed
        root = math.sqrt(bracket * bracket + SOFT * SOFT)
        size = stiffness * weights[i] * (bracket + root)
        N = size * inside
        by_speed = -size * slope * step * per_width - N * ratio / root
        u0 -= n0 * speed
        u1 -= n1 * speed
        u2 -= n2 * speed
        squared = u0 * u0 + u1 * u1 + u2 * u2 + slip
        rate = friction / math.sqrt(squared)
        b = rate + drag
        d0, d1, d2 = n0 - b * u0, n1 - b * u1, n2 - b * u2
        f0, f1, f2 = N * d0, N * d1, N * d2
        w0 += f0
        w1 += f1
        w2 += f2
        w3 += r1 * f2 - r2 * f1
        w4 += r2 * f0 - r0 * f2
        w5 += r0 * f1 - r1 * f0
        # G = d nᵀ ∂N/∂u_n − N (b (1 − n nᵀ) − (rate/(u_t² + v_s²)) u_t u_tᵀ)
        k = N * rate / squared
        Nb = N * b
        h0, h1, h2 = by_speed * d0 + Nb * n0, by_speed * d1 + Nb * n1, by_speed * d2 + Nb * n2
        k0, k1, k2 = k * u0, k * u1, k * u2
        add_blocks(
            by_twist, r0, r1, r2,
            h0 * n0 + k0 * u0 - Nb, h0 * n1 + k0 * u1, h0 * n2 + k0 * u2,
            h1 * n0 + k1 * u0, h1 * n1 + k1 * u1 - Nb, h1 * n2 + k1 * u2,
            h2 * n0 + k2 * u0, h2 * n1 + k2 * u1, h2 * n2 + k2 * u2 - Nb,
        )  # fmt: skip
    wrench[0] += w0
    wrench[1] += w1
    wrench[2] += w2
    wrench[3] += w3
    wrench[4] += w4
    wrench[5] += w5


@numba.njit(cache=True, nogil=True, error_model="numpy")
def add_blocks(
    out: Array,
    r0: float,
    r1: float,
    r2: float,
    g00: float,
    g01: float,
    g02: float,
    g10: float,
    g11: float,
    g12: float,
    g20: float,
    g21: float,
    g22: float,
) -> None:
    """Adds [G, −G[r]; [r]G, −[r]G[r]] to out (6, 6): a force G (a + b × r) at arm r, by (a, b)."""
    c00, c01, c02 = r1 * g02 - r2 * g01, r2 * g00 - r0 * g02, r0 * g01 - r1 * g00
    c10, c11, c12 = r1 * g12 - r2 * g11, r2 * g10 - r0 * g12, r0 * g11 - r1 * g10
    c20, c21, c22 = r1 * g22 - r2 * g21, r2 * g20 - r0 * g22, r0 * g21 - r1 * g20
    out[0, 0] += g00
    out[0, 1] += g01
    out[0, 2] += g02
    out[0, 3] += c00
    out[0, 4] += c01
    out[0, 5] += c02
    out[1, 0] += g10
    out[1, 1] += g11
    out[1, 2] += g12
    out[1, 3] += c10
    out[1, 4] += c11
    out[1, 5] += c12
    out[2, 0] += g20
    out[2, 1] += g21
    out[2, 2] += g22
    out[2, 3] += c20
    out[2, 4] += c21
    out[2, 5] += c22
    out[3, 0] += r1 * g20 - r2 * g10
    out[3, 1] += r1 * g21 - r2 * g11
    out[3, 2] += r1 * g22 - r2 * g12
    out[3, 3] += r1 * c20 - r2 * c10
    out[3, 4] += r1 * c21 - r2 * c11
    out[3, 5] += r1 * c22 - r2 * c12
    out[4, 0] += r2 * g00 - r0 * g20
    out[4, 1] += r2 * g01 - r0 * g21
    out[4, 2] += r2 * g02 - r0 * g22
    out[4, 3] += r2 * c00 - r0 * c20
    out[4, 4] += r2 * c01 - r0 * c21
    out[4, 5] += r2 * c02 - r0 * c22
    out[5, 0] += r0 * g10 - r1 * g00
    out[5, 1] += r0 * g11 - r1 * g01
    out[5, 2] += r0 * g12 - r1 * g02
    out[5, 3] += r0 * c10 - r1 * c00
    out[5, 4] += r0 * c11 - r1 * c01
    out[5, 5] += r0 * c12 - r1 * c02


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _add_column(out: Array, column: int, r0: float, r1: float, r2: float, f0: float, f1: float, f2: float) -> None:
    out[0, column] += f0
    out[1, column] += f1
    out[2, column] += f2
    out[3, column] += r1 * f2 - r2 * f1
    out[4, column] += r2 * f0 - r0 * f2
    out[5, column] += r0 * f1 - r1 * f0


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
        inside, slope = _overlap(e)
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
        _add_column(by_parameters, 0, r0, r1, r2, -N * u0 / root, -N * u1 / root, -N * u2 / root)
        _add_column(by_parameters, 1, r0, r1, r2, by_spring * d0, by_spring * d1, by_spring * d2)
        _add_column(by_parameters, 2, r0, r1, r2, by_damper * d0, by_damper * d1, by_damper * d2)
        _add_column(by_parameters, 3, r0, r1, r2, -N * u0, -N * u1, -N * u2)
        _add_column(by_parameters, 6, r0, r1, r2, N * d0 / scale, N * d1 / scale, N * d2 / scale)
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
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
