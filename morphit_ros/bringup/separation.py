"""The separation job: velocities of a robot changed as little as needed for it to stay apart from all around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import chosen
from morphit_ros.bringup.distance import DISPLAY_ARGUMENTS, ROBOT_ARGUMENTS, with_superovoids
from morphit_ros.bringup.job import Job, NodeDescription

# Parameters of the node under their own names, with its defaults and bounds.
_PARAMETERS = (
    Argument("self_separation", 0.005, "least distance of two links [m]", minimum=0.0, maximum=1.0),
    Argument("world_separation", 0.02, "least distance of links and objects [m]", minimum=0.0, maximum=10.0),
    Argument(
        "person_separation", 0.1, "least distance of links and people once the robot stands [m]",
        minimum=0.0, maximum=10.0,
    ),
    Argument("reaction_time", 0.04, "from a measured position until a command works [s]", minimum=0.0, maximum=1.0),
    Argument("tracking_error", 1e-4, "how far joints may be beside their way [rad or m]", minimum=1e-9, maximum=0.1),
    Argument(
        "acceleration", 2.0, "what joints brake with of which the robot's file says none [rad/s² or m/s²]",
        minimum=0.01, maximum=1000.0,
    ),
)  # fmt: skip
ARGUMENTS = (
    *ROBOT_ARGUMENTS,
    *_PARAMETERS,
    Argument("commands", "velocity_commands", "topic of the velocity controller that follows"),
    *DISPLAY_ARGUMENTS,
)


def describe_separation(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the separation job: separation_monitor, and what RViz needs if that is asked for.

    Raises:
        ResourceNotFoundError: an unknown robot.
        InvalidInputError: a robot's file that is none.
    """
    parameters = chosen(values, *(argument.name for argument in _PARAMETERS))
    remappings = {"velocity_commands": values["commands"]} if values["commands"] != "velocity_commands" else {}
    return with_superovoids("separation_monitor", values, parameters, remappings)


SEPARATION = Job(
    "separation",
    "a robot that is steered by velocities kept apart from itself, objects and people",
    ARGUMENTS,
    describe_separation,
)
