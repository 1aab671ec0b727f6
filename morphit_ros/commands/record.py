"""`morphit record`: record the topics of a running job into one file.

Write all topics of this suite's nodes, their parameters and versions into an MCAP file until Ctrl-C. Jobs record from
their start by themselves: morphit up JOB record:=FILE. With --last nothing is written until Ctrl-C but what came last,
and after each failure the same into a file of its own. `morphit replay` shows a recording; Foxglove, ros2 bag play and
rosbags read it too.

Exit status: 0 after Ctrl-C, 1 if the disk was full (what came before is kept), 2 for a mistake in the input.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="", help="file to write, a name that ends in .mcap (default: by date and time)"
    )
    parser.add_argument(
        "--clouds", type=float, default=0.0, metavar="HZ",
        help="most whole clouds and pictures a second that are kept of each topic (default: 0, none)",
    )  # fmt: skip
    parser.add_argument(
        "--last", type=float, default=0.0, metavar="SECONDS",
        help="keep so much in memory, and write it at the end and after each failure (default: 0, write everything)",
    )  # fmt: skip
    parser.add_argument("--topic", action="append", default=[], metavar="NAME", help="a further topic; may be repeated")
    parser.add_argument("--namespace", default="", metavar="NAME", help="of the job's nodes")


def run(options: argparse.Namespace) -> int:
    import time
    from typing import Any

    from morphit_ros.bags import check_recording
    from morphit_ros.bringup import NodeDescription
    from morphit_ros.bringup.supervisor import node_environment, run_nodes
    from morphit_ros.dependencies import OWN_MESSAGES, require

    file = options.file or time.strftime("morphit-%Y%m%d-%H%M%S.mcap")
    check_recording("FILE", file)
    require("this command", "rclpy", "mcap", OWN_MESSAGES)
    parameters: dict[str, Any] = {"file": file, "clouds": options.clouds, "last": options.last}
    if options.topic:
        parameters["topics"] = options.topic
    node = NodeDescription("recorder", parameters, namespace=options.namespace.strip("/"))
    return run_nodes([node], environment=node_environment()).exit_status
