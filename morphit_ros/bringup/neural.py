"""The neural job: objects known as density fields, with their inertia and predicted motion as services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import RVIZ, SHARED, USE_SIM_TIME, VIEWER_PORT, chosen, completed, rviz
from morphit_ros.bringup.job import Job, NodeDescription

ARGUMENTS = (
    Argument("density", 500.0, "density of materials that nothing is said of [kg/m^3]", minimum=1.0, maximum=25000.0),
    Argument("friction", 0.3, "friction on the table where it was not identified", minimum=0.0, maximum=2.0),
    Argument("recording_frame", "", "frame that recordings and saved fields are in; empty: not known"),
    Argument("viewer", True, "serve a view of the object to web browsers on this machine"),
    VIEWER_PORT,
    RVIZ,
    USE_SIM_TIME,
    *SHARED,
)


def describe_neural(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the neural job: neural_object, and what shows it if that is asked for."""
    nodes = [NodeDescription("neural_object", chosen(values, "density", "friction", "recording_frame"))]
    if values["viewer"]:
        nodes.append(NodeDescription("web_viewer", {"scene": "neural", "port": values["viewer_port"]}))
    if values["rviz"]:
        nodes.append(rviz("neural"))
    return completed(nodes, values, use_sim_time=values["use_sim_time"])


NEURAL = Job(
    "neural",
    "objects as density fields: inertia, predicted pushes and identification, as services",
    ARGUMENTS,
    describe_neural,
)
