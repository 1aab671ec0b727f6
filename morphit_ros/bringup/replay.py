"""The replay job: a recording is published again, and shown where asked for; nothing acts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from morphit_ros.bags import Bag, read_bag
from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.common import VIEWER_PORT, chosen, rviz
from morphit_ros.bringup.job import Job, NodeDescription, WhenEnded
from morphit_ros.errors import InvalidInputError

# Parameters of nodes that see, by which the view of a recording is like the view of its job.
_SEEING = (
    "robot", "world_frame", "scene", "base_source", "base_xyz", "base_rpy", "camera_source", "left_extrinsics",
    "right_extrinsics", "third_extrinsics", "fourth_extrinsics",
)  # fmt: skip


ARGUMENTS = (
    Argument("file", "", "recording, also one that was cut off (.part)"),
    Argument("rate", 1.0, "seconds of the recording a second", minimum=0.01, maximum=100.0),
    Argument("start", 0.0, "where it begins [s]; latched topics have what they had there", minimum=0.0, maximum=1e6),
    Argument("loop", False, "begin again at the end"),
    Argument("without", "", "topics that are left out, names with spaces between"),
    Argument("robot", "", "robot of the view; empty: that of the recording"),
    Argument("viewer", False, "serve a view of it to web browsers on this machine"),
    VIEWER_PORT,
    Argument("rviz", "", "open RViz with a file of rviz/: grasp, system, cover …; empty: no"),
)


def describe_replay(values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """A player, and what shows the recording where asked for; nothing that acts.

    Raises:
        InvalidInputError, ResourceNotFoundError: the file.
    """
    if not values["file"]:
        raise InvalidInputError("file", "none", "a recording of morphit record")
    bag = read_bag(values["file"])
    namespace = bag.about.get("namespace", "").strip("/")
    shown = [name for name in ("viewer", "rviz") if values[name]]
    player = NodeDescription(
        "player",
        {
            "file": str(Path(values["file"]).resolve()),
            **chosen(values, "rate", "start", "loop"),
            **({"without": values["without"].split()} if values["without"] else {}),
            "stay": bool(shown),
            "wait_for": "web_viewer" if values["viewer"] else "",
        },
        when_ended=WhenEnded.FAIL_JOB if shown else WhenEnded.END_JOB,
    )
    nodes = [player]
    if values["viewer"]:
        robot = {"robot": values["robot"]} if values["robot"] else {}
        parameters = {**_seen(bag), **robot, "port": values["viewer_port"], "use_sim_time": True}
        nodes.append(NodeDescription("web_viewer", parameters, namespace=namespace))
    if values["rviz"]:
        nodes.append(replace(rviz(values["rviz"]), namespace=namespace, parameters={"use_sim_time": True}))
    return tuple(nodes)


def _seen(bag: Bag) -> dict[str, Any]:
    """Parameters of the view, from those of the job's viewer, or of another node that sees or knows the robot."""
    recorded = {name.rpartition("/")[2]: text for name, text in bag.parameters.items()}
    for node in ("web_viewer", "scene_perception", "grasp_execution", "robot_spheres"):
        if node in recorded:
            try:
                given = dict(json.loads(recorded[node]))
            except (ValueError, TypeError) as error:
                raise InvalidInputError(f"{bag.path.name}: {node}", recorded[node][:80], "an object of JSON") from error
            found = {name: given[name] for name in _SEEING if given.get(name) not in (None, "", [])}
            if found:
                return found
    return {}


REPLAY = Job("replay", "a recording is published again, with a view of it where asked for", ARGUMENTS, describe_replay)
