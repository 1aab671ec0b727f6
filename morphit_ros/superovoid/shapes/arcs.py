"""Superellipse arcs |c|^(2/e) + |s|^(2/e) = 1, parametrised so that equal steps cover the curve evenly for every e.

The usual angle (c = cos^e, s = sin^e) moves by most of a side in a step where e is small, and a polar angle meets an
infinite slope at the corners where e is large. So the usual angle is taken from e = 1 on, and the polar angle below.
A surface point of a superovoid is (a1 fx(s2) c2 c1, a2 fy(s2) c2 s1, a3 s2) with an arc of exponent e1 around the
axis and one of exponent e2 along it.
"""

from __future__ import annotations

import math

from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.kernels import norm_of_two, power, signed_power

# Second derivatives at corners are infinite; this is large enough to say so and small enough to be squared.
_HUGE = 1e60


@njit(cache=True, nogil=True)
def arc_point(angle, exponent):  # type: ignore[no-untyped-def]
    """(c, s) at an angle [rad], in the same quadrant as its cosine and sine."""
    cosine, sine = math.cos(angle), math.sin(angle)
    if exponent >= 1.0:
        return signed_power(cosine, exponent), signed_power(sine, exponent)
    cosine, sine = signed_power(cosine, 1.0), signed_power(sine, 1.0)
    length = norm_of_two(abs(cosine), abs(sine), 2.0 / exponent)
    return cosine / length, sine / length


@njit(cache=True, nogil=True)
def arc_derivatives(angle, exponent):  # type: ignore[no-untyped-def]
    """c, s, their first and their second derivatives by the angle (6 numbers), large numbers for infinite ones."""
    cosine, sine = signed_power(math.cos(angle), 1.0), signed_power(math.sin(angle), 1.0)
    bc, bs = abs(cosine), abs(sine)
    if exponent >= 1.0:
        c, s = power(bc, exponent), power(bs, exponent)
        dc, ds = -exponent * power(bc, exponent - 1.0) * bs, exponent * power(bs, exponent - 1.0) * bc
        ddc = exponent * ((exponent - 1.0) * _bounded_power(bc, exponent - 2.0) * bs * bs - c)
        dds = exponent * ((exponent - 1.0) * _bounded_power(bs, exponent - 2.0) * bc * bc - s)
    else:
        p = 2.0 / exponent
        length = norm_of_two(bc, bs, p)
        # In the first quadrant; N' is the derivative of the norm N by the angle.
        rc, rs = bc / length, bs / length
        pc, ps = power(rc, p - 1.0), power(rs, p - 1.0)
        growth = ps * bc - pc * bs
        c, s = rc, rs
        square = length * length
        dc, ds = -ps / square, pc / square
        ddc = ((p + 1.0) * ps * growth / length - (p - 1.0) * power(rs, p - 2.0) * rc) / square
        dds = -((p + 1.0) * pc * growth / length + (p - 1.0) * power(rc, p - 2.0) * rs) / square
    # Mirrored into the other quadrants: c and s are even and odd in the angle.
    flip_c, flip_s = math.copysign(1.0, cosine), math.copysign(1.0, sine)
    return flip_c * c, flip_s * s, flip_s * dc, flip_c * ds, flip_c * ddc, flip_s * dds


@njit(cache=True, nogil=True)
def _bounded_power(base, exponent):  # type: ignore[no-untyped-def]
    if base == 0.0:
        return 1.0 if exponent == 0.0 else (0.0 if exponent > 0.0 else _HUGE)
    return min(base**exponent, _HUGE)
