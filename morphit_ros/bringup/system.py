"""The system job: everything that this suite knows of one robot and its surroundings, in one graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from morphit_ros.bringup import grasp
from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.cover import COVER
from morphit_ros.bringup.distance import DISTANCE
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded
from morphit_ros.bringup.neural import NEURAL
from morphit_ros.bringup.static_frames import WORN_COVER
from morphit_ros.bringup.workcell_file import WORKCELL
from morphit_ros.errors import InvalidInputError

_PARTS = ("superovoid_distance", "motion_planning", "task_execution", "neural_object", "cover_sim", "cover_control")
# Whatever their own job says there is the node's default, which a parameter file may change.
_LEFT_OUT = ("state_timeout", "friction")

ARGUMENTS = (
    WORKCELL,
    *grasp.ARGUMENTS,
    Argument("distances", True, "certified distances of the robot, superovoid_distance"),
    Argument("motions", True, "motions that are proven free, motion_planning"),
    Argument("tasks", True, "tasks of several actions, task_execution"),
    Argument("superovoids", "", "superovoids: name in config/superovoids or a YAML file; empty: by the robot's name"),
    Argument("neural", False, "an object known as a density field too, with its services"),
    *(argument for argument in NEURAL.arguments if argument.name in ("density", "recording_frame")),
    Argument("cover", "", "a morphing cover too: case of config/cover or a YAML file; empty: none"),
    Argument("cover_link", "", "link that wears the cover, whose plates are then parts of the robot; empty: none"),
    Argument("cover_pose", "0 0 0 0 0 0 1", "T_link_cover of the cover on that link, 'x y z qx qy qz qw' [m]"),
)


def describe_system(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the job grasp, distances and motions beside them, and neural object and cover where asked for.

    Raises:
        InvalidInputError: a link that wears no cover, or that the robot does not have; else as of the jobs that this
            one is made of.
        ResourceNotFoundError: as of these.
    """
    if values["cover_link"] and not values["cover"]:
        raise InvalidInputError("cover_link", values["cover_link"], "nothing without cover", "Name its case.")
    return grasp.describe_grasp(values, _others(values), "system", _PARTS)


def _others(values: Mapping[str, Any]) -> list[NodeDescription]:
    # A real robot's driver publishes its description, calibrated: there is one for all.
    description = {"description": "file" if values["sim"] else "topic"}
    nodes: list[NodeDescription] = []
    # They move nothing, and the topics that they follow are latched.
    if values["distances"]:
        nodes += DISTANCE.nodes({"robot": values["robot"], "model": values["superovoids"], **description})
    if values["motions"]:
        planning = {"robot": values["robot"], **description, **grasp.base_parameters(values)}
        if values["clearance"] == "world":
            # One number for grasps, paths, monitors and the page.
            planning |= {"clearance": "superovoids", "model": values["superovoids"]}
        nodes.append(NodeDescription("motion_planning", planning))
    nodes = [replace(node, when_ended=WhenEnded.RESTART) for node in nodes]
    if values["neural"]:
        told = {name: str(values[name]) for name in ("density", "recording_frame")}
        nodes += NEURAL.nodes({**told, "viewer": "false"})
    if values["cover"]:
        simulated = str(values["sim"]).lower()
        # Worn, it has a frame of its own, which moves with the link.
        frame = {"cover_frame": WORN_COVER} if values["cover_link"] else {}
        cover = COVER.nodes({"case": values["cover"], "sim": simulated, "viewer": "false"})
        nodes += [replace(node, parameters={**node.parameters, **frame}) for node in cover]
    return [
        replace(node, parameters={k: v for k, v in node.parameters.items() if k not in _LEFT_OUT}) for node in nodes
    ]


SYSTEM = Job(
    "system",
    "cameras, arm, spheres, superovoids, perception, grasping and motion in one graph, with one view",
    ARGUMENTS,
    describe_system,
)
