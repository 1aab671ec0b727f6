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
from morphit_ros.neural.contact.compilation import summand, summing

Vector = tuple[float, float, float]
Matrix = tuple[Vector, Vector, Vector]

# Rows of the contacts, one column each: arm (3) from the centre of mass, normal (3), gap, length of the gap's gradient,
# weight.
ARM, NORMAL, GAP, STEEPNESS, WEIGHT, ROWS = 0, 3, 6, 7, 8, 9

# Beyond this many widths of the indicator a point has no weight. So that nothing jumps, the indicator is multiplied by
# (1 − (e/CUTOFF)⁴)³ outside: 0.94 where a body rests (six widths), 0.6 at nine.
CUTOFF = 16.0
# Half width of the smooth maximum with zero of the bracket, which is 1 at rest.
SOFT = 0.05
# Deeper than this many widths the indicator is one to the last digit.
_DEEP = 40.0

# Columns of the parameters of a pair.
FRICTION, SPRING, DAMPER, SLIDING_DRAG, ROLLING_FRICTION, TORSIONAL_FRICTION, WIDTH, SLIP_SPEED = range(8)
COULOMB_SMOOTHING, COULOMB_REGULARIZER, ROLLING_DRAG, SPIN_SMOOTHING, SPIN_REGULARIZER = 8, 9, 10, 11, 12
# The first six have derivatives.
DERIVED = 6

NO_BLOCKS = (0.0,) * 36


@summand
def point_overlap(e: float) -> tuple[float, float]:
    """The smooth indicator at e widths and minus its derivative."""
    # exp(−|e|) as the 64th power of a polynomial, exact to 1e-14: the library's exponential takes one point at a time.
    x = min(abs(e), _DEEP) * (-1.0 / 64.0)
    series = 1.0 + x * (1.0 / 10.0 + x * (1.0 / 110.0 + x * (1.0 / 1320.0)))
    series = 1.0 + x * (1.0 / 6.0 + x * (1.0 / 42.0 + x * (1.0 / 336.0 + x * (1.0 / 3024.0) * series)))
    tail = 1.0 + x * (1.0 + x * (1.0 / 2.0 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0) * series))))
    for _ in range(6):
        tail *= tail
    below = 1.0 / (1.0 + tail)
    outside = tail * below
    share = e * e * e * (1.0 / CUTOFF**4)
    taper = max(1.0 - share * e, 0.0)
    squared = taper * taper
    if e > 0.0:
        return outside * squared * taper, squared * outside * (taper * below + 12.0 * share)
    return below, outside * below


@summand
def cross(a: Vector, b: Vector) -> Vector:
    """a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@summand
def add_blocks(sums: tuple[float, ...], r: Vector, Q: Matrix, S: Matrix) -> tuple[float, ...]:
    """sums (36, rows of 6) plus [Q, −S[r]; [r]Q, −[r]S[r]]: the wrench of a force Q a + S (b × r) at r by (a, b)."""
    s = sums
    q0, q1, q2 = Q
    c0, c1, c2 = cross(r, S[0]), cross(r, S[1]), cross(r, S[2])
    return (
        s[0] + q0[0], s[1] + q0[1], s[2] + q0[2], s[3] + c0[0], s[4] + c0[1], s[5] + c0[2],
        s[6] + q1[0], s[7] + q1[1], s[8] + q1[2], s[9] + c1[0], s[10] + c1[1], s[11] + c1[2],
        s[12] + q2[0], s[13] + q2[1], s[14] + q2[2], s[15] + c2[0], s[16] + c2[1], s[17] + c2[2],
        s[18] + (r[1] * q2[0] - r[2] * q1[0]), s[19] + (r[1] * q2[1] - r[2] * q1[1]),
        s[20] + (r[1] * q2[2] - r[2] * q1[2]), s[21] + (r[1] * c2[0] - r[2] * c1[0]),
        s[22] + (r[1] * c2[1] - r[2] * c1[1]), s[23] + (r[1] * c2[2] - r[2] * c1[2]),
        s[24] + (r[2] * q0[0] - r[0] * q2[0]), s[25] + (r[2] * q0[1] - r[0] * q2[1]),
        s[26] + (r[2] * q0[2] - r[0] * q2[2]), s[27] + (r[2] * c0[0] - r[0] * c2[0]),
        s[28] + (r[2] * c0[1] - r[0] * c2[1]), s[29] + (r[2] * c0[2] - r[0] * c2[2]),
        s[30] + (r[0] * q1[0] - r[1] * q0[0]), s[31] + (r[0] * q1[1] - r[1] * q0[1]),
        s[32] + (r[0] * q1[2] - r[1] * q0[2]), s[33] + (r[0] * c1[0] - r[1] * c0[0]),
        s[34] + (r[0] * c1[1] - r[1] * c0[1]), s[35] + (r[0] * c1[2] - r[1] * c0[2]),
    )  # fmt: skip


@summand
def point_force(
    r: Vector, n: Vector, z: float, weight: float, p: Array, step: float, twist: Array
) -> tuple[Vector, Vector, float, Vector, float, float, Vector, float, float, float, Matrix]:
    """What the force and its derivatives are made of, at one point.

    Relative velocity, slip u_t, u_n, direction d of the force (F = N d), N, ∂N/∂z, the factor of nᵀ in ∂F/∂u,
    N μ/(u_t² + v_s²)^(3/2), N b with b the rate of friction, the root in the bracket, and ∂F/∂u.
    """
    friction, spring, ratio, per_width = p[FRICTION], p[SPRING], p[DAMPER] / p[SPRING], 1.0 / p[WIDTH]
    turned = cross((twist[3], twist[4], twist[5]), r)
    w0, w1, w2 = twist[0] + turned[0], twist[1] + turned[1], twist[2] + turned[2]
    n0, n1, n2 = n
    speed = n0 * w0 + n1 * w1 + n2 * w2
    inside, slope = point_overlap((z + step * speed) * per_width)
    bracket = 1.0 - ratio * speed
    soft = math.sqrt(bracket * bracket + SOFT * SOFT)
    most = 0.5 * weight * spring * (bracket + soft)
    N = most * inside
    by_gap = -most * slope * per_width
    by_speed = step * by_gap - N * ratio / soft
    u0, u1, u2 = w0 - n0 * speed, w1 - n1 * speed, w2 - n2 * speed
    squared = u0 * u0 + u1 * u1 + u2 * u2 + p[SLIP_SPEED] * p[SLIP_SPEED]
    rate = friction / math.sqrt(squared)
    b = rate + p[SLIDING_DRAG]
    d0, d1, d2 = n0 - b * u0, n1 - b * u1, n2 - b * u2
    Nb = N * b
    a0, a1, a2 = by_speed * d0 + Nb * n0, by_speed * d1 + Nb * n1, by_speed * d2 + Nb * n2
    k = N * rate / squared
    k0, k1, k2 = k * u0, k * u1, k * u2
    # ∂F/∂u = d nᵀ ∂N/∂u_n − N (b (1 − n nᵀ) − (rate/(u_t² + v_s²)) u_t u_tᵀ)
    by_velocity = (
        (a0 * n0 + k0 * u0 - Nb, a0 * n1 + k0 * u1, a0 * n2 + k0 * u2),
        (a1 * n0 + k1 * u0, a1 * n1 + k1 * u1 - Nb, a1 * n2 + k1 * u2),
        (a2 * n0 + k2 * u0, a2 * n1 + k2 * u1, a2 * n2 + k2 * u2 - Nb),
    )
    return (w0, w1, w2), (u0, u1, u2), speed, (d0, d1, d2), N, by_gap, (a0, a1, a2), k, Nb, soft, by_velocity


@summing
def fill_force(
    first: int, last: int, contacts: Array, p: Array, step: float, twist: Array, wrench: Array, by_twist: Array
) -> None:
    """Fills the wrench (6,) of contacts first … last − 1 at a relative twist (6,), and its derivative (6, 6) by it."""
    # Slices, as only an index from zero is known not to be negative.
    r0, r1, r2 = contacts[ARM, first:last], contacts[ARM + 1, first:last], contacts[ARM + 2, first:last]
    n0, n1, n2 = contacts[NORMAL, first:last], contacts[NORMAL + 1, first:last], contacts[NORMAL + 2, first:last]
    gaps, weights = contacts[GAP, first:last], contacts[WEIGHT, first:last]
    f0, f1, f2, t0, t1, t2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    sums = NO_BLOCKS
    for i in range(last - first):
        r = (r0[i], r1[i], r2[i])
        _, _, _, d, N, _, _, _, _, _, G = point_force(
            r, (n0[i], n1[i], n2[i]), gaps[i], weights[i], p, step, twist
        )  # fmt: skip
        turn = cross(r, d)
        f0 += N * d[0]
        f1 += N * d[1]
        f2 += N * d[2]
        t0 += N * turn[0]
        t1 += N * turn[1]
        t2 += N * turn[2]
        sums = add_blocks(sums, r, G, G)
    wrench[0], wrench[1], wrench[2], wrench[3], wrench[4], wrench[5] = f0, f1, f2, t0, t1, t2
    for i in range(36):
        by_twist[i // 6, i % 6] = sums[i]
