"""The search for a way to one grasp: inverse kinematics, straight approach and lift among contacts; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.motion.reachability.contacts import (
    FREE,
    ReachWorld,
    Rules,
    first_contact,
    new_placement,
    parts_touch,
)
from morphit_ros.motion.reachability.parts import Indices, Parts
from morphit_ros.robot.chain import Chain, JointMotions, fill_jacobian, multiply, place_joint, place_joints, place_tip
from morphit_ros.robot.chain_descent import descend, pose_error

# Values of `apart` and `with_self`. With Python's own, kernels would be compiled once more for the other one.
AT_TARGET, APART = np.False_, np.True_
WITHOUT_SELF, WITH_SELF = np.False_, np.True_
# How far a search came, worst first; between them lie the kinds of contact.
NO_IK, JOINT_LIMITS, CONTACT, DISCONTINUOUS, REACHED = 0, 1, 2, 10, 20


class Arm(NamedTuple):
    """The robot for the search.

    Attributes:
        motions: all its joints.
        chain: from the root to the tip link, moved by the arm's joints.
        columns: (J,) variables of `motions` that are the arm's joints.
        lower, upper: (J,) limits [rad].
        last: row in `motions` of the last joint of the chain.
        hand_rows: joints behind it, parents first.
        hand_parts: parts that move with the tip whatever the arm does.
        all_parts: every part.
    """

    motions: JointMotions
    chain: Chain
    columns: Indices
    lower: Array
    upper: Array
    last: int
    hand_rows: Indices
    hand_parts: Indices
    all_parts: Indices


class Surroundings(NamedTuple):
    """The robot among what it may not touch.

    Attributes:
        arm: the robot.
        parts: its spheres.
        rules: which contacts count.
        world: what stands around.
    """

    arm: Arm
    parts: Parts
    rules: Rules
    world: ReachWorld


class Ways(NamedTuple):
    """What is asked of the robot: from a pre-grasp to a grasp, then up. One grasp, or S with F variants each.

    Attributes:
        pregrasps, grasps, lifted: (4, 4) or (S, F, 4, 4) poses of the tip in the root's frame.
        opened, closed: (V,) or (S, V) positions of all joints with the fingers open and at the object.
    """

    pregrasps: Array
    grasps: Array
    lifted: Array
    opened: Array
    closed: Array


class Effort(NamedTuple):
    """Tolerances, steps and number of attempts; see `ReachabilityConfig`."""

    position_tolerance: float
    rotation_tolerance: float
    iterations: int
    line_step: float
    lift_step: float
    joint_rate: float
    turn_radius: float
    distinct: float
    attempts: int


class Seeds(NamedTuple):
    """Joint positions without contact of the robot with itself, and where they bring the tip.

    Attributes:
        values: (N, J) [rad].
        tips: (N, 4, 4) ``T_root_tip``.
        detours: (N,) cost of being far from the start.
    """

    values: Array
    tips: Array
    detours: Array


@njit(cache=True, nogil=True)
def nearest_seeds(seeds: Seeds, pose: Array, radius: float, chosen: Indices) -> None:
    """Fill `chosen` with the seeds whose tips are nearest to a pose; an angle counts as way at `radius` [m]."""
    count = len(chosen)
    costs = np.full(count, np.inf)
    for i in range(len(seeds.detours)):
        cost = seeds.detours[i]
        for r in range(3):
            cost += (seeds.tips[i, r, 3] - pose[r, 3]) ** 2
        if cost >= costs[count - 1]:
            continue
        trace = 0.0
        for r in range(3):
            for k in range(3):
                trace += seeds.tips[i, r, k] * pose[r, k]
        # 3 − trace = 2 (1 − cos θ), which is θ² for small angles.
        cost += radius * radius * (3.0 - trace)
        if cost >= costs[count - 1]:
            continue
        place = count - 1
        while place > 0 and costs[place - 1] > cost:
            costs[place], chosen[place] = costs[place - 1], chosen[place - 1]
            place -= 1
        costs[place], chosen[place] = cost, i


@njit(cache=True, nogil=True)
def pose_between(first: Array, twist: Array, fraction: float, pose: Array) -> None:
    """Fill the pose at a fraction of the way that a twist (6,) of `pose_error` leads from the first pose."""
    turn = np.empty((3, 3))
    angle = np.sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2)
    c, s = np.cos(fraction * angle), np.sin(fraction * angle)
    x, y, z = twist[3:] / max(angle, 1e-12)
    v = 1.0 - c
    turn[0] = c + x * x * v, x * y * v - z * s, x * z * v + y * s
    turn[1] = y * x * v + z * s, c + y * y * v, y * z * v - x * s
    turn[2] = z * x * v - y * s, z * y * v + x * s, c + z * z * v
    pose[:] = first
    for r in range(3):
        for k in range(3):
            pose[r, k] = turn[r, 0] * first[0, k] + turn[r, 1] * first[1, k] + turn[r, 2] * first[2, k]
        pose[r, 3] = first[r, 3] + fraction * twist[r]


@njit(cache=True, nogil=True)
def hand_contact(around: Surroundings, pose: Array, positions: Array, apart: bool) -> int:
    """What the gripper touches at a pose of the tip, whatever the arm does there."""
    arm = around.arm
    joints = np.empty((len(arm.motions.parents), 4, 4))
    back = np.eye(4)
    T_last_tip = arm.chain.T_last_tip
    for r in range(3):
        for k in range(3):
            back[r, k] = T_last_tip[k, r]
            back[r, 3] -= T_last_tip[k, r] * T_last_tip[k, 3]
    multiply(pose, back, joints[arm.last])
    for row in arm.hand_rows:
        place_joint(arm.motions, row, positions, joints)
    return first_contact(around.parts, around.rules, around.world, arm.hand_parts, joints, apart, WITHOUT_SELF)


@njit(cache=True, nogil=True)
def _contact(around: Surroundings, values: Array, positions: Array, apart: bool) -> int:
    """What the robot touches with the arm at `values`; `positions` (V,) holds the fingers and is overwritten."""
    arm = around.arm
    for j in range(len(values)):
        positions[arm.columns[j]] = values[j]
    joints = np.empty((len(arm.motions.parents), 4, 4))
    place_joints(arm.motions, positions, joints)
    return first_contact(around.parts, around.rules, around.world, arm.all_parts, joints, apart, WITH_SELF)


@njit(cache=True, nogil=True)
def _follow(
    around: Surroundings, effort: Effort, first: Array, last: Array, step: float, values: Array, positions: Array
) -> tuple[int, float]:
    """Move the arm from `values` (in place) along a straight line; FREE, a kind of contact or DISCONTINUOUS.

    Also returns the least distance to a joint limit on the way [rad].
    """
    arm = around.arm
    twist, pose, before = np.empty(6), np.empty((4, 4)), np.empty(len(values))
    pose_error(first, last, twist)
    way = max(
        np.sqrt(twist[0] ** 2 + twist[1] ** 2 + twist[2] ** 2),
        effort.turn_radius * np.sqrt(twist[3] ** 2 + twist[4] ** 2 + twist[5] ** 2),
    )
    margin = np.inf
    count = int(np.ceil(way / step))
    for index in range(1, count + 1):
        pose_between(first, twist, index / count, pose)
        before[:] = values
        end = descend(
            arm.chain, pose, arm.lower, arm.upper, values,
            effort.position_tolerance, effort.rotation_tolerance, effort.iterations,
        )  # fmt: skip
        if not end.reached or np.abs(values - before).max() > effort.joint_rate * step:
            return DISCONTINUOUS, margin
        margin = min(margin, np.minimum(values - arm.lower, arm.upper - values).min())
        kind = _contact(around, values, positions, AT_TARGET)
        if kind != FREE:
            return kind, margin
    return FREE, margin


@njit(cache=True, nogil=True)
def _manipulability(chain: Chain, values: Array) -> float:
    """√det(J Jᵀ) of the tip."""
    joints, tip = np.empty((len(chain.motions.parents), 4, 4)), np.empty((4, 4))
    jacobian = np.empty((6, len(values)))
    place_tip(chain, values, joints, tip)
    fill_jacobian(chain, joints, tip, jacobian)
    return float(np.sqrt(max(np.linalg.det(jacobian @ jacobian.T), 0.0)))


@njit(cache=True, nogil=True)
def _way_from(
    around: Surroundings, effort: Effort, way: Ways, values: Array, positions: Array, at_grasp: Array
) -> tuple[int, float]:
    """Follow a way with the arm from the pre-grasp at `values` (in place); how far it came, as of `find_way`.

    Also returns the least distance to a joint limit [rad], and fills `at_grasp` (J,) where it gets to the grasp.
    """
    arm = around.arm
    positions[:] = way.opened
    kind = _contact(around, values, positions, APART)
    if kind != FREE:
        return CONTACT + kind, 0.0
    margin = np.minimum(values - arm.lower, arm.upper - values).min()
    kind, way_margin = _follow(around, effort, way.pregrasps, way.grasps, effort.line_step, values, positions)
    margin = min(margin, way_margin)
    if kind == FREE:
        at_grasp[:] = values
        positions[:] = way.closed
        kind, way_margin = _follow(around, effort, way.grasps, way.lifted, effort.lift_step, values, positions)
        margin = min(margin, way_margin)
    if kind == FREE:
        return REACHED, margin
    return DISCONTINUOUS if kind == DISCONTINUOUS else CONTACT + kind, margin


@njit(cache=True, nogil=True)
def find_way(
    around: Surroundings, effort: Effort, seeds: Seeds, way: Ways, start: Array, before: Array, at_grasp: Array
) -> tuple[int, float, float]:
    """How far the best of several attempts came, its least distance to a joint limit, its manipulability.

    Args:
        around, effort, seeds: see there.
        way: of one grasp.
        start: (J,) where the first attempt begins.
        before, at_grasp: (J,) filled with the positions at the pre-grasp and at the grasp.
    """
    # The gripper alone first: where it is stuck, no arm can help.
    kind = hand_contact(around, way.grasps, way.opened, AT_TARGET)
    if kind == FREE:
        kind = hand_contact(around, way.pregrasps, way.opened, APART)
    if kind != FREE:
        return CONTACT + kind, 0.0, 0.0
    arm, count, attempts = around.arm, len(start), effort.attempts
    best, tried = NO_IK, 0
    found = np.empty((attempts, count))
    chosen = np.zeros(max(attempts - 1, 0), dtype=np.int64)
    positions = way.opened.copy()
    values, nearest, least = np.empty(count), start.copy(), np.inf
    for attempt in range(attempts):
        if attempt == 0:
            values[:] = start
        else:
            if attempt == 1:
                nearest_seeds(seeds, way.pregrasps, effort.turn_radius, chosen)
            values[:] = seeds.values[chosen[attempt - 1]]
        end = descend(
            arm.chain, way.pregrasps, arm.lower, arm.upper, values,
            effort.position_tolerance, effort.rotation_tolerance, effort.iterations,
        )  # fmt: skip
        if not end.reached:
            if end.distance + end.angle < least:
                least = end.distance + end.angle
                nearest[:] = values
            continue
        known = False
        for k in range(tried):
            known = known or np.abs(found[k] - values).max() < effort.distinct
        if known:
            continue
        found[tried] = values
        outcome, margin = _way_from(around, effort, way, values, positions, at_grasp)
        if outcome == REACHED:
            before[:] = found[tried]
            return REACHED, margin, _manipulability(arm.chain, at_grasp)
        best = max(best, outcome)
        tried += 1
    if tried == 0:
        # Would it do without limits?
        free = np.full(count, np.inf)
        end = descend(
            arm.chain, way.pregrasps, -free, free, nearest,
            effort.position_tolerance, effort.rotation_tolerance, 2 * effort.iterations,
        )  # fmt: skip
        best = JOINT_LIMITS if end.reached else NO_IK
    return best, 0.0, 0.0


@njit(cache=True, nogil=True)
def find_ways(
    around: Surroundings, effort: Effort, seeds: Seeds, ways: Ways, start: Array, flip_is_last_joint: bool,
    found: Array, before: Array, at_grasp: Array,
) -> None:  # fmt: skip
    """`find_way` for S grasps, each in F variants until one is reached.

    Args:
        ways: of all grasps in all variants.
        flip_is_last_joint: whether variants differ in the last joint only, so that none is within reach where the
            first is not.
        found: (S, 4), filled with how far the search came, the variant, limit distance, manipulability.
        before, at_grasp: (S, J), filled where a way was found.
    """
    values, grasp_values = np.empty(len(start)), np.empty(len(start))
    for s in range(len(ways.pregrasps)):
        found[s] = 0.0
        found[s, 0] = NO_IK
        for variant in range(ways.pregrasps.shape[1]):
            way = Ways(
                ways.pregrasps[s, variant], ways.grasps[s, variant], ways.lifted[s, variant], ways.opened[s],
                ways.closed[s],
            )  # fmt: skip
            outcome, margin, manipulability = find_way(around, effort, seeds, way, start, values, grasp_values)
            found[s, 0] = max(found[s, 0], outcome)
            if outcome == REACHED:
                found[s, 1], found[s, 2], found[s, 3] = variant, margin, manipulability
                before[s], at_grasp[s] = values, grasp_values
                break
            if outcome == NO_IK and flip_is_last_joint:
                break


@njit(cache=True, nogil=True)
def draw_seeds(arm: Arm, parts: Parts, pairs: Indices, opened: Array, draws: Array, values: Array, tips: Array) -> int:
    """Fill `values` (N, J) and `tips` (N, 4, 4) with those of `draws` (M, J) at which no pair of parts touches."""
    joints = np.empty((len(arm.motions.parents), 4, 4))
    positions = opened.copy()
    kept = 0
    for draw in draws:
        if kept == len(values):
            break
        for j in range(len(draw)):
            positions[arm.columns[j]] = draw[j]
        place_joints(arm.motions, positions, joints)
        at = new_placement(parts, joints)
        touching = False
        for row in range(len(pairs)):
            touching = touching or parts_touch(parts, pairs[row, 0], pairs[row, 1], at)
        if touching:
            continue
        values[kept] = draw
        multiply(joints[arm.last], arm.chain.T_last_tip, tips[kept])
        kept += 1
    return kept
