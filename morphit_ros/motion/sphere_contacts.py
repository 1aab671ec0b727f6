"""Depths to which bodies of spheres overlap each other and slabs; compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit
from morphit_ros.motion.reachability.parts import (
    Indices,
    Parts,
    balls_touch,
    place_part,
    place_point,
    spheres_overlap,
)
from morphit_ros.robot.chain import JointMotions, multiply, place_joints


class Slabs(NamedTuple):
    """S boxes.

    Attributes:
        joints: (S,) row of the joint that moves the box, -1 for the root.
        poses: (S, 4, 4) of the centres, in the frames after their joints (or the root's).
        halves: (S, 3) half sizes [m].
    """

    joints: Indices
    poses: Array
    halves: Array


class Bodies(NamedTuple):
    """All that can touch.

    Attributes:
        motions: the robot's joints.
        parts: bodies of spheres.
        pairs: (M, 2) parts that are checked against each other.
        slabs: boxes.
        slab_pairs: (B, 2) part and slab that are checked against each other.
    """

    motions: JointMotions
    parts: Parts
    pairs: Indices
    slabs: Slabs
    slab_pairs: Indices


@lean_njit
def slab_depth(point: Array, radius: float, T_root_slab: Array, half: Array) -> float:
    """How deep [m] a sphere is in a box; negative if it is apart."""
    outside, inside = 0.0, -np.inf
    for c in range(3):
        along = 0.0
        for r in range(3):
            along += (point[r] - T_root_slab[r, 3]) * T_root_slab[r, c]
        beyond = abs(along) - half[c]
        outside += max(beyond, 0.0) ** 2
        inside = max(inside, beyond)
    return float(radius - np.sqrt(outside) - min(inside, 0.0))


@lean_njit
def _part_depth(parts: Parts, a: int, b: int, balls: Array, centers: Array) -> float:
    """Greatest depth [m] to which two parts overlap, negative infinity if they are apart."""
    if not balls_touch(balls[a], parts.ball_radii[a], balls[b], parts.ball_radii[b]):
        return -np.inf
    deepest = -np.inf
    start, stop = parts.starts[b], parts.starts[b + 1]
    for i in range(parts.starts[a], parts.starts[a + 1]):
        if balls_touch(centers[i], parts.radii[i], balls[b], parts.ball_radii[b]):
            depth = spheres_overlap(centers, parts.radii, i, i + 1, centers, parts.radii, start, stop)
            deepest = max(deepest, depth)
    return deepest


@njit(cache=True, nogil=True)
def fill_depths(bodies: Bodies, positions: Array, depths: Array) -> bool:
    """Fill the depths [m] of all pairs at joint positions (V,); positive where they touch. Whether any does.

    Args:
        bodies: what can touch.
        positions: of the variables of `bodies.motions`.
        depths: (M + B,) of pairs of parts, then of parts and slabs.
    """
    parts, slabs = bodies.parts, bodies.slabs
    joints = np.empty((len(bodies.motions.parents), 4, 4))
    place_joints(bodies.motions, positions, joints)
    balls, centers = np.empty_like(parts.ball_centers), np.empty_like(parts.centers)
    for part in range(len(parts.joints)):
        place_point(joints, parts.joints[part], parts.ball_centers[part], balls[part])
        place_part(parts, part, joints, centers)
    touching = False
    count = len(bodies.pairs)
    for row in range(count):
        depths[row] = _part_depth(parts, bodies.pairs[row, 0], bodies.pairs[row, 1], balls, centers)
        touching |= depths[row] > 0.0
    poses = slabs.poses.copy()
    for slab in range(len(slabs.joints)):
        if slabs.joints[slab] >= 0:
            multiply(joints[slabs.joints[slab]], slabs.poses[slab], poses[slab])
    for row in range(len(bodies.slab_pairs)):
        part, slab = bodies.slab_pairs[row, 0], bodies.slab_pairs[row, 1]
        deepest = -np.inf
        if slab_depth(balls[part], parts.ball_radii[part], poses[slab], slabs.halves[slab]) > 0.0:
            for i in range(parts.starts[part], parts.starts[part + 1]):
                deepest = max(deepest, slab_depth(centers[i], parts.radii[i], poses[slab], slabs.halves[slab]))
        depths[count + row] = deepest
        touching |= deepest > 0.0
    return touching


@njit(cache=True, nogil=True)
def first_touching(bodies: Bodies, rows: Array) -> int:
    """The first of some joint positions (N, V) at which anything touches, N if nothing does."""
    depths = np.empty(len(bodies.pairs) + len(bodies.slab_pairs))
    for row in range(len(rows)):
        if fill_depths(bodies, rows[row], depths):
            return row
    return len(rows)


@njit(cache=True, nogil=True)
def count_touching(bodies: Bodies, rows: Array, counts: Indices) -> None:
    """Add to `counts` (M + B,) at how many of some joint positions (N, V) each pair touches."""
    depths = np.empty(len(counts))
    for row in range(len(rows)):
        fill_depths(bodies, rows[row], depths)
        for pair in range(len(counts)):
            counts[pair] += depths[pair] > 0.0
