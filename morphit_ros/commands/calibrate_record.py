"""`morphit calibrate record`: record clouds and joint states while the arm visits poses.

Listen to both cameras and the robot, and write clouds and joint positions whenever the arm stands still at a new pose.
Commands nothing: move the arm by hand or with its driver, and stand out of the picture.

Eight to twenty poses, hand and forearm in view of both cameras, the wrist turned by 40° and more about different axes
(morphit calibrate poses draws some). Ctrl-C ends it. Exit status: 0 with five poses and more, 1 with fewer.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.calibrate_options import add_cameras, add_robot_name
from morphit_ros.commands.output_files import add_output
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    add_output(parser, "folder", "folder to write", "DIR")
    add_robot_name(parser)
    add_cameras(parser)
    parser.add_argument("--poses", type=int, default=12, metavar="N", help="how many (default: 12)")
    parser.add_argument("--left-points", default="", metavar="TOPIC", help="cloud of the left camera")
    parser.add_argument("--right-points", default="", metavar="TOPIC", help="cloud of the right camera")
    parser.add_argument("--namespace", default="", metavar="NAME", help="of the topics")


def run(options: argparse.Namespace) -> int:
    import json
    import signal
    import subprocess
    import sys

    from morphit_ros.bringup.supervisor import node_environment
    from morphit_ros.errors import InvalidInputError

    if not 3 <= options.poses <= 500:
        raise InvalidInputError("--poses", options.poses, "in [3, 500]")
    request = {
        "folder": options.folder,
        "robot": options.robot,
        "poses": options.poses,
        "cameras": options.cameras,
        "topics": {"left": options.left_points, "right": options.right_points},
        "namespace": options.namespace,
    }
    command = [sys.executable, "-m", "morphit_ros.ros.setup.record", json.dumps(request)]
    process = subprocess.Popen(command, env=node_environment())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: process.send_signal(received))
    return process.wait()
