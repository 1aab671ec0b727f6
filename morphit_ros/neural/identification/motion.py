"""What identification needs of a simulation: predicted poses, and their derivatives by parameters and start.

The contact dynamics of this subpackage keep this protocol (`simulated_motion.SimulatedMotion`); so may any other model.
Tangent vectors of a state have 12 numbers a body: position in the world, rotation vector in the body frame (right
perturbation), velocity in the world, angular velocity in the body frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

TANGENT = 12


@dataclass(frozen=True)
class Prediction:
    """Predicted poses of B bodies at T times; `Prediction.none` of a motion that cannot be computed.

    Attributes:
        positions: (T, B, 3) centres of mass in the world [m].
        quats_xyzw: (T, B, 4).
        by_parameters: (T, B, 6, K) derivatives of position and rotation (right tangent) by the parameters.
        by_start: (T, B, 6, 12 B) derivatives by the tangent of the start state.
        failure: why there is no motion, for people; empty where there is one, or it is not known.
    """

    positions: Array
    quats_xyzw: Array
    by_parameters: Array
    by_start: Array
    failure: str = ""

    @classmethod
    def none(cls, times: int, bodies: int, parameters: int, failure: str = "") -> Prediction:
        """Infinitely far from whatever was seen, so that a search turns back."""
        return cls(
            np.full((times, bodies, 3), np.inf), np.full((times, bodies, 4), 0.5),
            np.zeros((times, bodies, 6, parameters)), np.zeros((times, bodies, 6, TANGENT * bodies)),
            failure,
        )  # fmt: skip


class Motion(Protocol):
    """A system of bodies whose motion depends on named parameters and on a start state."""

    @property
    def bodies(self) -> int:
        """Number B of bodies."""
        ...

    def predict(self, names: Sequence[str], values: Array, start: Array, times: Array) -> Prediction:
        """The motion from a start state.

        Args:
            names: (K) parameters.
            values: (K,) their values.
            start: (B, 13) position, quat_xyzw, velocity, angular velocity of each body at times[0].
            times: (T,) times at which poses are wanted; the first is that of the start.

        Returns:
            The poses, or `Prediction.none` where the motion cannot be computed up to the last time.
        """
        ...


@runtime_checkable
class PosedMotion(Motion, Protocol):
    """A `Motion` that can do without derivatives."""

    def poses(self, names: Sequence[str], values: Array, start: Array, times: Array) -> tuple[Array, Array]:
        """Positions (T, B, 3) and quaternions (T, B, 4) as `predict` has them, without derivatives.

        Raises:
            InvalidInputError: as `predict`, and a motion that cannot be computed up to the last time.
        """
        ...


@runtime_checkable
class SteppedMotion(PosedMotion, Protocol):
    """A `Motion` in time steps: windows of it can be looked at, and the step's own error removed."""

    def later(self, seconds: float) -> Motion:
        """The same system, its inputs ahead by this time: what acts on a window that begins later."""
        ...

    def finer(self, divisions: int) -> SteppedMotion:
        """The same system with steps that many times shorter."""
        ...


def stepped(motion: Motion, purpose: str) -> SteppedMotion:
    """The motion, if it is a `SteppedMotion`.

    Raises:
        InvalidInputError: it is not, with the setting that wants it.
    """
    if not isinstance(motion, SteppedMotion):
        raise InvalidInputError(purpose, f"a {type(motion).__name__}", "a motion with 'later', 'finer' and 'poses'")
    return motion
