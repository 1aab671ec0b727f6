"""Kernels of robot distances: shapes placed by joint positions, pairs sifted by bounds, the rest solved."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.chain import JointMotions, multiply, place_joints
from morphit_ros.superovoid.distances.bodies import Pair, pair_support_near, relative_pose, unit
from morphit_ros.superovoid.distances.broad_phase import sphere_bound
from morphit_ros.superovoid.distances.queries import (
    CERTIFIED,
    CHARTS,
    COLUMNS,
    DISTANCE,
    LOWER,
    NORMAL,
    POINTS,
    STATUS,
    UNCERTIFIED,
    UPPER,
    query,
)
from morphit_ros.superovoid.distances.solver import Workspace, make_workspace, outward_slack
from morphit_ros.superovoid.distances.support import FAST, HALF_SPACE, make_body

# How much of a state is asked for: the nearest of all pairs, of each pair of bodies, or every pair of shapes.
NEAREST, OF_EACH_GROUP, EVERY = 0, 1, 2


class CarriedShapes(NamedTuple):
    """Shapes as arrays, and the joints that carry them.

    Attributes:
        packed, vertices, offsets, spheres: as of `packing.ShapeTable`.
        rows: (S,) joint behind which each is fixed, -1: the root.
        T_joint_shape: (S, 4, 4).
    """

    packed: Array
    vertices: Array
    offsets: NDArray[np.int64]
    spheres: Array
    rows: NDArray[np.int64]
    T_joint_shape: Array


@njit(cache=True, nogil=True)
def place_shapes(
    motions: JointMotions, table: CarriedShapes, positions: Array, joints: Array, poses: Array, spheres: Array
) -> None:
    """Fill ``T_root_joint`` (K, 4, 4), ``T_root_shape`` (S, 4, 4) and the bounding spheres (S, 4) in the root frame."""
    place_joints(motions, positions, joints)
    for i in range(len(table.rows)):
        row = table.rows[i]
        if row < 0:
            poses[i] = table.T_joint_shape[i]
        else:
            multiply(joints[row], table.T_joint_shape[i], poses[i])
        c, pose = table.spheres[i], poses[i]
        spheres[i, 3] = c[3]
        for r in range(3):
            spheres[i, r] = pose[r, 0] * c[0] + pose[r, 1] * c[1] + pose[r, 2] * c[2] + pose[r, 3]


@njit(cache=True, nogil=True)
def _sphere_gap(table: CarriedShapes, spheres: Array, poses: Array, i: int, j: int) -> float:
    """Lower bound of the distance of two shapes by their bounding spheres, or by sphere and plane."""
    plane, ball = (i, j) if math.isinf(table.spheres[i, 3]) else (j, i)
    if math.isinf(table.spheres[plane, 3]):
        height = 0.0
        for r in range(3):
            height += poses[plane, r, 2] * (spheres[ball, r] - poses[plane, r, 3])
        return height - table.spheres[ball, 3] - 1e-12 * abs(height)
    return sphere_bound(spheres[i], spheres[j])


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _direction_gap(
    table: CarriedShapes, spheres: Array, poses: Array, i: int, j: int, latest: Array, vertex: Array
) -> float:
    """Lower bound of the distance of two shapes: their height along the latest normal, or between their spheres.

    `latest` is an earlier answer (21,) of the pair, of zeros or without elements where there is none.
    """
    if table.packed[i, 0] == HALF_SPACE or table.packed[j, 0] == HALF_SPACE:
        return -math.inf
    x, y, z = spheres[j, 0] - spheres[i, 0], spheres[j, 1] - spheres[i, 1], spheres[j, 2] - spheres[i, 2]
    vertex[9:] = 0.0
    if has_answer(latest):
        x, y, z = latest[NORMAL], latest[NORMAL + 1], latest[NORMAL + 2]
        vertex[9:] = latest[CHARTS : CHARTS + 6]
    length, x, y, z = unit(x, y, z)
    return plane_gap(table, poses, i, j, x, y, z, vertex) if length > 0.0 else -math.inf


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def plane_gap(table: CarriedShapes, poses: Array, i: int, j: int, x: float, y: float, z: float, vertex: Array) -> float:
    """How far apart two planes across a unit direction are that hold two bounded shapes off each other.

    `vertex` (15,) holds charts of a direction nearby, or zeros, in its last six, and receives those of this one.
    """
    body1, body2 = make_body(table.packed[i]), make_body(table.packed[j])
    T = poses[i]
    pair = Pair(
        body1,
        table.vertices[table.offsets[i] : table.offsets[i + 1]],
        body2,
        table.vertices[table.offsets[j] : table.offsets[j + 1]],
        relative_pose(poses[i], poses[j]),
    )
    g = pair_support_near(
        pair,
        T[0, 0] * x + T[1, 0] * y + T[2, 0] * z,
        T[0, 1] * x + T[1, 1] * y + T[2, 1] * z,
        T[0, 2] * x + T[1, 2] * y + T[2, 2] * z,
        vertex,
        vertex,
    )
    return g - body1.margin - body2.margin - outward_slack(pair.pose, max(body1.size, body2.size))


@njit(cache=True, nogil=True)
def has_answer(latest: Array) -> bool:
    """Whether a row is an earlier answer: those of the memory begin with zeros."""
    return latest.shape[0] > 0 and latest[UPPER] != 0.0


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def _solve(
    table: CarriedShapes,
    poses: Array,
    i: int,
    j: int,
    latest: Array,
    prove_depth: bool,
    workspace: Workspace,
    out: Array,
) -> None:
    """Solve a pair from its latest answer, which becomes this one."""
    query(
        table.packed[i],
        table.vertices[table.offsets[i] : table.offsets[i + 1]],
        poses[i],
        table.packed[j],
        table.vertices[table.offsets[j] : table.offsets[j + 1]],
        poses[j],
        latest if has_answer(latest) else latest[:0],
        prove_depth,
        workspace,
        out,
    )
    if latest.shape[0] > 0:
        latest[:] = out


@njit(cache=True, nogil=True)
def solve_state(
    motions: JointMotions,
    table: CarriedShapes,
    positions: Array,
    pairs: NDArray[np.int64],
    groups: NDArray[np.int64],
    scope: int,
    threshold: float,
    signed: bool,
    memory: Array,
    joints: Array,
    index: NDArray[np.int64],
    rows: Array,
) -> int:
    """Distances at joint positions (J,): how many, which pairs of shapes (P,), and their answers (P, 21).

    Args:
        pairs: (P, 2) of shapes.
        groups: (P,) the pair of bodies that each belongs to, in runs.
        scope: NEAREST of all, the nearest OF_EACH_GROUP, or EVERY pair.
        threshold: pairs further apart are left out [m].
        signed: whether depths are wanted; otherwise NEAREST ends with the first pair that touches.
        memory: (P, 21) the latest answers, to start from and to be replaced; or (0, 21).
        joints: (K, 4, 4) receives ``T_root_joint``.
    """
    count = len(table.rows)
    poses, spheres = np.empty((count, 4, 4)), np.empty((count, 4))
    place_shapes(motions, table, positions, joints, poses, spheres)
    if scope == NEAREST:
        index[0] = _solve_nearest(table, poses, spheres, pairs, threshold, signed, memory, rows[0])
        return 1 if index[0] >= 0 else 0
    return _solve_within(
        table, poses, spheres, pairs, groups, threshold, scope == OF_EACH_GROUP, signed, memory, index, rows
    )


@njit(cache=True, nogil=True)
def _solve_nearest(
    table: CarriedShapes,
    poses: Array,
    spheres: Array,
    pairs: NDArray[np.int64],
    threshold: float,
    signed: bool,
    memory: Array,
    row: Array,
) -> int:
    """The nearest of pairs (P, 2) of shapes: its index, and its answer in `row` (21,). -1: all beyond the threshold.

    Without `signed` it ends with the first pair that touches.
    """
    count = len(pairs)
    cold = np.empty(0)
    gaps = np.empty(count)
    first = -1
    likely = -1
    for k in range(count):
        gaps[k] = _sphere_gap(table, spheres, poses, pairs[k, 0], pairs[k, 1])
        if first < 0 or gaps[k] < gaps[first]:
            first = k
        if len(memory) and has_answer(memory[k]) and (likely < 0 or memory[k, DISTANCE] < memory[likely, DISTANCE]):
            likely = k
    if first < 0:
        return -1
    if likely >= 0:
        first = likely
    workspace = make_workspace()
    out, vertex = np.empty(COLUMNS), np.empty(15)
    best, nearest = threshold, -1
    # The pair that was nearest, or whose spheres are, gives a bound; only what could be below it is put into order.
    latest = memory[first] if len(memory) else cold
    _solve(table, poses, pairs[first, 0], pairs[first, 1], latest, signed, workspace, out)
    row[:] = out
    if out[DISTANCE] <= best:
        best, nearest = out[DISTANCE], first
    left = np.empty(count, np.int64)
    bounds = np.empty(count)
    kept = 0
    for k in range(count):
        if k != first and gaps[k] < best:
            bound = gaps[k]
            if len(memory) and has_answer(memory[k]):
                bound = max(bound, _direction_gap(table, spheres, poses, pairs[k, 0], pairs[k, 1], memory[k], vertex))
            if bound < best:
                # The robot may have moved far.
                bound = max(bound, _direction_gap(table, spheres, poses, pairs[k, 0], pairs[k, 1], cold, vertex))
            if bound < best:
                left[kept] = k
                bounds[kept] = bound
                kept += 1
    order = np.argsort(bounds[:kept])
    for n in range(kept):
        if bounds[order[n]] >= best or (not signed and nearest >= 0 and best <= 0.0):
            break
        k = left[order[n]]
        latest = memory[k] if len(memory) else cold
        _solve(table, poses, pairs[k, 0], pairs[k, 1], latest, signed, workspace, out)
        if out[DISTANCE] < best or (nearest < 0 and out[DISTANCE] <= best):
            best, nearest = out[DISTANCE], k
            _bound_also(out, row)
            row[:] = out
        else:
            _bound_also(row, out)
    return nearest


@njit(cache=True, nogil=True)
def _bound_also(row: Array, other: Array) -> None:
    """Lower the bound of the nearest pair (21,) to that of another, which may be less by the gap of certificates."""
    if other[LOWER] < row[LOWER]:
        row[LOWER] = other[LOWER]
        if other[STATUS] != CERTIFIED:
            row[STATUS] = UNCERTIFIED


@njit(cache=True, nogil=True)
def _solve_within(
    table: CarriedShapes,
    poses: Array,
    spheres: Array,
    pairs: NDArray[np.int64],
    groups: NDArray[np.int64],
    threshold: float,
    only_nearest: bool,
    signed: bool,
    memory: Array,
    index: NDArray[np.int64],
    rows: Array,
) -> int:
    """All pairs (P, 2) of shapes that may be within a threshold: how many, indices (P,), answers (P, 21).

    With `only_nearest` of each run of equal `groups` (P,), the pairs of shapes of two bodies, just the nearest.
    """
    workspace = make_workspace()
    cold, vertex = np.empty(0), np.empty(15)
    count = 0
    for k in range(len(pairs)):
        i, j = pairs[k, 0], pairs[k, 1]
        known = only_nearest and count > 0 and groups[index[count - 1]] == groups[k]
        limit = rows[count - 1, DISTANCE] if known else threshold
        latest = memory[k] if len(memory) else cold
        if limit < math.inf:
            if _sphere_gap(table, spheres, poses, i, j) > limit:
                continue
            if _direction_gap(table, spheres, poses, i, j, latest, vertex) > limit:
                continue
        _solve(table, poses, i, j, latest, signed, workspace, rows[count])
        distance = rows[count, DISTANCE]
        if known:
            if distance < limit:
                _bound_also(rows[count], rows[count - 1])
                rows[count - 1] = rows[count]
                index[count - 1] = k
            else:
                _bound_also(rows[count - 1], rows[count])
        elif distance <= limit or (rows[count, STATUS] != CERTIFIED and rows[count, LOWER] <= limit):
            index[count] = k
            count += 1
    return count


@njit(cache=True, nogil=True)
def fill_gradients(
    motions: JointMotions, joints: Array, carriers: NDArray[np.int64], pairs: NDArray[np.int64], rows: Array, out: Array
) -> None:
    """Fill the derivatives (K, V) of the distances of pairs (K, 2) of shapes on joints (S,), of answers (K, 21)."""
    for k in range(len(pairs)):
        fill_gradient(motions, joints, carriers[pairs[k, 0]], carriers[pairs[k, 1]], rows[k], out[k])


@njit(cache=True, nogil=True)
def fill_gradient(motions: JointMotions, joints: Array, row1: int, row2: int, answer: Array, gradient: Array) -> None:
    """Fill the derivative (V,) of a distance by the joints' variables, from the points and the normal of an answer.

    The distance is n · (q - p), and as the points may slide on their surfaces only the motion of the bodies counts:
    dd = n · (J2(q) - J1(p)) dx.
    """
    gradient[:] = 0.0
    n0, n1, n2 = answer[NORMAL], answer[NORMAL + 1], answer[NORMAL + 2]
    for side in range(2):
        sign = 1.0 if side == 1 else -1.0
        p = POINTS + 3 * side
        j = row2 if side == 1 else row1
        while j >= 0:
            variable = motions.variables[j]
            if variable >= 0:
                T, axis = joints[j], motions.axes[j]
                a0 = T[0, 0] * axis[0] + T[0, 1] * axis[1] + T[0, 2] * axis[2]
                a1 = T[1, 0] * axis[0] + T[1, 1] * axis[1] + T[1, 2] * axis[2]
                a2 = T[2, 0] * axis[0] + T[2, 1] * axis[1] + T[2, 2] * axis[2]
                if motions.sliding[j]:
                    rate = n0 * a0 + n1 * a1 + n2 * a2
                else:
                    x, y, z = answer[p] - T[0, 3], answer[p + 1] - T[1, 3], answer[p + 2] - T[2, 3]
                    rate = n0 * (a1 * z - a2 * y) + n1 * (a2 * x - a0 * z) + n2 * (a0 * y - a1 * x)
                gradient[variable] += sign * motions.multipliers[j] * rate
            j = motions.parents[j]
