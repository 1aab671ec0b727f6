"""The distance job: exact distances of a robot to itself and to the world, as services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded
from morphit_ros.resources import resource
from morphit_ros.robot.configuration import RobotConfiguration

ARGUMENTS = (
    Argument("robot", "panda", "robot in config/robots, or a YAML file like those"),
    Argument(
        "description",
        "file",
        "where the URDF comes from: the robot's file, or the latched topic robot_description of a driver",
        ("file", "topic"),
    ),
    Argument("model", "", "superovoids: name in config/superovoids or a YAML file; empty: by the robot's name"),
    Argument("semantics", "", "SRDF: path or package://; empty: that of the robot's file"),
    Argument("state_timeout", 0.5, "age from which on joint states are stale [s]", minimum=0.01, maximum=60.0),
    Argument("robot_state_publisher", False, "publish the robot's frames on /tf, for RViz"),
    Argument("rviz", False, "open RViz"),
    Argument("use_sim_time", False, "take the time from 'clock'"),
    Argument("namespace", "", "namespace of all nodes"),
)


def describe_distance(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the distance job: superovoid_distance, and what RViz needs if that is asked for.

    Raises:
        ResourceNotFoundError: an unknown robot.
        InvalidInputError: a robot's file that is none.
    """
    robot = RobotConfiguration.load(values["robot"])
    parameters = {
        "model": values["model"] or robot.name,
        "semantics": values["semantics"] or robot.semantic_description,
        "state_timeout": values["state_timeout"],
        **({"robot": values["robot"]} if values["description"] == "file" else {}),
    }
    common = {"use_sim_time": values["use_sim_time"]}
    namespace = values["namespace"].strip("/")
    nodes = [NodeDescription("superovoid_distance", {**parameters, **common}, namespace=namespace)]
    if values["robot_state_publisher"]:
        from morphit_ros.robot.description import load_robot_description

        xml = load_robot_description(robot.description).xml
        nodes.append(
            NodeDescription(
                "robot_state_publisher",
                {"robot_description": xml, **common},
                package="robot_state_publisher",
                namespace=namespace,
            )
        )
    if values["rviz"]:
        words = ("-d", str(resource("rviz/superovoids.rviz")))
        nodes.append(
            NodeDescription(
                "rviz2",
                common,
                package="rviz2",
                namespace=namespace,
                arguments=words,
                when_ended=WhenEnded.CONTINUE,
            )
        )
    return tuple(nodes)


DISTANCE = Job(
    "distance",
    "exact distances of a robot's superovoids to each other and to objects, as services",
    ARGUMENTS,
    describe_distance,
)
