"""Bounds of the distances of a robot's bodies along a straight way of its joints.

A point of a body behind joint j that turns at rate w, R from its axis, moves at most at w R plus what the joints behind
j move it at (V), and is accelerated at most by w² R + 2 w V plus what they accelerate it by, as long as the rates are
constant. R itself changes at most by V in the time. So both are summed from the tip to the root. The gap of two
bodies along a fixed direction is the least of such points' differences: on a way of length S it stays above the line
between its ends minus A S² / 8, if A bounds the accelerations.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.robot.chain import JointMotions
from morphit_ros.superovoid.distances.queries import CHARTS, NORMAL
from morphit_ros.superovoid.distances.support import HALF_SPACE, POINT
from morphit_ros.superovoid.robots.robot_distance_kernels import (
    CarriedShapes,
    has_answer,
    place_shapes,
    plane_gap,
)


@njit(cache=True, nogil=True)
def approach_bounds(
    motions: JointMotions,
    table: CarriedShapes,
    starts: NDArray[np.int64],
    pairs: NDArray[np.int64],
    joints: Array,
    velocities: Array,
    duration: float,
) -> Array:
    """Bounds (B, 2) of speed and acceleration [m/s, m/s²] of points of two bodies against each other.

    Args:
        starts: (C + 1,) first shape of each body.
        pairs: (B, 2) bodies. Joints that carry both do not count.
        joints: ``T_root_joint`` (K, 4, 4) where the motion begins.
        velocities: (V,) of the variables, kept all the time [rad/s or m/s].
        duration: of the motion [s].
    """
    bodies, count = len(starts) - 1, len(motions.parents)
    # What the joints from the tip up to this one, itself too, make of a body's points; -1: it does not carry the body.
    speeds, accelerations = np.full((bodies, count), -1.0), np.zeros((bodies, count))
    for body in range(bodies):
        row = table.rows[starts[body]]
        speed = acceleration = 0.0
        j = row
        while j >= 0:
            variable = motions.variables[j]
            rate = abs(motions.multipliers[j] * velocities[variable]) if variable >= 0 else 0.0
            if rate > 0.0 and motions.sliding[j]:
                speed += rate
            elif rate > 0.0:
                reach = 0.0
                for i in range(starts[body], starts[body + 1]):
                    reach = max(reach, _axis_reach(motions, table, joints, row, i, j))
                reach += duration * speed
                acceleration += rate * (rate * reach + 2.0 * speed)
                speed += rate * reach
            speeds[body, j], accelerations[body, j] = speed, acceleration
            j = motions.parents[j]
    found = np.zeros((len(pairs), 2))
    for k in range(len(pairs)):
        for side in range(2):
            body, other = pairs[k, side], pairs[k, 1 - side]
            j, last = table.rows[starts[body]], -1
            while j >= 0 and speeds[other, j] < 0.0:
                j, last = motions.parents[j], j
            if last >= 0:
                found[k, 0] += speeds[body, last]
                found[k, 1] += accelerations[body, last]
    return found


@njit(cache=True, nogil=True)
def is_way_clear(
    motions: JointMotions,
    table: CarriedShapes,
    bounds: Array,
    pairs: NDArray[np.int64],
    groups: NDArray[np.int64],
    memory: Array,
    start: Array,
    end: Array,
    duration: float,
    between: Array,
    ends: Array,
) -> bool:
    """Whether pairs of bodies are proven to keep distances (B,) on a straight way, and others (B,) at its end [m].

    By planes across the line of the shapes' spheres, or across the normals of the memory.

    Args:
        bounds: of `approach_bounds` for this way.
        pairs, groups, memory: as of `solve_state`.
        start, end: (V,) joint positions.
        duration: of the motion between [s].
        between, ends: what is to be kept; -inf: nothing.
    """
    count = len(table.rows)
    joints = np.empty((len(motions.parents), 4, 4))
    poses, spheres = np.empty((count, 4, 4)), np.empty((count, 4))
    final, final_spheres = np.empty((count, 4, 4)), np.empty((count, 4))
    place_shapes(motions, table, start, joints, poses, spheres)
    place_shapes(motions, table, end, joints, final, final_spheres)
    # In a half-space's place: the point where its frame is.
    packed = table.packed.copy()
    for i in range(count):
        if packed[i, 0] == HALF_SPACE:
            packed[i] = 0.0
            packed[i, 0], packed[i, 4], packed[i, 5] = POINT, 1.0, 1.0
    pointed = CarriedShapes(packed, table.vertices, table.offsets, table.spheres, table.rows, table.T_joint_shape)
    vertex = np.empty(15)
    for k in range(len(pairs)):
        i, j, group = pairs[k, 0], pairs[k, 1], groups[k]
        bend = 0.125 * bounds[group, 1] * duration * duration
        vertex[9:] = 0.0
        if table.packed[i, 0] == HALF_SPACE:
            x, y, z = poses[i, 0, 2], poses[i, 1, 2], poses[i, 2, 2]
        elif table.packed[j, 0] == HALF_SPACE:
            x, y, z = -poses[j, 0, 2], -poses[j, 1, 2], -poses[j, 2, 2]
        else:
            x, y, z = spheres[j, 0] - spheres[i, 0], spheres[j, 1] - spheres[i, 1], spheres[j, 2] - spheres[i, 2]
            length = math.sqrt(x * x + y * y + z * z)
            if length > 0.0:
                x, y, z = x / length, y / length, z / length
                radii = spheres[i, 3] + spheres[j, 3] + 1e-12 * length
                last = -radii
                for r, n in enumerate((x, y, z)):
                    last += n * (final_spheres[j, r] - final_spheres[i, r])
                if min(length - radii, last) - bend >= between[group] and last >= ends[group]:
                    continue
            if has_answer(memory[k]):
                x, y, z = memory[k, NORMAL], memory[k, NORMAL + 1], memory[k, NORMAL + 2]
                vertex[9:] = memory[k, CHARTS : CHARTS + 6]
            elif length == 0.0:
                return False
        last = plane_gap(pointed, final, i, j, x, y, z, vertex)
        if last < ends[group] or last - bend < between[group]:
            return False
        if plane_gap(pointed, poses, i, j, x, y, z, vertex) - bend < between[group]:
            return False
    return True


@njit(cache=True, nogil=True)
def _axis_reach(motions: JointMotions, table: CarriedShapes, joints: Array, row: int, shape: int, joint: int) -> float:
    """Greatest distance [m] of a point of a shape's bounding sphere from a joint's axis."""
    c = table.spheres[shape]
    x, y, z = c[0], c[1], c[2]
    pose = table.T_joint_shape[shape]
    x, y, z = (
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[0, 3],
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[1, 3],
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[2, 3],
    )
    T, A, axis = joints[row], joints[joint], motions.axes[joint]
    x, y, z = (
        T[0, 0] * x + T[0, 1] * y + T[0, 2] * z + T[0, 3] - A[0, 3],
        T[1, 0] * x + T[1, 1] * y + T[1, 2] * z + T[1, 3] - A[1, 3],
        T[2, 0] * x + T[2, 1] * y + T[2, 2] * z + T[2, 3] - A[2, 3],
    )
    a = A[0, 0] * axis[0] + A[0, 1] * axis[1] + A[0, 2] * axis[2]
    b = A[1, 0] * axis[0] + A[1, 1] * axis[1] + A[1, 2] * axis[2]
    d = A[2, 0] * axis[0] + A[2, 1] * axis[1] + A[2, 2] * axis[2]
    u, v, w = y * d - z * b, z * a - x * d, x * b - y * a
    return math.sqrt(u * u + v * v + w * w) + c[3]
