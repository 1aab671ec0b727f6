"""What jobs have in common: arguments, and nodes that several of them start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.job import NodeDescription, WhenEnded
from morphit_ros.bringup.recording import RECORDING, with_recorder
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import resource

ROBOT = Argument("robot", "panda", "robot in config/robots, or a YAML file like those")
VIEWER_PORT = Argument(
    "viewer_port", 8080, "TCP port of the viewer on the loopback interface", minimum=1024, maximum=65535
)
RVIZ = Argument("rviz", False, "open RViz")
ROBOT_STATE_PUBLISHER = Argument("robot_state_publisher", False, "publish the robot's frames on /tf, for RViz")
USE_SIM_TIME = Argument("use_sim_time", False, "take the time from 'clock'")
# Of every job.
SHARED = (Argument("namespace", "", "namespace of all nodes"), *RECORDING)

_NAMESPACE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")


def chosen(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Arguments that are parameters of a node under the same names."""
    return {name: values[name] for name in names}


def rviz(name: str, description: str = "") -> NodeDescription:
    """RViz with a file of rviz/; a window that somebody closes ends nothing.

    Args:
        name: of the file.
        description: URDF of the robot whose root is the fixed frame, where nobody says how it stands in the world.
    """
    from morphit_ros.robot.description import load_robot_description

    words: tuple[str, ...] = ("-d", str(resource(f"rviz/{name}.rviz")))
    if description:
        words += ("-f", load_robot_description(description).root_link)
    return NodeDescription("rviz2", package="rviz2", arguments=words, when_ended=WhenEnded.CONTINUE)


def robot_state_publisher(description: str) -> NodeDescription:
    """The node that publishes the frames of a robot description, which is given as a file."""
    from morphit_ros.robot.description import load_robot_description

    parameters = {"robot_description": load_robot_description(description).xml_to_publish()}
    return NodeDescription("robot_state_publisher", parameters, package="robot_state_publisher")


def completed(
    nodes: Iterable[NodeDescription], values: Mapping[str, Any], **shared: Any
) -> tuple[NodeDescription, ...]:
    """The nodes in the namespace that was asked for, with what all of them share, and a recorder if asked for."""
    namespace = values["namespace"].strip("/")
    if namespace and not _NAMESPACE.fullmatch(namespace):
        bound = "names of letters, digits and underscores that begin with a letter, with slashes between them"
        raise InvalidInputError("namespace", repr(values["namespace"]), bound)
    whole = [replace(node, namespace=namespace, parameters={**node.parameters, **shared}) for node in nodes]
    return with_recorder(whole, values)
