"""The paper's noises: motors that turn less than they are told, and joint angles that are read wrongly.

(Morphing covers, section V.) Encoders of finite resolution are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.actuation.motors import motor_angles
from morphit_ros.cover.control.estimation import ClosureEstimator
from morphit_ros.cover.control.limits import fill_joint_rates
from morphit_ros.cover.kinematics.closure import GAP_TOLERANCE, bridge_lengths, close_loops, fill_closure_residuals
from morphit_ros.cover.kinematics.null_space import NullSpace, NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, rotate
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class NoiseConfig(Config):
    """Zero switches a noise off, and all are off by default; `PAPER_NOISE` has the paper's."""

    actuation_deviation: float = parameter(
        0.0, "Standard deviation of a motor's relative loss", minimum=0.0, maximum=1.0
    )
    actuation_bound: float = parameter(0.2, "Greatest relative loss", minimum=0.0, maximum=1.0)
    state_deviation: float = parameter(0.0, "Standard deviation of a joint's angle [rad]", minimum=0.0, maximum=0.1)
    state_bound: float = parameter(float(np.radians(0.05)), "Greatest error of a joint's angle [rad]", minimum=0.0)
    encoder_step: float = parameter(0.0, "Resolution of the motors' encoders [rad]", minimum=0.0, maximum=0.1)


_MOST_CORRECTIONS = 6
PAPER_NOISE = NoiseConfig(actuation_deviation=0.1216, state_deviation=float(np.radians(0.0304)))


class NoiseSource:
    """Draws the noises of a run."""

    def __init__(self, cover: Cover, config: NoiseConfig, seed: int) -> None:
        self.cover = cover
        self.config = config
        self._rng = np.random.default_rng(seed)
        self._null_space = NullSpaceSolver(cover)
        self._frames = np.ascontiguousarray(cover.joint_frames)
        self._estimator = ClosureEstimator(cover) if config.encoder_step > 0.0 else None

    def actuate(self, rates: Array) -> Array:
        """What motors do that are told `rates` (M,): ``u (1 - |n|)``, n normal and bounded."""
        config = self.config
        if config.actuation_deviation == 0.0:
            return rates
        lost = self._rng.normal(0.0, config.actuation_deviation, len(rates))
        return rates * (1.0 - np.abs(np.clip(lost, -config.actuation_bound, config.actuation_bound)))

    def measure(self, state: CoverState) -> CoverState:
        """What is seen of a state: errors of joint angles that keep the loops closed, then encoders' steps."""
        config = self.config
        if config.state_deviation > 0.0:
            state = self._disturbed(state)
        if self._estimator is not None:
            angles = motor_angles(self.cover, state.rotations)
            read = config.encoder_step * np.round(angles / config.encoder_step)
            state = self._estimator.estimate(read, state).state
        return state

    def _disturbed(self, state: CoverState) -> CoverState:
        """Independent errors of all joint axes, brought to the nearest ones that the closed cover can have."""
        cover, config = self.cover, self.config
        errors = self._rng.normal(0.0, config.state_deviation, 3 * cover.joint_count)
        np.clip(errors, -config.state_bound, config.state_bound, out=errors)
        space = self._null_space.solve(state.rotations)
        rows = np.empty((3 * cover.joint_count, space.basis.shape[1]))
        fill_joint_rates(state.rotations, cover.joints, self._frames, space.basis, 1.0, rows)
        turns = space.basis @ cho_solve(cho_factor(rows.T @ rows), rows.T @ errors)
        for share in (1.0, 0.5, 0.25, 0.125):
            disturbed = self._closed(state, space, share * turns)
            if disturbed is not None:
                return disturbed
        return state  # a singular configuration: nothing is known about what lies beside it

    def _closed(self, state: CoverState, space: NullSpace, turns: Array) -> CoverState | None:
        """The closed configuration near the turned one; None where the nearest is further away than the errors."""
        cover = self.cover
        disturbed = np.empty_like(state.rotations)
        rotate(state.rotations, turns, disturbed)
        if not cover.fixed_bridges:
            rotations = disturbed
            residuals = np.empty(3 * len(cover.open_faces))
            for _ in range(_MOST_CORRECTIONS):
                fill_closure_residuals(cover, rotations, residuals)
                opened = 0.5 * cover.pitch * float(np.abs(residuals).max(initial=0.0))
                if opened < GAP_TOLERANCE:
                    return CoverState(rotations, state.origin)
                correction = space.close_least(residuals)
                if not np.abs(correction).max() < np.abs(turns).max():
                    break
                closer = np.empty_like(rotations)
                rotate(rotations, correction, closer)
                rotations = closer
        # Near singular configurations errors this small leave the linearisation.
        try:
            closed = close_loops(cover, CoverState(disturbed, state.origin), bridge_lengths(cover, state.rotations))
        except InvalidInputError:
            return None
        moved = float(np.abs(closed.rotations - disturbed).max())
        return closed if moved <= 2.0 * float(np.abs(turns).max()) else None
