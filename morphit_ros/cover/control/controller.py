"""The controller: motor rates that bring a cover to its target, every period anew.

Every node wants to turn its normal to the target's (`limits.desired_rates`). The quadratic programme finds the motion
of the whole cover that comes closest, over the null space of the loop closure: joints stay closed by construction, and
no inverse of the motors' matrix is needed, only the product u = A omega at the end. Limits: relative rates on all axes
of all joints, range of motion, and those that are switched on. If anything fails, the motors stop.
(Morphing covers, section III; the paper inverts the motors' matrix with damping and holds the last command on failure.)
"""

from __future__ import annotations

import numpy as np

from morphit_ros.cover.control.config import ControllerConfig
from morphit_ros.cover.control.prediction import StepPrediction
from morphit_ros.cover.control.programme import MotionProgramme, Situation
from morphit_ros.cover.control.quadratic_program import QpSolver, make_solver
from morphit_ros.cover.control.reach import Reach, ReachWatch
from morphit_ros.cover.control.step import StepResult, StepStatus
from morphit_ros.cover.goals.targets import SurfaceTarget
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, observe
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

__all__ = ["ControllerConfig", "CoverController", "StepResult", "StepStatus"]


class CoverController:
    """Motor rates for one cover.

    Args:
        cover: with as many motors as degrees of freedom.
        config: gains, weights and limits.
        solver: of the quadratic programmes; by default the one that the configuration names.
        null_space: shared with a plant in the same process.

    Raises:
        InvalidInputError: no motors, or not as many as degrees of freedom.
    """

    def __init__(
        self,
        cover: Cover,
        config: ControllerConfig | None = None,
        solver: QpSolver | None = None,
        null_space: NullSpaceSolver | None = None,
    ) -> None:
        if len(cover.motors) != cover.expected_dof:
            raise InvalidInputError(
                "motors", f"{len(cover.motors)} motors", f"{cover.expected_dof}, one a degree of freedom",
                "Place them with 'morphit cover place'.",
            )  # fmt: skip
        self.cover = cover
        self.config = config or ControllerConfig()
        self._programme = MotionProgramme(cover, self.config, solver or make_solver(self.config.solver))
        self._null_space = null_space or NullSpaceSolver(cover)
        self._prediction: StepPrediction | None = None
        self._watch = ReachWatch(self.config, cover.pitch)

    def reset(self) -> None:
        """Forget the last command and the last active limits."""
        self._programme.reset()
        self._watch.reset()

    def remember(self, rates: Array) -> None:
        """Take (M,) motor rates [rad/s] for the last command: what weights and limits of changes go by."""
        self._programme.slowed(rates)

    def step(
        self, state: CoverState, target: SurfaceTarget, time: float, forecast: Reach | None = None,
        passage: bool = False,
    ) -> StepResult:  # fmt: skip
        """The motor rates for now.

        Args:
            state: the present configuration.
            target: where to.
            time: for the target [s].
            forecast: how near the cover comes to it, if that is known (`forecast_reach`). It changes no motion: while
                the cover is not within the tolerances that it is not to reach, the status says so.
            passage: whether the target only leads to the one that the forecast is of: to be near it says nothing.

        Raises:
            InvalidInputError: a state of another cover.
        """
        cover, config = self.cover, self.config
        rotations = state.rotations
        if rotations.shape != (cover.node_count, 3, 3):
            raise InvalidInputError("state", f"{len(rotations)} nodes", f"{cover.node_count}, as the cover has")
        positions, normals = np.empty((cover.node_count, 3)), np.empty((cover.node_count, 3))
        opened = observe(
            rotations, state.origin, cover.father, cover.rows, cover.cols, cover.pitch, cover.open_faces, positions,
            normals,
        )  # fmt: skip
        if not np.isfinite(opened):
            nothing = np.full(cover.node_count, np.nan)
            return self._stop(StepStatus.GAP, nothing, nothing, message="state is not finite")
        sample = target.sample(positions, time)
        angles = np.arccos(np.clip(np.einsum("ij,ij->i", normals, sample.normals), -1.0, 1.0))
        if not sample.finite:
            return self._stop(StepStatus.TARGET_NOT_FINITE, angles, sample.distances)
        if opened > config.gap_limit:
            return self._stop(StepStatus.GAP, angles, sample.distances)
        space = self._null_space.solve(rotations)
        dof = space.basis.shape[1]
        if dof != len(cover.motors):
            return self._stop(StepStatus.RANK_DROP, angles, sample.distances, dof)
        found = self._programme.solve(Situation(rotations, positions, normals, sample, space))
        if not found.status.moves:
            return self._stop(
                found.status, angles, sample.distances, dof, found.condition, found.iterations, found.message
            )
        rates = found.rates
        if config.whole_step:
            if self._prediction is None:
                self._prediction = StepPrediction(cover, config, rotations)
            bounds, conditions = self._programme.motor_bounds, (found.condition, found.next_condition)
            rates, _ = self._prediction.within_limits(rotations, space, found.turns, rates, bounds, conditions)
            self._programme.slowed(rates)
        status = found.status
        if status is StepStatus.OK and not self._programme.accelerates_little(rates):
            status = StepStatus.ACCELERATION_RELAXED
        message = found.message
        if self._watch.update(target, sample, angles):
            # What holds it back, if that is known, comes second.
            said = f"{self._watch.best.description}, no nearer for {config.reach_time:g} s"
            status, message = StepStatus.OUT_OF_REACH, f"{said}; {message}" if message else said
        elif forecast is not None and not forecast.within and (passage or not self._watch.best.within):
            said = f"forecast: {forecast.description}"
            status, message = StepStatus.OUT_OF_REACH, f"{said}; {message}" if message else said
        return StepResult(
            rates, status, angles, sample.distances, dof, found.condition, found.saturated,
            found.iterations, message,
        )  # fmt: skip

    def _stop(
        self, status: StepStatus, angles: Array, distances: Array, dof: int = 0, condition: float = np.inf,
        iterations: int = 0, message: str = "",
    ) -> StepResult:  # fmt: skip
        """Zero rates, and no memory of what was before."""
        self.reset()
        nothing = np.zeros(len(self.cover.motors))
        return StepResult(nothing, status, angles, distances, dof, condition, 0, iterations, message)
