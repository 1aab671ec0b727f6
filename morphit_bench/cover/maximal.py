"""Maximal coordinates: the readable reference that the running formulation is tested against.

Velocities of all nodes, v = (p', omega) for each, six numbers a node, world frame. A spherical joint between neighbours
a and b demands ``p_a + R_a l_a = p_b - R_b l_a``; fixed nodes don't move. (Morphing covers, section II.)
"""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.geometry.transforms import Array


def skew(vector: Array) -> Array:
    """(3, 3) matrix with ``skew(a) b = a x b``."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def constraint_jacobian(cover: Cover, state: CoverState) -> Array:
    """Jc, (3 J + 6 F, 6 N): zero times the velocities of motions that keep joints closed and fixed nodes still."""
    joints = cover.joints
    jacobian = np.zeros((3 * len(joints) + 6 * len(cover.fixed_nodes), 6 * cover.node_count))
    for number, (parent, child) in enumerate(joints):
        rows = slice(3 * number, 3 * number + 3)
        arm = 0.5 * cover.pitch * cover.joint_frames[number][:, 0]
        # d/dt (p + R l) = p' + omega x R l
        jacobian[rows, 6 * parent : 6 * parent + 3] = np.eye(3)
        jacobian[rows, 6 * parent + 3 : 6 * parent + 6] = -skew(state.rotations[parent] @ arm)
        jacobian[rows, 6 * child : 6 * child + 3] = -np.eye(3)
        jacobian[rows, 6 * child + 3 : 6 * child + 6] = -skew(state.rotations[child] @ arm)
    for number, node in enumerate(cover.fixed_nodes):
        first = 3 * len(joints) + 6 * number
        jacobian[first : first + 6, 6 * node : 6 * node + 6] = np.eye(6)
    return jacobian


def rate_map(cover: Cover, state: CoverState) -> Array:
    """S, (3 J, 6 N): from node velocities to relative rates, child against parent, in the joint's frame [rad/s]."""
    mapping = np.zeros((3 * cover.joint_count, 6 * cover.node_count))
    for number, (parent, child) in enumerate(cover.joints):
        rows = slice(3 * number, 3 * number + 3)
        to_joint = (state.rotations[parent] @ cover.joint_frames[number]).T
        mapping[rows, 6 * child + 3 : 6 * child + 6] = to_joint
        mapping[rows, 6 * parent + 3 : 6 * parent + 6] = -to_joint
    return mapping


def null_space(matrix: Array, relative_cut: float) -> Array:
    """Orthonormal null space (columns): singular values below `relative_cut` times the greatest count as zero."""
    _, singular, right = np.linalg.svd(matrix)
    rank = int((singular > relative_cut * singular[0]).sum()) if len(singular) else 0
    return right[rank:].T
