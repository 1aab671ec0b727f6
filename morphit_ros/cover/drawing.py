"""What is drawn of a cover: plates, normals, motors, colours of errors. Shared by browser view and RViz markers."""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.model import Cover
from morphit_ros.geometry.transforms import Array

# Side of a plate and length of a normal, in pitches; half the length of a motor's line.
_SIDE, _NORMAL, _MOTOR = 0.88, 0.35, 0.16
# Errors are shown from the first to the last colour up to these.
LARGEST_ANGLE, LARGEST_DISTANCE = float(np.radians(20.0)), 0.02
_COLORS = np.array([[0.16, 0.63, 0.44], [0.93, 0.79, 0.25], [0.85, 0.26, 0.20]])


def plate_corners(cover: Cover, positions: Array, rotations: Array) -> Array:
    """(N, 4, 3) corners of square plates, counter-clockwise seen from the normal's side [m]."""
    half = 0.5 * _SIDE * cover.pitch
    local = half * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    return np.asarray(positions[:, None] + np.einsum("nij,cj->nci", rotations, local))


def normal_lines(cover: Cover, positions: Array, rotations: Array) -> Array:
    """(N, 2, 3) from each node along its normal [m]."""
    return np.stack([positions, positions + _NORMAL * cover.pitch * rotations[:, :, 2]], axis=1)


def motor_lines(cover: Cover, positions: Array, rotations: Array) -> Array:
    """(M, 2, 3) along the axis of each motor, through its joint [m]."""
    joints, axes = cover.motors.T
    parent = cover.joints[joints, 0]
    frames = rotations[parent] @ cover.joint_frames[joints]
    middle = positions[parent] + 0.5 * cover.pitch * frames[:, :, 0]
    along = _MOTOR * cover.pitch * frames[np.arange(len(joints)), :, axes]
    return np.stack([middle - along, middle + along], axis=1)


def error_colors(errors: Array, largest: float) -> Array:
    """(N, 3) colours from 0 to 1: green without error, yellow halfway, red from `largest` on; grey where unknown."""
    share = np.clip(np.nan_to_num(errors) / largest, 0.0, 1.0) * (len(_COLORS) - 1)
    lower = np.minimum(share.astype(np.int64), len(_COLORS) - 2)
    weight = (share - lower)[:, None]
    colors = (1.0 - weight) * _COLORS[lower] + weight * _COLORS[lower + 1]
    return np.where(np.isfinite(errors)[:, None], colors, 0.6)
