"""Penetration depth by an expanding polytope (van den Bergen 2001) inside the difference set body 2 - body 1.

The polytope's nearest face bounds the depth from below, every direction's support height bounds it from above, and a
Newton iteration started from each direction that improves on what is known brings the upper bound down to a local
optimum. The search ends when both bounds meet: then no other local optimum is better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.superovoid.distances.bodies import Pair, pair_support, pair_support_near, unit
from morphit_ros.superovoid.distances.common_normal import advance, meet
from morphit_ros.superovoid.distances.features import are_on_features, contacts_from
from morphit_ros.superovoid.distances.gjk import is_new, nearest_point, triangle_weights
from morphit_ros.superovoid.distances.support import inner

# Corners of a polytope, and of a second one where the first did not close the gap; that begins with so many spread out.
_VERTICES = 384
_MANY_VERTICES = 3000
_SPREAD = 60
_NEWTON_STEPS = 10
_NEWTON_STARTS = 24


class Depth(NamedTuple):
    """Result of a search.

    Attributes:
        depth: least height of the difference set that was found, an upper bound of the penetration depth [m].
        proven: lower bound of the depth [m]; -1 where no polytope could be built.
        supports: pairs of support points evaluated.
        steps: Newton steps.
    """

    depth: float
    proven: float
    supports: int
    steps: int


class Polytope(NamedTuple):
    """A polytope inside the difference set, and working space for its growth.

    Attributes:
        points: (V, 15) support pairs: the corners, in the order in which they came.
        corners: (2 V, 3) of the faces, as rows of `points`.
        planes: (2 V, 4) of the faces: outward unit normal, and height above the origin [m].
        edges: (2 V, 2) rim of the faces that a new corner sees.
        face, chosen, candidate: (3, 15), (4,) and (15,) for `_follow`: the face that it starts from, and the optimum
            as `best` of `penetration_depth` has it.
        cx, cy, cz: a point inside of it.
        above: how far above a face's plane a corner sees the face [m].
    """

    points: NDArray
    corners: NDArray
    planes: NDArray
    edges: NDArray
    face: NDArray
    chosen: NDArray
    candidate: NDArray
    cx: float
    cy: float
    cz: float
    above: float


@inner
def _polytope(points: NDArray, above: float) -> Polytope:
    """A polytope without faces around the middle of its first four corners."""
    return Polytope(
        points,
        np.empty((2 * len(points), 3), dtype=np.int64),
        np.empty((2 * len(points), 4)),
        np.empty((2 * len(points), 2), dtype=np.int64),
        np.empty((3, 15)),
        np.empty(4),
        np.empty(15),
        0.25 * (points[0, 0] + points[1, 0] + points[2, 0] + points[3, 0]),
        0.25 * (points[0, 1] + points[1, 1] + points[2, 1] + points[3, 1]),
        0.25 * (points[0, 2] + points[1, 2] + points[2, 2] + points[3, 2]),
        above,
    )


@inner
def _set_face(polytope: Polytope, face: int, i: int, j: int, k: int) -> bool:
    """Write a face with its normal away from the inner point; False where it has no area."""
    vertices, corners, planes = polytope.points, polytope.corners, polytope.planes
    ax, ay, az = vertices[i, 0], vertices[i, 1], vertices[i, 2]
    bx, by, bz = vertices[j, 0] - ax, vertices[j, 1] - ay, vertices[j, 2] - az
    ex, ey, ez = vertices[k, 0] - ax, vertices[k, 1] - ay, vertices[k, 2] - az
    area, nx, ny, nz = unit(by * ez - bz * ey, bz * ex - bx * ez, bx * ey - by * ex)
    if not area > 0.0:
        return False
    if nx * (ax - polytope.cx) + ny * (ay - polytope.cy) + nz * (az - polytope.cz) < 0.0:
        nx, ny, nz = -nx, -ny, -nz
        j, k = k, j
    corners[face, 0], corners[face, 1], corners[face, 2] = i, j, k
    planes[face, 0], planes[face, 1], planes[face, 2] = nx, ny, nz
    planes[face, 3] = nx * ax + ny * ay + nz * az
    return True


@inner
def _follow(
    pair: Pair,
    polytope: Polytope,
    near: int,
    new: int,
    system: NDArray,
    tolerance: float,
    n: tuple[float, float, float],
) -> tuple[float, int]:
    """Newton's method from the contacts on face `near`, whose support pair along n is the corner `new`.

    Returns g at the optimum, -inf without one, and the steps made. The optimum is left in `candidate`, its support pair
    in the row behind `new`.
    """
    points, face, chosen, best = polytope.points, polytope.face, polytope.chosen, polytope.candidate
    vertex = points[new + 1]
    for c in range(15):
        vertex[c] = points[new, c]
        for corner in range(3):
            face[corner, c] = points[polytope.corners[near, corner], c]
    ok, contact1, contact2 = contacts_from(pair, face, len(face), chosen, vertex, n[0], n[1], n[2])
    if not ok:
        return -np.inf, 0
    for k in range(_NEWTON_STEPS):
        step = meet(pair.body1, pair.body2, pair.pose, contact1, contact2)
        last = (step.angle < 1e-9 and step.offset < tolerance) or k == _NEWTON_STEPS - 1
        if not last:
            contact1, contact2, ok, _ = advance(pair.body1, pair.body2, pair.pose, contact1, contact2, step, system)
            last = not ok
        if last:
            g = pair_support(pair, step.nx, step.ny, step.nz, vertex)
            best[0], best[1], best[2] = step.nx, step.ny, step.nz
            best[3], best[4], best[5] = step.p1, step.p2, step.p3
            best[6], best[7], best[8] = step.q1, step.q2, step.q3
            best[9], best[10], best[11] = contact1.u1, contact1.u2, contact1.u3
            best[12], best[13], best[14] = contact2.u1, contact2.u2, contact2.u3
            p, q = (step.p1, step.p2, step.p3), (step.q1, step.q2, step.q3)
            if not are_on_features(pair, face, len(face), chosen, p, q):
                # The direction counts all the same, with the points that support it.
                for c in range(12):
                    best[3 + c] = vertex[3 + c]
            return g, k + 1
    return -np.inf, _NEWTON_STEPS


@inner
def _complete(pair: Pair, points: NDArray, count: int, tiny: float) -> int:
    """Add support points to a simplex until it has four corners and volume; fewer where the set itself is flat."""
    for axis in range(14):
        if count >= 4:
            break
        if count >= 3:
            ax, ay, az = points[0, 0], points[0, 1], points[0, 2]
            bx, by, bz = points[1, 0] - ax, points[1, 1] - ay, points[1, 2] - az
            ex, ey, ez = points[2, 0] - ax, points[2, 1] - ay, points[2, 2] - az
            _, nx, ny, nz = unit(by * ez - bz * ey, bz * ex - bx * ez, bx * ey - by * ex)
        else:
            nx = 1.0 if axis // 2 % 3 == 0 else 0.1
            ny = 1.0 if axis // 2 % 3 == 1 else -0.2
            nz = 1.0 if axis // 2 % 3 == 2 else 0.3
        if axis % 2:
            nx, ny, nz = -nx, -ny, -nz
        pair_support(pair, nx, ny, nz, points[count])
        if count == 0:
            count = 1
            continue
        # The new corner must stand off from the simplex so far.
        dx, dy, dz = points[count, 0] - points[0, 0], points[count, 1] - points[0, 1], points[count, 2] - points[0, 2]
        if count == 1:
            off = math.sqrt(dx * dx + dy * dy + dz * dz)
        elif count == 2:
            bx, by, bz = points[1, 0] - points[0, 0], points[1, 1] - points[0, 1], points[1, 2] - points[0, 2]
            area, _, _, _ = unit(by * dz - bz * dy, bz * dx - bx * dz, bx * dy - by * dx)
            off = area / math.sqrt(bx * bx + by * by + bz * bz)
        else:
            off = abs(nx * dx + ny * dy + nz * dz)
        if off > tiny:
            count += 1
    return count


@inner
def _insert(polytope: Polytope, new: int, faces: int) -> tuple[int, int]:
    """Join a corner to a polytope: the faces that see it go, their rim is joined to it.

    Returns the number of faces, and 1 where the polytope has grown, 0 where no face saw the corner, -1 where rounding
    or space forbade to go on (the faces are then not to be used any more).
    """
    points, corners, planes, edges, above = (
        polytope.points,
        polytope.corners,
        polytope.planes,
        polytope.edges,
        polytope.above,
    )
    wx, wy, wz = points[new, 0], points[new, 1], points[new, 2]
    rim = 0
    f = 0
    while f < faces:
        if planes[f, 0] * wx + planes[f, 1] * wy + planes[f, 2] * wz > planes[f, 3] + above:
            for e in range(3):
                i, j = corners[f, e], corners[f, (e + 1) % 3]
                twin = -1
                for r in range(rim):
                    if edges[r, 0] == j and edges[r, 1] == i:
                        twin = r
                        break
                if twin >= 0:
                    rim -= 1
                    edges[twin, 0], edges[twin, 1] = edges[rim, 0], edges[rim, 1]
                elif rim == edges.shape[0]:
                    # Slivers have turned round: their edges find no twins any more.
                    return faces, -1
                else:
                    edges[rim, 0], edges[rim, 1] = i, j
                    rim += 1
            faces -= 1
            for c in range(3):
                corners[f, c] = corners[faces, c]
            for c in range(4):
                planes[f, c] = planes[faces, c]
        else:
            f += 1
    if rim == 0:
        return faces, 0 if faces else -1
    for r in range(rim):
        if faces >= corners.shape[0] or not _set_face(polytope, faces, edges[r, 0], edges[r, 1], new):
            return faces, -1
        faces += 1
    return faces, 1


@inner
def _set_first_faces(polytope: Polytope) -> int:
    """Write the faces of the first four corners and return their number; 0 where one has no area."""
    for skip in range(4):
        if not _set_face(polytope, skip, (skip + 1) % 4, (skip + 2) % 4, (skip + 3) % 4):
            return 0
    return 4


@inner
def _nearest_face(planes: NDArray, faces: int) -> int:
    """The face that is nearest to the origin."""
    near = 0
    for f in range(1, faces):
        if planes[f, 3] < planes[near, 3]:
            near = f
    return near


@inner
def _meet_on_normal(polytope: Polytope, faces: int, best: NDArray) -> None:
    """Take the points of both bodies that differ along the normal of `best`: where the polytope's surface crosses it.

    Many pairs of points support a facet of the hull, and those of a corner need not face each other. Theirs lie between
    the corners of the face that is crossed, and are no further apart than the height along the normal.
    """
    face, weights, planes = polytope.face, polytope.chosen, polytope.planes
    n1, n2, n3 = -best[0], -best[1], -best[2]
    least, crossed = np.inf, -1
    for f in range(faces):
        rise = planes[f, 0] * n1 + planes[f, 1] * n2 + planes[f, 2] * n3
        if rise > 0.0 and planes[f, 3] < least * rise:
            least, crossed = planes[f, 3] / rise, f
    if crossed < 0 or least < 0.0:
        return
    for corner in range(3):
        row = polytope.points[polytope.corners[crossed, corner]]
        for c in range(9):
            face[corner, c] = row[c]
        face[corner, 0] -= least * n1
        face[corner, 1] -= least * n2
        face[corner, 2] -= least * n3
    triangle_weights(face, weights, 0, 1, 2)
    best[3], best[4], best[5] = nearest_point(face, len(face), weights, 3)
    best[6], best[7], best[8] = nearest_point(face, len(face), weights, 6)


@inner
def _do_points_meet(best: NDArray, depth: float, tolerance: float) -> bool:
    """Whether the points of `best` say the depth, by their length and along its normal."""
    d1, d2, d3 = best[6] - best[3], best[7] - best[4], best[8] - best[5]
    along = d1 * best[0] + d2 * best[1] + d3 * best[2]
    return abs(along + depth) <= tolerance and math.sqrt(d1 * d1 + d2 * d2 + d3 * d3) - depth <= tolerance


@inner
def _spread(pair: Pair, polytope: Polytope, count: int, faces: int) -> tuple[int, int, bool]:
    """Join support points in directions all around (Fibonacci's lattice): corners, faces, and whether all is well."""
    points = polytope.points
    for k in range(_SPREAD):
        # In an order that jumps about, so that no face of these becomes long and thin.
        i = (k * 23) % _SPREAD
        z = 1.0 - (2.0 * i + 1.0) / _SPREAD
        r = math.sqrt(1.0 - z * z)
        angle = 0.3 + i * math.pi * (3.0 - math.sqrt(5.0))
        pair_support(pair, r * math.cos(angle), r * math.sin(angle), z, points[count])
        if is_new(points, count, points[count]):
            faces, state = _insert(polytope, count, faces)
            if state < 0:
                return count, faces, False
            count += state
    return count, faces, True


@inner
def penetration_depth(
    pair: Pair,
    simplex: NDArray,
    count: int,
    known: float,
    best: NDArray,
    system: NDArray,
    tolerance: float,
    prove: bool,
) -> Depth:
    """Depth of two bodies without margins whose simplex (4, 15), if full, holds the origin.

    Args:
        known: an upper bound of the depth that `best` (15,) belongs to, or inf.
        best: receives normal from 1 to 2, points p and q, and both charts of the best local optimum.
        tolerance: gap between the bounds to end with [m].
        prove: go on until the gap is closed; otherwise only as long as new local optima are found.
    """
    first = _expand(pair, simplex, count, known, best, system, tolerance, prove, _VERTICES)
    if (
        not prove
        or first.depth <= 0.0
        or (first.depth - first.proven <= tolerance and _do_points_meet(best, first.depth, tolerance))
    ):
        return first
    # Slivers have ended it, or its corners did not suffice: once more from corners all around, and with many.
    again = _expand(pair, simplex, 0, first.depth, best, system, tolerance, prove, _MANY_VERTICES)
    proven = max(first.proven, again.proven) if first.proven <= again.depth else again.proven
    return Depth(again.depth, proven, first.supports + again.supports, first.steps + again.steps)


@inner
def _expand(
    pair: Pair,
    simplex: NDArray,
    count: int,
    known: float,
    best: NDArray,
    system: NDArray,
    tolerance: float,
    prove: bool,
    corners: int,
) -> Depth:
    """One polytope of at most so many corners; see `penetration_depth`. Without a simplex they begin all around."""
    points = np.empty((corners, 15))
    spread = count == 0
    for i in range(count):
        for c in range(15):
            points[i, c] = simplex[i, c]
    size = max(pair.body1.size, pair.body2.size)
    count = _complete(pair, points, count, 1e-10 * size)
    if count < 4:
        return Depth(min(known, 0.0), 0.0, 14, 0)
    polytope = _polytope(points, 1e-15 * size)
    planes = polytope.planes
    faces = _set_first_faces(polytope)
    if faces == 0:
        return Depth(known, -1.0, 0, 0)
    proven = -1.0
    starts = 0
    steps = 0
    supports = 0
    quiet = 0
    sound = True
    if spread:
        count, faces, sound = _spread(pair, polytope, count, faces)
        supports = _SPREAD
    while sound and count < corners - 2:
        # The face nearest to the origin, and the set's height above it.
        near = _nearest_face(planes, faces)
        floor = planes[near, 3]
        proven = max(proven, floor)
        if known - floor <= tolerance or (not prove and quiet > 6):
            break
        nx, ny, nz = -planes[near, 0], -planes[near, 1], -planes[near, 2]
        height = -pair_support_near(pair, nx, ny, nz, points[polytope.corners[near, 0]], points[count])
        supports += 1
        quiet += 1
        followed = False
        if height < known - 1e-3 * tolerance:
            quiet = 0
            known = height
            best[0], best[1], best[2] = nx, ny, nz
            for c in range(12):
                best[3 + c] = points[count, 3 + c]
            followed = starts < _NEWTON_STARTS
            if followed:
                starts += 1
                g, made = _follow(pair, polytope, near, count, system, 1e-3 * tolerance, (nx, ny, nz))
                steps += made
                supports += 1
                if -g < known:
                    known = -g
                    best[:] = polytope.candidate
        if not is_new(points, count, points[count]):
            break
        faces, state = _insert(polytope, count, faces)
        if state <= 0:
            # Rounding has the last word: the corner is on the polytope already, or a sliver has no normal.
            sound = state == 0
            break
        count += 1
        if followed:
            faces, state = _insert(polytope, count, faces)
            if state < 0:
                sound = False
                break
            count += 1
    if sound and known < np.inf and not _do_points_meet(best, known, tolerance):
        _meet_on_normal(polytope, faces, best)
    return Depth(known, proven, supports, steps)
