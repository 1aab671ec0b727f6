"""State of a rigid body, and of several as one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.rotations import (
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotation_vectors,
)
from morphit_ros.geometry.transforms import Array

STATE_SIZE = 13
TANGENT_SIZE = 12


def _zeros() -> Array:
    return np.zeros(3)


def _identity() -> Array:
    return np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class BodyState:
    """Where a body is and how it moves.

    Attributes:
        position: (3,) of the centre of mass in the world [m].
        quat_xyzw: (4,) from body to world, made unit.
        velocity: (3,) of the centre of mass in the world [m/s].
        angular_velocity: (3,) in the body's frame [rad/s].

    Raises:
        InvalidInputError: wrong shapes, values that are not finite, a zero quaternion.
    """

    position: Array = field(default_factory=_zeros)
    quat_xyzw: Array = field(default_factory=_identity)
    velocity: Array = field(default_factory=_zeros)
    angular_velocity: Array = field(default_factory=_zeros)

    def __post_init__(self) -> None:
        for name, size in (("position", 3), ("quat_xyzw", 4), ("velocity", 3), ("angular_velocity", 3)):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (size,) or not np.isfinite(value).all():
                raise InvalidInputError(name, value.tolist(), f"{size} finite numbers")
            object.__setattr__(self, name, value)
        norm = float(np.linalg.norm(self.quat_xyzw))
        if norm < 1e-9:
            raise InvalidInputError("quat_xyzw", self.quat_xyzw.tolist(), "a quaternion that is not zero")
        object.__setattr__(self, "quat_xyzw", self.quat_xyzw / norm)

    @property
    def flat(self) -> Array:
        """(13,) position, quaternion xyzw, velocity, angular velocity."""
        return np.concatenate([self.position, self.quat_xyzw, self.velocity, self.angular_velocity])

    @classmethod
    def from_flat(cls, flat: ArrayLike) -> BodyState:
        """The inverse of `flat`."""
        values = np.asarray(flat, dtype=np.float64)
        if values.shape != (STATE_SIZE,):
            raise InvalidInputError("flat", f"shape {values.shape}", f"({STATE_SIZE},)")
        return cls(values[:3], values[3:7], values[7:10], values[10:])


def stack_states(states: BodyState | Sequence[BodyState] | ArrayLike, bodies: int) -> Array:
    """(B, 13) from one state, several, or numbers of that shape (or (13,) for one body), with unit quaternions.

    Raises:
        InvalidInputError: not as many as bodies, or what `BodyState` refuses.
    """
    if isinstance(states, BodyState):
        rows = [states]
    elif isinstance(states, Sequence) and len(states) > 0 and isinstance(states[0], BodyState):
        rows = [state if isinstance(state, BodyState) else BodyState.from_flat(state) for state in states]
    else:
        values = np.asarray(states, dtype=np.float64)
        if values.ndim > 2 or values.size != bodies * STATE_SIZE or values.shape[-1] != STATE_SIZE:
            raise InvalidInputError("states", f"shape {values.shape}", f"shape ({bodies}, {STATE_SIZE})")
        rows = [BodyState.from_flat(row) for row in values.reshape(bodies, STATE_SIZE)]
    if len(rows) != bodies:
        raise InvalidInputError("states", f"{len(rows)} states", f"one for each of {bodies} bodies")
    return np.array([row.flat for row in rows])


def add_tangent(states: Array, tangent: ArrayLike) -> Array:
    """States (B, 13) moved by a tangent (12 B,): position, rotation vector (body frame), velocity, angular velocity."""
    change = np.asarray(tangent, dtype=np.float64).reshape(len(states), TANGENT_SIZE)
    moved = np.array(states, dtype=np.float64)
    moved[:, :3] += change[:, :3]
    moved[:, 7:] += change[:, 6:]
    moved[:, 3:7] = multiply_quats(moved[:, 3:7], quats_of_rotation_vectors(change[:, 3:6]))
    return moved


def subtract_states(states: Array, reference: Array) -> Array:
    """(12 B,) tangent that `add_tangent` adds to the reference (B, 13) to reach the states (B, 13)."""
    change = np.zeros((len(states), TANGENT_SIZE))
    change[:, :3] = states[:, :3] - reference[:, :3]
    change[:, 6:] = states[:, 7:] - reference[:, 7:]
    change[:, 3:6] = rotation_vectors(multiply_quats(invert_quats(reference[:, 3:7]), states[:, 3:7]))
    return change.ravel()
