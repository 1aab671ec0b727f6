"""Limits over a whole step: what the cover does while its motors turn, and rates that keep the limits all the way.

The programme's limits hold for the rates at the beginning of a step. Where the motors span the motions badly, the way
is curved: motors that turn as they are told bend passive joints up to three times faster. So the step is predicted.
First the motor rates are corrected to second order: from the end that lies nearest to the straight way, not from its
beginning. What is still too fast or beyond its range then is slowed down as a whole until it isn't.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.actuation.motors import motor_rates
from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.limits import fill_joint_turns, fold_cosines
from morphit_ros.cover.control.singularity import SpanTracker
from morphit_ros.cover.kinematics.closure import fill_closure_residuals
from morphit_ros.cover.kinematics.null_space import NullSpace, NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.motion import MotorMotion
from morphit_ros.cover.state import rotate
from morphit_ros.geometry.transforms import Array

# Excess of a realised rate [units of the limit] that is let pass.
_EXCESS = 5e-3
# Fall of a fold's cosine in a step that counts as none: measured folds may be beyond their range by the noise, and
# what is of second order is no reason to stand still then.
_LEAST_ROOM = 2e-6
# Slower steps that are tried before motors stand still for one.
_MOST_TRIALS = 8
# From this share of its target on the condition at the end of a step is looked at; it may grow by this factor.
_NEAR, _GROWTH = 0.5, 1.25
# First-order predictions below this share of what is allowed are believed.
_BELIEVED = 0.65
# Joints whose range ends within this [rad] count as at its end: the programme keeps that much clear. With a tenth of
# it what is of second order led beyond the end, and 8 x 8 was slowed to a quarter for a third of its way.
RANGE_MARGIN = 1e-3


class StepPrediction:
    """Predicts steps of one cover and slows them down.

    Args:
        cover: with motors.
        config: period and limits.
        rotations: (N, 3, 3) of a closed configuration, from which fixed nodes keep their distances.
    """

    def __init__(self, cover: Cover, config: ControllerConfig, rotations: Array) -> None:
        self.cover, self.config = cover, config
        # One of its own: configurations on the way are not those that the controller sees.
        self._null_space = NullSpaceSolver(cover)
        self._motion = MotorMotion(cover, rotations, self._null_space)
        self._spans = SpanTracker(cover)
        self._frames = np.ascontiguousarray(cover.joint_frames)
        self._turns = np.empty(3 * cover.joint_count)
        self._cosines, self._ends = np.empty(cover.joint_count), np.empty(cover.joint_count)

    def within_limits(
        self,
        rotations: Array,
        space: NullSpace,
        turns: Array,
        rates: Array,
        bounds: tuple[Array, Array],
        conditions: tuple[float, float],
    ) -> tuple[Array, float]:
        """Motor rates (M,) [rad/s] whose whole step keeps all limits, and the share of the speed that is left.

        Args:
            rotations: (N, 3, 3) now.
            space: of them.
            turns: (3 N,) angular velocities that were asked for [rad/s].
            rates: (M,) of the motors in that motion [rad/s].
            bounds: (M,) each, least and greatest motor rates; left where nothing but slowing down helps.
            conditions: of the motors' matrix now, and after the period to first order.
        """
        closing = self._closing(rotations, space, turns)
        limit = self.config.rate_limit
        share = min(1.0, limit / max(float(np.abs(rates + closing).max(initial=0.0)), 1e-12))
        for trial in range(_MOST_TRIALS):
            # What closes the joints is of second order in the speed.
            slowed = np.clip(share * (rates + share * closing), *(bounds if trial == 0 else (-limit, limit)))
            ends, moved = self._motion.advance(rotations, slowed, self.config.period, space)
            excess = self._excess(rotations, ends) if moved else np.inf
            if excess <= 1.0 + _EXCESS and self._loses_motors(ends, conditions):
                share *= 0.5
                continue
            if excess <= 1.0 + _EXCESS:
                return slowed, share
            share *= max(0.25, min(0.98, 1.0 / excess))
        return np.zeros_like(rates), 0.0

    def _closing(self, rotations: Array, space: NullSpace, turns: Array) -> Array:
        """What motors (M,) do faster while joints close at the end of a straight way of a period [rad/s]."""
        cover, period = self.cover, self.config.period
        nothing = np.zeros(len(cover.motors))
        if cover.fixed_bridges:
            return nothing
        ends, residuals = np.empty_like(rotations), np.empty(3 * len(cover.open_faces))
        rotate(rotations, period * turns, ends)
        fill_closure_residuals(cover, ends, residuals)
        # What is open already, as in measured states, is no part of the way.
        before = np.empty_like(residuals)
        fill_closure_residuals(cover, rotations, before)
        closing = motor_rates(cover, rotations, space.close_least(residuals - before)) / period
        # A correction that is no longer small says nothing.
        if not float(np.abs(closing).max(initial=0.0)) < 0.1 * self.config.rate_limit:
            return nothing
        return np.asarray(closing)

    def _loses_motors(self, ends: Array, conditions: tuple[float, float]) -> bool:
        """Whether a step from near a singular configuration of the motors leads on to it."""
        target, (condition, expected) = self.config.condition_target, conditions
        allowed = max(target, _GROWTH * condition)
        if not 0.0 < _NEAR * target < condition or expected < _BELIEVED * allowed:
            return False
        space = self._null_space.solve(ends)
        if space.basis.shape[1] != len(self.cover.motors):
            return True
        after = self._spans.measure(space, motor_rates(self.cover, ends, space.basis)).condition
        return after > allowed

    def _excess(self, rotations: Array, ends: Array) -> float:
        """The greatest share of a limit that a step uses: rates of all axes, and of what range folds have left."""
        cover, config = self.cover, self.config
        fill_joint_turns(rotations, ends, cover.joints, self._frames, self._turns)
        excess = float(np.abs(self._turns).max()) / (config.period * config.rate_limit)
        fold_cosines(rotations, cover.joints, cover.joint_along_column, self._cosines)
        fold_cosines(ends, cover.joints, cover.joint_along_column, self._ends)
        last = np.cos(cover.range_of_motion)
        beyond = (self._ends < last) & (self._ends < self._cosines)
        if beyond.any():
            room = np.maximum(self._cosines[beyond] - last, 0.0)
            excess = max(
                excess, float(((self._cosines[beyond] - self._ends[beyond]) / np.maximum(room, _LEAST_ROOM)).max())
            )
        return excess
