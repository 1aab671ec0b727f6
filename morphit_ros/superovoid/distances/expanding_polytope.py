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

_VERTICES = 384
_FACES = 2 * _VERTICES
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
        points: (384, 15) support pairs: the corners, in the order in which they came.
        corners: (768, 3) of the faces, as rows of `points`.
        planes: (768, 4) of the faces: outward unit normal, and height above the origin [m].
        edges: (768, 2) rim of the faces that a new corner sees.
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
        np.empty((_FACES, 3), dtype=np.int64),
        np.empty((_FACES, 4)),
        np.empty((_FACES, 2), dtype=np.int64),
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
def _meet_on_face(
    polytope: Polytope, faces: int, reach: float, tolerance: float, is_dented: bool, best: NDArray
) -> None:
    """Where a facet of the hull decides, many pairs of points support it: take those of the polytope that meet.

    `best` is left as it is where its points are no further apart than the depth within the tolerance, and where no face
    comes as near to the origin as `reach`. Faces of one facet are equally near; the origin's foot is on one of them.
    """
    d1, d2, d3 = best[6] - best[3], best[7] - best[4], best[8] - best[5]
    height = d1 * best[0] + d2 * best[1] + d3 * best[2]
    if math.sqrt(d1 * d1 + d2 * d2 + d3 * d3) + height <= tolerance:
        return
    face, weights, planes = polytope.face, polytope.chosen, polytope.planes
    n1, n2, n3 = best[0], best[1], best[2]
    least = reach * reach
    for f in range(faces):
        if planes[f, 3] > reach:
            continue
        for corner in range(3):
            for c in range(9):
                face[corner, c] = polytope.points[polytope.corners[f, corner], c]
        square = triangle_weights(face, weights, 0, 1, 2)
        if square < least:
            least = square
            best[3], best[4], best[5] = nearest_point(face, len(face), weights, 3)
            best[6], best[7], best[8] = nearest_point(face, len(face), weights, 6)
            n1, n2, n3 = -planes[f, 0], -planes[f, 1], -planes[f, 2]
    d1, d2, d3 = best[6] - best[3], best[7] - best[4], best[8] - best[5]
    # The normal's own height is the depth: another one is taken only where these points are not along it. Of convex
    # bodies that is a sliver's, and worth nothing.
    if is_dented and abs(d1 * best[0] + d2 * best[1] + d3 * best[2] - height) > tolerance:
        best[0], best[1], best[2] = n1, n2, n3


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
    points = np.empty((_VERTICES, 15))
    for i in range(count):
        for c in range(15):
            points[i, c] = simplex[i, c]
    size = max(pair.body1.size, pair.body2.size)
    is_dented = pair.body1.dented or pair.body2.dented
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
    while count < _VERTICES - 2:
        # The face nearest to the origin, and the set's height above it.
        near = _nearest_face(planes, faces)
        floor = planes[near, 3]
        proven = max(proven, floor)
        # Before the gap is closed, as slivers may end the search at any time.
        if known - floor <= 2.0 * tolerance:
            _meet_on_face(polytope, faces, known + tolerance, tolerance, is_dented, best)
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
            break
        count += 1
        if followed:
            faces, state = _insert(polytope, count, faces)
            if state < 0:
                break
            count += 1
    return Depth(known, proven, supports, steps)
