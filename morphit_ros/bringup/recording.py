"""A recorder beside the nodes of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from morphit_ros.bags import check_recording
from morphit_ros.bringup.arguments import Argument
from morphit_ros.bringup.job import NodeDescription, WhenEnded
from morphit_ros.errors import InvalidInputError

RECORDING = (
    Argument("record", "", "record all topics from the start into this .mcap file, kept however the job ends"),
    Argument(
        "record_last", 0.0, "with record: keep so much in memory, and write it at the end and after each failure, "
        "instead of everything [s]; 0: everything", minimum=0.0, maximum=3600.0,
    ),
    Argument(
        "record_clouds", 0.0, "with record: most whole clouds a second that are kept of each topic [Hz]; 0: none",
        minimum=0.0, maximum=1e3,
    ),
)  # fmt: skip


def with_recorder(nodes: Sequence[NodeDescription], values: Mapping[str, Any]) -> tuple[NodeDescription, ...]:
    """The nodes of a job, and before them a recorder where that is asked for; its end ends nothing.

    Raises:
        InvalidInputError: as of `check_recording`, or something about a recording that is not made.
    """
    if not values["record"]:
        for name in ("record_clouds", "record_last"):
            if values[name]:
                raise InvalidInputError(name, values[name], "0 without record")
        return tuple(nodes)
    check_recording("record", values["record"])
    given = {name: value for name, value in values.items() if value != ""}
    job = {"arguments": given, "parameters": {node.full_name: dict(node.parameters) for node in nodes}}
    cameras = {outer for node in nodes for inner, outer in node.remappings.items() if inner.endswith("points")}
    report = values.get("report")
    parameters: dict[str, Any] = {
        "file": str(Path(values["record"]).resolve()),
        "clouds": values["record_clouds"],
        "last": values["record_last"],
        "job": json.dumps(job),
        **({"topics": sorted(cameras)} if cameras and values["record_clouds"] else {}),
        **({"attach": [str(Path(report).resolve())]} if report else {}),
    }
    recorder = NodeDescription(
        "recorder", parameters, namespace=values["namespace"].strip("/"), when_ended=WhenEnded.CONTINUE
    )
    return (recorder, *nodes)
