"""Jobs on several machines: each starts its part of the nodes, and all parts have one name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.job import NodeDescription
from morphit_ros.errors import InvalidInputError

# Part → executables. What moves the arm and who watches over it stay together: the kernel tells at once of the end of
# a process of the same machine, a network only after a silence.
PARTS: MappingProxyType[str, frozenset[str]] = MappingProxyType(
    {
        "simulation": frozenset({"workcell_sim"}),
        "perception": frozenset({"scene_perception"}),
        "planning": frozenset({"grasp_planning", "superovoid_distance", "motion_planning", "neural_object"}),
        "execution": frozenset(
            {
                "robot_spheres",
                "grasp_execution",
                "motion_gate",
                "person_monitor",
                "task_execution",
                "pick_client",
                "robot_state_publisher",
            }
        ),
        "viewer": frozenset({"web_viewer", "rviz2"}),
    }
)
# What is in no list goes where the robot is: transforms of its base and of the cameras.
_OTHERS = "execution"

ONLY = Argument(
    "only",
    "",
    f"on several machines, the parts that are started on this one, with commas: {', '.join(PARTS)}; empty: all",
)
JOB_NAME = Argument("job", "", "with only: the job's name, the same on all its machines; nodes of others are strangers")


def parts(values: Mapping[str, Any]) -> frozenset[str]:
    """The parts that are started here.

    Raises:
        InvalidInputError: a part that there is not, or no name for a job that is more than this machine's.
    """
    if not values["only"]:
        if values["job"]:
            remedy = "A job of one machine alone gets its name by itself."
            raise InvalidInputError("job", repr(values["job"]), "none without only", remedy)
        return frozenset(PARTS)
    wanted = [part.strip() for part in values["only"].split(",")]
    strangers = [part for part in wanted if part not in PARTS]
    if strangers:
        raise InvalidInputError("only", repr(", ".join(strangers)), f"some of {', '.join(PARTS)}")
    if not values["job"]:
        remedy = "Give all machines the same job:=NAME: nodes of two jobs on one network must not be mixed up."
        raise InvalidInputError("job", "none with only", "a name", remedy)
    return frozenset(wanted)


def of_parts(nodes: Iterable[NodeDescription], here: frozenset[str]) -> list[NodeDescription]:
    """Those of the nodes that belong to the given parts."""
    return [node for node in nodes if _part(node) in here]


def _part(node: NodeDescription) -> str:
    return next((part for part, executables in PARTS.items() if node.executable in executables), _OTHERS)


def job_identity(given: Mapping[str, str]) -> str:
    """What the nodes of one job have in common, whoever starts them: the name that was given, else a new one.

    Args:
        given: the job's arguments as typed.
    """
    return given.get(JOB_NAME.name) or uuid4().hex


def is_one_of_several(given: Mapping[str, str]) -> bool:
    """Whether the nodes have to find those of other machines."""
    return bool(given.get(ONLY.name))
