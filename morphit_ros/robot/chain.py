"""Joints as arrays, and the compiled kernels that place links with them.

Joint j moves by q_j = multiplier · x[variable] + offset, so that mimic joints are joints like any other; a joint
without variable stands still at its offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit

Indices = NDArray[np.int64]


class JointMotions(NamedTuple):
    """Moving joints as arrays, each after the one that carries it.

    Attributes:
        parents: (K,) row of the joint before, -1 if the root carries it.
        before: (K, 4, 4), from the frame after the joint before (or the root) to this joint's at position zero.
        axes: (K, 3) unit vectors in the joint's frame.
        sliding: (K,) whether the joint slides along its axis instead of turning about it.
        variables: (K,) index of the variable that moves it, -1 if it stands still.
        multipliers, offsets: (K,).
    """

    parents: Indices
    before: Array
    axes: Array
    sliding: NDArray[np.bool_]
    variables: Indices
    multipliers: Array
    offsets: Array


class Chain(NamedTuple):
    """Joints one behind the other, from the root or a link to the tip, and ``T_last_tip`` (4, 4) behind the last."""

    motions: JointMotions
    T_last_tip: Array


@lean_njit
def multiply(first: Array, second: Array, product: Array) -> None:
    """product = first · second of rigid (4, 4) motions; product must be another array."""
    for r in range(3):
        for c in range(4):
            total = first[r, 0] * second[0, c] + first[r, 1] * second[1, c] + first[r, 2] * second[2, c]
            product[r, c] = total + first[r, 3] if c == 3 else total
    product[3, 0] = product[3, 1] = product[3, 2] = 0.0
    product[3, 3] = 1.0


@lean_njit
def move(pose: Array, axis: Array, sliding: bool, position: float) -> None:
    """pose ← pose · (rotation about, or translation along, the axis)."""
    x, y, z = axis[0], axis[1], axis[2]
    if sliding:
        for r in range(3):
            pose[r, 3] += position * (pose[r, 0] * x + pose[r, 1] * y + pose[r, 2] * z)
        return
    c, s = np.cos(position), np.sin(position)
    v = 1.0 - c
    for r in range(3):
        a, b, d = pose[r, 0], pose[r, 1], pose[r, 2]
        pose[r, 0] = a * (c + x * x * v) + b * (y * x * v + z * s) + d * (z * x * v - y * s)
        pose[r, 1] = a * (x * y * v - z * s) + b * (c + y * y * v) + d * (z * y * v + x * s)
        pose[r, 2] = a * (x * z * v + y * s) + b * (y * z * v - x * s) + d * (c + z * z * v)


@lean_njit
def place_joint(motions: JointMotions, j: int, positions: Array, poses: Array) -> None:
    """Fill the frame after one joint in `poses` (K, 4, 4); the one before it is there already."""
    if motions.parents[j] < 0:
        # Assigning a slice would reserve memory.
        for r in range(4):
            for c in range(4):
                poses[j, r, c] = motions.before[j, r, c]
    else:
        multiply(poses[motions.parents[j]], motions.before[j], poses[j])
    position = motions.offsets[j]
    if motions.variables[j] >= 0:
        position += motions.multipliers[j] * positions[motions.variables[j]]
    move(poses[j], motions.axes[j], motions.sliding[j], position)


@lean_njit
def place_joints(motions: JointMotions, positions: Array, poses: Array) -> None:
    """Fill ``T_root_joint`` (K, 4, 4), the frames after the joints, at variables (V,)."""
    for j in range(len(motions.parents)):
        place_joint(motions, j, positions, poses)


@njit(cache=True, nogil=True)
def place_links(motions: JointMotions, rows: Indices, T_joint_link: Array, positions: Array, poses: Array) -> None:
    """Fill ``T_root_link`` (L, 4, 4) of links that are fixed behind joints `rows` (L,), -1 for the root."""
    joints = np.empty((len(motions.parents), 4, 4))
    place_joints(motions, positions, joints)
    for i in range(len(rows)):
        if rows[i] < 0:
            poses[i] = T_joint_link[i]
        else:
            multiply(joints[rows[i]], T_joint_link[i], poses[i])


@njit(cache=True, nogil=True)
def place_tip(chain: Chain, positions: Array, joints: Array, tip: Array) -> None:
    """Fill ``T_root_joint`` (K, 4, 4) and ``T_root_tip`` (4, 4) of a chain."""
    place_joints(chain.motions, positions, joints)
    if len(joints) == 0:
        tip[:] = chain.T_last_tip
    else:
        multiply(joints[-1], chain.T_last_tip, tip)


@njit(cache=True, nogil=True)
def fill_jacobian(chain: Chain, joints: Array, tip: Array, jacobian: Array) -> None:
    """Fill the geometric Jacobian (6, V) of the tip: velocity of its origin, then angular velocity, in root axes."""
    motions = chain.motions
    jacobian[:] = 0.0
    axis = np.empty(3)
    for j in range(len(motions.parents)):
        column = motions.variables[j]
        if column < 0:
            continue
        for r in range(3):
            axis[r] = motions.multipliers[j] * (
                joints[j, r, 0] * motions.axes[j, 0]
                + joints[j, r, 1] * motions.axes[j, 1]
                + joints[j, r, 2] * motions.axes[j, 2]
            )
        if motions.sliding[j]:
            for r in range(3):
                jacobian[r, column] += axis[r]
            continue
        x, y, z = tip[0, 3] - joints[j, 0, 3], tip[1, 3] - joints[j, 1, 3], tip[2, 3] - joints[j, 2, 3]
        jacobian[0, column] += axis[1] * z - axis[2] * y
        jacobian[1, column] += axis[2] * x - axis[0] * z
        jacobian[2, column] += axis[0] * y - axis[1] * x
        for r in range(3):
            jacobian[3 + r, column] += axis[r]
