"""The MoveIt job: move_group with the robot's fitted spheres as its collision geometry."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import (
    ROBOT,
    ROBOT_STATE_PUBLISHER,
    RVIZ,
    SHARED,
    USE_SIM_TIME,
    completed,
    robot_state_publisher,
    rviz,
)
from morphit_ros.bringup.job import Job, NodeDescription
from morphit_ros.bringup.parameter_files import flat_parameters, read_mapping
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.resources import resource, share_directory
from morphit_ros.robot.configuration import RobotConfiguration

SPHERES = "robot_description_spheres"
PIPELINES = ("ompl", "pilz_industrial_motion_planner")
# Offered besides where morphit_moveit is installed with its planner, a client of the node motion_planning.
PROVEN = "morphit"
# move_group waits for a description too, but for 10 s only, and in that time no signal ends it.
_AWAIT_DESCRIPTION = (sys.executable, "-m", "morphit_ros.ros.core.await_description")
# How far apart a motion's checked states are, as a part of the greatest distance in joint space. With MoveIt's 0.01
# (more than 0.1 rad), motions in clutter are refused after they were planned, or pass through edges unseen.
_CHECK_FRACTION = 0.002
# Detectors of morphit_moveit that take the robot as it is and its spheres by topic, and what they are good with: few
# spheres that contain the links.
_SUPEROVOID = "Superovoid"
_BY_TOPIC = ("Spheres", "SpheresFCL", _SUPEROVOID)
_COVER = {"variant": "volume", "cover": True, "primitive_count": 8}

ARGUMENTS = (
    ROBOT,
    Argument(
        "config",
        "",
        "folder with the robot's SRDF, kinematics.yaml, joint_limits.yaml, pilz_cartesian_limits.yaml and "
        "moveit_controllers.yaml; empty: config/moveit/<robot>",
    ),
    Argument(
        "sim",
        False,
        "spheres of the description in the robot's file; false: of the one that the driver publishes",
    ),
    Argument("live", False, "each later fit reaches the running move_group, added to the spheres that it started with"),
    Argument(
        "collision_detector",
        "FCL",
        "what move_group asks for collisions: FCL, Bullet, or one that is installed, as Spheres, SpheresFCL and "
        "Superovoid of morphit_moveit, which take the robot's own description, and spheres and superovoids by topic",
    ),
    Argument("execution", True, "whether move_group may move the robot with its controllers"),
    ROBOT_STATE_PUBLISHER,
    RVIZ,
    USE_SIM_TIME,
    Argument("seed", 0, "seed of the sphere fit", minimum=0, maximum=2**31 - 1),
    *SHARED,
)


def has_planner() -> bool:
    """Whether MoveIt would find the planner of morphit_moveit."""
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    index = "share/ament_index/resource_index/moveit_core__pluginlib__plugin/morphit_moveit"
    entries = [Path(prefix) / index for prefix in prefixes]
    return any(entry.is_file() and "planner.xml" in entry.read_text(encoding="utf-8") for entry in entries)


def moveit_parameters(
    robot: RobotConfiguration, config: Path | None = None, pipelines: Sequence[str] = PIPELINES
) -> dict[str, Any]:
    """Everything that MoveIt must be told of a robot, nested, except its description.

    Args:
        robot: names the planning group.
        config: folder of the robot's files; None for config/moveit/<name>.
        pipelines: names of config/moveit/<name>_planning.yaml; the first is OMPL's.

    Raises:
        ResourceNotFoundError: a file is missing.
        InvalidInputError: a file that is not a mapping, or no planning group in the robot's file.
    """
    from morphit_ros.robot.semantics import load_semantic_description

    folder = config or resource(f"config/moveit/{robot.name}")
    srdf = folder / f"{robot.name}.srdf"
    if not srdf.is_file():
        raise ResourceNotFoundError(srdf.name, [str(folder)], "It has the name of the robot, as in its file.")
    if "planning_group" not in robot.moveit:
        raise InvalidInputError(f"robot {robot.name}: moveit", sorted(robot.moveit), "a key 'planning_group'")
    common = resource("config/moveit")
    limits = _mapping(folder / "joint_limits.yaml") | _mapping(folder / "pilz_cartesian_limits.yaml")
    semantics = load_semantic_description(srdf)
    settings = {name: _mapping(common / f"{name}_planning.yaml") for name in pipelines}
    # OMPL takes for a group only planners that are named for it, and without a word its own default instead.
    # A list for each: of one that is named twice YAML makes an alias, which ROS does not read.
    planners = settings["ompl"].get("planner_configs", {})
    settings["ompl"] |= {
        group: {"planner_configs": list(planners), "longest_valid_segment_fraction": _CHECK_FRACTION}
        for group in semantics.groups
    }
    return {
        "robot_description_semantic": srdf.read_text(encoding="utf-8"),
        "robot_description_kinematics": _mapping(folder / "kinematics.yaml"),
        "robot_description_planning": limits,
        **settings,
        **_mapping(folder / "moveit_controllers.yaml"),
    }


def moveit_py_parameters(robot: RobotConfiguration, description: str, config: Path | None = None) -> dict[str, Any]:
    """The merged parameters that ``backend:=moveit`` takes as a file: `moveit_parameters` and a description.

    Args:
        robot: as of `moveit_parameters`.
        description: text of the URDF with spheres.
        config: as of `moveit_parameters`.

    Raises:
        ResourceNotFoundError, InvalidInputError: as of `moveit_parameters`.
    """
    planning = {"pipeline_names": list(PIPELINES)}
    return {"robot_description": description, "planning_pipelines": planning, **moveit_parameters(robot, config)}


def describe_moveit(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the MoveIt job: robot_spheres, and move_group once there is the description that it publishes.

    Where the planner of morphit_moveit is installed, also the node that it asks.

    Raises:
        ResourceNotFoundError: an unknown robot, or a file of its MoveIt configuration is missing.
        InvalidInputError: a file that is not what it must be, or arguments that exclude each other.
    """
    from morphit_ros.robot.description import load_robot_description

    robot = RobotConfiguration.load(values["robot"])
    pipelines = (*PIPELINES, PROVEN) if has_planner() else PIPELINES
    parameters = moveit_parameters(robot, Path(values["config"]) if values["config"] else None, pipelines)
    parameters |= {
        "planning_pipelines": list(pipelines),
        "default_planning_pipeline": PIPELINES[0],
        "allow_trajectory_execution": values["execution"],
        "collision_detector": values["collision_detector"],
        **_mapping(resource("config/moveit/planning_scene.yaml")),
    }
    source = {"robot": values["robot"]} if values["sim"] else {}
    fit = {"seed": values["seed"], "planning_scene": values["live"], "touch_links": list(robot.touch_links), **source}
    remappings = {"robot_description": SPHERES}
    if values["collision_detector"] in _BY_TOPIC:
        if values["live"]:
            remedy = "That detector follows later fits by itself."
            raise InvalidInputError("live", True, f"false with {values['collision_detector']}", remedy)
        fit |= _COVER
        remappings = {}
        if values["sim"]:
            parameters["robot_description"] = load_robot_description(robot.description).xml_with_files()
    move_group = NodeDescription(
        "move_group",
        flat_parameters(parameters),
        package="moveit_ros_move_group",
        sole_node=False,
        remappings=remappings,
        prefix=() if "robot_description" in parameters else _AWAIT_DESCRIPTION,
    )
    nodes = [NodeDescription("robot_spheres", fit), move_group]
    if values["collision_detector"] == _SUPEROVOID:
        # Shapes that contain the links have to grow least; a robot without such a model has that of its name.
        outer = f"{robot.name}_outer"
        model = outer if (share_directory() / f"config/superovoids/{outer}.yaml").is_file() else robot.name
        known = {"model": model, "semantics": robot.semantic_description, **source}
        nodes.append(NodeDescription("superovoid_distance", known))
    if PROVEN in pipelines:
        known = {"robot": values["robot"], "description": "file" if values["sim"] else "topic"}
        nodes.append(NodeDescription("motion_planning", known | {"seed": values["seed"]}))
    if values["robot_state_publisher"]:
        nodes.append(robot_state_publisher(robot.description))
    if values["rviz"]:
        nodes.append(rviz("spheres", robot.description))
    return completed(nodes, values, use_sim_time=values["use_sim_time"])


def _mapping(path: Path) -> dict[str, Any]:
    return read_mapping(path, "a mapping of parameters", "See config/moveit for one that works.")


MOVEIT = Job(
    "moveit",
    "MoveIt's move_group, planning with the robot's fitted spheres (needs a ROS 2 installation with MoveIt)",
    ARGUMENTS,
    describe_moveit,
)
