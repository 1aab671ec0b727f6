"""What a cover does when its motors turn: joints stay closed. Kinematic, as in the paper."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from morphit_ros.cover.actuation.motors import motor_rates
from morphit_ros.cover.kinematics.closure import bridge_lengths, close_loops, fill_closure_residuals
from morphit_ros.cover.kinematics.null_space import NullSpace, NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, orthonormalize, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# A face counts as closed below this [m].
CLOSED = 1e-9
# Beyond this condition the motors no longer decide alone.
MOST_CONDITION = 1e7
# Then singular values of the motors' matrix below its root (1e-3) no longer move the cover (the paper's Z_act inverse).
SLACK_DAMPING = 1e-6
_MOST_CORRECTIONS = 12
# A correction that leaves more than this share of the gaps calls for new factors, so many times.
_LEAST_PROGRESS = 0.1
_MOST_RENEWALS = 3
_MOST_HALVINGS = 4
# A node that turns further in one part [rad] has left what the linear system says.
_LONGEST_TURN = 0.2


class MotorMotion:
    """Configurations that follow from turns of the motors.

    Args:
        cover: with as many motors as degrees of freedom.
        rotations: (N, 3, 3) of a closed configuration, from which fixed nodes keep their distances.
        null_space: of configurations on the way.

    Attributes:
        slack_parts: parts of steps so far in which friction decided, not the motors alone.
    """

    def __init__(self, cover: Cover, rotations: Array, null_space: NullSpaceSolver) -> None:
        self.cover = cover
        self.slack_parts = 0
        self._null_space = null_space
        self._lengths = bridge_lengths(cover, rotations)

    def advance(
        self, rotations: Array, rates: Array, period: float, space: NullSpace | None = None
    ) -> tuple[Array, bool]:
        """Where motors that turn at `rates` (M,) [rad/s] for `period` [s] bring a configuration (N, 3, 3).

        Where the motors don't span the motions, or nearly, friction in the passive joints decides: of the motions that
        come close to the motors' rates, one that turns nodes little.

        Args:
            space: of `rotations`, if it is known.

        Returns:
            The configuration, and whether the whole period was walked; if not, the last closed one on the way.
        """
        length, walked = period, 0.0
        while walked < period * (1.0 - 1e-9):
            length = min(length, period - walked)
            here = space if space is not None and walked == 0.0 else self._null_space.solve(rotations)
            motors = motor_rates(self.cover, rotations, here.basis)
            motion = _Motion(self.cover, rotations, here, motors, False)
            closed = self._advanced(motion, rotations, rates, length)
            if closed is None:
                slack = _Motion(self.cover, rotations, here, motors, True)
                closed = self._advanced(slack, rotations, rates, length)
                self.slack_parts += closed is not None
                if closed is None:
                    closed = self._projected_step(motion if motion.decided else slack, rotations, rates, length)
            if closed is None:
                # Near a singular configuration the way is curved: in halves it may close.
                length *= 0.5
                if length < period / 2.0**_MOST_HALVINGS:
                    return rotations, False
                continue
            rotations = closed
            walked += length
            length *= 2.0
        return rotations, True

    def _advanced(self, motion: _Motion, start: Array, rates: Array, period: float) -> Array | None:
        """Rotations (N, 3, 3) after one part of a step, None if its loops could not be closed."""
        if not motion.decided:
            return None
        cover = self.cover
        turns = period * motion.from_rates(rates)
        if not float(np.abs(turns).max()) < _LONGEST_TURN:
            return None
        rotations = np.empty_like(start)
        rotate(start, turns, rotations)
        if cover.fixed_bridges:
            return self._projected(rotations)
        residuals = np.empty(3 * len(cover.open_faces))
        before, renewed = np.inf, 0
        for _ in range(_MOST_CORRECTIONS):
            fill_closure_residuals(cover, rotations, residuals)
            opened = 0.5 * cover.pitch * float(np.abs(residuals).max(initial=0.0))
            if opened < CLOSED:
                orthonormalize(rotations)
                return rotations
            if not opened < _LEAST_PROGRESS * before:
                # Large covers and nearly singular ones change within a step: the factors of its begin say too little.
                if renewed == _MOST_RENEWALS:
                    return None
                renewed += 1
                space = self._null_space.solve(rotations)
                motors = motor_rates(cover, rotations, space.basis)
                motion = _Motion(cover, rotations, space, motors, motion.slack)
                if not motion.decided:
                    return None
            before = opened
            # The same factors: a step is small, so that each correction gains several digits.
            corrected = np.empty_like(rotations)
            rotate(rotations, motion.correction(residuals), corrected)
            rotations = corrected
        return None

    def _projected_step(self, motion: _Motion, start: Array, rates: Array, period: float) -> Array | None:
        """As `_advanced` with new factors for every correction.

        Where the loop closure loses rank for a moment, as in a cover that passes through the flat one, the factors of
        the beginning say nothing about the end.
        """
        turns = period * motion.from_rates(rates)
        if not float(np.abs(turns).max()) < _LONGEST_TURN:
            return None
        rotations = np.empty_like(start)
        rotate(start, turns, rotations)
        closed = self._projected(rotations)
        if closed is None or np.abs(closed - rotations).max() > np.abs(turns).max():
            return None
        return closed

    def _projected(self, rotations: Array) -> Array | None:
        try:
            closed = close_loops(self.cover, CoverState(rotations, np.zeros(3)), bridges=self._lengths)
        except InvalidInputError:
            return None
        orthonormalize(closed.rotations)
        return closed.rotations


class _Motion:
    """Motions of one configuration from motor rates. Without `slack`, motors turn exactly as they are told.

    Attributes:
        slack: whether friction decides what motors don't.
        decided: whether motor rates decide the motion; always with slack.
    """

    def __init__(self, cover: Cover, rotations: Array, space: NullSpace, motors: Array, slack: bool) -> None:
        self._cover, self._rotations, self._space, self.slack = cover, rotations, space, slack
        self._motors = motors
        self.decided = slack
        if slack:
            # (M'M + d Z'Z) q = M'u, Z the basis: the least turning counts, not the least coefficients.
            damped = np.tril(self._motors.T @ self._motors) + SLACK_DAMPING * np.tril(space.gram)
            self._root, _ = lapack.dpotrf(damped, lower=1)
        elif self._motors.shape[0] == self._motors.shape[1]:
            self._factors, self._pivots, status = lapack.dgetrf(self._motors)
            if status == 0:
                reciprocal, _ = lapack.dgecon(self._factors, float(np.abs(self._motors).sum(axis=0).max()))
                self.decided = reciprocal * MOST_CONDITION > 1.0

    def from_rates(self, rates: Array) -> Array:
        """(3 N,) angular velocities at motor rates (M,)."""
        if self.slack:
            coefficients, _ = lapack.dpotrs(self._root, self._motors.T @ rates, lower=1)
        else:
            coefficients, _ = lapack.dgetrs(self._factors, self._pivots, rates)
        return np.asarray(self._space.basis @ coefficients)

    def correction(self, residuals: Array) -> Array:
        """(3 N,) turns that close `residuals` (3 F,): with still motors, or the least ones with slack."""
        if self.slack:
            return self._space.close_least(residuals)
        turns = self._space.close(residuals)
        return turns - self.from_rates(motor_rates(self._cover, self._rotations, turns))
