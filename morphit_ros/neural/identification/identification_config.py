"""What identification takes for granted, and how long it searches."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.neural.identification.least_squares import LeastSquaresConfig


@dataclass(frozen=True)
class IdentificationConfig(Config):
    """How observed motions are weighed and searched."""

    position_noise: float = parameter(1e-3, "Standard deviation of tracked positions [m]", minimum=1e-9)
    rotation_noise: float = parameter(0.02, "Standard deviation of tracked rotations, each axis [rad]", minimum=1e-9)
    window: int = parameter(0, "Poses in a window of multiple shooting, 0 for whole tracks", minimum=0)
    corrections: int = parameter(
        0,
        "Most corrections towards a vanishing step after the search, each with two finer rollouts",
        minimum=0,
        maximum=20,
    )
    divisions: int = parameter(
        2, "Parts of a step in the first of the finer rollouts; the second has twice as many", minimum=1
    )
    pilot: int = parameter(
        2, "Experiments with which the search begins, where there are more than twice as many; 0 for all", minimum=0
    )
    scan: int = parameter(
        33,
        "Places between the bounds of each unknown where the cost is evaluated first, 0 to begin at the given start",
        minimum=0,
        maximum=10_000,
    )
    starts: int = parameter(
        0,
        "Places that the search begins from, 0 for three",
        minimum=0,
        maximum=100,
    )
    looks: int = parameter(
        6,
        "Most evaluations of the cost on either side of the solution, for pushes of an object at rest",
        minimum=0,
        maximum=20,
    )
    threads: int = parameter(0, "Experiments predicted at the same time, 0 for one a core", minimum=0)
    search: LeastSquaresConfig = nested(LeastSquaresConfig)
