"""Support functions of superovoids, and points of their surfaces with normals and their derivatives, as kernels.

A superovoid is a superellipsoid bent by a smooth map, so that everything reduces to two nested plane norms: one of
(ξ1, ξ2) = (x / (a1 fx), y / (a2 fy)) with exponent 2/e1, and one of that norm and s = z / a3 with exponent 2/e2. A
point ξ of the canonical surface and its conjugate ν (the gradient of the norm, ν·ξ = 1) belong together:
ν1 = ξ1^(2/e - 1), or the other way round ξ1 = ν1^(e / (2 - e)).

Neither ξ nor ν alone is a good unknown for a Newton iteration: where e < 1 the surface has flats, and ξ jumps as a
function of ν; where e > 1 it has edges, and ν jumps as a function of ξ. Each norm is therefore followed in the
variable of which both are continuously differentiable functions: in ξ where e < 1, in ν where e > 1. This is the
*chart* u in what follows, a unit vector with one type for its first two components and one for the third.

All kernels take scalars and return tuples; directions need not have unit length unless said otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit

# Contraction to fused multiply-adds cannot introduce NaN or infinity; nothing else of fast mathematics is used.
FAST = {"contract", "arcp", "nsz"}

# Kernels that only kernels call. They get no wrapper for Python, which takes as long to compile as a small kernel:
# calling one of them from Python ends the process.
inner = njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True)
# Likewise, and copied into who calls: for what each step of an iteration calls with dozens of numbers.
inlined = njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath=FAST,
    no_cpython_wrapper=True,
    no_cfunc_wrapper=True,
    forceinline=True,
)

# Kinds of a body: what its parameters mean. All but the first are primitives (primitives.py).
SUPEROVOID = 0
POINT = 1
SEGMENT = 2
BOX = 3
POLYTOPE = 4
HALF_SPACE = 5
CYLINDER = 6

# Chart vectors on the z axis have no direction in the plane; they are given this one.
_POLE = 1e-25
_ROOT_STEPS = 60
# Two peaks that are nearer to each other than this angle [rad] are one.
_SAME_PEAK = 1e-5
# Angle [rad] that ends a search for a peak: the next one would be its square.
_LAST_STEP = 1e-8
# A peak beside the equator may be very near to it.
_AT_EQUATOR = 1e-8
# Steps from a peak to the end of its bracket, on the lookout for a valley.
_VALLEY_STEPS = 5
# Sections in the table of a shape that may have a dent, among which its support point is looked for.
SECTIONS = 25


class Body(NamedTuple):
    """Constants of one body: what kernels need, computed once for each query.

    Attributes:
        kind: SUPEROVOID, POINT, SEGMENT, BOX, POLYTOPE, HALF_SPACE or CYLINDER.
        a1, a2, a3: semi-axes; of a box half its sides; a3 of a segment or
            cylinder half its length, a1 and a2 of a cylinder its radius [m].
        t1, t2: tapering.
        dual1, dual2: exponents of the dual norms, 2 / (2 - e).
        chart1, chart2: exponents of the chart's norms, the greater of 2 / e and 2 / (2 - e), at least 2.
        by_point1, by_point2: whether the chart follows the point (e < 1) or the normal.
        dented: whether the shape may have a dent, so that its support function needs a global search.
        margin: radius of the ball that is swept along the body [m].
        size: largest semi-axis, or half diagonal of a primitive, margin included [m].
    """

    kind: int
    a1: float
    a2: float
    a3: float
    t1: float
    t2: float
    dual1: float
    dual2: float
    chart1: float
    chart2: float
    by_point1: bool
    by_point2: bool
    dented: bool
    margin: float
    size: float


@inner
def make_body(row: NDArray) -> Body:
    """The constants of a packed row (10,): kind, a1, a2, a3, e1, e2, t1, t2, dented, margin."""
    e1, e2 = row[4], row[5]
    return Body(
        int(row[0]),
        row[1],
        row[2],
        row[3],
        row[6],
        row[7],
        2.0 / (2.0 - e1),
        2.0 / (2.0 - e2),
        2.0 / min(e1, 2.0 - e1),
        2.0 / min(e2, 2.0 - e2),
        e1 < 1.0,
        e2 < 1.0,
        row[8] != 0.0,
        row[9],
        max(row[1], max(row[2], row[3])) + row[9],
    )


@inner
def norm_pair(a: float, b: float, p: float) -> tuple[float, float, float, float, float]:
    """Norm N = ‖(a, b)‖_p of two numbers ≥ 0, (a, b) / N, and their powers p - 1, which are its gradient."""
    if p == 2.0:
        n = math.sqrt(a * a + b * b)
        if n == 0.0:
            return 0.0, 0.0, 0.0, 0.0, 0.0
        i = 1.0 / n
        return n, a * i, b * i, a * i, b * i
    low, high = (a, b) if a < b else (b, a)
    if high == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    t = low / high
    if t < 1e-280:
        n, k, small, conjugate, small_conjugate = high, 1.0, 0.0, 1.0, 0.0
    else:
        t1 = math.exp((p - 1.0) * math.log(t))
        w = t * t1
        root = math.exp(math.log(1.0 + w) / p)
        k = 1.0 / root
        n = high * root
        small = t * k
        conjugate = root / (1.0 + w)
        small_conjugate = t1 * conjugate
    if a < b:
        return n, small, k, small_conjugate, conjugate
    return n, k, small, conjugate, small_conjugate


@inner
def norm_pair_derivative(a: float, b: float, p: float) -> tuple[float, float, float, float, float, float, float]:
    """As `norm_pair` for p ≥ 2, and the powers p - 2 of (a, b) / N."""
    if p == 2.0:
        n = math.sqrt(a * a + b * b)
        i = 1.0 / n
        return n, a * i, b * i, a * i, b * i, 1.0, 1.0
    low, high = (a, b) if a < b else (b, a)
    t = low / high
    t2 = math.exp((p - 2.0) * math.log(t)) if t > 1e-280 else 0.0
    t1 = t * t2
    w = t * t1
    root = math.exp(math.log(1.0 + w) / p)
    k = 1.0 / root
    n = high * root
    small = t * k
    conjugate = root / (1.0 + w)
    small_conjugate = t1 * conjugate
    curve = conjugate * root
    small_curve = t2 * curve
    if a < b:
        return n, small, k, small_conjugate, conjugate, small_curve, curve
    return n, k, small, conjugate, small_conjugate, curve, small_curve


@inner
def superovoid_support(
    body: Body, sections: NDArray, nx: float, ny: float, nz: float, hint_c: float, hint_s: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """Support of a superovoid: (h, x, y, z, u1, u2, u3, c), its value, its point, and the point's chart.

    `sections` is the table (SECTIONS, 3) of a shape that may have a dent, ignored for others.
    (c, u3) is the outer pair of the chart; handed in as hint (both 0: no hint), it spares steps where the direction
    has changed little.
    """
    a, b, z = abs(body.a1 * nx), abs(body.a2 * ny), body.a3 * nz
    if body.t1 == 0.0 and body.t2 == 0.0:
        m, g1, g2, x1, x2 = norm_pair(a, b, body.dual1)
        h, c, s, r, q = norm_pair(m, abs(z), body.dual2)
        if z < 0.0:
            q = -q
            s = -s
        if body.by_point2:
            c, s = r, q
    else:
        if hint_c != 0.0 or hint_s != 0.0:
            c, s = hint_c, hint_s
        else:
            m, _, _, _, _ = norm_pair(a, b, body.dual1)
            _, c, s, r, q = norm_pair(m, abs(z), body.dual2)
            if body.by_point2:
                c, s = r, q
            if z < 0.0:
                s = -s
        if body.dented and sections.shape[0] == SECTIONS:
            c, s = _best_section(body, sections, a, b, z, c, s)
        else:
            c, s = _section(body, a, b, z, c, s, 0.0, -1.0, 0.0, 1.0, 0.0)
        r, q = _outer(body, c, s)
        f1, f2 = 1.0 + body.t1 * q, 1.0 + body.t2 * q
        m, g1, g2, x1, x2 = norm_pair(a * f1, b * f2, body.dual1)
        h = r * m + q * z
        x1 *= f1
        x2 *= f2
    px = body.a1 * r * x1
    py = body.a2 * r * x2
    if body.by_point1:
        if body.t1 == 0.0 and body.t2 == 0.0:
            g1, g2 = x1, x2
        else:
            g1, g2 = x1 / f1, x2 / f2
    u1, u2 = c * g1, c * g2
    if nx < 0.0:
        px = -px
        u1 = -u1
    if ny < 0.0:
        py = -py
        u2 = -u2
    return h, px, py, body.a3 * q, u1, u2, s, c


@inner
def chart_hint(body: Body, u1: float, u2: float, u3: float) -> tuple[float, float]:
    """Outer pair of a chart vector, as `superovoid_support` takes it for a hint; 0 where none is needed."""
    if body.t1 == 0.0 and body.t2 == 0.0:
        return 0.0, 0.0
    c, _, _, _, _ = norm_pair(abs(u1), abs(u2), body.chart1)
    return c, u3


@inner
def rough_chart(body: Body, nx: float, ny: float, nz: float) -> tuple[float, float, float]:
    """Chart of a superovoid near its support point along n, to start an iteration from; of any length."""
    a, b, z = abs(body.a1 * nx), abs(body.a2 * ny), body.a3 * nz
    m, g1, g2, x1, x2 = norm_pair(a, b, body.dual1)
    _, c, s, r, q = norm_pair(m, abs(z), body.dual2)
    if body.t1 != 0.0 or body.t2 != 0.0:
        # Once more, with the section there and what the height gains by its growth.
        if z < 0.0:
            q = -q
        f1, f2 = 1.0 + body.t1 * q, 1.0 + body.t2 * q
        m, g1, g2, x1, x2 = norm_pair(a * f1, b * f2, body.dual1)
        z += r * (x1 * a * body.t1 + x2 * b * body.t2)
        _, c, s, r, q = norm_pair(m, abs(z), body.dual2)
        q = abs(q)
    if body.by_point2:
        c, s = r, q
    if body.by_point1:
        g1, g2 = x1, x2
    u1, u2 = c * g1, c * g2
    return -u1 if nx < 0.0 else u1, -u2 if ny < 0.0 else u2, -s if z < 0.0 else s


@inner
def _outer(body: Body, c: float, s: float) -> tuple[float, float]:
    """(r, s) of the section that an outer chart pair (c ≥ 0, s) means."""
    _, r, q, rc, qc = norm_pair(c, abs(s), body.chart2)
    if not body.by_point2:
        r, q = rc, qc
    return r, (-q if s < 0.0 else q)


@inner
def _section(
    body: Body,
    a: float,
    b: float,
    z: float,
    c: float,
    s: float,
    low_c: float,
    low_s: float,
    high_c: float,
    high_s: float,
    narrow: float,
) -> tuple[float, float]:
    """Outer chart pair of the section whose height maximises z s + r(s) m(s), by Newton within a bracket.

    m(s) = ‖(a (1 + t1 s), b (1 + t2 s))‖ in the dual norm. The root is that of νs m - νr (z + r m'), which rises
    through a maximum; pairs are turned as unit vectors, so that no end of the range is singular. A bracket that has
    become as narrow as `narrow` ends the search: what is left of it lies at an end that is known already.
    """
    i = 1.0 / math.sqrt(c * c + s * s)
    c *= i
    s *= i
    t1, t2 = body.t1, body.t2
    same = t1 == t2
    m0 = 0.0
    if same:
        m0, _, _, _, _ = norm_pair(a, b, body.dual1)
    k = body.chart2
    cross = a * b * (t1 - t2) * (t1 - t2) * (body.dual1 - 1.0)
    for _ in range(_ROOT_STEPS):
        n, r, q, rc, qc, rk, qk = norm_pair_derivative(c, abs(s), k)
        # Turning (c, |s|) by a small angle towards |s|.
        dn = (qc * c - rc * abs(s)) / n
        dr = -abs(s) / n - r * dn
        dq = c / n - q * dn
        drc = (k - 1.0) * rk * dr
        dqc = (k - 1.0) * qk * dq
        if not body.by_point2:
            r, q, rc, qc = rc, qc, r, q
            dr, dq, drc, dqc = drc, dqc, dr, dq
        if s < 0.0:
            # Towards s now lowers |s|.
            q, qc = -q, -qc
            dr, drc = -dr, -drc
        if same:
            m = m0 * (1.0 + t1 * q)
            m1 = m0 * t1
            m2 = 0.0
        else:
            f1, f2 = 1.0 + t1 * q, 1.0 + t2 * q
            m, _, _, x1, x2 = norm_pair(a * f1, b * f2, body.dual1)
            m1 = x1 * a * t1 + x2 * b * t2
            m2 = cross * x1 * x2 / (f1 * f2 * m) if m > 0.0 else 0.0
        weight = z + r * m1
        residual = qc * m - rc * weight
        slope = dqc * m + qc * m1 * dq - drc * weight - rc * (dr * m1 + r * m2 * dq)
        if residual < 0.0:
            low_c, low_s = c, s
        else:
            high_c, high_s = c, s
        if residual == 0.0 or (low_c * high_s - low_s * high_c < narrow and low_c * high_c + low_s * high_s > 0.0):
            break
        step = -residual / slope if slope > 0.0 else 2.0
        nc, ns = c - step * s, s + step * c
        if abs(step) < _LAST_STEP:
            # Before the bracket is asked: a step as short as rounding does not stay within it.
            c, s = (nc, ns) if nc > 0.0 else (0.0, math.copysign(1.0, s))
            break
        if not (-0.7 < step < 0.7 and low_c * ns - low_s * nc > 0.0 and nc * high_s - ns * high_c > 0.0 and nc >= 0.0):
            nc, ns = low_c + high_c, low_s + high_s
            if nc * nc + ns * ns < 1e-4:
                nc, ns = 1.0, 0.0
            step = 1.0
        i = 1.0 / math.sqrt(nc * nc + ns * ns)
        nc *= i
        ns *= i
        moved = abs(nc - c) + abs(ns - s)
        c, s = nc, ns
        if moved < 1e-15:
            break
    return c, s


@inner
def _height(body: Body, a: float, b: float, z: float, c: float, s: float) -> float:
    r, q = _outer(body, c, s)
    m, _, _, _, _ = norm_pair(a * (1.0 + body.t1 * q), b * (1.0 + body.t2 * q), body.dual1)
    return r * m + q * z


@inner
def fill_sections(body: Body, sections: NDArray) -> None:
    """The table of a shape that may have a dent: sections at even angles of (r, s) as r, s, and c of the chart pair."""
    for k in range(SECTIONS):
        angle = math.pi * (k / (SECTIONS - 1) - 0.5)
        c, s = max(math.cos(angle), 0.0), abs(math.sin(angle))
        if k == 0 or k == SECTIONS - 1:
            c, s = 0.0, 1.0
        if k == SECTIONS // 2:
            c, s = 1.0, 0.0
        if body.by_point2:
            _, r, q, _, _ = norm_pair(c, s, body.chart2)
        else:
            _, r, q, c, s = norm_pair(c, s, body.chart2 / (body.chart2 - 1.0))
        sections[k, 0] = r
        sections[k, 1] = -q if 2 * k < SECTIONS else q
        sections[k, 2] = c / math.sqrt(c * c + s * s)


@inner
def _node(sections: NDArray, k: int) -> tuple[float, float]:
    """Outer chart pair of a section of the table."""
    c = sections[k, 2]
    s = math.sqrt(max(1.0 - c * c, 0.0))
    return c, (-s if sections[k, 1] < 0.0 else s)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def may_be_dented(parameters: NDArray) -> bool:
    """Whether a superovoid (7,) could have a dent; False only where it is convex.

    The shape is convex where k(s) = r(s) m(s) is concave for every direction in the plane. For Tx = Ty = T that is
    T ≤ (q - 1) 2^(1/q) / q with q = 2 / e2. Otherwise m' / m and m'' / m are bounded over all directions.
    """
    e1, e2, t1, t2 = parameters[3], parameters[4], parameters[5], parameters[6]
    if t1 == 0.0 and t2 == 0.0:
        return False
    q = 2.0 / e2
    if t1 == t2:
        return abs(t1) > (1.0 - 1e-12) * (q - 1.0) * 2.0 ** (1.0 / q) / q
    if q > 2.0:
        # The section's curvature vanishes at the equator, that of the tapering doesn't.
        return True
    bend = 0.25 * (2.0 / (2.0 - e1) - 1.0) * (t1 - t2) * (t1 - t2)
    for k in range(1, 64):
        s = k / 64.0 * (2.0 - k / 64.0)
        w = s**q
        rq = 1.0 - w
        # Each term of k'' over r m s^(q-2) r^(-2q): r'' is -(q - 1), r' is -s r^q.
        for side in range(2):
            f1, f2 = (1.0 + t1 * s, 1.0 + t2 * s) if side else (1.0 - t1 * s, 1.0 - t2 * s)
            slope = max(-t1 / f1, -t2 / f2) if side else max(t1 / f1, t2 / f2)
            curve = bend / (f1 * f1 * f2 * f2) * s ** (2.0 - q) * rq * rq
            if 2.0 * max(slope, 0.0) * s * rq + curve > 0.97 * (q - 1.0):
                return True
    return False


@inner
def _beyond_valley(
    body: Body, a: float, b: float, z: float, known_c: float, known_s: float, end_c: float, end_s: float
) -> tuple[float, float]:
    """Outer chart pair of another peak between a known one and an end; the known one where heights only fall."""
    if abs(known_c * end_s - known_s * end_c) < _SAME_PEAK:
        return known_c, known_s
    last_c, last_s, last = known_c, known_s, math.inf
    for k in range(1, _VALLEY_STEPS + 1):
        share = k / _VALLEY_STEPS
        c, s = known_c + share * (end_c - known_c), known_s + share * (end_s - known_s)
        h = _height(body, a, b, z, c, s)
        if h > last:
            if known_c * end_s - known_s * end_c > 0.0:
                return _section(body, a, b, z, c, s, last_c, last_s, end_c, end_s, _SAME_PEAK)
            return _section(body, a, b, z, c, s, end_c, end_s, last_c, last_s, _SAME_PEAK)
        last_c, last_s, last = c, s, h
    return known_c, known_s


@inner
def _best_section(
    body: Body, sections: NDArray, a: float, b: float, z: float, c: float, s: float
) -> tuple[float, float]:
    """As `_section` for a shape that may have a dent, where there can be several maxima.

    One is followed from the hint (c, s). Of the table's sections those that could belong to a higher one are
    evaluated, by bounds of the dual norm that need no powers, and each peak among them is followed as well.
    """
    best_c, best_s = _section(body, a, b, z, c, s, 0.0, -1.0, 0.0, 1.0, 0.0)
    best = _height(body, a, b, z, best_c, best_s)
    t1, t2 = body.t1, body.t2
    if body.by_point2 and abs(best_s) < 0.4:
        # The dent of e2 < 1 is at the equator, with a peak on either side; from small ones alike far away.
        low_s, high_s = (0.0, 1.0) if best_s < 0.0 else (-1.0, 0.0)
        low_c, high_c = 1.0 - abs(low_s), 1.0 - abs(high_s)
        c, s = _section(body, a, b, z, best_c, -best_s, low_c, low_s, high_c, high_s, _AT_EQUATOR)
        h = _height(body, a, b, z, c, s)
        if h > best:
            best, best_c, best_s = h, c, s
    spread = 2.0 ** (1.0 / body.dual1)
    # A peak between two sections may be so much higher than they are.
    slack = 0.02 * (max(a, b) + abs(z))
    before = -math.inf
    here = -math.inf
    for k in range(SECTIONS + 1):
        after = -math.inf
        if k < SECTIONS:
            r, q = sections[k, 0], sections[k, 1]
            f1, f2 = a * (1.0 + t1 * q), b * (1.0 + t2 * q)
            rest = q * z
            if r * min(f1 + f2, spread * max(f1, f2)) + rest > best - slack:
                m, _, _, _, _ = norm_pair(f1, f2, body.dual1)
                after = r * m + rest
        if here >= before and here >= after and here > best - slack:
            low_c, low_s = _node(sections, max(k - 2, 0))
            high_c, high_s = _node(sections, min(k, SECTIONS - 1))
            known_c, known_s = best_c, best_s
            # The maximum that is known may be the one in this bracket; then look on both sides of it.
            if low_c * known_s - low_s * known_c >= 0.0 and known_c * high_s - known_s * high_c >= 0.0:
                for side in range(2):
                    end_c, end_s = (low_c, low_s) if side == 0 else (high_c, high_s)
                    nc, ns = _beyond_valley(body, a, b, z, known_c, known_s, end_c, end_s)
                    h = _height(body, a, b, z, nc, ns)
                    if h > best:
                        best, best_c, best_s = h, nc, ns
            else:
                nc, ns = low_c + high_c, low_s + high_s
                if nc * nc + ns * ns > 1e-12 and low_c * high_s - low_s * high_c > 1e-9:
                    nc, ns = _section(body, a, b, z, nc, ns, low_c, low_s, high_c, high_s, 0.0)
                    h = _height(body, a, b, z, nc, ns)
                    if h > best:
                        best, best_c, best_s = h, nc, ns
        before, here = here, after
    return best_c, best_s


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def chart_basis(u1: float, u2: float, u3: float) -> tuple[float, float, float, float, float, float]:
    """Two unit vectors that with a unit vector form a right-handed basis (Duff et al. 2017, no branch is singular)."""
    sign = 1.0 if u3 >= 0.0 else -1.0
    a = -1.0 / (sign + u3)
    b = u1 * u2 * a
    return 1.0 + sign * u1 * u1 * a, sign * b, -sign * u1, b, sign + u2 * u2 * a, -u2


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def surface_frame(body: Body, u1: float, u2: float, u3: float) -> tuple[float, ...]:
    """Point (3), unit normal (3), and the derivatives of both along the two vectors of `chart_basis` (4 times 3).

    `u` has unit length. The derivatives are those of the surface of the shape itself, dents included.
    """
    p11, p12, p13, p21, p22, p23 = chart_basis(u1, u2, u3)
    s1 = -1.0 if u1 < 0.0 else 1.0
    s2 = -1.0 if u2 < 0.0 else 1.0
    s3 = -1.0 if u3 < 0.0 else 1.0
    b1, b2, b3 = abs(u1), abs(u2), abs(u3)
    if b1 < _POLE and b2 < _POLE:
        b1 = b2 = _POLE
    # The plane norm: primary pair (g) and conjugate pair (k).
    n, g1, g2, k1, k2, w1, w2 = norm_pair_derivative(b1, b2, body.chart1)
    e = body.chart1 - 1.0
    i = 1.0 / n
    # First tangent, then second.
    d1, d2, d3 = s1 * p11, s2 * p12, s3 * p13
    da_n = k1 * d1 + k2 * d2
    da_g1, da_g2 = (d1 - g1 * da_n) * i, (d2 - g2 * da_n) * i
    da_k1, da_k2 = e * w1 * da_g1, e * w2 * da_g2
    da_3 = d3
    d1, d2, d3 = s1 * p21, s2 * p22, s3 * p23
    db_n = k1 * d1 + k2 * d2
    db_g1, db_g2 = (d1 - g1 * db_n) * i, (d2 - g2 * db_n) * i
    db_k1, db_k2 = e * w1 * db_g1, e * w2 * db_g2
    db_3 = d3
    if not body.by_point1:
        g1, g2, k1, k2 = k1, k2, g1, g2
        da_g1, da_g2, da_k1, da_k2 = da_k1, da_k2, da_g1, da_g2
        db_g1, db_g2, db_k1, db_k2 = db_k1, db_k2, db_g1, db_g2
    # The outer norm: (r, q) of the point, (v, w) of the normal.
    m, r, q, v, w, x1, x2 = norm_pair_derivative(n, b3, body.chart2)
    e = body.chart2 - 1.0
    i = 1.0 / m
    da_m = v * da_n + w * da_3
    da_r, da_q = (da_n - r * da_m) * i, (da_3 - q * da_m) * i
    da_v, da_w = e * x1 * da_r, e * x2 * da_q
    db_m = v * db_n + w * db_3
    db_r, db_q = (db_n - r * db_m) * i, (db_3 - q * db_m) * i
    db_v, db_w = e * x1 * db_r, e * x2 * db_q
    if not body.by_point2:
        r, q, v, w = v, w, r, q
        da_r, da_q, da_v, da_w = da_v, da_w, da_r, da_q
        db_r, db_q, db_v, db_w = db_v, db_w, db_r, db_q
    # Canonical point and normal, with signs.
    x1, x2, x3 = s1 * r * g1, s2 * r * g2, s3 * q
    n1, n2, n3 = s1 * v * k1, s2 * v * k2, s3 * w
    da_x1, da_x2, da_x3 = s1 * (da_r * g1 + r * da_g1), s2 * (da_r * g2 + r * da_g2), s3 * da_q
    da_n1, da_n2, da_n3 = s1 * (da_v * k1 + v * da_k1), s2 * (da_v * k2 + v * da_k2), s3 * da_w
    db_x1, db_x2, db_x3 = s1 * (db_r * g1 + r * db_g1), s2 * (db_r * g2 + r * db_g2), s3 * db_q
    db_n1, db_n2, db_n3 = s1 * (db_v * k1 + v * db_k1), s2 * (db_v * k2 + v * db_k2), s3 * db_w
    # Tapering is a smooth map of space; normals go with its inverse transpose.
    t1, t2 = body.t1, body.t2
    if t1 != 0.0 or t2 != 0.0:
        f1, f2 = 1.0 + t1 * x3, 1.0 + t2 * x3
        i1, i2 = 1.0 / f1, 1.0 / f2
        h1, h2 = t1 * i1, t2 * i2
        c1, c2 = n1 * h1, n2 * h2
        da_n3 -= da_n1 * x1 * h1 + c1 * (da_x1 - x1 * h1 * da_x3) + da_n2 * x2 * h2 + c2 * (da_x2 - x2 * h2 * da_x3)
        db_n3 -= db_n1 * x1 * h1 + c1 * (db_x1 - x1 * h1 * db_x3) + db_n2 * x2 * h2 + c2 * (db_x2 - x2 * h2 * db_x3)
        n3 -= c1 * x1 + c2 * x2
        da_n1 = (da_n1 - c1 * da_x3) * i1
        db_n1 = (db_n1 - c1 * db_x3) * i1
        n1 *= i1
        da_n2 = (da_n2 - c2 * da_x3) * i2
        db_n2 = (db_n2 - c2 * db_x3) * i2
        n2 *= i2
        da_x1 = da_x1 * f1 + x1 * t1 * da_x3
        db_x1 = db_x1 * f1 + x1 * t1 * db_x3
        x1 *= f1
        da_x2 = da_x2 * f2 + x2 * t2 * da_x3
        db_x2 = db_x2 * f2 + x2 * t2 * db_x3
        x2 *= f2
    a1, a2, a3 = body.a1, body.a2, body.a3
    i1, i2, i3 = 1.0 / a1, 1.0 / a2, 1.0 / a3
    n1 *= i1
    n2 *= i2
    n3 *= i3
    i = 1.0 / math.sqrt(n1 * n1 + n2 * n2 + n3 * n3)
    n1 *= i
    n2 *= i
    n3 *= i
    da_n1 *= i * i1
    da_n2 *= i * i2
    da_n3 *= i * i3
    db_n1 *= i * i1
    db_n2 *= i * i2
    db_n3 *= i * i3
    da_m = n1 * da_n1 + n2 * da_n2 + n3 * da_n3
    db_m = n1 * db_n1 + n2 * db_n2 + n3 * db_n3
    return (
        x1 * a1,
        x2 * a2,
        x3 * a3,
        n1,
        n2,
        n3,
        da_x1 * a1,
        da_x2 * a2,
        da_x3 * a3,
        db_x1 * a1,
        db_x2 * a2,
        db_x3 * a3,
        da_n1 - n1 * da_m,
        da_n2 - n2 * da_m,
        da_n3 - n3 * da_m,
        db_n1 - n1 * db_m,
        db_n2 - n2 * db_m,
        db_n3 - n3 * db_m,
    )


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def body_from_parameters(parameters: NDArray, dented: bool) -> Body:
    """The constants of a superovoid from its parameters (7,): a1, a2, a3, e1, e2, Tx, Ty."""
    e1, e2 = parameters[3], parameters[4]
    return Body(
        SUPEROVOID,
        parameters[0],
        parameters[1],
        parameters[2],
        parameters[5],
        parameters[6],
        2.0 / (2.0 - e1),
        2.0 / (2.0 - e2),
        2.0 / min(e1, 2.0 - e1),
        2.0 / min(e2, 2.0 - e2),
        e1 < 1.0,
        e2 < 1.0,
        dented,
        0.0,
        max(parameters[0], max(parameters[1], parameters[2])),
    )


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def support_point(parameters: NDArray, nx: float, ny: float, nz: float) -> tuple[float, float, float, float]:
    """Support value h = max n·x over the shape, and the point that attains it.

    Args:
        parameters: (7,) a1, a2, a3, e1, e2, Tx, Ty of a superovoid; where it isn't convex this is its hull's support.
        nx, ny, nz: direction in the shape's frame, of any length but 0; h scales with it.

    On a flat or along an edge the points that attain h are many, and the middle one is returned.
    """
    body = body_from_parameters(parameters, may_be_dented(parameters))
    sections = np.empty((SECTIONS, 3))
    if body.dented:
        fill_sections(body, sections)
    h, x, y, z, _, _, _, _ = superovoid_support(body, sections, nx, ny, nz, 0.0, 0.0)
    return h, x, y, z


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def support_hessian(parameters: NDArray, nx: float, ny: float, nz: float) -> tuple[float, ...]:
    """Support value, point, and second derivative of h as (xx, xy, xz, yy, yz, zz), for a unit direction.

    The Hessian is that of the shape's own surface at the support point: in the tangent plane its eigenvalues are the
    radii of curvature [m], along n it is 0. Infinite at flats (e < 1), where the result is NaN or inf.
    """
    body = body_from_parameters(parameters, may_be_dented(parameters))
    sections = np.empty((SECTIONS, 3))
    if body.dented:
        fill_sections(body, sections)
    h, x, y, z, u1, u2, u3, _ = superovoid_support(body, sections, nx, ny, nz, 0.0, 0.0)
    i = 1.0 / math.sqrt(u1 * u1 + u2 * u2 + u3 * u3)
    frame = surface_frame(body, u1 * i, u2 * i, u3 * i)
    xa = (frame[6], frame[7], frame[8])
    xb = (frame[9], frame[10], frame[11])
    na = (frame[12], frame[13], frame[14])
    nb = (frame[15], frame[16], frame[17])
    # H maps dn to dx: with the dual basis of (na, nb) in the tangent plane, H = xa naᵈ + xb nbᵈ.
    aa = na[0] * na[0] + na[1] * na[1] + na[2] * na[2]
    ab = na[0] * nb[0] + na[1] * nb[1] + na[2] * nb[2]
    bb = nb[0] * nb[0] + nb[1] * nb[1] + nb[2] * nb[2]
    i = 1.0 / (aa * bb - ab * ab)
    d1 = ((bb * na[0] - ab * nb[0]) * i, (bb * na[1] - ab * nb[1]) * i, (bb * na[2] - ab * nb[2]) * i)
    d2 = ((aa * nb[0] - ab * na[0]) * i, (aa * nb[1] - ab * na[1]) * i, (aa * nb[2] - ab * na[2]) * i)
    return (
        h,
        x,
        y,
        z,
        xa[0] * d1[0] + xb[0] * d2[0],
        0.5 * (xa[0] * d1[1] + xb[0] * d2[1] + xa[1] * d1[0] + xb[1] * d2[0]),
        0.5 * (xa[0] * d1[2] + xb[0] * d2[2] + xa[2] * d1[0] + xb[2] * d2[0]),
        xa[1] * d1[1] + xb[1] * d2[1],
        0.5 * (xa[1] * d1[2] + xb[1] * d2[2] + xa[2] * d1[1] + xb[2] * d2[1]),
        xa[2] * d1[2] + xb[2] * d2[2],
    )
