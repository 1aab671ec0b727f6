"""Rigid motions as 4x4 matrices.

``T_target_source`` maps source coordinates to target coordinates:
``points_target = transform_points(T_target_source, points_source)``. Quaternions are
``quat_xyzw``: the scalar is the last element, as in geometry_msgs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError

Array = NDArray[np.float64]


def make_transform(rotation: ArrayLike | None = None, translation: ArrayLike | None = None) -> Array:
    """A (4, 4) transform from a (3, 3) rotation and a (3,) translation; either may be left out."""
    transform = np.eye(4)
    if rotation is not None:
        transform[:3, :3] = rotation
    if translation is not None:
        transform[:3, 3] = translation
    return transform


def check_transform(transform: ArrayLike, name: str = "transform", tolerance: float = 1e-6) -> Array:
    """The transform as float64, after checking that it is a rigid motion.

    Raises:
        InvalidInputError: wrong shape, not finite, or its rotation is not one within `tolerance`.
    """
    matrix = np.asarray(transform, dtype=np.float64)
    if matrix.shape != (4, 4):
        raise InvalidInputError(name, f"shape {matrix.shape}", "a (4, 4) rigid transform")
    if not np.isfinite(matrix).all():
        raise InvalidInputError(name, "values that are not finite", "a (4, 4) rigid transform")
    rotation = matrix[:3, :3]
    error = float(np.abs(rotation.T @ rotation - np.eye(3)).max())
    if error > tolerance or np.linalg.det(rotation) < 0.0 or not np.allclose(matrix[3], (0, 0, 0, 1), atol=tolerance):
        raise InvalidInputError(
            name,
            f"a matrix {error:.2e} away from a rotation",
            f"a rigid transform within {tolerance:g}",
            "Scale and reflection are not allowed.",
        )
    return matrix


def invert_transform(transform: Array) -> Array:
    """The inverse of a rigid (4, 4) transform."""
    inverse = np.eye(4)
    inverse[:3, :3] = transform[:3, :3].T
    inverse[:3, 3] = -transform[:3, :3].T @ transform[:3, 3]
    return inverse


def transform_points(transform: Array, points: ArrayLike) -> Array:
    """Points (..., 3) moved by a (4, 4) transform."""
    return np.asarray(points, dtype=np.float64) @ transform[:3, :3].T + transform[:3, 3]


def transform_vectors(transform: Array, vectors: ArrayLike) -> Array:
    """Directions (..., 3) turned by the rotation of a (4, 4) transform."""
    return np.asarray(vectors, dtype=np.float64) @ transform[:3, :3].T


def matrix_from_quat_xyzw(quat_xyzw: ArrayLike) -> Array:
    """The (3, 3) rotation of a quaternion (4,), scalar last; it is normalised first.

    Raises:
        InvalidInputError: the quaternion is zero or not finite.
    """
    quaternion = np.asarray(quat_xyzw, dtype=np.float64)
    norm = float(np.linalg.norm(quaternion)) if quaternion.shape == (4,) else math.nan
    if not math.isfinite(norm) or norm < 1e-9:
        raise InvalidInputError("quat_xyzw", quaternion.tolist(), "a finite quaternion (4,) that is not zero")
    x, y, z, w = quaternion / norm
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def quat_xyzw_from_matrix(rotation: ArrayLike) -> Array:
    """The quaternion (4,), scalar last and not negative, of a (3, 3) rotation."""
    r = np.asarray(rotation, dtype=np.float64)
    # Bar-Itzhack: the quaternion is the dominant eigenvector of this symmetric matrix, for any rotation.
    k = np.array(
        [
            [r[0, 0] - r[1, 1] - r[2, 2], 0.0, 0.0, 0.0],
            [r[1, 0] + r[0, 1], r[1, 1] - r[0, 0] - r[2, 2], 0.0, 0.0],
            [r[2, 0] + r[0, 2], r[2, 1] + r[1, 2], r[2, 2] - r[0, 0] - r[1, 1], 0.0],
            [r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], r[0, 0] + r[1, 1] + r[2, 2]],
        ]
    )
    quaternion: Array = np.linalg.eigh(k)[1][:, -1]
    return -quaternion if quaternion[3] < 0.0 else quaternion


def matrix_from_rpy(rpy: ArrayLike) -> Array:
    """The (3, 3) rotation of fixed-axis roll, pitch, yaw [rad], as in URDF."""
    roll, pitch, yaw = np.asarray(rpy, dtype=np.float64)
    cr, sr, cp, sp, cy, sy = (
        math.cos(roll),
        math.sin(roll),
        math.cos(pitch),
        math.sin(pitch),
        math.cos(yaw),
        math.sin(yaw),
    )
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_matrix(rotation: Array) -> Array:
    """Fixed-axis roll, pitch, yaw (3,) [rad] of a (3, 3) rotation, as in URDF; yaw is zero where pitch is ±π/2."""
    across = math.hypot(rotation[0, 0], rotation[1, 0])
    pitch = math.atan2(-rotation[2, 0], across)
    if across < 1e-9:
        return np.array([math.atan2(-rotation[1, 2], rotation[1, 1]), pitch, 0.0])
    roll, yaw = math.atan2(rotation[2, 1], rotation[2, 2]), math.atan2(rotation[1, 0], rotation[0, 0])
    return np.array([roll, pitch, yaw])


def matrix_from_rotation_vector(rotation_vector: ArrayLike) -> Array:
    """The (3, 3) rotation about the (3,) vector by its length [rad] (Rodrigues)."""
    vector = np.asarray(rotation_vector, dtype=np.float64)
    angle = float(np.linalg.norm(vector))
    x, y, z = vector
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < 1e-8:
        return np.eye(3) + skew + 0.5 * skew @ skew
    return np.eye(3) + math.sin(angle) / angle * skew + (1.0 - math.cos(angle)) / angle**2 * skew @ skew


def rotation_angle(rotation: ArrayLike) -> float:
    """The angle [rad], in [0, pi], of a (3, 3) rotation."""
    r = np.asarray(rotation, dtype=np.float64)
    # atan2 keeps its precision near 0 and pi, where arccos of the trace loses half the digits.
    vector = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    return math.atan2(float(np.linalg.norm(vector)), float(np.trace(r)) - 1.0)


def look_at(eye: ArrayLike, target: ArrayLike, up: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
    """``T_world_camera`` of an optical frame (z forward, x right, y down) at `eye` that looks at `target`.

    Raises:
        InvalidInputError: eye and target coincide, or the view is along `up`.
    """
    origin = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - origin
    right = np.cross(forward, np.asarray(up, dtype=np.float64))
    if np.linalg.norm(forward) < 1e-9 or np.linalg.norm(right) < 1e-9:
        raise InvalidInputError("look_at", f"eye {eye!r}, target {target!r}", "two points not along 'up'")
    forward /= np.linalg.norm(forward)
    right /= np.linalg.norm(right)
    return make_transform(np.column_stack([right, np.cross(forward, right), forward]), origin)


def plane_axes(normal: Array) -> Array:
    """Two unit vectors (2, 3) across a plane; with the normal they make a right-handed frame."""
    axis_u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
    axis_u /= np.linalg.norm(axis_u)
    return np.stack([axis_u, np.cross(normal, axis_u)])
