"""Joint states and timed joint trajectories: what robots, simulators and planners exchange."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class JointState:
    """Measured joints at one time.

    Attributes:
        names: J joint names.
        positions, velocities: (J,) [rad or m], [rad/s or m/s].
        stamp: time of measurement [s].
        efforts: (J,) [N m or N, some drivers: A]; empty where the robot does not report them.
        vacuum: whether a suction cup senses its vacuum; None where there is none, or nothing tells.
        held_up: time by which a controller whose speed is scaled has fallen behind so far [s]; differences count.
    """

    names: tuple[str, ...]
    positions: Array
    velocities: Array
    stamp: float
    efforts: Array = field(default_factory=lambda: np.empty(0))
    held_up: float = 0.0
    vacuum: bool | None = None

    def as_dict(self) -> dict[str, float]:
        """Joint name → position."""
        return dict(zip(self.names, self.positions.tolist(), strict=True))


@dataclass(frozen=True)
class Trajectory:
    """A timed joint trajectory.

    Attributes:
        joint_names: J names; order of the columns.
        times: (N,) seconds from the start, strictly increasing, first one 0.
        positions, velocities: (N, J) [rad], [rad/s].
        start: when it begins by the robot's clock; 0: when it arrives [s].
    """

    joint_names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    start: float = 0.0

    def __post_init__(self) -> None:
        shape = (len(self.times), len(self.joint_names))
        if self.positions.shape != shape or self.velocities.shape != shape or shape[0] == 0:
            bound = f"shape {shape} with at least one row"
            raise InvalidInputError("trajectory", f"positions of shape {self.positions.shape}", bound)
        if not np.isfinite(self.positions).all() or (np.diff(self.times) <= 0.0).any():
            raise InvalidInputError("trajectory", "times or positions", "finite positions at increasing times")

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.times[-1])

    def sample(self, time: float) -> Array:
        """Positions (J,) at a time [s] since the start, clamped to the ends (cubic Hermite between rows)."""
        if time <= self.times[0]:
            return self.positions[0]
        if time >= self.times[-1]:
            return self.positions[-1]
        row = int(np.searchsorted(self.times, time)) - 1
        step = self.times[row + 1] - self.times[row]
        s = (time - self.times[row]) / step
        position: Array = (
            (1 + 2 * s) * (1 - s) ** 2 * self.positions[row]
            + s * (1 - s) ** 2 * step * self.velocities[row]
            + s * s * (3 - 2 * s) * self.positions[row + 1]
            + s * s * (s - 1) * step * self.velocities[row + 1]
        )
        return position

    def speed(self, time: float) -> Array:
        """Velocities (J,) at a time [s] since the start, those of the ends before and after it."""
        if time <= self.times[0]:
            return self.velocities[0]
        if time >= self.times[-1]:
            return self.velocities[-1]
        row = int(np.searchsorted(self.times, time)) - 1
        step = self.times[row + 1] - self.times[row]
        s = (time - self.times[row]) / step
        mean = (self.positions[row + 1] - self.positions[row]) / step
        speed: Array = (
            (1 - s) * (1 - 3 * s) * self.velocities[row]
            + 6 * s * (1 - s) * mean
            + s * (3 * s - 2) * self.velocities[row + 1]
        )
        return speed
