"""What an arm shall push where."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter


@dataclass(frozen=True)
class ContactPushConfig(Config):
    """A box on a table and its goal."""

    size: tuple[float, ...] = parameter((0.1, 0.1, 0.1), "Of the box [m]", minimum=0.02, maximum=0.5, length=3)
    mass: float = parameter(0.5, "Of the box [kg]", minimum=1e-3, maximum=20.0)
    start: tuple[float, ...] = parameter((0.5, 0.0), "Of the box on the table [m]", minimum=-2.0, maximum=2.0, length=2)
    way: tuple[float, ...] = parameter((0.1, 0.0), "From there to its goal [m]", minimum=-1.0, maximum=1.0, length=2)
    position_tolerance: float = parameter(0.02, "At the goal [m]", minimum=1e-4, maximum=1.0)
    rotation_tolerance: float = parameter(10.0, "At the goal [deg]", minimum=0.1, maximum=180.0)
    time: float = parameter(120.0, "Most time of planning [s]", minimum=1e-3, maximum=1e5)
