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
from morphit_ros.neural.identification.motion import TANGENT, Prediction, SteppedMotion

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
        products: sums of squared residuals, and of products of each with the next in time.
    """

    residuals: Array
    jacobian: Array
    position_errors: Array
    rotation_errors: Array
    start: Array
    products: tuple[float, float]

    def with_residuals(self, residuals: Array, position_errors: Array, rotation_errors: Array) -> Residuals:
        """The same derivatives with other residuals (N,) and errors (T, S, 3)."""
        steps = residuals.reshape(-1, 6 * position_errors.shape[1])
        products = float((steps**2).sum()), float((steps[1:] * steps[:-1]).sum())
        return Residuals(residuals, self.jacobian, position_errors, rotation_errors, self.start, products)


def start_columns(experiment: Experiment) -> Array:
    """Indices, in the (12 B,) tangent of the start, of what is unknown."""
    if experiment.knowledge == "known":
        return np.zeros(0, dtype=np.int64)
    first = 6 if experiment.knowledge == "velocity_unknown" else 0
    return np.concatenate([np.arange(TANGENT * body + first, TANGENT * (body + 1)) for body in experiment.seen])


def start_names(experiment: Experiment, columns: Array) -> list[str]:
    """What the numbers of the start are, by their indices (L,) in the tangent."""
    several = len(experiment.tracks) > 1
    return [
        f"first {_KINDS[index % TANGENT // 3]} {'xyz'[index % 3]}" + (f" of body {index // TANGENT}" if several else "")
        for index in columns.tolist()
    ]


def residuals_of(
    experiment: Experiment,
    names: Sequence[str],
    values: Array,
    columns: Array,
    correction: Array,
    position_noise: float,
    rotation_noise: float,
) -> Residuals:
    """Compare the prediction at some parameters with the tracks.

    Args:
        experiment: the observed motion.
        names: (K) parameters.
        values: (K,) their values.
        columns: (L,) unknown numbers of the start, see `start_columns`.
        correction: (L,) tangent from the experiment's start to the one to use.
        position_noise: [m].
        rotation_noise: [rad].
    """
    start, tangent = _start(experiment, columns, correction)
    # Numbers of a motion that flies apart overflow on their way: it is what comes out that is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        prediction = experiment.motion.predict(names, values, start, experiment.times)
        residuals, jacobian, position_errors, rotation_errors = _compare(
            experiment, prediction, columns, tangent, position_noise, rotation_noise
        )
    if not ((np.abs(residuals) < _LARGEST).all() and (np.abs(jacobian) < _LARGEST).all()):
        return _infinite(experiment, start, len(names) + len(columns))
    return Residuals(
        residuals.ravel(), jacobian.reshape(-1, jacobian.shape[-1]), position_errors, rotation_errors, start,
        (float((residuals**2).sum()), float((residuals[1:] * residuals[:-1]).sum())),
    )  # fmt: skip


def _compare(
    experiment: Experiment,
    prediction: Prediction,
    columns: Array,
    tangent: Array,
    position_noise: float,
    rotation_noise: float,
) -> tuple[Array, Array, Array, Array]:
    """Residuals (T', S, 6), their derivatives (T', S, 6, K + L), position errors and rotation errors (T, S, 3)."""
    seen = list(experiment.seen)
    by_start = prediction.by_start[:, seen]
    # The correction is a rotation vector from the experiment's start: its derivative ends at the moved start.
    for body in seen:
        turned = slice(TANGENT * body + 3, TANGENT * body + 6)
        if np.any(tangent[turned]):
            by_start = by_start.copy()
            by_start[..., turned] = by_start[..., turned] @ right_jacobian(tangent[turned])
    slopes = np.concatenate([prediction.by_parameters[:, seen], by_start[..., columns]], axis=-1)
    residuals, position_errors, rotation_errors = _differences(
        experiment, prediction.positions, prediction.quats_xyzw, position_noise, rotation_noise
    )
    turns = inverse_right_jacobians(rotation_errors.reshape(-1, 3)).reshape(*rotation_errors.shape, 3)
    jacobian = np.concatenate(
        [slopes[..., :3, :] / position_noise, turns @ slopes[..., 3:, :] / rotation_noise], axis=-2
    )[len(slopes) - len(residuals) :]
    return residuals, jacobian, position_errors, rotation_errors


def _infinite(experiment: Experiment, start: Array, width: int) -> Residuals:
    """Infinite residuals of an experiment by `width` unknowns, with derivatives of zero."""
    count = len(experiment.times)
    rows = (count - _first_row(experiment)) * len(experiment.seen) * 6
    errors = np.full((count, len(experiment.seen), 3), np.inf)
    return Residuals(np.full(rows, np.inf), np.zeros((rows, width)), errors, errors, start, (np.inf, 0.0))


def refined_residuals(
    experiment: Experiment,
    finer: tuple[SteppedMotion, SteppedMotion],
    names: Sequence[str],
    values: Array,
    columns: Array,
    correction: Array,
    position_noise: float,
    rotation_noise: float,
) -> tuple[Array, Array, Array]:
    """Residuals (N,) as of `residuals_of` with the step's first-order error removed; position and rotation errors.

    Args:
        experiment, names, values, columns, correction, position_noise, rotation_noise: as `residuals_of`.
        finer: the motion with shorter steps, and with half of those: twice the second less the first is of second
            order (Richardson).
    """
    start, _ = _start(experiment, columns, correction)
    (long, long_quats), (short, short_quats) = (
        motion.poses(names, values, start, experiment.times) for motion in finer
    )
    turns = rotation_vectors(multiply_quats(invert_quats(long_quats), short_quats))
    quats = multiply_quats(short_quats, quats_of_rotation_vectors(turns.reshape(-1, 3)).reshape(short_quats.shape))
    residuals, position_errors, rotation_errors = _differences(
        experiment, 2.0 * short - long, quats, position_noise, rotation_noise
    )
    return residuals.ravel(), position_errors, rotation_errors


def _start(experiment: Experiment, columns: Array, correction: Array) -> tuple[Array, Array]:
    assert experiment.start is not None
    tangent = np.zeros(TANGENT * len(experiment.tracks))
    tangent[columns] = correction
    return add_tangent(experiment.start, tangent), tangent


def _differences(
    experiment: Experiment, positions: Array, quats: Array, position_noise: float, rotation_noise: float
) -> tuple[Array, Array, Array]:
    """Residuals (T', S, 6), position errors and rotation errors (T, S, 3)."""
    seen = list(experiment.seen)
    position_errors = positions[:, seen] - experiment.positions
    rotation_errors = rotation_vectors(multiply_quats(invert_quats(experiment.quats_xyzw), quats[:, seen]))
    residuals = np.concatenate([position_errors / position_noise, rotation_errors / rotation_noise], axis=-1)
    return residuals[_first_row(experiment) :], position_errors, rotation_errors


def _first_row(experiment: Experiment) -> int:
    """A first pose that is certain says nothing: its residuals are zero for any parameters."""
    return 0 if experiment.knowledge == "unknown" else 1
