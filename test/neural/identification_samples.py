"""A sliding block in closed form: a motion whose identification can be checked by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.rotations import (
    inverse_right_jacobians,
    invert_quats,
    multiply_quats,
    quats_of_rotation_vectors,
    rotate_by_quats,
)
from morphit_ros.neural.identification.experiments import Experiment
from morphit_ros.neural.identification.motion import Prediction
from morphit_ros.neural.identification.tracks import PoseTrack

GRAVITY = 9.81


@dataclass(frozen=True)
class SlidingBlock:
    """A block of mass `mass` times mass_scale on a plane, pushed along its velocity by a constant force, spinning.

    Its speed falls by friction * g - force / mass until it stands still; its spin stays as it is.
    """

    force: float = 0.0
    mass: float = 2.0
    friction: float = 0.4
    mass_scale: float = 1.0

    @property
    def bodies(self) -> int:
        return 1

    def later(self, seconds):
        return self

    def finer(self, divisions):
        return self

    def poses(self, names, values, start, times):
        if type(self).predict is not SlidingBlock.predict:
            # What a test predicts otherwise it predicts so without derivatives, too.
            prediction = self.predict(names, values, start, times)
            return prediction.positions, prediction.quats_xyzw
        return self._motion(names, values, start, times)[:2]

    def _motion(self, names, values, start, times):
        """Positions, quaternions, rotations from the start's; how long and how far it moves until each time."""
        known = {"friction": self.friction, "mass_scale": self.mass_scale, **dict(zip(names, values, strict=True))}
        time = np.asarray(times) - times[0]
        position, quat, velocity, spin = start[0, :3], start[0, 3:7], start[0, 7:10], start[0, 10:]
        speed = np.linalg.norm(velocity)
        slowing = known["friction"] * GRAVITY - self.force / (self.mass * known["mass_scale"])
        stops = speed / slowing if slowing > 0.0 else np.inf
        moving = np.minimum(time, stops)
        way = speed * moving - 0.5 * slowing * moving**2
        turns = quats_of_rotation_vectors(time[:, None] * spin)
        quats = multiply_quats(quat[None], turns)[:, None]
        return (position + np.outer(way, velocity / speed))[:, None], quats, turns, moving, way

    def predict(self, names, values, start, times):
        known = {"friction": self.friction, "mass_scale": self.mass_scale, **dict(zip(names, values, strict=True))}
        positions, quats, turns, moving, way = self._motion(names, values, start, times)
        time = np.asarray(times) - times[0]
        velocity, spin = start[0, 7:10], start[0, 10:]
        speed = np.linalg.norm(velocity)
        direction = velocity / speed
        by_slowing = -0.5 * moving**2
        slowings = {"friction": GRAVITY, "mass_scale": self.force / (self.mass * known["mass_scale"] ** 2)}
        count = len(time)
        by_parameters = np.zeros((count, 1, 6, len(names)))
        for column, name in enumerate(names):
            by_parameters[:, 0, :3, column] = np.outer(by_slowing * slowings.get(name, 0.0), direction)
        by_start = np.zeros((count, 1, 6, 12))
        by_start[:, 0, :3, :3] = np.eye(3)
        across = (np.eye(3) - np.outer(direction, direction)) / speed
        by_start[:, 0, :3, 6:9] = moving[:, None, None] * np.outer(direction, direction) + way[:, None, None] * across
        for axis in range(3):  # the columns of the rotation back
            by_start[:, 0, 3:, 3 + axis] = rotate_by_quats(invert_quats(turns), np.eye(3)[axis])
        by_start[:, 0, 3:, 9:] = time[:, None, None] * np.linalg.inv(inverse_right_jacobians(time[:, None] * spin))
        return Prediction(positions, quats, by_parameters, by_start)


def block_start(speed: float = 1.5) -> np.ndarray:
    """(1, 13): sliding along (3, 4, 0) / 5, turned and spinning."""
    quat = quats_of_rotation_vectors(np.array([[0.3, -0.2, 0.5]]))[0]
    return np.concatenate([[0.1, 0.2, 0.0], quat, speed * np.array([0.6, 0.8, 0.0]), [0.2, -0.4, 1.1]])[None]


def observed(motion: SlidingBlock, frames: int = 40, step: float = 0.02, speed: float = 1.5) -> PoseTrack:
    """The true track of a block."""
    times = step * np.arange(frames)
    seen = motion.predict([], np.zeros(0), block_start(speed), times)
    return PoseTrack(times, seen.positions[:, 0], seen.quats_xyzw[:, 0])


def block_experiment(
    true: SlidingBlock, model: SlidingBlock, noise: float = 0.0, knowledge: str = "known", seed: int = 0, **track
) -> Experiment:
    """A track of `true`, with `noise` [m] in positions and ten times that [rad] in rotations, explained by `model`."""
    seen = observed(true, **track)
    if noise:
        seen = seen.with_noise(noise, 10.0 * noise, seed)
    start = block_start() if knowledge == "known" else None
    return Experiment(model, (seen,), start, knowledge)
