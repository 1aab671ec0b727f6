"""The proof that a path is free for all its length: bounds on how far spheres move, and how far they are from all else.

Around the middle of a piece of the path no point of a part moves farther than the sum over its joints, from the tip to
the base, of angle times distance from the axis, where that distance is what it was in the middle and what the joints
behind have added. Where a sphere is farther than that from everything, the piece is free; otherwise its halves
are looked at.
"""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.triangle_tree import least_square, surface_gap
from morphit_ros.jit import lean_njit, njit
from morphit_ros.motion.cloud import cloud_distance, cloud_far
from morphit_ros.motion.model import ArmArrays
from morphit_ros.motion.world import WorldArrays
from morphit_ros.robot.chain import Indices, place_joints

_CLEAR, _UNDECIDED, _TOUCHING, _GOING_ON = 0, 1, 2, 3
# Configurations between two looks at the clock: a few milliseconds. So many as well where surfaces are known: next to
# each other they take up to a millisecond at each.
_LOOKS, _SURFACE_LOOKS = 500, 10
# Of all lengths that are compared, against rounding [m].
_ROUNDING = 1e-9
# How far beyond a sphere points of a cloud are looked for in a proof [m].
_NEAR = 0.03


class Verdict(enum.Enum):
    """What is known of a path."""

    PROVEN_FREE = "proven free"
    FREE_AT_SAMPLES = "free at samples"
    TOUCHING = "touching"


@dataclass(frozen=True)
class Certificate:
    """What is known of a path of spheres.

    Attributes:
        verdict: PROVEN_FREE for all its length, FREE_AT_SAMPLES where work or time allowed was not enough, or TOUCHING.
        looked_at: configurations.
        segment, share: unless PROVEN_FREE, where: row of the corner before, and share of the way to the next.
        bodies: unless PROVEN_FREE, the two that touch or are not proven apart there: indices of parts, or of a part
            and -1 - the index of a solid. None where the time ended.
    """

    verdict: Verdict
    looked_at: int
    segment: int = -1
    share: float = 0.0
    bodies: tuple[int, int] | None = None


@lean_njit
def solid_distance(world: WorldArrays, n: int, point: Array, limit: float) -> float:
    """Signed distance [m] of a point to a solid, of a mesh to its surface.

    Where it is not less than the limit something that is not less is enough.
    """
    turn, center, halves = world.rotations[n], world.centers[n], world.halves[n]
    u, v, w = point[0] - center[0], point[1] - center[1], point[2] - center[2]
    x = turn[0, 0] * u + turn[1, 0] * v + turn[2, 0] * w
    y = turn[0, 1] * u + turn[1, 1] * v + turn[2, 1] * w
    z = turn[0, 2] * u + turn[1, 2] * v + turn[2, 2] * w
    if n < world.boxes:
        a, b, c = abs(x) - halves[0], abs(y) - halves[1], abs(z) - halves[2]
        outside = max(a, 0.0) ** 2 + max(b, 0.0) ** 2 + max(c, 0.0) ** 2
        inside = max(a, b, c)
        if world.meshes[n] >= 0:
            reach = max(limit + world.radii[n], 0.0)
            if outside < reach * reach:
                reach = reach * (1.0 + 1e-12) + 1e-12
                square = least_square(world.trees, world.meshes[n], x, y, z, reach * reach, -1.0)
                return float(np.sqrt(square) - world.radii[n])
            return float(np.sqrt(outside) - world.radii[n])
    else:
        aside = np.sqrt(x * x + y * y) - halves[0]
        up = abs(z) - halves[2]
        outside = max(aside, 0.0) ** 2 + max(up, 0.0) ** 2
        inside = max(aside, up)
    return float(np.sqrt(outside) + min(inside, 0.0) - world.radii[n])


@lean_njit
def _far_from_cloud(world: WorldArrays, point: Array, reach: float) -> bool:
    """Whether a point is known at once to be more than so far from the cloud [m]."""
    return bool(cloud_far(world.cloud, point[0], point[1], point[2], reach + 1e-12 + 1e-12 * abs(reach)))


@lean_njit
def _from_cloud(world: WorldArrays, point: Array, limit: float) -> float:
    """Distance [m] of a point to the cloud, or something beyond the limit."""
    limit += 1e-12 + 1e-12 * abs(limit)
    return float(cloud_distance(world.cloud, point[0], point[1], point[2], limit, -np.inf))


@lean_njit
def _place(joints: Array, row: int, point: Array, placed: Array) -> None:
    for r in range(3):
        placed[r] = point[r]
        if row >= 0:
            placed[r] = (
                joints[row, r, 0] * point[0] + joints[row, r, 1] * point[1] + joints[row, r, 2] * point[2]
            ) + joints[row, r, 3]


@lean_njit
def _place_all(arm: ArmArrays, configuration: Array, joints: Array, balls: Array, spheres: Array) -> None:
    place_joints(arm.motions, configuration, joints)
    for p in range(len(arm.rows)):
        _place(joints, arm.rows[p], arm.ball_centers[p], balls[p])
        for m in range(arm.starts[p], arm.starts[p + 1]):
            _place(joints, arm.rows[p], arm.centers[m], spheres[m])


@njit(cache=True, nogil=True)
def placed_spheres(arm: ArmArrays, configuration: Array) -> Array:
    """Centres (S, 3) of all spheres at a configuration (J,), in the root's frame [m]."""
    spheres = np.empty((len(arm.radii), 3))
    _place_all(arm, configuration, np.empty((len(arm.motions.parents), 4, 4)), np.empty((len(arm.rows), 3)), spheres)
    return spheres


@lean_njit
def way_bound(arm: ArmArrays, p: int, q: int, joints: Array, center: Array, radius: float, half: Array) -> float:
    """How far any point of a ball of part p moves at most [m] against what joints of part q (-1: none) carry too.

    Args:
        arm: the robot.
        p, q: parts.
        joints: (K, 4, 4) frames in the middle.
        center, radius: the ball in the middle, in the root's frame.
        half: (J,) how far each planned joint goes from the middle [rad or m].
    """
    way = 0.0
    row = arm.rows[p]
    while row >= 0:
        if q < 0 or not arm.carried[q, row]:
            turn = abs(arm.motions.multipliers[row]) * half[arm.motions.variables[row]]
            if arm.motions.sliding[row]:
                way += turn
            else:
                x, y, z = (center[0] - joints[row, 0, 3], center[1] - joints[row, 1, 3], center[2] - joints[row, 2, 3])
                a, b, c = joints[row, 0, 2], joints[row, 1, 2], joints[row, 2, 2]
                u, v, w = y * c - z * b, z * a - x * c, x * b - y * a
                way += turn * (np.sqrt(u * u + v * v + w * w) + radius + way)
        row = arm.motions.parents[row]
    return way


@lean_njit
def _distance(first: Array, second: Array) -> float:
    x, y, z = first[0] - second[0], first[1] - second[1], first[2] - second[2]
    return float(np.sqrt(x * x + y * y + z * z))


@njit(cache=True, nogil=True)
def _surface_gap(arm: ArmArrays, joints: Array, p: int, q: int, limit: float) -> float:
    """What the surfaces of two parts are at least apart beyond the margin [m]; the limit if that is more."""
    first = joints[arm.rows[p]] if arm.rows[p] >= 0 else np.eye(4)
    second = joints[arm.rows[q]] if arm.rows[q] >= 0 else np.eye(4)
    found = surface_gap(arm.trees, arm.meshes[p], arm.meshes[q], first, second, limit + arm.margin, arm.margin)
    return float(found - arm.margin)


@lean_njit
def _pair_gap(arm: ArmArrays, joints: Array, balls: Array, spheres: Array, p: int, q: int, limit: float) -> float:
    """What two parts are at least apart [m], by spheres or by surfaces; the limit if that is more.

    Where neither says that they are apart, less by how deep the spheres overlap. Surfaces say nothing about a part that
    is wholly inside of the other.
    """
    gap = limit
    for m in range(arm.starts[p], arm.starts[p + 1]):
        if _distance(spheres[m], balls[q]) - arm.radii[m] - arm.ball_radii[q] >= gap:
            continue
        for n in range(arm.starts[q], arm.starts[q + 1]):
            gap = min(gap, _distance(spheres[m], spheres[n]) - arm.radii[m] - arm.radii[n])
    if gap < limit and arm.meshes[p] >= 0 and arm.meshes[q] >= 0:
        # That of spheres is a bound, too.
        between = _surface_gap(arm, joints, p, q, limit)
        if between > max(gap, 0.0):
            gap = between
    return float(min(gap, limit))


@lean_njit
def _look_around(
    arm: ArmArrays, world: WorldArrays, half: Array, joints: Array, balls: Array, spheres: Array
) -> tuple[int, int, int]:
    """Whether all is free within `half` (J,) of a placed configuration, and the two bodies for which it is not.

    _TOUCHING is said only of what touches in the middle.
    """
    undecided = (_CLEAR, 0, 0)
    for p in range(len(arm.rows)):
        if arm.rows[p] < 0:
            continue
        way = way_bound(arm, p, -1, joints, balls[p], arm.ball_radii[p], half) + _ROUNDING
        for n in range(len(world.radii)):
            if world.allowed[p, n] or solid_distance(world, n, balls[p], arm.ball_radii[p] + way) > (
                arm.ball_radii[p] + way
            ):
                continue
            for m in range(arm.starts[p], arm.starts[p + 1]):
                gap = solid_distance(world, n, spheres[m], arm.radii[m] + way) - arm.radii[m]
                if gap <= 0.0:
                    return _TOUCHING, p, -1 - n
                if gap > way:
                    continue
                if gap <= way_bound(arm, p, -1, joints, spheres[m], arm.radii[m], half) + _ROUNDING:
                    undecided = (_UNDECIDED, p, -1 - n)
        n = len(world.radii)
        if world.allowed[p, n] or _far_from_cloud(world, balls[p], arm.ball_radii[p] + way):
            continue
        for m in range(arm.starts[p], arm.starts[p + 1]):
            own = min(way_bound(arm, p, -1, joints, spheres[m], arm.radii[m], half) + _ROUNDING, way)
            if _far_from_cloud(world, spheres[m], arm.radii[m] + own):
                continue
            # Points are looked for so far only: what moves further is looked at again in halves.
            gap = _from_cloud(world, spheres[m], arm.radii[m] + min(own, _NEAR)) - arm.radii[m]
            if gap <= 0.0:
                return _TOUCHING, p, -1 - n
            if gap <= own:
                undecided = (_UNDECIDED, p, -1 - n)
    for t in range(len(arm.pairs)):
        p, q = arm.pairs[t, 0], arm.pairs[t, 1]
        way = (
            way_bound(arm, p, q, joints, balls[p], arm.ball_radii[p], half)
            + way_bound(arm, q, p, joints, balls[q], arm.ball_radii[q], half)
            + _ROUNDING
        )
        if _distance(balls[p], balls[q]) > arm.ball_radii[p] + arm.ball_radii[q] + way:
            continue
        # Just beyond, so that what is as far as the way is not taken for farther.
        gap = _pair_gap(arm, joints, balls, spheres, p, q, way * (1.0 + 1e-9) + _ROUNDING)
        if gap <= 0.0:
            return _TOUCHING, p, q
        if gap <= way:
            undecided = (_UNDECIDED, p, q)
    return undecided


@njit(cache=True, nogil=True)
def _certify(
    arm: ArmArrays,
    world: WorldArrays,
    path: Array,
    beside: Array,
    budget: int,
    waiting: Array,
    state: Indices,
    looks: int,
) -> tuple[int, float, int, int]:
    """Verdict, and share and the two bodies where it is not proven; _GOING_ON after so many configurations.

    Args:
        arm, world, path, beside, budget: of `certify_path`.
        waiting: (D, 2) pieces of the segment that wait, as middle and half width in shares of it.
        state: (3,) integers: the segment, how many pieces of it wait, and configurations looked at. Both are changed in
            place; a later call goes on with them.
        looks: most configurations looked at in this call.
    """
    size, count = path.shape[1], path.shape[0]
    joints = np.empty((len(arm.motions.parents), 4, 4))
    balls, spheres = np.empty((len(arm.rows), 3)), np.empty((len(arm.radii), 3))
    middle, half = np.empty(size), np.empty(size)
    end = state[2] + looks
    while state[0] < max(count - 1, 1):
        segment = state[0]
        first, last = path[segment], path[min(segment + 1, count - 1)]
        while state[1] > 0:
            share, width = waiting[state[1] - 1]
            if state[2] >= end:
                return _GOING_ON, share, 0, 0
            state[1] -= 1
            for j in range(size):
                middle[j] = first[j] + share * (last[j] - first[j])
                # A little wider against rounding of the middle.
                half[j] = width * abs(last[j] - first[j]) + beside[min(segment, len(beside) - 1), j] + 1e-12
            _place_all(arm, middle, joints, balls, spheres)
            state[2] += 1
            verdict, p, other = _look_around(arm, world, half, joints, balls, spheres)
            if verdict == _CLEAR:
                continue
            if verdict == _TOUCHING or state[2] >= budget or state[1] + 2 > len(waiting):
                return verdict, share, p, other
            for side in (1.0, -1.0):
                waiting[state[1], 0], waiting[state[1], 1] = share + side * 0.5 * width, 0.5 * width
                state[1] += 1
        state[0] += 1
        waiting[0] = 0.5, 0.5
        state[1] = 1
    return _CLEAR, 0.0, 0, 0


def certify_path(
    arm: ArmArrays,
    world: WorldArrays,
    path: Array,
    budget: int = 20000,
    beside: Array | None = None,
    until: float = np.inf,
) -> Certificate:
    """Prove that a path is free, between its corners too.

    What stands still is not held against the world, nor pairs of parts that `arm` does not list.

    Args:
        arm, world: what must not touch.
        path: (N, J) configurations; straight between them.
        budget: most configurations looked at.
        beside: (N - 1, J) how far each joint may be beside the straight way between two rows [rad or m]
            (`chord_deviations` of a trajectory); None for not at all.
        until: when to end at the latest, by `time.monotonic` [s], to within a few milliseconds.
    """
    if beside is None:
        beside = np.zeros((1, path.shape[1]))
    path, beside = np.ascontiguousarray(path), np.ascontiguousarray(beside)
    # Each split adds one piece, and halves its width.
    waiting, state = np.full((64, 2), 0.5), np.array([0, 1, 0], dtype=np.int64)
    looks = _SURFACE_LOOKS if (arm.meshes >= 0).any() else _LOOKS
    verdict = _GOING_ON
    while verdict == _GOING_ON and (state[2] == 0 or time.monotonic() < until):
        verdict, share, p, other = _certify(arm, world, path, beside, budget, waiting, state, looks)
    if verdict == _CLEAR:
        return Certificate(Verdict.PROVEN_FREE, int(state[2]))
    name = Verdict.TOUCHING if verdict == _TOUCHING else Verdict.FREE_AT_SAMPLES
    return Certificate(name, int(state[2]), int(state[0]), share, None if verdict == _GOING_ON else (p, other))


@njit(cache=True, nogil=True)
def least_clearance(
    arm: ArmArrays, world: WorldArrays, configuration: Array, limit: float = np.inf
) -> tuple[float, int, int]:
    """Least distance [m] of two bodies at a configuration (J,), below zero where spheres overlap, and the two bodies.

    Bodies are as in `Certificate`. Distances from `limit` on are not looked for, which is faster: then it is returned.
    """
    joints = np.empty((len(arm.motions.parents), 4, 4))
    balls, spheres = np.empty((len(arm.rows), 3)), np.empty((len(arm.radii), 3))
    _place_all(arm, configuration, joints, balls, spheres)
    least, first, second = limit, 0, 0
    for p in range(len(arm.rows)):
        if arm.rows[p] < 0:
            continue
        for n in range(len(world.radii)):
            if world.allowed[p, n] or (
                solid_distance(world, n, balls[p], least + arm.ball_radii[p]) - arm.ball_radii[p] >= least
            ):
                continue
            for m in range(arm.starts[p], arm.starts[p + 1]):
                gap = solid_distance(world, n, spheres[m], least + arm.radii[m]) - arm.radii[m]
                if gap < least:
                    least, first, second = gap, p, -1 - n
        n = len(world.radii)
        if world.allowed[p, n] or _far_from_cloud(world, balls[p], least + arm.ball_radii[p]):
            continue
        for m in range(arm.starts[p], arm.starts[p + 1]):
            gap = _from_cloud(world, spheres[m], least + arm.radii[m]) - arm.radii[m]
            if gap < least:
                least, first, second = gap, p, -1 - n
    for t in range(len(arm.pairs)):
        p, q = arm.pairs[t, 0], arm.pairs[t, 1]
        if _distance(balls[p], balls[q]) - arm.ball_radii[p] - arm.ball_radii[q] >= least:
            continue
        gap = _pair_gap(arm, joints, balls, spheres, p, q, least)
        if gap < least:
            least, first, second = gap, p, q
    return least, first, second
