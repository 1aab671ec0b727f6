"""The contact job: an arm pushes an object to a goal on the table, planned through contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import ROBOT, SHARED, VIEWER_PORT, chosen, completed
from morphit_ros.bringup.grasp import WHEN_SIMULATED
from morphit_ros.bringup.job import Job, NodeDescription
from morphit_ros.resources import resource

# What is pushed → its name in the workcell, or its file, and its mass [kg]. The box is as large as plans have it.
_BOTTLE = ("bottle", 0.52)
_OBJECTS = {
    "box": ("config/objects/wide_box.obj", 0.5), "bottle": _BOTTLE, "lying_bottle": _BOTTLE,
    "forearm_ball": ("play_ball", 0.5),
}  # fmt: skip
_BALL = 0.2
ARGUMENTS = (
    ROBOT,
    Argument(
        "object",
        "box",
        "a box of 0.1 m, too wide to grasp, a bottle of 215 mm, one that lies, its cap against object_yaw, and is "
        "turned upright, or a ball of 0.2 m that the forearm rolls",
        tuple(_OBJECTS),
    ),
    Argument("object_x", 0.5, "place of the object in front of the robot [m]", minimum=-2.0, maximum=2.0),
    Argument("object_y", 0.0, "place of the object to the robot's left [m]", minimum=-2.0, maximum=2.0),
    Argument("object_yaw", 0.0, "turn of the object about the vertical [rad]", minimum=-6.3, maximum=6.3),
    Argument("friction", 0.4, "friction of the simulation; plans reckon with 0.4", minimum=0.05, maximum=2.0),
    Argument("realtime_factor", 1.0, "simulated seconds a second, if the machine can", minimum=0.05, maximum=20.0),
    Argument("period", 0.1, "time between two looks, from which the plan is renewed [s]", minimum=0.01, maximum=2.0),
    Argument("viewer", True, "serve a view of the job to web browsers on this machine"),
    VIEWER_PORT,
    *SHARED,
)  # fmt: skip
_SIMULATION = ("robot", "object_x", "object_y", "object_yaw", "friction", "realtime_factor")
# A motion is renewed while the arm follows it, which goes on by some hundredths while that is on its way through a
# busy machine: what the simulated arm takes [rad].
_GATE = {**WHEN_SIMULATED["motion_gate"], "start_tolerance": 0.05}


def describe_contact(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the contact job, around the simulated workcell."""
    name, mass = _OBJECTS[values["object"]]
    robot = chosen(values, "robot")
    lies = values["object"] == "lying_bottle"
    thing = {"object": str(resource(name)) if "/" in name else name, "object_mass": mass, "object_lies": lies}
    planning = {**chosen(values, "robot", "object", "period"), "mass": mass, "gate_timeout": 2.0}
    if values["object"] == "forearm_ball":
        planning["size"] = [_BALL] * 3
    nodes = [
        NodeDescription("workcell_sim", {**chosen(values, *_SIMULATION), **thing}),
        NodeDescription("robot_spheres", robot),
        NodeDescription("motion_planning", robot),
        NodeDescription("motion_gate", {**robot, "commander": "contact_planning", **_GATE}),
        NodeDescription("contact_planning", planning),
    ]
    if values["viewer"]:
        shown = {"port": values["viewer_port"], "job_nodes": [node.node_name for node in nodes]}
        nodes.append(NodeDescription("web_viewer", {**robot, **WHEN_SIMULATED["web_viewer"], **shown}))
    timed = (
        replace(node, parameters={**node.parameters, "use_sim_time": node.executable != "workcell_sim"})
        for node in nodes
    )
    return completed(timed, values)


CONTACT_PUSH = Job(
    "contact_push",
    "an arm that pushes an object to a goal on the table, planned through contact",
    ARGUMENTS,
    describe_contact,
)
