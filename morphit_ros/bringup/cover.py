"""The cover job: a morphing cover, its control, and a view of both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import RVIZ, SHARED, VIEWER_PORT, chosen, completed, rviz
from morphit_ros.bringup.job import Job, NodeDescription
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import resource

# Passes the father node, at the origin, at all times.
_WAVE = "0.02*(sin(8*x + 5*y + t/2) - sin(t/2))"

ARGUMENTS = (
    Argument("case", "", "case of config/cover (3x3, 4x8, 8x8, thigh …) or a YAML file; empty: rows and cols"),
    Argument("rows", 8, "rows of nodes, without a case", minimum=1, maximum=100),
    Argument("cols", 8, "columns of nodes, without a case", minimum=1, maximum=100),
    Argument("cover_file", "", "JSON file with a cover and its motors instead (morphit cover place --output)"),
    Argument("target", "", "z = f(x, y, t), or x; y; z of u, v, t; empty: the case's, or a travelling wave"),
    Argument("sim", True, "simulate the cover"),
    Argument("noise", False, "with the paper's noise of motors and joint angles"),
    Argument("state_source", "joint_states", "what the control reads", ("joint_states", "poses")),
    Argument("period", 0.01, "time between two commands [s]", minimum=1e-4, maximum=1.0),
    Argument("state_timeout", 1.8, "age of a state at which motors stop [periods]", minimum=1.0, maximum=100.0),
    Argument("overrun_limit", 4.0, "delay of a command at which motors stop [periods]", minimum=1.5, maximum=1e3),
    Argument("autostart", True, "activate the control once states arrive"),
    Argument("viewer", True, "serve a view of the cover to web browsers on this machine"),
    VIEWER_PORT,
    RVIZ,
    *SHARED,
)


def describe_cover(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of the cover job.

    Raises:
        InvalidInputError: a case and a file at once, or noise without a simulation.
        ResourceNotFoundError: no such case.
    """
    case, file = values["case"], values["cover_file"]
    if case and file:
        raise InvalidInputError("case, cover_file", (case, file), "at most one of them")
    if values["noise"] and not values["sim"]:
        raise InvalidInputError("noise", "true", "false without sim")
    if case and not case.endswith((".yaml", ".yml")):
        # Here, before anything is started.
        resource(f"config/cover/{case}.yaml")
    cover = chosen(values, *(("case",) if case else ("cover_file",) if file else ("rows", "cols")))
    control = {
        **cover,
        **chosen(values, "period", "state_source", "state_timeout", "overrun_limit", "autostart"),
        "target": values["target"] or ("" if case or file else _WAVE),
    }
    nodes = []
    if values["sim"]:
        simulated = {**cover, "rate": 1.0 / values["period"], "paper_noise": values["noise"]}
        nodes.append(NodeDescription("cover_sim", simulated))
    nodes.append(NodeDescription("cover_control", control))
    if values["viewer"]:
        nodes.append(NodeDescription("web_viewer", {"scene": "cover", "port": values["viewer_port"]}))
    if values["rviz"]:
        nodes.append(rviz("cover"))
    return completed(nodes, values)


COVER = Job(
    "cover", "a morphing cover that follows a target: simulation or hardware, control, view", ARGUMENTS, describe_cover
)
