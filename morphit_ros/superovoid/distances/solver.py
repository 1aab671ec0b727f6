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

from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.bodies import RelativePose, body_support, pair_support, turn_to_second, unit
from morphit_ros.superovoid.distances.common_normal import Contact, chart_contact, newton_step
from morphit_ros.superovoid.distances.expanding_polytope import penetration_depth
from morphit_ros.superovoid.distances.features import FIRST, NO_CORNERS, ONE_CORNER, SECOND, contact_from, is_on_feature
from morphit_ros.superovoid.distances.gjk import is_new, nearest_point, reduce_simplex
from morphit_ros.superovoid.distances.support import FAST, POINT, SUPEROVOID, Body, chart_hint, superovoid_support

CERTIFIED_GAP = 1e-6
# What is aimed at where it costs nothing more, as a share of the size.
_AIM = 1e-11
_ROUNDING = 2e-15
# How much smaller than the aimed gap would need it the offset of the points across the normal shall be, squared.
_POINTS = 1e-5
_FIRST_STEPS = np.int64(9)
_LATER_STEPS = np.int64(7)
_GJK_STEPS = 300
_DEPTH_GAP = 0.5 * CERTIFIED_GAP


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


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def make_workspace() -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Working arrays of one thread: simplex, its weights, linear system, support pair, incumbent."""
    return np.empty((4, 15)), np.empty(4), np.empty((4, 5)), np.empty(15), np.empty(15)


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _height(body: Body, vertices: NDArray, contact: Contact, nx: float, ny: float, nz: float) -> float:
    """h(n) of a body without its margin, quickest where the contact's normal is near n."""
    if body.kind == SUPEROVOID:
        c, s = chart_hint(body, contact.u1, contact.u2, contact.u3)
        h, _, _, _, _, _, _, _ = superovoid_support(body, vertices, nx, ny, nz, c, s)
        return h
    x, y, z, _, _, _ = body_support(body, vertices, nx, ny, nz)
    return x * nx + y * ny + z * nz


class Descent(NamedTuple):
    """What Newton's method came to: bounds, and the contact that gave them."""

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


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _descend(
    body1: Body,
    vertices1: NDArray,
    body2: Body,
    vertices2: NDArray,
    pose: RelativePose,
    contact1: Contact,
    contact2: Contact,
    system: NDArray,
    limit: int,
    aim: float,
) -> Descent:
    """Newton's method from two contacts; settled where the bounds meet, or at a stationary point in penetration."""
    lower = -np.inf
    upper = np.inf
    height = np.inf
    settled = False
    wanted = 1e-8
    k = 0
    while True:
        step = newton_step(body1, body2, pose, contact1, contact2, system)
        k += 1
        d1, d2, d3 = step.q1 - step.p1, step.q2 - step.p2, step.q3 - step.p3
        height = d1 * step.nx + d2 * step.ny + d3 * step.nz
        # The gap goes with the square of what is left; points and normal, which go with it, ask for one step more.
        near = step.angle < wanted and step.offset * step.offset <= _POINTS * aim * max(aim, abs(height))
        last = not step.ok or k == limit
        if near or (last and step.angle < 1e-2):
            upper = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
            h1 = _height(body1, vertices1, contact1, step.nx, step.ny, step.nz)
            mx, my, mz = turn_to_second(pose, step.nx, step.ny, step.nz)
            h2 = _height(body2, vertices2, contact2, -mx, -my, -mz)
            lower = step.nx * pose.x + step.ny * pose.y + step.nz * pose.z - h1 - h2
            settled = upper - lower <= aim or (height < 0.0 and abs(lower - height) <= aim)
            if settled or last:
                break
            wanted *= 1e-3
        if last:
            break
        contact1, contact2 = step.contact1, step.contact2
    return Descent(
        lower,
        upper,
        height,
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


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _answer(
    lower: float,
    upper: float,
    distance: float,
    best: NDArray,
    margin1: float,
    margin2: float,
    iterations: int,
) -> Answer:
    """The answer of an incumbent (15,): normal, points, charts; margins are put on."""
    n1, n2, n3 = best[0], best[1], best[2]
    m = margin1 + margin2
    return Answer(
        distance - m,
        lower - m,
        upper - m,
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
        iterations,
    )


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _record(descent: Descent, best: NDArray) -> None:
    """Make a Newton result the incumbent."""
    best[0], best[1], best[2] = descent.nx, descent.ny, descent.nz
    best[3], best[4], best[5] = descent.p1, descent.p2, descent.p3
    best[6], best[7], best[8] = descent.q1, descent.q2, descent.q3
    best[9], best[10], best[11] = descent.contact1.u1, descent.contact1.u2, descent.contact1.u3
    best[12], best[13], best[14] = descent.contact2.u1, descent.contact2.u2, descent.contact2.u3


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def solve_pair(
    body1: Body,
    vertices1: NDArray,
    body2: Body,
    vertices2: NDArray,
    pose: RelativePose,
    warm: bool,
    start: tuple[float, ...],
    prove_depth: bool,
    workspace: tuple[NDArray, NDArray, NDArray, NDArray, NDArray],
) -> Answer:
    """Signed distance of two bodies; of the hulls of shapes that are not convex.

    Args:
        vertices1, vertices2: (N, 3) corners of a POLYTOPE, ignored otherwise.
        pose: body 2 in the frame of body 1.
        warm: whether `start`, normal (3) and charts (3 + 3) of an earlier answer, is to be started from.
        prove_depth: in penetration, go on until no better local optimum can exist.
    """
    simplex, weights, system, vertex, best = workspace
    # The distance of the frames sets the rounding of everything.
    reach = math.sqrt(pose.x * pose.x + pose.y * pose.y + pose.z * pose.z)
    size = max(body1.size, body2.size)
    rounding = _ROUNDING * (size + reach)
    aim = _AIM * size + rounding
    margin1, margin2 = body1.margin, body2.margin
    lower = -np.inf
    upper = np.inf
    iterations = 0
    depth_known = np.inf
    _, nx, ny, nz = unit(pose.x, pose.y, pose.z)
    best[:] = 0.0
    best[0], best[1], best[2] = nx, ny, nz
    if body1.kind == POINT and body2.kind == POINT:
        best[6], best[7], best[8] = pose.x, pose.y, pose.z
        return _answer(reach, reach, reach, best, margin1, margin2, 0)
    smooth = body1.kind == SUPEROVOID and body2.kind == SUPEROVOID
    if warm:
        nx, ny, nz = start[0], start[1], start[2]
    if (body1.kind == SUPEROVOID or body1.kind == POINT) and (body2.kind == SUPEROVOID or body2.kind == POINT):
        if warm and smooth:
            contact1 = chart_contact(start[3], start[4], start[5])
            contact2 = chart_contact(start[6], start[7], start[8])
        else:
            # To start from, any peak of a shape with dents is good enough: without its table it is found quicker.
            pair_support(body1, vertices1[:0], body2, vertices2[:0], pose, nx, ny, nz, vertex)
            for c in range(15):
                simplex[0, c] = vertex[c]
            _, contact1 = contact_from(body1, FIRST, pose, simplex, ONE_CORNER, weights, vertex, nx, ny, nz)
            _, contact2 = contact_from(body2, SECOND, pose, simplex, ONE_CORNER, weights, vertex, nx, ny, nz)
        descent = _descend(body1, vertices1, body2, vertices2, pose, contact1, contact2, system, _FIRST_STEPS, aim)
        iterations += descent.steps
        if descent.upper < np.inf:
            _record(descent, best)
            lower, upper = descent.lower, descent.upper
            nx, ny, nz = descent.nx, descent.ny, descent.nz
            if descent.settled and upper - lower <= aim:
                distance = upper if descent.height > 0.0 else lower
                return _answer(lower, upper, distance, best, margin1, margin2, iterations)
            if descent.settled and descent.height < 0.0:
                depth_known = -lower
    for _ in range(3):
        # Simplex steps, from the best direction so far.
        count = NO_CORNERS
        inside = False
        stalled = 0
        next_descent = 5 if smooth else 2
        shortest = np.inf
        for k in range(_GJK_STEPS):
            iterations += 1
            g = pair_support(body1, vertices1, body2, vertices2, pose, nx, ny, nz, vertex)
            if g > lower:
                lower = g
                if depth_known == np.inf:
                    best[0], best[1], best[2] = nx, ny, nz
            if upper - lower <= aim and lower > -aim:
                break
            new = is_new(simplex, count, vertex)
            if count > 0 and (not new or k >= next_descent):
                next_descent = k + 6 + k // 2
                ok1, contact1 = contact_from(body1, FIRST, pose, simplex, count, weights, vertex, nx, ny, nz)
                ok2, contact2 = contact_from(body2, SECOND, pose, simplex, count, weights, vertex, nx, ny, nz)
                if ok1 and ok2:
                    descent = _descend(
                        body1, vertices1, body2, vertices2, pose, contact1, contact2, system, _LATER_STEPS, aim
                    )
                    iterations += descent.steps
                    if descent.upper < np.inf:
                        if descent.lower > lower:
                            lower = descent.lower
                            if depth_known == np.inf:
                                best[0], best[1], best[2] = descent.nx, descent.ny, descent.nz
                        if is_on_feature(
                            body1, FIRST, pose, simplex, count, weights, descent.p1, descent.p2, descent.p3
                        ) and is_on_feature(
                            body2, SECOND, pose, simplex, count, weights, descent.q1, descent.q2, descent.q3
                        ):
                            if descent.settled and descent.upper - descent.lower <= aim:
                                _record(descent, best)
                                distance = descent.upper if descent.height > 0.0 else descent.lower
                                return _answer(
                                    descent.lower, descent.upper, distance, best, margin1, margin2, iterations
                                )
                            if descent.settled and descent.height < 0.0 and -descent.lower < depth_known:
                                depth_known = -descent.lower
                                _record(descent, best)
                            elif descent.upper < upper:
                                upper = descent.upper
                                if depth_known == np.inf:
                                    best[3], best[4], best[5] = descent.p1, descent.p2, descent.p3
                                    best[6], best[7], best[8] = descent.q1, descent.q2, descent.q3
                        if upper - lower <= aim and lower > -aim:
                            break
            if not new:
                break
            for c in range(15):
                simplex[count, c] = vertex[c]
            count = reduce_simplex(simplex, count + 1, weights)
            if count == 5:
                count = np.int64(4)
                inside = True
                break
            x, y, z = nearest_point(simplex, count, weights, 0)
            length, dx, dy, dz = unit(x, y, z)
            if length < upper:
                upper = length
                if depth_known == np.inf:
                    best[3], best[4], best[5] = nearest_point(simplex, count, weights, 3)
                    best[6], best[7], best[8] = nearest_point(simplex, count, weights, 6)
                    for c in range(9, 15):
                        best[c] = vertex[c]
            if length <= rounding:
                # The origin is on the simplex: touching or inside, which the polytope will tell.
                inside = True
                break
            if length >= shortest:
                stalled += 1
                if stalled > 2:
                    break
            else:
                shortest = length
            nx, ny, nz = dx, dy, dz
        if not inside:
            break
        depth = penetration_depth(
            body1,
            vertices1,
            body2,
            vertices2,
            pose,
            simplex,
            count,
            depth_known,
            best,
            system,
            _DEPTH_GAP * size,
            prove_depth,
        )
        iterations += depth.supports + depth.steps
        if depth.depth >= -aim:
            bound = max(-depth.depth, 0.0)
            # A face further out than a height: slivers have made the polytope no longer convex, and it proves nothing.
            if 0.0 < depth.proven <= depth.depth + rounding:
                bound = -depth.proven
            return _answer(-depth.depth, bound, -depth.depth, best, margin1, margin2, iterations)
        # A flat simplex was taken for one around the origin; a direction is known now that separates.
        lower = max(lower, -depth.depth)
        nx, ny, nz = best[0], best[1], best[2]
        depth_known = np.inf
    if lower > upper + rounding:
        # A peak of a shape with dents was overlooked in some direction. Only that of the points counts then.
        _, nx, ny, nz = unit(best[6] - best[3], best[7] - best[4], best[8] - best[5])
        lower = min(pair_support(body1, vertices1, body2, vertices2, pose, nx, ny, nz, vertex), upper)
        best[0], best[1], best[2] = nx, ny, nz
    return _answer(lower, upper, upper, best, margin1, margin2, iterations)
