"""One query from packed shapes and poses to a row of numbers in the world's frame, as a kernel."""

from __future__ import annotations

import math

from numpy.typing import NDArray

from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.bodies import (
    Pair,
    RelativePose,
    body_support,
    relative_pose,
    turn_to_second,
    unit,
)
from morphit_ros.superovoid.distances.ellipsoids import is_ellipsoid, search_normal
from morphit_ros.superovoid.distances.solver import (
    CERTIFIED_GAP,
    POINTS_SHARE,
    Answer,
    Workspace,
    aimed_gap,
    make_workspace,
    outward_slack,
    settled_answer,
    solve_pair,
)
from morphit_ros.superovoid.distances.support import (
    FAST,
    HALF_SPACE,
    POINT,
    SUPEROVOID,
    Body,
    inlined,
    inner,
    make_body,
    norm_pair,
)

# Columns of a row of results.
DISTANCE, LOWER, UPPER, POINTS, NORMAL, CHARTS, ITERATIONS, STATUS, OF_HULL = 0, 1, 2, 3, 9, 12, 18, 19, 20
COLUMNS = 21

CERTIFIED, UNCERTIFIED, BEYOND, FAILED = 0, 1, 2, 3

_RIGID = 1e-6
# How far outside of a shape a point may be that counts as one of it, in its norm.
_ON_SHAPE = 1e-10


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def is_rigid(T: NDArray) -> bool:
    """Whether a (4, 4) matrix is finite and a rigid motion within 1e-6."""
    for i in range(3):
        if not abs(T[i, 3]) < math.inf:
            return False
        for j in range(i, 3):
            dot = T[0, i] * T[0, j] + T[1, i] * T[1, j] + T[2, i] * T[2, j]
            if not abs(dot - (1.0 if i == j else 0.0)) < _RIGID:
                return False
    volume = (
        T[0, 0] * (T[1, 1] * T[2, 2] - T[1, 2] * T[2, 1])
        - T[0, 1] * (T[1, 0] * T[2, 2] - T[1, 2] * T[2, 0])
        + T[0, 2] * (T[1, 0] * T[2, 1] - T[1, 1] * T[2, 0])
    )
    return volume > 0.0 and T[3, 0] == 0.0 and T[3, 1] == 0.0 and T[3, 2] == 0.0 and T[3, 3] == 1.0


@inner
def _plane(body: Body, vertices: NDArray, pose: RelativePose) -> tuple[float, float, float]:
    """Lowest point of body 2 over the plane z = 0 of frame 1: its height, and its x and y."""
    mx, my, mz = turn_to_second(pose, 0.0, 0.0, -1.0)
    x, y, z, _, _, _ = body_support(body, vertices, mx, my, mz)
    h = pose.z - (x * mx + y * my + z * mz) - body.margin
    px = pose.r11 * x + pose.r12 * y + pose.r13 * z + pose.x
    py = pose.r21 * x + pose.r22 * y + pose.r23 * z + pose.y
    return h, px, py


@inner
def is_in_superovoid(body: Body, x: float, y: float, z: float) -> bool:
    """Whether a point of the body's frame belongs to the shape itself."""
    s = z / body.a3
    if abs(s) > 1.0:
        s = math.copysign(1.0, s)
    n, _, _, _, _ = norm_pair(
        abs(x) / (body.a1 * (1.0 + body.t1 * s)),
        abs(y) / (body.a2 * (1.0 + body.t2 * s)),
        body.chart1 if body.by_point1 else body.chart1 / (body.chart1 - 1.0),
    )
    n, _, _, _, _ = norm_pair(n, abs(z) / body.a3, body.chart2 if body.by_point2 else body.chart2 / (body.chart2 - 1.0))
    return n <= 1.0 + _ON_SHAPE


@inner
def _query_ellipsoids(row1: NDArray, T1: NDArray, row2: NDArray, T2: NDArray, warm: NDArray, out: NDArray) -> bool:
    """As `query` for two points or ellipsoids that are apart, without what others need; False for the rest."""
    if row1[0] > POINT or row2[0] > POINT:
        return False
    body1, body2 = make_body(row1), make_body(row2)
    if not (is_ellipsoid(body1) and is_ellipsoid(body2)):
        return False
    pose = relative_pose(T1, T2)
    length, nx, ny, nz = unit(pose.x, pose.y, pose.z)
    # The frames' origins are points of the bodies.
    if body1.kind == POINT and body2.kind == POINT:
        answer = settled_answer(
            body1, body2, pose, length, length, 0.0, 0.0, 0.0, pose.x, pose.y, pose.z, nx, ny, nz, 0
        )
        _write(answer, body1, body2, pose, T1, out)
        return True
    if warm.shape[0] == COLUMNS:
        a, b, c = warm[NORMAL], warm[NORMAL + 1], warm[NORMAL + 2]
        size, a, b, c = unit(
            T1[0, 0] * a + T1[1, 0] * b + T1[2, 0] * c,
            T1[0, 1] * a + T1[1, 1] * b + T1[2, 1] * c,
            T1[0, 2] * a + T1[1, 2] * b + T1[2, 2] * c,
        )
        if size > 0.5:
            nx, ny, nz = a, b, c
    aim = aimed_gap(body1, body2, pose)
    found = search_normal(body1, body2, pose, nx, ny, nz, POINTS_SHARE, aim)
    d1, d2, d3 = found.q1 - found.p1, found.q2 - found.p2, found.q3 - found.p3
    upper = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
    if not (found.height > 0.0 and upper - found.height <= aim):
        return False
    answer = settled_answer(
        body1,
        body2,
        pose,
        found.height,
        upper,
        found.p1,
        found.p2,
        found.p3,
        found.q1,
        found.q2,
        found.q3,
        found.nx,
        found.ny,
        found.nz,
        found.steps,
    )
    _write(answer, body1, body2, pose, T1, out)
    return True


@inner
def query(
    row1: NDArray,
    vertices1: NDArray,
    T1: NDArray,
    row2: NDArray,
    vertices2: NDArray,
    T2: NDArray,
    warm: NDArray,
    prove_depth: bool,
    workspace: Workspace,
    out: NDArray,
) -> None:
    """Solve one pair and write a row of results (21,) in the world's frame.

    `warm` is an earlier row of the same pair, or has no elements. Poses are taken to be rigid.
    """
    if _query_ellipsoids(row1, T1, row2, T2, warm, out):
        return
    body1, body2 = make_body(row1), make_body(row2)
    pose = relative_pose(T1, T2)
    swap = body2.kind == HALF_SPACE
    if swap or body1.kind == HALF_SPACE:
        if swap:
            back = relative_pose(T2, T1)
            h, px, py = _plane(body1, vertices1, back)
            T = T2
        else:
            h, px, py = _plane(body2, vertices2, pose)
            T = T1
        slack = outward_slack(pose, max(body1.size, body2.size))
        out[DISTANCE], out[LOWER], out[UPPER] = h, h - slack, h + slack
        side = -1.0 if swap else 1.0
        for i in range(3):
            foot = T[i, 0] * px + T[i, 1] * py + T[i, 3]
            low = foot + T[i, 2] * h
            out[POINTS + i] = low if swap else foot
            out[POINTS + 3 + i] = foot if swap else low
            out[NORMAL + i] = side * T[i, 2]
            out[CHARTS + i] = out[CHARTS + 3 + i] = 0.0
        out[ITERATIONS] = 1
        out[STATUS] = CERTIFIED
        # The lowest point of a hull is one of the shape.
        out[OF_HULL] = 0.0
        return
    start = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    is_warm = warm.shape[0] == COLUMNS
    if is_warm:
        a, b, c = warm[NORMAL], warm[NORMAL + 1], warm[NORMAL + 2]
        start = (
            T1[0, 0] * a + T1[1, 0] * b + T1[2, 0] * c,
            T1[0, 1] * a + T1[1, 1] * b + T1[2, 1] * c,
            T1[0, 2] * a + T1[1, 2] * b + T1[2, 2] * c,
            warm[CHARTS],
            warm[CHARTS + 1],
            warm[CHARTS + 2],
            warm[CHARTS + 3],
            warm[CHARTS + 4],
            warm[CHARTS + 5],
        )
        empty = False
        for side in range(3):
            i = 3 * side
            if not abs(start[i]) + abs(start[i + 1]) + abs(start[i + 2]) > 0.0:
                # No direction was left behind: a cold start for two superovoids.
                empty = empty or side == 0 or (body1.kind == SUPEROVOID and body2.kind == SUPEROVOID)
        is_warm = not empty
    pair = Pair(body1, vertices1, body2, vertices2, pose)
    answer = solve_pair(pair, is_warm, start, prove_depth, workspace)
    _write(answer, body1, body2, pose, T1, out)


@inlined
def _do_points_agree(answer: Answer, tolerance: float) -> bool:
    """Whether the distance is that of the points, and that of the points along the normal."""
    d1, d2, d3 = answer.q1 - answer.p1, answer.q2 - answer.p2, answer.q3 - answer.p3
    along = d1 * answer.n1 + d2 * answer.n2 + d3 * answer.n3
    length = math.sqrt(d1 * d1 + d2 * d2 + d3 * d3)
    return abs(along - answer.distance) <= tolerance and abs(length - abs(answer.distance)) <= tolerance


@inner
def _write(answer: Answer, body1: Body, body2: Body, pose: RelativePose, T1: NDArray, out: NDArray) -> None:
    out[DISTANCE], out[LOWER], out[UPPER] = answer.distance, answer.lower, answer.upper
    for i in range(3):
        out[POINTS + i] = T1[i, 0] * answer.p1 + T1[i, 1] * answer.p2 + T1[i, 2] * answer.p3 + T1[i, 3]
        out[POINTS + 3 + i] = T1[i, 0] * answer.q1 + T1[i, 1] * answer.q2 + T1[i, 2] * answer.q3 + T1[i, 3]
        out[NORMAL + i] = T1[i, 0] * answer.n1 + T1[i, 1] * answer.n2 + T1[i, 2] * answer.n3
    out[CHARTS], out[CHARTS + 1], out[CHARTS + 2] = answer.u1, answer.u2, answer.u3
    out[CHARTS + 3], out[CHARTS + 4], out[CHARTS + 5] = answer.w1, answer.w2, answer.w3
    out[ITERATIONS] = answer.iterations
    size = max(body1.size, body2.size)
    gap = answer.upper - answer.lower
    # Not so where the bounds contradict each other or are no numbers, nor where the points say another distance.
    certified = abs(gap) <= CERTIFIED_GAP * size and _do_points_agree(answer, CERTIFIED_GAP * size)
    out[STATUS] = CERTIFIED if certified else UNCERTIFIED
    hull = False
    if body1.dented or body2.dented:
        if answer.distance <= 0.0:
            hull = True
        else:
            if body1.dented:
                m = body1.margin
                hull = not is_in_superovoid(
                    body1, answer.p1 - m * answer.n1, answer.p2 - m * answer.n2, answer.p3 - m * answer.n3
                )
            if body2.dented and not hull:
                x, y, z = turn_to_second(pose, answer.q1 - pose.x, answer.q2 - pose.y, answer.q3 - pose.z)
                hull = not is_in_superovoid(body2, x, y, z)
    out[OF_HULL] = 1.0 if hull else 0.0


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def query_once(
    row1: NDArray,
    vertices1: NDArray,
    T1: NDArray,
    row2: NDArray,
    vertices2: NDArray,
    T2: NDArray,
    warm: NDArray,
    prove_depth: bool,
    out: NDArray,
) -> bool:
    """As `query`, with checked poses; False where one is no rigid motion."""
    if T1.shape[0] != 4 or T1.shape[1] != 4 or T2.shape[0] != 4 or T2.shape[1] != 4:
        return False
    if not (is_rigid(T1) and is_rigid(T2)):
        return False
    if _query_ellipsoids(row1, T1, row2, T2, warm, out):
        return True
    query(row1, vertices1, T1, row2, vertices2, T2, warm, prove_depth, make_workspace(), out)
    return True
