"""The default solver: Newton first, Gilbert-Johnson-Keerthi where it fails, an expanding polytope in penetration.

What a step claims is never trusted. Points on both bodies bound the distance from above, the height
g(n) = n·c - h1(n) - h2(-n) of any unit n bounds the signed distance from below, and only these two decide.
ARCHITECTURE.md says why it converges.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.superovoid.distances.bodies import Pair, RelativePose, body_support, pair_support, turn_to_second, unit
from morphit_ros.superovoid.distances.common_normal import CORNER, Contact, Meeting, advance, chart_contact, meet
from morphit_ros.superovoid.distances.ellipsoids import is_ellipsoid, search_normal
from morphit_ros.superovoid.distances.expanding_polytope import penetration_depth
from morphit_ros.superovoid.distances.features import NO_CORNERS, are_on_features, contacts_from
from morphit_ros.superovoid.distances.gjk import is_new, nearest_point, reduce_simplex
from morphit_ros.superovoid.distances.support import (
    POINT,
    SUPEROVOID,
    Body,
    chart_hint,
    inlined,
    inner,
    rough_chart,
    superovoid_support,
)

CERTIFIED_GAP = 1e-6
# What is aimed at where it costs nothing more, as a share of the size.
_AIM = 1e-11
_ROUNDING = 2e-15
# How much bounds are put further apart in the end, as they are to hold whatever rounding did to them: likewise a share.
_OUTWARDS = 4.0 * _ROUNDING
# How much smaller than the aimed gap would need it the offset of the points across the normal shall be, squared.
POINTS_SHARE = 1e-5
_FIRST_STEPS = np.int64(9)
_LATER_STEPS = np.int64(7)
_GJK_STEPS = 300
# A warm start is worth a try where its contacts are so near to facing each other [rad].
_NEAR = 0.5
_DEPTH_GAP = 0.5 * CERTIFIED_GAP
# A polytope may find that bodies do not meet after all, and send the simplex on.
_ATTEMPTS = 3
_FULL, _OVERFULL = np.int64(4), 5


class Answer(NamedTuple):
    """Solution of one pair in the frame of body 1, margins included.

    Attributes:
        distance: signed distance [m].
        lower, upper: bounds of it [m].
        p, q: nearest points, of body 1 and 2 [m].
        n: unit normal from 1 to 2.
        u, w: charts of the contact on body 1 and 2, for a warm start; 0 where there is none.
        iterations: Newton steps, and simplex or polytope steps.
    """

    distance: float
    lower: float
    upper: float
    p1: float
    p2: float
    p3: float
    q1: float
    q2: float
    q3: float
    n1: float
    n2: float
    n3: float
    u1: float
    u2: float
    u3: float
    w1: float
    w2: float
    w3: float
    iterations: int


class Workspace(NamedTuple):
    """Working arrays of one thread.

    Attributes:
        simplex: (4, 15) support pairs, as `pair_support` writes them.
        weights: (4,) of their corners.
        system: (4, 5) linear system of Newton's method.
        vertex: (15,) the last support pair.
        best: (15,) the incumbent: normal, points p and q, charts u and w, margins left out.
        deepest: (15,) likewise, of the penetration as far as it is known; it counts once a simplex holds the origin.
    """

    simplex: NDArray
    weights: NDArray
    system: NDArray
    vertex: NDArray
    best: NDArray
    deepest: NDArray


class Tolerances(NamedTuple):
    """Lengths that decide about a pair [m].

    Attributes:
        size: of the larger body.
        rounding: what rounding may change.
        aim: gap between the bounds that ends the search.
    """

    size: float
    rounding: float
    aim: float


class Search(NamedTuple):
    """What is known of a pair, margins left out; the incumbent is in the workspace.

    Attributes:
        lower, upper: bounds of the signed distance [m]: a support height, and the length between two points.
        distance: what would be reported now [m]: `upper`, but the negative depth in penetration.
        depth: of the workspace's `deepest`, a stationary point of the penetration [m]; inf without one.
        nx, ny, nz: unit direction to go on from.
        iterations: made.
        settled: nothing is left to do: bounds and incumbent are the answer.
    """

    lower: float
    upper: float
    distance: float
    depth: float
    nx: float
    ny: float
    nz: float
    iterations: int
    settled: bool


class NewtonResult(NamedTuple):
    """What Newton's method came to: bounds, and the contact that gave them.

    Attributes:
        lower, upper: bounds of the signed distance [m]; -inf and inf where it came to nothing.
        height: of the last points along their normal [m], negative in penetration.
        settled: the bounds meet, or it is a stationary point in penetration.
        contact1, contact2, n, p, q: where, in frame 1 but for the contacts.
        steps: made.
    """

    lower: float
    upper: float
    height: float
    settled: bool
    contact1: Contact
    contact2: Contact
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
def make_workspace() -> Workspace:
    """Working arrays of one thread, not initialised."""
    # In one piece: asking for memory takes as long as a step.
    room = np.empty(129)
    return Workspace(
        room[:60].reshape(4, 15),
        room[60:64],
        room[64:84].reshape(4, 5),
        room[84:99],
        room[99:114],
        room[114:129],
    )


@inner
def outward_slack(pose: RelativePose, size: float) -> float:
    """How far bounds of a distance have to be rounded outwards [m]: the distance of the frames counts too."""
    return _OUTWARDS * (size + math.sqrt(pose.x * pose.x + pose.y * pose.y + pose.z * pose.z))


@inlined
def _tolerances(pair: Pair) -> Tolerances:
    # The distance of the frames sets the rounding of everything.
    size = max(pair.body1.size, pair.body2.size)
    rounding = 0.25 * outward_slack(pair.pose, size)
    return Tolerances(size, rounding, _AIM * size + rounding)


@inner
def aimed_gap(body1: Body, body2: Body, pose: RelativePose) -> float:
    """The gap between bounds [m] that ends a search."""
    size = max(body1.size, body2.size)
    return _AIM * size + 0.25 * outward_slack(pose, size)


@inlined
def _height(body: Body, vertices: NDArray, contact: Contact, nx: float, ny: float, nz: float) -> float:
    """h(n) of a body without its margin, quickest where the contact's normal is near n."""
    if body.kind == SUPEROVOID:
        c, s = chart_hint(body, contact.u1, contact.u2, contact.u3)
        h, _, _, _, _, _, _, _ = superovoid_support(body, vertices, nx, ny, nz, c, s)
        return h
    x, y, z, _, _, _ = body_support(body, vertices, nx, ny, nz)
    return x * nx + y * ny + z * nz


@inlined
def _lower_bound(pair: Pair, contact1: Contact, contact2: Contact, step: Meeting) -> float:
    """g(n) of a meeting's normal."""
    nx, ny, nz = step.nx, step.ny, step.nz
    h1 = _height(pair.body1, pair.vertices1, contact1, nx, ny, nz)
    mx, my, mz = turn_to_second(pair.pose, nx, ny, nz)
    h2 = _height(pair.body2, pair.vertices2, contact2, -mx, -my, -mz)
    return nx * pair.pose.x + ny * pair.pose.y + nz * pair.pose.z - h1 - h2


@inner
def _newton(
    pair: Pair, contact1: Contact, contact2: Contact, system: NDArray, limit: int, aim: float, widest: float
) -> NewtonResult:
    """Newton's method from two contacts, at most `limit` steps; its bounds hold wherever it ends.

    It does not begin where the contacts face each other by more than `widest` [rad] wrongly.
    """
    lower = -np.inf
    upper = np.inf
    settled = False
    wanted = 1e-8
    k = 0
    while True:
        step = meet(pair.body1, pair.body2, pair.pose, contact1, contact2)
        k += 1
        if k == 1 and (
            step.angle > widest or step.offset > widest * (pair.body1.size + pair.body2.size + abs(step.height))
        ):
            break
        # The gap goes with the square of what is left; points and normal, which go with it, ask for one step more.
        near = step.angle < wanted and step.offset * step.offset <= POINTS_SHARE * aim * max(aim, abs(step.height))
        if not near and k < limit:
            contact1, contact2, ok, _ = advance(pair.body1, pair.body2, pair.pose, contact1, contact2, step, system)
            if ok:
                continue
        if not (near or step.angle < 1e-2):
            break
        d1, d2, d3 = step.q1 - step.p1, step.q2 - step.p2, step.q3 - step.p3
        upper = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
        lower = _lower_bound(pair, contact1, contact2, step)
        settled = upper - lower <= aim or (step.height < 0.0 and abs(lower - step.height) <= aim)
        if settled or not near or k == limit:
            break
        wanted *= 1e-3
        contact1, contact2, ok, _ = advance(pair.body1, pair.body2, pair.pose, contact1, contact2, step, system)
        if not ok:
            break
    return NewtonResult(
        lower,
        upper,
        step.height,
        settled,
        contact1,
        contact2,
        step.nx,
        step.ny,
        step.nz,
        step.p1,
        step.p2,
        step.p3,
        step.q1,
        step.q2,
        step.q3,
        k,
    )


@inner
def _record(found: NewtonResult, best: NDArray) -> None:
    """Make a Newton result the incumbent."""
    best[0], best[1], best[2] = found.nx, found.ny, found.nz
    best[3], best[4], best[5] = found.p1, found.p2, found.p3
    best[6], best[7], best[8] = found.q1, found.q2, found.q3
    best[9], best[10], best[11] = found.contact1.u1, found.contact1.u2, found.contact1.u3
    best[12], best[13], best[14] = found.contact2.u1, found.contact2.u2, found.contact2.u3


@inlined
def _first_contact(body: Body, nx: float, ny: float, nz: float) -> Contact:
    """Contact of a superovoid or a point, near where n is its normal."""
    if body.kind == SUPEROVOID:
        u1, u2, u3 = rough_chart(body, nx, ny, nz)
        return chart_contact(u1, u2, u3)
    return Contact(0.0, 0.0, 0.0, nx, ny, nz, 0.0, 0.0, 0.0, CORNER)


@inner
def _newton_on_ellipsoids(pair: Pair, nx: float, ny: float, nz: float, aim: float) -> NewtonResult:
    """As `_newton` for two ellipsoids, or one and a point, from a unit direction."""
    body1, body2 = pair.body1, pair.body2
    found = search_normal(body1, body2, pair.pose, nx, ny, nz, POINTS_SHARE, aim)
    d1, d2, d3 = found.q1 - found.p1, found.q2 - found.p2, found.q3 - found.p3
    upper = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
    height = found.height
    x, y, z = found.q1 - pair.pose.x, found.q2 - pair.pose.y, found.q3 - pair.pose.z
    x, y, z = turn_to_second(pair.pose, x, y, z)
    return NewtonResult(
        height,
        upper,
        height,
        upper - height <= aim or (height < 0.0 and found.settled),
        _ellipsoid_contact(body1, found.p1, found.p2, found.p3),
        _ellipsoid_contact(body2, x, y, z),
        found.nx,
        found.ny,
        found.nz,
        found.p1,
        found.p2,
        found.p3,
        found.q1,
        found.q2,
        found.q3,
        found.steps,
    )


@inner
def _ellipsoid_contact(body: Body, x: float, y: float, z: float) -> Contact:
    """The contact of an ellipsoid or a point at a point of its surface."""
    if body.kind == SUPEROVOID:
        return chart_contact(x / body.a1, y / body.a2, z / body.a3)
    return Contact(0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, CORNER)


@inlined
def _newton_on_charts(
    pair: Pair,
    nx: float,
    ny: float,
    nz: float,
    warm: bool,
    start: tuple[float, ...],
    tolerances: Tolerances,
    system: NDArray,
) -> NewtonResult:
    """Newton's method from a warm start, and where there is none or it is too far away, from a direction."""
    again = warm and pair.body1.kind == SUPEROVOID and pair.body2.kind == SUPEROVOID
    while True:
        if again:
            contact1 = chart_contact(start[3], start[4], start[5])
            contact2 = chart_contact(start[6], start[7], start[8])
        else:
            contact1 = _first_contact(pair.body1, nx, ny, nz)
            mx, my, mz = turn_to_second(pair.pose, nx, ny, nz)
            contact2 = _first_contact(pair.body2, -mx, -my, -mz)
        found = _newton(pair, contact1, contact2, system, _FIRST_STEPS, tolerances.aim, _NEAR if again else np.inf)
        if not again or found.settled:
            return found
        if found.upper < np.inf and not found.height > 0.0:
            return found
        again = False
        _, nx, ny, nz = unit(pair.pose.x, pair.pose.y, pair.pose.z)


@inlined
def _newton_first(
    pair: Pair, search: Search, warm: bool, start: tuple[float, ...], tolerances: Tolerances, workspace: Workspace
) -> Search:
    """Newton's method on two smooth bodies from a warm start, or from near the support points along the direction.

    Settled where the bounds meet. A stationary point in penetration is kept as the depth known so far: it may be one
    of a dent, and the bodies apart.
    """
    best, deepest = workspace.best, workspace.deepest
    nx, ny, nz = search.nx, search.ny, search.nz
    if is_ellipsoid(pair.body1) and is_ellipsoid(pair.body2):
        found = _newton_on_ellipsoids(pair, nx, ny, nz, tolerances.aim)
    else:
        found = _newton_on_charts(pair, nx, ny, nz, warm, start, tolerances, workspace.system)
    if not found.upper < np.inf:
        return Search(
            search.lower, search.upper, search.distance, search.depth, nx, ny, nz, found.steps, search.settled
        )
    _record(found, best)
    settled = found.settled and found.upper - found.lower <= tolerances.aim
    distance = found.lower if settled and not found.height > 0.0 else found.upper
    depth = np.inf
    if found.settled and found.height < 0.0:
        depth = -found.lower
        _record(found, deepest)
    return Search(found.lower, found.upper, distance, depth, found.nx, found.ny, found.nz, found.steps, settled)


@inner
def _newton_from_simplex(
    pair: Pair, search: Search, count: int, tolerances: Tolerances, workspace: Workspace
) -> Search:
    """Newton's method from the features that a simplex spans; its bounds narrow the search's.

    Its points count only where they lie on these features. Settled where its own bounds then meet.
    """
    simplex, weights, system, vertex, best, deepest = workspace
    nx, ny, nz = search.nx, search.ny, search.nz
    ok, contact1, contact2 = contacts_from(pair, simplex, count, weights, vertex, nx, ny, nz)
    if not ok:
        return search
    found = _newton(pair, contact1, contact2, system, _LATER_STEPS, tolerances.aim, np.inf)
    lower, upper, depth = search.lower, search.upper, search.depth
    distance = upper
    settled = False
    if found.upper < np.inf:
        if found.lower > lower:
            lower = found.lower
            best[0], best[1], best[2] = found.nx, found.ny, found.nz
        p, q = (found.p1, found.p2, found.p3), (found.q1, found.q2, found.q3)
        if are_on_features(pair, simplex, count, weights, p, q):
            settled = found.settled and found.upper - found.lower <= tolerances.aim
            if settled:
                _record(found, best)
                lower, upper = found.lower, found.upper
                distance = upper if found.height > 0.0 else lower
            elif found.settled and found.height < 0.0 and -found.lower < depth:
                depth = -found.lower
                _record(found, deepest)
            elif found.upper < upper:
                upper = distance = found.upper
                best[3], best[4], best[5] = p
                best[6], best[7], best[8] = q
    return Search(lower, upper, distance, depth, nx, ny, nz, search.iterations + found.steps, settled)


@inner
def _probe(pair: Pair, search: Search, workspace: Workspace) -> Search:
    """Take the support pair along the search's direction: its height is a lower bound."""
    nx, ny, nz = search.nx, search.ny, search.nz
    lower = search.lower
    height = pair_support(pair, nx, ny, nz, workspace.vertex)
    if height > lower:
        lower = height
        workspace.best[0], workspace.best[1], workspace.best[2] = nx, ny, nz
    return Search(lower, search.upper, search.distance, search.depth, nx, ny, nz, search.iterations + 1, search.settled)


@inner
def _approach(search: Search, count: int, length: float, workspace: Workspace) -> float:
    """The upper bound after a simplex came as near as `length` to the origin; its nearest points are recorded."""
    simplex, weights, _, vertex, best, _ = workspace
    if not length < search.upper:
        return search.upper
    best[3], best[4], best[5] = nearest_point(simplex, count, weights, 3)
    best[6], best[7], best[8] = nearest_point(simplex, count, weights, 6)
    for c in range(9, 15):
        best[c] = vertex[c]
    return length


@inner
def _is_closed(search: Search, aim: float) -> bool:
    """Whether the bounds of bodies that do not penetrate meet."""
    return search.upper - search.lower <= aim and search.lower > -aim


@inner
def _simplex_steps(pair: Pair, search: Search, tolerances: Tolerances, workspace: Workspace) -> tuple[Search, np.int64]:
    """Simplex steps from the search's direction, and Newton's method now and then from what the simplex touches.

    Returns the search, and the corners of a simplex that holds the origin within rounding: the bodies touch or
    penetrate. 0 corners: the search is settled, its bounds meet, or rounding lets no step improve on them.
    """
    simplex, weights, vertex = workspace.simplex, workspace.weights, workspace.vertex
    count = NO_CORNERS
    stalled = 0
    next_newton = 5 if pair.body1.kind == SUPEROVOID and pair.body2.kind == SUPEROVOID else 2
    shortest = np.inf
    for k in range(_GJK_STEPS):
        search = _probe(pair, search, workspace)
        if _is_closed(search, tolerances.aim):
            break
        new = is_new(simplex, count, vertex)
        if count > 0 and (not new or k >= next_newton):
            next_newton = k + 6 + k // 2
            search = _newton_from_simplex(pair, search, count, tolerances, workspace)
            if search.settled or _is_closed(search, tolerances.aim):
                break
        if not new:
            break
        for c in range(15):
            simplex[count, c] = vertex[c]
        count = reduce_simplex(simplex, count + 1, weights)
        if count == _OVERFULL:
            return search, _FULL
        x, y, z = nearest_point(simplex, count, weights, 0)
        length, nx, ny, nz = unit(x, y, z)
        upper = _approach(search, count, length, workspace)
        search = Search(search.lower, upper, upper, search.depth, nx, ny, nz, search.iterations, False)
        if length <= tolerances.rounding:
            # The origin is on the simplex: touching or inside, which the polytope will tell.
            return search, count
        if length >= shortest:
            stalled += 1
            if stalled > 2:
                break
        else:
            shortest = length
    return search, NO_CORNERS


@inner
def _polytope_steps(
    pair: Pair, search: Search, count: int, prove_depth: bool, tolerances: Tolerances, workspace: Workspace
) -> Search:
    """The depth of bodies whose simplex holds the origin, by an expanding polytope.

    Settled with the least height found as lower bound, and as upper bound what the polytope proves. Not settled where
    a flat simplex was taken for one around the origin: a direction that separates is then the one to go on from.
    """
    deepest = workspace.deepest
    if search.depth == np.inf:
        # Where the polytope finds nothing, what the simplex came to is all there is.
        deepest[:] = workspace.best
    depth = penetration_depth(
        pair,
        workspace.simplex,
        count,
        search.depth,
        deepest,
        workspace.system,
        _DEPTH_GAP * tolerances.size,
        prove_depth,
    )
    iterations = search.iterations + depth.supports + depth.steps
    lower = -depth.depth
    if depth.depth >= -tolerances.aim:
        upper = max(lower, 0.0)
        # A face further out than a height: slivers have made the polytope no longer convex, and it proves nothing.
        if 0.0 < depth.proven <= depth.depth + tolerances.rounding:
            upper = -depth.proven
        workspace.best[:] = deepest
        return Search(lower, upper, lower, depth.depth, deepest[0], deepest[1], deepest[2], iterations, True)
    lower = max(search.lower, lower)
    return Search(lower, search.upper, search.distance, np.inf, deepest[0], deepest[1], deepest[2], iterations, False)


@inner
def _without_contradiction(pair: Pair, search: Search, tolerances: Tolerances, workspace: Workspace) -> Search:
    """The search with a lower bound that is not above the upper one."""
    if not search.lower > search.upper + tolerances.rounding:
        return search
    # A peak of a shape with dents was overlooked in some direction. Only that of the points counts then.
    best = workspace.best
    _, nx, ny, nz = unit(best[6] - best[3], best[7] - best[4], best[8] - best[5])
    lower = min(pair_support(pair, nx, ny, nz, workspace.vertex), search.upper)
    best[0], best[1], best[2] = nx, ny, nz
    return Search(lower, search.upper, search.upper, search.depth, nx, ny, nz, search.iterations, True)


@inlined
def _answer(pair: Pair, search: Search, slack: float, best: NDArray) -> Answer:
    """The answer of a search and its incumbent (15,); margins are put on, and the bounds rounded outwards."""
    margin1, margin2 = pair.body1.margin, pair.body2.margin
    n1, n2, n3 = best[0], best[1], best[2]
    m = margin1 + margin2
    return Answer(
        search.distance - m,
        search.lower - m - slack,
        search.upper - m + slack,
        best[3] + margin1 * n1,
        best[4] + margin1 * n2,
        best[5] + margin1 * n3,
        best[6] - margin2 * n1,
        best[7] - margin2 * n2,
        best[8] - margin2 * n3,
        n1,
        n2,
        n3,
        best[9],
        best[10],
        best[11],
        best[12],
        best[13],
        best[14],
        search.iterations,
    )


@inner
def settled_answer(
    body1: Body,
    body2: Body,
    pose: RelativePose,
    lower: float,
    upper: float,
    p1: float,
    p2: float,
    p3: float,
    q1: float,
    q2: float,
    q3: float,
    n1: float,
    n2: float,
    n3: float,
    steps: int,
) -> Answer:
    """The answer of points or ellipsoids that are apart, from bounds, points (frame 1) and normal without margins."""
    m1, m2 = body1.margin, body2.margin
    slack = outward_slack(pose, max(body1.size, body2.size))
    contact1 = _ellipsoid_contact(body1, p1, p2, p3)
    x, y, z = turn_to_second(pose, q1 - pose.x, q2 - pose.y, q3 - pose.z)
    contact2 = _ellipsoid_contact(body2, x, y, z)
    return Answer(
        upper - m1 - m2,
        lower - m1 - m2 - slack,
        upper - m1 - m2 + slack,
        p1 + m1 * n1,
        p2 + m1 * n2,
        p3 + m1 * n3,
        q1 - m2 * n1,
        q2 - m2 * n2,
        q3 - m2 * n3,
        n1,
        n2,
        n3,
        contact1.u1,
        contact1.u2,
        contact1.u3,
        contact2.u1,
        contact2.u2,
        contact2.u3,
        steps,
    )


@inlined
def _begin(pair: Pair, warm: bool, start: tuple[float, ...], best: NDArray) -> Search:
    """A search that knows nothing, along the line of the frames or a warm start's normal; two points are settled."""
    pose = pair.pose
    length, nx, ny, nz = unit(pose.x, pose.y, pose.z)
    best[:] = 0.0
    best[0], best[1], best[2] = nx, ny, nz
    if pair.body1.kind == POINT and pair.body2.kind == POINT:
        best[6], best[7], best[8] = pose.x, pose.y, pose.z
        return Search(length, length, length, np.inf, nx, ny, nz, 0, True)
    if warm:
        nx, ny, nz = start[0], start[1], start[2]
    return Search(-np.inf, np.inf, np.inf, np.inf, nx, ny, nz, 0, False)


@inner
def _is_smooth(body: Body) -> bool:
    return body.kind == SUPEROVOID or body.kind == POINT


@inlined
def solve_pair(pair: Pair, warm: bool, start: tuple[float, ...], prove_depth: bool, workspace: Workspace) -> Answer:
    """Signed distance of two bodies; of the hulls of shapes that are not convex.

    Args:
        warm: whether `start`, normal (3) and charts (3 + 3) of an earlier answer, is to be started from.
        prove_depth: in penetration, go on until no better local optimum can exist.
    """
    tolerances = _tolerances(pair)
    search = _begin(pair, warm, start, workspace.best)
    if not search.settled and _is_smooth(pair.body1) and _is_smooth(pair.body2):
        search = _newton_first(pair, search, warm, start, tolerances, workspace)
    for _ in range(_ATTEMPTS):
        if search.settled:
            break
        search, count = _simplex_steps(pair, search, tolerances, workspace)
        if count == 0:
            break
        search = _polytope_steps(pair, search, count, prove_depth, tolerances, workspace)
    if not search.settled:
        search = _without_contradiction(pair, search, tolerances, workspace)
    return _answer(pair, search, outward_slack(pair.pose, tolerances.size), workspace.best)
