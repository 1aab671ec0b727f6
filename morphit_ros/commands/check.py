"""`morphit check`: tell what a running system lacks, in a table.

Look for some seconds at the nodes, topics, frames, clocks and drivers of this ROS domain, and compare with what a job
needs. Commands nothing and changes nothing. Each bad row says the remedy.

Without a job it is the one that runs. Arguments are those that the job was, or will be, started with: morphit check
grasp sim:=false robot:=ur3e_hande. Exit status: 0 nothing is bad, 1 something is, 2 a mistake in the input.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.output_files import add_json
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    parser.add_argument("job", nargs="?", default="", help="name of the job (default: the one that runs)")
    parser.add_argument("arguments", nargs="*", metavar="name:=value", help="arguments of the job")
    parser.add_argument("--seconds", type=float, default=4.0, metavar="S", help="how long to listen (default: 4)")
    add_json(parser)


def prepare(parser: CommandParser, words: list[str]) -> list[str]:
    """Take the arguments of the job out, which may stand anywhere."""
    from morphit_ros.commands.job_options import take_assignments

    return take_assignments(parser, words)


def run(options: argparse.Namespace) -> int:
    import json
    import subprocess
    import sys

    from morphit_ros.bringup import parse_assignments
    from morphit_ros.bringup.supervisor import node_environment
    from morphit_ros.errors import InvalidInputError

    if not 0.5 <= options.seconds <= 600.0:
        raise InvalidInputError("--seconds", options.seconds, "in [0.5, 600]")
    request = {
        "job": options.job,
        "arguments": parse_assignments([*options.assignments, *options.arguments]),
        "seconds": options.seconds,
        "json": options.json or "",
    }
    command = [sys.executable, "-m", "morphit_ros.ros.setup.check", json.dumps(request)]
    return subprocess.call(command, env=node_environment())
