"""Whether a superovoid is convex, proven; and how far its hull stands off where it isn't.

The section at height s has the support function k(s) = r(s) ‖(a1 fx cos ψ, a2 fy sin ψ)‖_{p'} in the direction ψ of
its plane, with r(s) = (1 − |s|^q)^(1/q), q = 2/e2 and p' = 2/(2 − e1). The solid is convex if and only if k is
concave for every ψ. With gx = Tx/fx, gy = Ty/fy and the share w in [0, 1] of x in the norm (every share belongs to a
ψ, so the semi-axes don't matter), k'' has the sign of

    D(s, w) = 1 − q − 2 s (1 − |s|^q)(w gx + (1 − w) gy) + (p' − 1) w (1 − w) |s|^(2−q) (1 − |s|^q)² (gx − gy)²,

quadratic in w. Bounds of D over intervals of s, halved until they decide, prove D ≤ 0 everywhere or find D > 0. For q
> 2 and Tx ≠ Ty, D grows beyond all bounds at s = 0: such a shape is never convex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.superovoid.shapes.dents import measure_dents
from morphit_ros.superovoid.shapes.kernels import power

# Bounds of D are off by about this share of the interval's length: more halvings than this change nothing.
_DEPTH = 46


@dataclass(frozen=True)
class ConvexityResult:
    """What the convexity test found.

    Attributes:
        convex: true only where it is proven (but for rounding of 1e-14 in the curvature of sections).
        dent_depth: largest distance [m] of a point of the hull from the shape, 0 where it is convex; a numerical
            maximum, good to about a thousandth of itself.
        dent_bound: an upper bound [m] of the same from the sections' support functions: how far distances to the hull
            may fall short of those to the shape.
    """

    convex: bool
    dent_depth: float = 0.0
    dent_bound: float = 0.0


def assess_convexity(parameters: Array) -> ConvexityResult:
    """Test a superovoid (7,), and measure its dents if it isn't convex."""
    if not parameters[5:].any() or is_convex(*parameters[3:].tolist()):
        return ConvexityResult(True)
    depth, bound = measure_dents(parameters)
    return ConvexityResult(False, depth, bound)


@njit(cache=True, nogil=True)
def is_convex(e1, e2, taper_x, taper_y):  # type: ignore[no-untyped-def]
    """Whether the shape of this squareness and tapering is convex, whatever its semi-axes."""
    if taper_x == 0.0 and taper_y == 0.0:
        return True
    if e2 < 1.0 and taper_x != taper_y:
        return False
    stack = np.empty((_DEPTH + 2, 3))
    for side in (1.0, -1.0):
        stack[0, 0], stack[0, 1], stack[0, 2] = 0.0, 1.0, 0.0
        count = 1
        while count > 0:
            count -= 1
            low, high, depth = stack[count, 0], stack[count, 1], stack[count, 2]
            if _largest(e1, e2, side * taper_x, side * taper_y, low, high) <= 0.0:
                continue
            middle = 0.5 * (low + high)
            if depth >= _DEPTH or _largest(e1, e2, side * taper_x, side * taper_y, middle, middle) > 1e-14:
                return False
            stack[count, 0], stack[count, 1], stack[count, 2] = middle, high, depth + 1.0
            stack[count + 1, 0], stack[count + 1, 1], stack[count + 1, 2] = low, middle, depth + 1.0
            count += 2
    return True


@njit(cache=True, nogil=True)
def _largest(e1, e2, taper_x, taper_y, low, high):  # type: ignore[no-untyped-def]
    """Upper bound of D over w in [0, 1] and s in [low, high], 0 ≤ low; its maximum over w if low = high."""
    q = 2.0 / e2
    # D = 1 − q + w A + (1 − w) B + w (1 − w) C, with the largest A, B and C.
    wx = _growth(taper_x, q, low, high)
    wy = _growth(taper_y, q, low, high)
    bend = 0.0
    if taper_x != taper_y:
        width = (1.0 + min(taper_x * low, taper_x * high)) * (1.0 + min(taper_y * low, taper_y * high))
        spread = (taper_x - taper_y) / width
        rest = (1.0 - power(low, q)) * spread
        bend = e1 / (2.0 - e1) * power(high, 2.0 - q) * rest * rest
    share = 0.0
    if bend > 0.0:
        share = min(max(0.5 * (wx - wy + bend) / bend, 0.0), 1.0)
    elif wx > wy:
        share = 1.0
    return 1.0 - q + share * wx + (1.0 - share) * wy + share * (1.0 - share) * bend


@njit(cache=True, nogil=True)
def _growth(taper, q, low, high):  # type: ignore[no-untyped-def]
    """Upper bound of −2 s (1 − s^q) T/(1 + T s) over s in [low, high]: positive only where the shape narrows."""
    if taper >= 0.0:
        return -2.0 * low * (1.0 - power(high, q)) * taper / (1.0 + taper * high)
    return 2.0 * high * (1.0 - power(low, q)) * -taper / (1.0 + taper * high)
