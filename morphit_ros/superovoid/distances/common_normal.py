"""The common normal of two bodies by Newton's method on 4 unknowns, in charts that no flat or edge makes singular.

Each body's contact is a point with a normal that belong together, and moves in two directions: over a superovoid's
chart (support.py), or over the feature of a primitive (a corner turns its normal, a face slides its point, an edge
does one of each). At the solution the normals are opposite and the line between the points is along them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy.typing import NDArray

from morphit_ros.superovoid.distances.bodies import RelativePose, to_first, turn_to_first, turn_to_second, unit
from morphit_ros.superovoid.distances.support import SUPEROVOID, Body, chart_basis, inlined, inner, surface_frame

# Features of a contact: corner, edge and face of a polytope; rim and side of a cylinder, whose ends are faces.
CORNER = 0
EDGE = 1
FACE = 2
RIM = 3
SIDE = 4

_LONGEST_STEP = 0.5


class Contact(NamedTuple):
    """Where a body is touched, in its own frame.

    Attributes:
        u1, u2, u3: the chart's unit vector of a superovoid, the point of a primitive [m].
        m1, m2, m3: outward unit normal (primitives).
        f1, f2, f3: direction of the edge or normal of the face; of a rim the radial direction in the plane (2) and the
            normal's angle above it [rad].
        feature: of the primitive: CORNER, EDGE, FACE, RIM or SIDE.
    """

    u1: float
    u2: float
    u3: float
    m1: float
    m2: float
    m3: float
    f1: float
    f2: float
    f3: float
    feature: int


@inner
def chart_contact(u1: float, u2: float, u3: float) -> Contact:
    """The contact of a superovoid at a chart vector of any length."""
    _, u1, u2, u3 = unit(u1, u2, u3)
    return Contact(u1, u2, u3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)


@inner
def contact_frame(body: Body, contact: Contact) -> tuple[float, ...]:
    """As `surface_frame`, for any body."""
    if body.kind == SUPEROVOID:
        return surface_frame(body, contact.u1, contact.u2, contact.u3)
    m1, m2, m3 = contact.m1, contact.m2, contact.m3
    x1, x2, x3 = contact.u1, contact.u2, contact.u3
    f1, f2, f3 = contact.f1, contact.f2, contact.f3
    s = body.size
    if contact.feature == CORNER:
        a1, a2, a3, b1, b2, b3 = chart_basis(m1, m2, m3)
        return x1, x2, x3, m1, m2, m3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, a1, a2, a3, b1, b2, b3
    if contact.feature == EDGE:
        c1, c2, c3 = f2 * m3 - f3 * m2, f3 * m1 - f1 * m3, f1 * m2 - f2 * m1
        return x1, x2, x3, m1, m2, m3, s * f1, s * f2, s * f3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, c1, c2, c3
    if contact.feature == RIM:
        # Round the rim, and up from its plane.
        c, d = math.cos(f3), -math.sin(f3)
        up = c if x3 > 0.0 else -c
        r = body.a1
        return x1, x2, x3, m1, m2, m3, -r * f2, r * f1, 0.0, 0.0, 0.0, 0.0, -c * f2, c * f1, 0.0, d * f1, d * f2, up
    if contact.feature == SIDE:
        # Round the axis, and along it.
        r = body.a1
        return x1, x2, x3, m1, m2, m3, -r * m2, r * m1, 0.0, 0.0, 0.0, s, -m2, m1, 0.0, 0.0, 0.0, 0.0
    a1, a2, a3, b1, b2, b3 = chart_basis(f1, f2, f3)
    return x1, x2, x3, m1, m2, m3, s * a1, s * a2, s * a3, s * b1, s * b2, s * b3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0


@inner
def move_contact(body: Body, contact: Contact, ya: float, yb: float) -> Contact:
    """The contact moved along its two directions."""
    if body.kind == SUPEROVOID:
        u1, u2, u3 = contact.u1, contact.u2, contact.u3
        a1, a2, a3, b1, b2, b3 = chart_basis(u1, u2, u3)
        return chart_contact(u1 + ya * a1 + yb * b1, u2 + ya * a2 + yb * b2, u3 + ya * a3 + yb * b3)
    if contact.feature == RIM:
        _, c, d, _ = unit(contact.f1 - ya * contact.f2, contact.f2 + ya * contact.f1, 0.0)
        tilt = contact.f3 + yb
        rise = math.sin(tilt) if contact.u3 > 0.0 else -math.sin(tilt)
        m1, m2 = math.cos(tilt) * c, math.cos(tilt) * d
        return Contact(body.a1 * c, body.a1 * d, contact.u3, m1, m2, rise, c, d, tilt, RIM)
    if contact.feature == SIDE:
        _, c, d, _ = unit(contact.m1 - ya * contact.m2, contact.m2 + ya * contact.m1, 0.0)
        return Contact(body.a1 * c, body.a1 * d, contact.u3 + body.size * yb, c, d, 0.0, 0.0, 0.0, 0.0, SIDE)
    frame = contact_frame(body, contact)
    _, m1, m2, m3 = unit(
        frame[3] + ya * frame[12] + yb * frame[15],
        frame[4] + ya * frame[13] + yb * frame[16],
        frame[5] + ya * frame[14] + yb * frame[17],
    )
    return Contact(
        frame[0] + ya * frame[6] + yb * frame[9],
        frame[1] + ya * frame[7] + yb * frame[10],
        frame[2] + ya * frame[8] + yb * frame[11],
        m1,
        m2,
        m3,
        contact.f1,
        contact.f2,
        contact.f3,
        contact.feature,
    )


@inner
def solve_4(a: NDArray) -> bool:
    """Solve a linear system of four rows (4, 5) in place, the solution in the last column; False if singular."""
    for r in range(4):
        # Rows have different units; columns scale with the charts.
        s = max(max(abs(a[r, 0]), abs(a[r, 1])), max(abs(a[r, 2]), abs(a[r, 3])))
        if not (s > 1e-300 and s < 1e300):
            return False
        s = 1.0 / s
        for c in range(5):
            a[r, c] *= s
    for k in range(4):
        p = k
        big = abs(a[k, k])
        for r in range(k + 1, 4):
            if abs(a[r, k]) > big:
                big = abs(a[r, k])
                p = r
        if not big > 1e-14:
            return False
        if p != k:
            for c in range(k, 5):
                a[k, c], a[p, c] = a[p, c], a[k, c]
        i = 1.0 / a[k, k]
        for r in range(k + 1, 4):
            f = a[r, k] * i
            if f != 0.0:
                for c in range(k + 1, 5):
                    a[r, c] -= f * a[k, c]
    for k in range(3, -1, -1):
        s = a[k, 4]
        for c in range(k + 1, 4):
            s -= a[k, c] * a[c, 4]
        a[k, 4] = s / a[k, k]
    return True


class Meeting(NamedTuple):
    """A pair of contacts as Newton's method sees it.

    Attributes:
        angle: between normal 1 and the reverse of normal 2 [rad]; 3 where they are too far apart for a step.
        offset: of the points across the common normal [m].
        height: of point 2 over point 1 along the normal [m].
        twice: length of the sum that the mean normal is made of.
        nx, ny, nz: mean normal, from 1 to 2, frame 1.
        p, q: the points in frame 1.
        t, b: two unit vectors across the normal, frame 1.
        et, eb, ot, ob: along these, sum of the normals, and point 2 against point 1 [m].
        frame1, frame2: of the contacts, each in its own frame, as `surface_frame` has them.
    """

    angle: float
    offset: float
    height: float
    twice: float
    nx: float
    ny: float
    nz: float
    p1: float
    p2: float
    p3: float
    q1: float
    q2: float
    q3: float
    t1: float
    t2: float
    t3: float
    b1: float
    b2: float
    b3: float
    et: float
    eb: float
    ot: float
    ob: float
    frame1: tuple[float, ...]
    frame2: tuple[float, ...]


@inlined
def meet(body1: Body, body2: Body, pose: RelativePose, contact1: Contact, contact2: Contact) -> Meeting:
    """How two contacts face each other."""
    f = contact_frame(body1, contact1)
    g = contact_frame(body2, contact2)
    q1, q2, q3 = to_first(pose, g[0], g[1], g[2])
    m1, m2, m3 = turn_to_first(pose, g[3], g[4], g[5])
    d1, d2, d3 = q1 - f[0], q2 - f[1], q3 - f[2]
    twice, n1, n2, n3 = unit(f[3] - m1, f[4] - m2, f[5] - m3)
    t1, t2, t3, b1, b2, b3 = chart_basis(n1, n2, n3)
    height = d1 * n1 + d2 * n2 + d3 * n3
    et, eb = (
        t1 * (f[3] + m1) + t2 * (f[4] + m2) + t3 * (f[5] + m3),
        b1 * (f[3] + m1) + b2 * (f[4] + m2) + b3 * (f[5] + m3),
    )
    ot, ob = t1 * d1 + t2 * d2 + t3 * d3, b1 * d1 + b2 * d2 + b3 * d3
    angle, offset = math.sqrt(et * et + eb * eb), math.sqrt(ot * ot + ob * ob)
    if twice < 0.1:
        angle, offset = 3.0, math.inf
    return Meeting(
        angle,
        offset,
        height,
        twice,
        n1,
        n2,
        n3,
        f[0],
        f[1],
        f[2],
        q1,
        q2,
        q3,
        t1,
        t2,
        t3,
        b1,
        b2,
        b3,
        et,
        eb,
        ot,
        ob,
        f,
        g,
    )


@inlined
def advance(
    body1: Body,
    body2: Body,
    pose: RelativePose,
    contact1: Contact,
    contact2: Contact,
    meeting: Meeting,
    system: NDArray,
) -> tuple[Contact, Contact, bool, float]:
    """One step of Newton's method towards the common normal, from what `meet` saw.

    Returns the contacts after it, and the greatest angle that the step asked for. False where there is none, as the
    system is singular; the contacts are then unchanged. `system` (4, 5) is working space.
    """
    if meeting.twice < 0.1:
        return contact1, contact2, False, math.inf
    f, g = meeting.frame1, meeting.frame2
    t1, t2, t3, b1, b2, b3 = meeting.t1, meeting.t2, meeting.t3, meeting.b1, meeting.b2, meeting.b3
    # Frame 2 sees the same two vectors.
    r1, r2, r3 = turn_to_second(pose, t1, t2, t3)
    s1, s2, s3 = turn_to_second(pose, b1, b2, b3)
    scale = meeting.height / meeting.twice
    system[0, 4] = -meeting.et
    system[1, 4] = -meeting.eb
    system[2, 4] = -meeting.ot
    system[3, 4] = -meeting.ob
    for c in range(2):
        i = 6 + 3 * c
        x1, x2, x3 = f[i], f[i + 1], f[i + 2]
        v1, v2, v3 = f[i + 6], f[i + 7], f[i + 8]
        vt, vb = t1 * v1 + t2 * v2 + t3 * v3, b1 * v1 + b2 * v2 + b3 * v3
        system[0, c] = vt
        system[1, c] = vb
        system[2, c] = -(t1 * x1 + t2 * x2 + t3 * x3) - scale * vt
        system[3, c] = -(b1 * x1 + b2 * x2 + b3 * x3) - scale * vb
        x1, x2, x3 = g[i], g[i + 1], g[i + 2]
        v1, v2, v3 = g[i + 6], g[i + 7], g[i + 8]
        vt, vb = r1 * v1 + r2 * v2 + r3 * v3, s1 * v1 + s2 * v2 + s3 * v3
        system[0, 2 + c] = vt
        system[1, 2 + c] = vb
        system[2, 2 + c] = (r1 * x1 + r2 * x2 + r3 * x3) + scale * vt
        system[3, 2 + c] = (s1 * x1 + s2 * x2 + s3 * x3) + scale * vb
    if not solve_4(system):
        return contact1, contact2, False, math.inf
    ya, yb, za, zb = system[0, 4], system[1, 4], system[2, 4], system[3, 4]
    turn = math.sqrt(max(ya * ya + yb * yb, za * za + zb * zb))
    if not turn < math.inf:
        return contact1, contact2, False, turn
    if turn > _LONGEST_STEP:
        s = _LONGEST_STEP / turn
        ya *= s
        yb *= s
        za *= s
        zb *= s
    return move_contact(body1, contact1, ya, yb), move_contact(body2, contact2, za, zb), True, turn
