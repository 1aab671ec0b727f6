"""Differences between predicted and observed poses in units of the tracking noise, with exact derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.rotations import (
    inverse_right_jacobians,
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    right_jacobian,
    rotation_vectors,
)
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.state import add_tangent
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.motion import TANGENT, PosedMotion, Prediction, SteppedMotion

# Residuals and derivatives beyond this are taken for infinite: their squares would be.
_LARGEST = 1e100
# Of a state's tangent, three numbers each.
_KINDS = ("position", "turn", "velocity", "spin")


@dataclass(frozen=True)
class Residuals:
    """One experiment at some parameters; residuals are infinite where its motion cannot be computed.

    Attributes:
        residuals: (N,) in units of the noise.
        jacobian: (N, K + L) derivatives by the parameters and by the L unknown numbers of the start.
        position_errors: (T, S, 3) predicted minus observed positions [m].
        rotation_errors: (T, S, 3) rotation vectors from observed to predicted [rad].
        start: (B, 13) the start that was used.
        failure: why the motion cannot be computed, for people; empty where it can.
    """

    residuals: Array
    jacobian: Array
    position_errors: Array
    rotation_errors: Array
    start: Array
    failure: str = ""

    def with_residuals(self, residuals: Array, position_errors: Array, rotation_errors: Array) -> Residuals:
        """The same derivatives with other residuals (N,) and errors (T, S, 3)."""
        return Residuals(residuals, self.jacobian, position_errors, rotation_errors, self.start)


@dataclass(frozen=True)
class ParameterTrial:
    """One experiment, and what its motion is to be predicted with.

    Attributes:
        experiment: the observed motion.
        names: (K) parameters.
        values: (K,) their values.
        directions: (12 B, L) in which the start is unknown, see `start_directions`.
        correction: (L,) along them, from the experiment's start to the one to use.
        position_noise, rotation_noise: of the tracks [m, rad].
    """

    experiment: Experiment
    names: Sequence[str]
    values: Array
    directions: Array
    correction: Array
    position_noise: float
    rotation_noise: float

    @property
    def tangent(self) -> Array:
        """(12 B,) from the experiment's start to the one to use."""
        return self.directions @ self.correction

    @property
    def start(self) -> Array:
        """(B, 13) the start to use."""
        assert self.experiment.start is not None
        return add_tangent(self.experiment.start, self.tangent)


def start_directions(experiment: Experiment) -> Array:
    """(12 B, L) tangents of the start along which it is unknown."""
    if experiment.directions is not None:
        return experiment.directions
    rows: list[int] = []
    if experiment.knowledge != "known":
        first = 6 if experiment.knowledge == "velocity_unknown" else 0
        rows = [TANGENT * body + row for body in experiment.seen for row in range(first, TANGENT)]
    return np.eye(TANGENT * len(experiment.tracks))[:, rows]


def start_names(experiment: Experiment) -> list[str]:
    """What the numbers of the start along its directions are."""
    directions = start_directions(experiment)
    if experiment.directions is not None:
        return [f"first pose, direction {index}" for index in range(directions.shape[1])]
    several = len(experiment.tracks) > 1
    return [
        f"first {_KINDS[index % TANGENT // 3]} {'xyz'[index % 3]}" + (f" of body {index // TANGENT}" if several else "")
        for index in directions.argmax(axis=0).tolist()
    ]


def residuals_of(trial: ParameterTrial) -> Residuals:
    """Compare the prediction of a trial with the tracks."""
    start = trial.start
    # Numbers of a motion that flies apart overflow on their way: it is what comes out that is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        prediction = trial.experiment.motion.predict(trial.names, trial.values, start, trial.experiment.times)
        residuals, jacobian, position_errors, rotation_errors = _compare(trial, prediction)
    if not ((np.abs(residuals) < _LARGEST).all() and (np.abs(jacobian) < _LARGEST).all()):
        failure = prediction.failure or "it, or its derivatives, grow beyond all numbers"
        return _infinite(trial.experiment, start, len(trial.names) + trial.directions.shape[1], failure)
    return Residuals(
        residuals.ravel(), jacobian.reshape(-1, jacobian.shape[-1]), position_errors, rotation_errors, start
    )


def _compare(trial: ParameterTrial, prediction: Prediction) -> tuple[Array, Array, Array, Array]:
    """Residuals (T', S, 6), their derivatives (T', S, 6, K + L), position errors and rotation errors (T, S, 3)."""
    seen, tangent = list(trial.experiment.seen), trial.tangent
    by_start = prediction.by_start[:, seen]
    # The correction is a rotation vector from the experiment's start: its derivative ends at the moved start.
    for body in seen:
        turned = slice(TANGENT * body + 3, TANGENT * body + 6)
        if np.any(tangent[turned]):
            by_start = by_start.copy()
            by_start[..., turned] = by_start[..., turned] @ right_jacobian(tangent[turned])
    slopes = np.concatenate([prediction.by_parameters[:, seen], by_start @ trial.directions], axis=-1)
    residuals, position_errors, rotation_errors = _differences(trial, prediction.positions, prediction.quats_xyzw)
    turns = inverse_right_jacobians(rotation_errors.reshape(-1, 3)).reshape(*rotation_errors.shape, 3)
    jacobian = np.concatenate(
        [slopes[..., :3, :] / trial.position_noise, turns @ slopes[..., 3:, :] / trial.rotation_noise], axis=-2
    )[len(slopes) - len(residuals) :]
    return residuals, jacobian, position_errors, rotation_errors


def _infinite(experiment: Experiment, start: Array, width: int, failure: str) -> Residuals:
    """Infinite residuals of an experiment by `width` unknowns, with derivatives of zero."""
    count = len(experiment.times)
    rows = (count - _first_row(experiment)) * len(experiment.seen) * 6
    errors = np.full((count, len(experiment.seen), 3), np.inf)
    return Residuals(np.full(rows, np.inf), np.zeros((rows, width)), errors, errors, start, failure)


def plain_residuals(trial: ParameterTrial) -> Array:
    """(N,) residuals alone, as of `residuals_of`: without derivatives where the motion can; infinite if none."""
    experiment, motion = trial.experiment, trial.experiment.motion
    if not isinstance(motion, PosedMotion):
        return residuals_of(trial).residuals
    with np.errstate(over="ignore", invalid="ignore"):
        positions, quats = motion.poses(trial.names, trial.values, trial.start, experiment.times)
        residuals, _, _ = _differences(trial, positions, quats)
    residuals = residuals.ravel()
    return residuals if (np.abs(residuals) < _LARGEST).all() else np.full_like(residuals, np.inf)


def refined_residuals(trial: ParameterTrial, finer: tuple[SteppedMotion, SteppedMotion]) -> tuple[Array, Array, Array]:
    """Residuals (N,) as of `residuals_of` with the step's first-order error removed; position and rotation errors.

    Args:
        trial: of the motion with its own step.
        finer: the motion with shorter steps, and with half of those: twice the second less the first is of second
            order (Richardson).
    """
    start = trial.start
    (long, long_quats), (short, short_quats) = (
        motion.poses(trial.names, trial.values, start, trial.experiment.times) for motion in finer
    )
    turns = rotation_vectors(multiply_quats(invert_quats(long_quats), short_quats))
    quats = multiply_quats(short_quats, quats_of_rotation_vectors(turns.reshape(-1, 3)).reshape(short_quats.shape))
    residuals, position_errors, rotation_errors = _differences(trial, 2.0 * short - long, quats)
    return residuals.ravel(), position_errors, rotation_errors


def _differences(trial: ParameterTrial, positions: Array, quats: Array) -> tuple[Array, Array, Array]:
    """Residuals (T', S, 6), position errors and rotation errors (T, S, 3)."""
    experiment = trial.experiment
    seen = list(experiment.seen)
    position_errors = positions[:, seen] - experiment.positions
    rotation_errors = rotation_vectors(multiply_quats(invert_quats(experiment.quats_xyzw), quats[:, seen]))
    residuals = np.concatenate(
        [position_errors / trial.position_noise, rotation_errors / trial.rotation_noise], axis=-1
    )
    return residuals[_first_row(experiment) :], position_errors, rotation_errors


def _first_row(experiment: Experiment) -> int:
    """A first pose that is certain says nothing: its residuals are zero for any parameters."""
    return 1 if experiment.pose_certain else 0
