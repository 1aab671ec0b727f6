"""`morphit replay`: publish a recording again, for RViz, the browser view and tests.

Publish what `morphit record` or a job with record:=FILE has written, with its qualities of service and its clock.
Commands that would move a robot go below /recorded, and a graph in which somebody obeys them is refused.

With --view the browser view shows it, in a ROS domain of its own unless ROS_DOMAIN_ID is set. --list tells what a
file holds and needs no ROS. Exit status: 0 at the end or after Ctrl-C, 1 if a node died, 2 for a mistake in the input.
"""

from __future__ import annotations

import argparse
from typing import Any

from morphit_ros.commands.output_files import add_output
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    parser.add_argument("file", help="recording, also one that was cut off")
    parser.add_argument("--rate", type=float, metavar="R", help="seconds of the recording a second (default: 1)")
    parser.add_argument("--start", type=float, metavar="S", help="where it begins [s]")
    parser.add_argument("--loop", action="store_true", default=None, help="begin again at the end")
    parser.add_argument("--without", nargs="+", default=[], metavar="TOPIC", help="topics that are left out")
    parser.add_argument("--view", dest="viewer", action="store_true", default=None, help="serve a view to browsers")
    parser.add_argument("--viewer-port", type=int, metavar="N", help="port of the view (default: 8080)")
    parser.add_argument("--rviz", metavar="NAME", help="open RViz with a file of rviz/: grasp, system, cover …")
    parser.add_argument("--robot", metavar="NAME", help="robot of the view (default: that of the recording)")
    parser.add_argument("--list", action="store_true", help="tell what the file holds, and end")
    add_output(parser, "--extract", "put the files that were recorded along into this folder, and end", "DIR")


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from morphit_ros.bags import read_bag
    from morphit_ros.commands.up import run_job
    from morphit_ros.dependencies import require

    if options.list or options.extract:
        bag = read_bag(options.file)
        if options.list:
            print(describe(bag))
        for name, content in bag.attachments.items() if options.extract else ():
            folder = Path(options.extract)
            folder.mkdir(parents=True, exist_ok=True)
            # A name of a file from elsewhere is no path.
            (folder / Path(name).name).write_bytes(content)
        return 0
    require("this command", "mcap")
    names = ("rate", "start", "loop", "viewer", "viewer_port", "rviz", "robot")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    given |= {"file": options.file, "without": " ".join(options.without)}
    words = [f"{name}:={str(value).lower() if isinstance(value, bool) else value}" for name, value in given.items()]
    return run_job("replay", words, None)


def describe(bag: Any) -> str:
    """What a recording holds, as text."""
    counts, channels = bag.counts, bag.channels
    lines = [f"{bag.path}: {bag.duration:.1f} s, {sum(counts.values())} messages"]
    lines += [f"  {bag.problem}"] if bag.problem else []
    lines += [f"  {name}: {value}" for name, value in bag.about.items()]
    width = max(map(len, channels))
    lines += [f"  {counts.get(name, 0):7d}  {name:<{width}}  {channels[name].type}" for name in sorted(channels)]
    lines += [f"  with {name}, {len(content)} bytes" for name, content in bag.attachments.items()]
    return "\n".join(lines)
