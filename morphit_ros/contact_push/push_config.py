"""What an arm shall push where."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter

OBJECTS = ("box", "ball", "bottle", "lying_bottle", "forearm_ball")


@dataclass(frozen=True)
class ContactPushConfig(Config):
    """An object on a table and its goal."""

    object: str = parameter(
        "box",
        "What is pushed: a box, a ball that is rolled, a bottle that stands, one that lies, with its cap against the "
        "way, and is turned upright, or a large ball that the forearm rolls",
        choices=OBJECTS,
    )
    size: tuple[float, ...] = parameter(
        (0.1, 0.1, 0.1),
        "Of the box [m]; the first is the ball's diameter, 0.15 m or more under a forearm; the bottles have theirs",
        minimum=0.02,
        maximum=0.5, length=3,
    )  # fmt: skip
    mass: float = parameter(0.5, "Of the object [kg]", minimum=1e-3, maximum=20.0)
    start: tuple[float, ...] = parameter(
        (0.5, 0.0), "Of the object on the table [m]", minimum=-2.0, maximum=2.0, length=2
    )
    way: tuple[float, ...] = parameter((0.1, 0.0), "From there to its goal [m]", minimum=-1.0, maximum=1.0, length=2)
    position_tolerance: float = parameter(0.02, "At the goal [m]", minimum=1e-4, maximum=1.0)
    rotation_tolerance: float = parameter(
        10.0, "At the goal, of a bottle's axis from the vertical, of a ball none [deg]", minimum=0.1, maximum=180.0
    )
    time: float = parameter(120.0, "Most time of planning [s]", minimum=1e-3, maximum=1e5)
