"""The common normal of two ellipsoids or of one and a point: Newton's method on the unit sphere, without charts.

With M = diag(a²), turned into frame 1 for the second, h(n) = √(n·M n), its point is M n / h, and its second derivative
(M - p pᵀ) / h. The height g(n) = n·c - h1(n) - h2(n) is maximised: where bodies are apart it has one maximum, and in
penetration each maximum is a local optimum of the depth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from morphit_ros.superovoid.distances.bodies import RelativePose, unit
from morphit_ros.superovoid.distances.support import POINT, SUPEROVOID, Body, chart_basis, inner

_STEPS = 30
_LONGEST_STEP = 0.7


class NormalSearch(NamedTuple):
    """Where the search for a maximum of the height ended.

    Attributes:
        height: g(n) [m].
        settled: it is a maximum.
        nx, ny, nz, p, q: unit normal from 1 to 2, and the points it supports, in frame 1.
        steps: made.
    """

    height: float
    settled: bool
    nx: float
    ny: float
    nz: float
    p1: float
    p2: float
    p3: float
    q1: float
    q2: float
    q3: float
    steps: int


@inner
def is_ellipsoid(body: Body) -> bool:
    """Whether a body is an ellipsoid or a point."""
    if body.kind == POINT:
        return True
    return body.kind == SUPEROVOID and body.chart1 == 2.0 and body.chart2 == 2.0 and body.t1 == 0.0 and body.t2 == 0.0


@inner
def search_normal(
    body1: Body, body2: Body, pose: RelativePose, nx: float, ny: float, nz: float, square: float, aim: float
) -> NormalSearch:
    """The direction of greatest height of two ellipsoids, from a unit one.

    It ends where the squared offset of the points is at most `square` of the aim [m] times the height.
    """
    r = pose
    a, b, c = body1.a1 * body1.a1, body1.a2 * body1.a2, body1.a3 * body1.a3
    s1, s2, s3 = body2.a1 * body2.a1, body2.a2 * body2.a2, body2.a3 * body2.a3
    m11 = s1 * r.r11 * r.r11 + s2 * r.r12 * r.r12 + s3 * r.r13 * r.r13
    m12 = s1 * r.r11 * r.r21 + s2 * r.r12 * r.r22 + s3 * r.r13 * r.r23
    m13 = s1 * r.r11 * r.r31 + s2 * r.r12 * r.r32 + s3 * r.r13 * r.r33
    m22 = s1 * r.r21 * r.r21 + s2 * r.r22 * r.r22 + s3 * r.r23 * r.r23
    m23 = s1 * r.r21 * r.r31 + s2 * r.r22 * r.r32 + s3 * r.r23 * r.r33
    m33 = s1 * r.r31 * r.r31 + s2 * r.r32 * r.r32 + s3 * r.r33 * r.r33
    slack = 1e-15 * (max(body1.size, body2.size) + abs(r.x) + abs(r.y) + abs(r.z))
    before = -math.inf
    o1, o2, o3 = nx, ny, nz
    y1 = y2 = y3 = 0.0
    k = 0
    while True:
        k += 1
        p1, p2, p3 = a * nx, b * ny, c * nz
        h1 = math.sqrt(p1 * nx + p2 * ny + p3 * nz)
        i1 = 1.0 / h1 if h1 > 0.0 else 0.0
        p1, p2, p3 = p1 * i1, p2 * i1, p3 * i1
        w1, w2, w3 = (
            m11 * nx + m12 * ny + m13 * nz,
            m12 * nx + m22 * ny + m23 * nz,
            m13 * nx + m23 * ny + m33 * nz,
        )
        h2 = math.sqrt(w1 * nx + w2 * ny + w3 * nz)
        i2 = 1.0 / h2 if h2 > 0.0 else 0.0
        w1, w2, w3 = w1 * i2, w2 * i2, w3 * i2
        q1, q2, q3 = r.x - w1, r.y - w2, r.z - w3
        d1, d2, d3 = q1 - p1, q2 - p2, q3 - p3
        height = d1 * nx + d2 * ny + d3 * nz
        if height < before - slack and k < _STEPS:
            # The step went down: half of it.
            y1, y2, y3 = 0.5 * y1, 0.5 * y2, 0.5 * y3
            _, nx, ny, nz = unit(o1 + y1, o2 + y2, o3 + y3)
            continue
        before = height
        t1, t2, t3, b1, b2, b3 = chart_basis(nx, ny, nz)
        ot, ob = t1 * d1 + t2 * d2 + t3 * d3, b1 * d1 + b2 * d2 + b3 * d3
        offset = ot * ot + ob * ob
        settled = offset <= square * aim * max(aim, abs(height))
        if settled or k == _STEPS:
            return NormalSearch(height, settled, nx, ny, nz, p1, p2, p3, q1, q2, q3, k)
        # Second derivative of the height along the sphere.
        pt, pb = t1 * p1 + t2 * p2 + t3 * p3, b1 * p1 + b2 * p2 + b3 * p3
        wt, wb = t1 * w1 + t2 * w2 + t3 * w3, b1 * w1 + b2 * w2 + b3 * w3
        e1, e2, e3 = m11 * t1 + m12 * t2 + m13 * t3, m12 * t1 + m22 * t2 + m23 * t3, m13 * t1 + m23 * t2 + m33 * t3
        f1, f2, f3 = m11 * b1 + m12 * b2 + m13 * b3, m12 * b1 + m22 * b2 + m23 * b3, m13 * b1 + m23 * b2 + m33 * b3
        tt = (a * t1 * t1 + b * t2 * t2 + c * t3 * t3 - pt * pt) * i1 + (t1 * e1 + t2 * e2 + t3 * e3 - wt * wt) * i2
        tb = (a * t1 * b1 + b * t2 * b2 + c * t3 * b3 - pt * pb) * i1 + (b1 * e1 + b2 * e2 + b3 * e3 - wt * wb) * i2
        bb = (a * b1 * b1 + b * b2 * b2 + c * b3 * b3 - pb * pb) * i1 + (b1 * f1 + b2 * f2 + b3 * f3 - wb * wb) * i2
        tt, bb = tt + height, bb + height
        # In penetration it may rise both ways; then the step is that of a curve bent enough to have a top.
        spread = math.sqrt(0.25 * (tt - bb) * (tt - bb) + tb * tb)
        least = 0.5 * (tt + bb) - spread
        if least <= 1e-9 * (abs(height) + spread):
            lift = 0.1 * (spread + abs(height)) + slack - least
            tt, bb = tt + lift, bb + lift
        i = 1.0 / (tt * bb - tb * tb)
        yt, yb = (bb * ot - tb * ob) * i, (tt * ob - tb * ot) * i
        turn = math.sqrt(yt * yt + yb * yb)
        if turn > _LONGEST_STEP:
            yt *= _LONGEST_STEP / turn
            yb *= _LONGEST_STEP / turn
        y1, y2, y3 = yt * t1 + yb * b1, yt * t2 + yb * b2, yt * t3 + yb * b3
        o1, o2, o3 = nx, ny, nz
        _, nx, ny, nz = unit(nx + y1, ny + y2, nz + y3)
