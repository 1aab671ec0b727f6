"""The configuration of a cover from the angles of its motors: loops must close, encoders must read what they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, vstack
from scipy.sparse.linalg import splu

from morphit_ros.cover.actuation.motors import joint_vectors
from morphit_ros.cover.kinematics.closure import (
    bridge_lengths,
    bridge_residuals,
    closure_matrix,
    face_residuals,
    free_columns,
)
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, orthonormalize, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Residuals below this: half pitches of a face, radians of a motor.
CONVERGED = 1e-9
_MOST_ITERATIONS = 12
_LONGEST_STEP = 0.2


@dataclass(frozen=True)
class EncoderEstimate:
    """A configuration that fits the encoders.

    Attributes:
        state: the configuration; the previous one on failure.
        residual: greatest remaining residual (half pitches, radians).
        success: whether it converged.
    """

    state: CoverState
    residual: float
    success: bool


class ClosureEstimator:
    """Newton's method on faces and motors together, from the last configuration.

    Args:
        cover: with as many motors as degrees of freedom.
    """

    def __init__(self, cover: Cover) -> None:
        if len(cover.motors) != cover.expected_dof:
            raise InvalidInputError(
                "motors", f"{len(cover.motors)} motors", f"{cover.expected_dof}, one a degree of freedom"
            )
        self.cover = cover
        self._columns = free_columns(cover)

    def estimate(self, angles: Array, previous: CoverState) -> EncoderEstimate:
        """The configuration near `previous` whose motors read `angles` (M,) [rad], see `motors.motor_angles`.

        Raises:
            InvalidInputError: not one finite angle a motor.
        """
        cover = self.cover
        read = np.asarray(angles, dtype=np.float64)
        if read.shape != (len(cover.motors),) or not np.isfinite(read).all():
            raise InvalidInputError("angles", f"shape {read.shape}", f"{len(cover.motors)} finite angles, one a motor")
        lengths = bridge_lengths(cover, previous.rotations)
        rotations = previous.rotations.copy()
        size = np.inf
        for _ in range(_MOST_ITERATIONS):
            vectors = joint_vectors(cover, rotations)
            missing = read - vectors[cover.motors[:, 0], cover.motors[:, 1]]
            residual = np.concatenate(
                [-face_residuals(cover, rotations), -bridge_residuals(cover, rotations, lengths), missing]
            )
            size = float(np.abs(residual).max())
            if size < CONVERGED:
                orthonormalize(rotations)
                return EncoderEstimate(CoverState(rotations, previous.origin), size, True)
            matrix = vstack([closure_matrix(cover, rotations), self._angle_rows(rotations, vectors)])
            turns = np.zeros(3 * cover.node_count)
            try:
                turns[self._columns] = splu(csc_array(csc_array(matrix)[:, self._columns])).solve(residual)
            except RuntimeError:
                break  # singular: the motors do not span the motions here
            longest = float(np.abs(turns).max())
            if not np.isfinite(longest):
                break
            turned = np.empty_like(rotations)
            rotate(rotations, turns * min(1.0, _LONGEST_STEP / max(longest, 1e-12)), turned)
            rotations = turned
        return EncoderEstimate(previous, size, False)

    def _angle_rows(self, rotations: Array, vectors: Array) -> csc_array:
        """(M, 3 N): rates of the encoders' angles from angular velocities of the nodes."""
        cover = self.cover
        joints, axes = cover.motors.T
        parent, child = cover.joints[joints].T
        frames = rotations[parent] @ cover.joint_frames[joints]
        # Rate of a rotation vector from the angular velocity in the parent's frame (left Jacobian's inverse).
        weights = np.stack([_inverse_left_jacobian(v)[a] for v, a in zip(vectors[joints], axes, strict=True)])
        rows = np.einsum("mij,mj->mi", frames, weights)
        count = len(joints)
        row = np.repeat(np.arange(count), 3)
        columns = [(3 * node[:, None] + np.arange(3)).ravel() for node in (parent, child)]
        values = (np.concatenate([-rows.ravel(), rows.ravel()]), (np.tile(row, 2), np.concatenate(columns)))
        return csc_array(values, shape=(count, 3 * cover.node_count))


def _inverse_left_jacobian(vector: Array) -> Array:
    x, y, z = vector
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    angle = float(np.linalg.norm(vector))
    if angle < 1e-4:
        factor = 1.0 / 12.0
    else:
        factor = 1.0 / angle**2 - 0.5 / (angle * np.tan(0.5 * angle))
    return np.eye(3) - 0.5 * cross + factor * cross @ cross
