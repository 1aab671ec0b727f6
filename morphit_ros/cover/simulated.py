"""A cover whose motors turn as commanded and hold still when nobody commands them, and what its encoders read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.control.tracking import JointTracker, axis_names, fold_axes
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.noise import NoiseConfig, NoiseSource
from morphit_ros.cover.plant import CoverPlant
from morphit_ros.cover.state import CoverState
from morphit_ros.geometry.transforms import Array

ENCODERS = ("joints", "folds", "motors")


class SimulatedCover:
    """Steps a plant with noise of motors and sensors. Times [s] are those of one steady clock.

    Args:
        cover: with motors.
        state: start configuration.
        noise: of motors and sensors.
        seed: of the noise.
        encoders: one of `ENCODERS`: on all axes of every joint, on fold axes and those of motors, or on motors alone.
        period: of `advance` [s].
        command_timeout: motors hold still when the newest command is older [s].

    Attributes:
        commands, refused, holds: how many commands were taken, how many refused, and how often motors were held still.
        moving: whether motors turn.
        refusal: why the newest command was refused, or empty.
        failure: why the cover stands still, or empty.
        command_time: of the newest command [s].
    """

    def __init__(
        self,
        cover: Cover,
        state: CoverState,
        noise: NoiseConfig,
        seed: int,
        encoders: str,
        period: float,
        command_timeout: float,
    ) -> None:
        self._cover, self._period, self._timeout = cover, period, command_timeout
        # One null space for plant and noise: without noise each configuration is decomposed once.
        self._plant = CoverPlant(cover, state, NullSpaceSolver(cover))
        self._noise = NoiseSource(cover, noise, seed)
        axes = self._sensed(encoders)
        self._tracker = JointTracker(cover, axes)
        self.axis_names = axis_names(cover, axes)
        self._still = np.zeros(len(cover.motors))
        self._rates, self.command_time = self._still, -np.inf
        self.commands = self.refused = self.holds = 0
        self.moving = False
        self.refusal = self.failure = ""

    def _sensed(self, encoders: str) -> NDArray[np.int64]:
        cover = self._cover
        if encoders == "motors":
            return cover.motors
        if encoders == "folds":
            # Motors must be read; a few turn other axes than folds.
            return np.unique(np.concatenate([cover.motors, fold_axes(cover)]), axis=0)
        joints, axes = np.divmod(np.arange(3 * cover.joint_count), 3)
        return np.stack([joints, axes], axis=1)

    @property
    def undecided_parts(self) -> int:
        """Parts of steps so far in which friction decided, not the motors alone."""
        return self._plant.slack_parts

    def command(self, rates: Array, now: float) -> None:
        """Take motor rates (M,) [rad/s]."""
        self._rates, self.command_time = rates, now
        self.commands += 1

    def refuse(self, reason: str) -> None:
        """Hold still after a command that nobody understands."""
        self._rates, self.command_time = self._still, -np.inf
        self.refused += 1
        self.refusal = reason

    def advance(self, now: float) -> None:
        """One period."""
        rates = self._rates
        if now - self.command_time > self._timeout:
            self.holds += int(np.any(rates))
            self._rates = rates = self._still
        elif self.refusal:
            self.refusal = ""
        self.moving = bool(np.any(rates))
        if self.moving:
            closed = self._plant.step(self._noise.actuate(rates), self._period)
            self.failure = "" if closed else "no closed configuration follows from the command: the cover stands still"

    def measure(self) -> CoverState:
        """The configuration as sensors read it."""
        return self._noise.measure(self._plant.state)

    def angles(self, state: CoverState) -> Array:
        """Angles (K,) that the encoders read in a configuration [rad], in the order of `axis_names`."""
        return self._tracker.angles(state.rotations)
