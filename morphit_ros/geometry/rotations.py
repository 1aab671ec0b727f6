"""Many rotations at once: unit quaternions (..., 4), scalar last, and rotation vectors (..., 3) [rad]."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array


def multiply_quats(first: Array, second: Array) -> Array:
    """The rotations `second` then `first` in fixed axes, as (..., 4)."""
    # Written out, here and below: np.cross takes ten times as long for a few hundred.
    x, y, z, w = (first[..., index] for index in range(4))
    i, j, k, r = (second[..., index] for index in range(4))
    return np.stack(
        [w * i + r * x + y * k - z * j, w * j + r * y + z * i - x * k, w * k + r * z + x * j - y * i,
         w * r - x * i - y * j - z * k], axis=-1,
    )  # fmt: skip


def invert_quats(quats: Array) -> Array:
    """The inverse rotations, as (..., 4)."""
    return quats * np.array([-1.0, -1.0, -1.0, 1.0])


def rotate_by_quats(quats: Array, vectors: Array) -> Array:
    """Vectors (..., 3) turned by (..., 4) unit quaternions."""
    x, y, z, w = (quats[..., index] for index in range(4))
    i, j, k = (vectors[..., index] for index in range(3))
    a, b, c = 2.0 * (y * k - z * j), 2.0 * (z * i - x * k), 2.0 * (x * j - y * i)
    return np.stack(
        [i + w * a + (y * c - z * b), j + w * b + (z * a - x * c), k + w * c + (x * b - y * a)], axis=-1
    )  # fmt: skip


def rotation_vectors(quats: Array) -> Array:
    """(..., 3) rotation vectors [rad] of (..., 4) unit quaternions, the shorter way round."""
    quats = np.where(quats[..., 3:] < 0.0, -quats, quats)
    length = np.linalg.norm(quats[..., :3], axis=-1, keepdims=True)
    small = length < 1e-8
    factor = np.where(small, 2.0, 2.0 * np.arctan2(length, quats[..., 3:]) / np.where(small, 1.0, length))
    return factor * quats[..., :3]


def aligned_quats(quats: Array) -> Array:
    """The (N, 4) quaternions with signs such that neighbours are close."""
    flips = np.cumprod(np.concatenate([[1.0], np.where((quats[1:] * quats[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)]))
    return quats * flips[:, None]


def inverse_right_jacobians(vectors: Array) -> Array:
    """(N, 3, 3) derivatives of log(exp(r) exp(d)) by d at zero, for (N, 3) rotation vectors r below pi.

    Source: Sola, Deray, Atchuthan, A micro Lie theory, eq. (144).
    """
    angle = np.linalg.norm(vectors, axis=1)
    safe = np.where(angle < 1e-4, 1.0, angle)
    factor = np.where(
        angle < 1e-4, 1.0 / 12.0 + angle**2 / 720.0, 1.0 / safe**2 - 0.5 / (safe * np.tan(0.5 * safe))
    )  # fmt: skip
    cross = cross_matrices(vectors)
    return np.eye(3) + 0.5 * cross + factor[:, None, None] * (cross @ cross)


def right_jacobian(vector: Array) -> Array:
    """(3, 3) J with exp(r + d) = exp(r) exp(J d) to first order, for one (3,) rotation vector r."""
    return np.linalg.inv(inverse_right_jacobians(vector[None])[0])


def quats_of_rotation_vectors(vectors: Array) -> Array:
    """(..., 4) unit quaternions of (..., 3) rotation vectors [rad]."""
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(angle / (2.0 * np.pi)) * vectors, np.cos(0.5 * angle)], axis=-1)


def quats_of_matrices(rotations: Array) -> Array:
    """(N, 4) unit quaternions of (N, 3, 3) rotations, the component of largest amount positive.

    Source: Markley, Unit quaternion from rotation matrix (2008): the largest of four expressions is divided by, so that
    no angle is a bad one.
    """
    diagonal = np.einsum("nii->ni", rotations)
    trace = diagonal.sum(axis=1)
    # 4 q qᵀ: each row is the quaternion, scaled by one of its components.
    outer = np.empty((len(rotations), 4, 4))
    outer[:, :3, :3] = rotations + rotations.transpose(0, 2, 1)
    outer[:, range(3), range(3)] = 1.0 - trace[:, None] + 2.0 * diagonal
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        outer[:, 3, i] = outer[:, i, 3] = rotations[:, k, j] - rotations[:, j, k]
    outer[:, 3, 3] = 1.0 + trace
    largest = np.argmax(np.column_stack([diagonal, trace]), axis=1)
    quats: Array = outer[np.arange(len(outer)), largest]
    return quats / np.linalg.norm(quats, axis=1, keepdims=True)


def matrices_of_quats(quats: Array) -> Array:
    """(N, 3, 3) rotations of unit quaternions (N, 4)."""
    x, y, z, w = quats.T
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.ascontiguousarray(np.array(rows).transpose(2, 0, 1))


def cross_matrices(vectors: Array) -> Array:
    """(..., 3, 3) matrices of the cross products with (..., 3) vectors on the left."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*vectors.shape, 3)
