"""What a robot of spheres touches at joint positions: table, target, other things, itself; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit
from morphit_ros.motion.reachability.parts import (
    Indices,
    Parts,
    balls_touch,
    depth_below,
    place_part,
    place_point,
    spheres_overlap,
)

FREE, TABLE, TARGET, OBSTACLE, SELF = 0, 1, 2, 3, 4
# Depth that exempts a part: none is as deep.
EXEMPT = 1e9


class Rules(NamedTuple):
    """Which contacts count.

    Attributes:
        table: (P,) how much lower the table is for each part [m].
        target: (P,) depth to which a part may enter the target while the gripper moves in and out along a line [m].
        target_apart: (P,) the same for the pose before it.
        obstacle: (P,) the same for other things.
        pairs: (M, 2) parts that are checked against each other.
    """

    table: Array
    target: Array
    target_apart: Array
    obstacle: Array
    pairs: Indices


class ReachWorld(NamedTuple):
    """What stands around, in the root's frame.

    Attributes:
        has_table: whether there is one.
        T_table_root: (4, 4).
        half_size: (2,) of the table [m], infinite where it has no end.
        target, obstacles: standing parts.
    """

    has_table: bool
    T_table_root: Array
    half_size: Array
    target: Parts
    obstacles: Parts


class Placement(NamedTuple):
    """Where a robot's parts are in the root's frame; spheres are placed when they are first asked for.

    Attributes:
        joints: (K, 4, 4) frames after the joints.
        balls: (P, 3) centres of the balls around the parts.
        centers: (N, 3) of the spheres.
        ball_placed, placed: (P,) whether these are filled.
    """

    joints: Array
    balls: Array
    centers: Array
    ball_placed: NDArray[np.bool_]
    placed: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def new_placement(parts: Parts, joints: Array) -> Placement:
    """Nothing placed yet, for the joints at (K, 4, 4)."""
    count = len(parts.ball_radii)
    return Placement(
        joints,
        np.empty((count, 3)),
        np.empty((len(parts.radii), 3)),
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.bool_),
    )


@lean_njit
def _place_ball(parts: Parts, part: int, at: Placement) -> None:
    """Place the ball around a part."""
    if not at.ball_placed[part]:
        place_point(at.joints, parts.joints[part], parts.ball_centers[part], at.balls[part])
        at.ball_placed[part] = True


@lean_njit
def _place(parts: Parts, part: int, at: Placement) -> None:
    """Place the spheres of a part."""
    if not at.placed[part]:
        place_part(parts, part, at.joints, at.centers)
        at.placed[part] = True


@lean_njit
def _cloud_depth(parts: Parts, part: int, at: Placement, cloud: Parts, enough: float) -> float:
    """How deep [m] a part is in a standing cloud, or some depth beyond `enough`; negative infinity if apart."""
    deepest = -np.inf
    _place_ball(parts, part, at)
    ball, ball_radius = at.balls[part], parts.ball_radii[part]
    for block in range(len(cloud.ball_radii)):
        if balls_touch(ball, ball_radius, cloud.ball_centers[block], cloud.ball_radii[block]):
            _place(parts, part, at)
            start, stop = cloud.starts[block], cloud.starts[block + 1]
            for i in range(parts.starts[part], parts.starts[part + 1]):
                # Many of a link's spheres are far from the block.
                if balls_touch(at.centers[i], parts.radii[i], cloud.ball_centers[block], cloud.ball_radii[block]):
                    depth = spheres_overlap(at.centers, parts.radii, i, i + 1, cloud.centers, cloud.radii, start, stop)
                    deepest = max(deepest, depth)
            if deepest > enough:
                return deepest
    return deepest


@lean_njit
def _table_depth(parts: Parts, part: int, at: Placement, world: ReachWorld, drop: float) -> float:
    """How deep [m] a part is in the table; negative infinity if its ball is clear of it."""
    deepest = -np.inf
    if not world.has_table:
        return deepest
    _place_ball(parts, part, at)
    ball, radius = at.balls[part], parts.ball_radii[part]
    if depth_below(ball, radius, world.T_table_root, world.half_size, drop) > 0.0:
        _place(parts, part, at)
        for i in range(parts.starts[part], parts.starts[part + 1]):
            depth = depth_below(at.centers[i], parts.radii[i], world.T_table_root, world.half_size, drop)
            deepest = max(deepest, depth)
    return deepest


@njit(cache=True, nogil=True)
def first_contact(
    parts: Parts, rules: Rules, world: ReachWorld, which: Indices, joints: Array, apart: bool, with_self: bool
) -> int:
    """The kind of a contact of some parts, FREE if there is none.

    Args:
        parts: the robot.
        rules: which contacts count.
        world: what stands around.
        which: (W,) parts to be checked against the world.
        joints: (K, 4, 4) frames after the joints.
        apart: whether the gripper is still apart from the target.
        with_self: whether to check parts against each other.
    """
    at = new_placement(parts, joints)
    for part in which:
        drop = rules.table[part]
        if drop < EXEMPT and _table_depth(parts, part, at, world, drop) > 0.0:
            return TABLE
        allowed = rules.target_apart[part] if apart else rules.target[part]
        if allowed < EXEMPT and _cloud_depth(parts, part, at, world.target, allowed) > allowed:
            return TARGET
        allowed = rules.obstacle[part]
        if allowed < EXEMPT and _cloud_depth(parts, part, at, world.obstacles, allowed) > allowed:
            return OBSTACLE
    if with_self:
        for row in range(len(rules.pairs)):
            if parts_touch(parts, rules.pairs[row, 0], rules.pairs[row, 1], at):
                return SELF
    return FREE


@lean_njit
def parts_touch(parts: Parts, a: int, b: int, at: Placement) -> bool:
    """Whether two parts of the robot touch."""
    _place_ball(parts, a, at)
    _place_ball(parts, b, at)
    ball = at.balls[b]
    if not balls_touch(at.balls[a], parts.ball_radii[a], ball, parts.ball_radii[b]):
        return False
    _place(parts, a, at)
    _place(parts, b, at)
    start, stop = parts.starts[b], parts.starts[b + 1]
    for i in range(parts.starts[a], parts.starts[a + 1]):
        if balls_touch(at.centers[i], parts.radii[i], ball, parts.ball_radii[b]):
            depth = spheres_overlap(at.centers, parts.radii, i, i + 1, at.centers, parts.radii, start, stop)
            if depth > 0.0:
                return True
    return False


@njit(cache=True, nogil=True)
def count_pair_contacts(parts: Parts, pairs: Indices, samples: Array, counts: Indices) -> None:
    """Add to `counts` (M,) in how many samples (S, K, 4, 4) of the joints each pair of parts touches."""
    # By index: a kernel does not know that a row that a loop gives is contiguous, and compiles all below once more.
    for sample in range(len(samples)):
        at = new_placement(parts, samples[sample])
        for row in range(len(pairs)):
            counts[row] += parts_touch(parts, pairs[row, 0], pairs[row, 1], at)


@njit(cache=True, nogil=True)
def count_world_contacts(parts: Parts, rules: Rules, world: ReachWorld, samples: Array, counts: Indices) -> None:
    """Add to `counts` (P, 3) in how many samples (S, K, 4, 4) each part touches table, target, other things."""
    for sample in range(len(samples)):
        at = new_placement(parts, samples[sample])
        for part in range(len(parts.ball_radii)):
            counts[part, 0] += _table_depth(parts, part, at, world, rules.table[part]) > 0.0
            counts[part, 1] += _cloud_depth(parts, part, at, world.target, 0.0) > 0.0
            counts[part, 2] += _cloud_depth(parts, part, at, world.obstacles, 0.0) > 0.0
