"""The neural job: objects known as density fields, with their inertia and predicted motion as services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded
from morphit_ros.resources import resource

ARGUMENTS = (
    Argument("density", 500.0, "density of materials that nothing is said of [kg/m^3]", minimum=1.0, maximum=25000.0),
    Argument("friction", 0.3, "friction on the table where it was not identified", minimum=0.0, maximum=2.0),
    Argument("recording_frame", "", "frame that recordings and saved fields are in; empty: not known"),
    Argument("viewer", True, "serve a view of the object to web browsers on this machine"),
    Argument("viewer_port", 8080, "TCP port of the viewer on the loopback interface", minimum=1024, maximum=65535),
    Argument("rviz", False, "open RViz"),
    Argument("use_sim_time", False, "take the time from 'clock'"),
    Argument("namespace", "", "namespace of all nodes"),
)


def describe_neural(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the neural job: neural_object, and what shows it if that is asked for."""
    common = {"use_sim_time": values["use_sim_time"]}
    namespace = values["namespace"].strip("/")
    parameters = {name: values[name] for name in ("density", "friction", "recording_frame")}
    nodes = [NodeDescription("neural_object", {**parameters, **common}, namespace=namespace)]
    if values["viewer"]:
        viewer = {"scene": "neural", "port": values["viewer_port"], **common}
        nodes.append(NodeDescription("web_viewer", viewer, namespace=namespace))
    if values["rviz"]:
        words = ("-d", str(resource("rviz/neural.rviz")))
        nodes.append(
            NodeDescription(
                "rviz2", common, package="rviz2", namespace=namespace, arguments=words, when_ended=WhenEnded.CONTINUE
            )
        )
    return tuple(nodes)


NEURAL = Job(
    "neural",
    "objects as density fields: inertia, predicted pushes and identification, as services",
    ARGUMENTS,
    describe_neural,
)
