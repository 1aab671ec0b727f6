"""Motors: the axes they turn, their rates in a motion of the cover, their angles in a configuration."""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.control.limits import fill_axis_rates
from morphit_ros.cover.model import Cover
from morphit_ros.geometry.rotations import quats_of_matrices, rotation_vectors
from morphit_ros.geometry.transforms import Array


def motor_axes(cover: Cover, rotations: Array) -> Array:
    """(M, 3) axes of the motors in the world frame."""
    joints, axes = cover.motors.T
    frames = rotations[cover.joints[joints, 0]] @ cover.joint_frames[joints]
    return np.asarray(frames[np.arange(len(joints)), :, axes])


def motor_rates(cover: Cover, rotations: Array, rates: Array) -> Array:
    """(M, ...) rates u of the motors [rad/s] from angular velocities (3 N, ...) of the nodes, world frame."""
    motions = np.ascontiguousarray(rates).reshape(3 * cover.node_count, -1)
    found = np.empty((len(cover.motors), motions.shape[1]))
    axes = 3 * cover.motors[:, 0] + cover.motors[:, 1]
    fill_axis_rates(rotations, cover.joints, cover.joint_frames, axes, motions, 1.0, found)
    return found.reshape(len(found), *rates.shape[1:])


def motor_angles(cover: Cover, rotations: Array) -> Array:
    """(M,) what an absolute encoder at each motor reads: its component of the joint's rotation vector [rad].

    Zero in the flat cover. (The integral of a rate is no function of the configuration on a spherical joint.)
    """
    vectors = joint_vectors(cover, rotations)
    return np.asarray(vectors[cover.motors[:, 0], cover.motors[:, 1]])


def joint_vectors(cover: Cover, rotations: Array) -> Array:
    """(J, 3) rotation vectors of the joints, child against parent, in the joint's frame [rad]."""
    parent, child = cover.joints.T
    relative = np.einsum("jki,jkl->jil", rotations[parent], rotations[child])
    vectors = rotation_vectors(quats_of_matrices(relative))
    return np.einsum("jik,ji->jk", cover.joint_frames, vectors)
