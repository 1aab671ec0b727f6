"""The simulated cover: motors turn, joints stay closed."""

from __future__ import annotations

from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.motion import MotorMotion
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


class CoverPlant:
    """A cover that its motors move.

    Args:
        cover: with as many motors as degrees of freedom.
        state: the start, joints closed.
        null_space: shared with a controller that sees the same states, so that each is decomposed once.

    Raises:
        InvalidInputError: motors that are missing.
    """

    def __init__(self, cover: Cover, state: CoverState, null_space: NullSpaceSolver | None = None) -> None:
        if len(cover.motors) != cover.expected_dof:
            raise InvalidInputError(
                "motors", f"{len(cover.motors)} motors", f"{cover.expected_dof}, one a degree of freedom",
                "Place them with 'morphit cover place'.",
            )  # fmt: skip
        self.cover = cover
        self.state = state
        self._motion = MotorMotion(cover, state.rotations, null_space or NullSpaceSolver(cover))

    @property
    def slack_parts(self) -> int:
        """Parts of steps in which friction decided, not the motors alone."""
        return self._motion.slack_parts

    def step(self, rates: Array, period: float) -> bool:
        """Turn the motors at `rates` (M,) [rad/s] for `period` [s]; false where no closed configuration was found."""
        rotations, moved = self._motion.advance(self.state.rotations, rates, period)
        self.state = CoverState(rotations, self.state.origin)
        return moved
