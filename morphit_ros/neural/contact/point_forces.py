"""Force of each point of a body against a shape, and its derivatives: the corrected form, compiled.

At a point of weight w [kg], gap z, normal n and relative velocity u, with u_n = n · u and u_t the rest:

    N = w σ(−(z + h u_n)/ε) I_s (1 − (I_d/I_s) u_n)₊        F = N n − N (μ/√(u_t² + v_s²) + c) u_t

The overlap is linearly implicit in the velocity: no step is too long for the spring. No point pulls: the bracket is a
smooth maximum with zero. Wrenches are about the body's centre of mass; derivatives are with respect to the relative
twist (u = v + Ω × r) and to a small motion of the body with the shape held still.
"""

from __future__ import annotations

import math

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact.compilation import inner

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


@inner
def point_overlap(e: float) -> tuple[float, float]:
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


@inner
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
        inside, _ = point_overlap(e)
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


@inner
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
        inside, slope = point_overlap(e)
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


@inner
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
