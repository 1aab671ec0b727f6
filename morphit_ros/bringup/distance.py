"""The distance job: exact distances of a robot to itself and to the world, as services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import (
    ROBOT,
    ROBOT_STATE_PUBLISHER,
    RVIZ,
    SHARED,
    USE_SIM_TIME,
    chosen,
    completed,
    robot_state_publisher,
    rviz,
)
from morphit_ros.bringup.job import Job, NodeDescription
from morphit_ros.robot.configuration import RobotConfiguration

ROBOT_ARGUMENTS = (
    ROBOT,
    Argument(
        "description",
        "file",
        "where the URDF comes from: the robot's file, or the latched topic robot_description of a driver",
        ("file", "topic"),
    ),
    Argument("model", "", "superovoids: name in config/superovoids or a YAML file; empty: by the robot's name"),
    Argument("semantics", "", "SRDF: path or package://; empty: that of the robot's file"),
)
DISPLAY_ARGUMENTS = (
    ROBOT_STATE_PUBLISHER,
    RVIZ,
    USE_SIM_TIME,
    *SHARED,
)
ARGUMENTS = (
    *ROBOT_ARGUMENTS,
    Argument("state_timeout", 0.5, "age from which on joint states are stale [s]", minimum=0.01, maximum=60.0),
    *DISPLAY_ARGUMENTS,
)


def with_superovoids(
    executable: str, values: Mapping[str, Any], parameters: Mapping[str, Any], remappings: Mapping[str, str]
) -> tuple[NodeDescription, ...]:
    """A node that knows the robot as superovoids, and what RViz needs if that is asked for.

    Args:
        executable: of the node.
        values: of `ROBOT_ARGUMENTS` and `DISPLAY_ARGUMENTS`.
        parameters, remappings: further ones of the node.

    Raises:
        ResourceNotFoundError: an unknown robot.
        InvalidInputError: a robot's file that is none.
    """
    robot = RobotConfiguration.load(values["robot"])
    known = {
        "model": values["model"] or robot.name,
        "semantics": values["semantics"] or robot.semantic_description,
        "touch_links": list(robot.touch_links),
        **({"robot": values["robot"]} if values["description"] == "file" else {}),
    }
    nodes = [NodeDescription(executable, {**known, **parameters}, remappings=remappings)]
    if values["robot_state_publisher"]:
        nodes.append(robot_state_publisher(robot.description))
    if values["rviz"]:
        nodes.append(rviz("superovoids", robot.description))
    return completed(nodes, values, use_sim_time=values["use_sim_time"])


def describe_distance(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the distance job: superovoid_distance, and what RViz needs if that is asked for.

    Raises:
        ResourceNotFoundError: an unknown robot.
        InvalidInputError: a robot's file that is none.
    """
    return with_superovoids("superovoid_distance", values, chosen(values, "state_timeout"), {})


DISTANCE = Job(
    "distance",
    "exact distances of a robot's superovoids to each other and to objects, as services",
    ARGUMENTS,
    describe_distance,
)
