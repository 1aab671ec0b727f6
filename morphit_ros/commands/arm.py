"""`morphit arm`: bring the arm home, up after a fault, or have the hand let go.

Ask the grasp_execution of this ROS domain for one thing, on a real robot or in a job that runs (morphit up grasp).
Ctrl-C stops the arm; so does the end of this process in any other way.

home: to the robot's home, with what the hand holds. recover: after a fault, up and home. release: open the hand here
and now, what is in the air falls. place: put down what the hand holds, where it was grasped, at a pose, or standing in
a region of the table.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from morphit_ros.commands.parser import CommandParser

# Word → name of the action.
_ACTIONS = {"home": "go_home", "recover": "recover", "release": "release", "place": "place"}
_ONLY = {
    "open": "recover",
    "aperture": "release",
    "height": "place recover",
    "pose": "place",
    "frame": "place",
    "region": "place",
    "size": "place",
}


def add_options(parser: CommandParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="what the arm is to do")
    parser.add_argument("--open", action="store_true", default=None, help="recover: open the hand first")
    parser.add_argument("--aperture", type=float, metavar="M", help="release: how far the hand opens")
    parser.add_argument(
        "--height", type=float, metavar="M", help="place: where the straight way down begins; recover: how far up"
    )
    parser.add_argument(
        "--pose", type=float, nargs=7, metavar=("X", "Y", "Z", "QX", "QY", "QZ", "QW"),
        help="place: where the gripper lets go [m], quaternion (default: where it was grasped)",
    )  # fmt: skip
    parser.add_argument(
        "--region", type=float, nargs=4, metavar=("X", "Y", "Z", "YAW"),
        help="place: instead of a pose, the middle of a rectangle to stand in as it stood [m, rad]",
    )  # fmt: skip
    parser.add_argument(
        "--size", type=float, nargs=2, metavar=("W", "D"),
        help="place: of that rectangle [m] (default: exactly in its middle, with the heading that it has)",
    )  # fmt: skip
    parser.add_argument("--frame", metavar="NAME", help="place: frame of pose or region (default: world)")
    parser.add_argument("--namespace", default="", metavar="NAME", help="of the job's nodes")
    parser.add_argument("--timeout", type=float, default=180.0, metavar="S", help="longest time (default: 180)")
    parser.add_argument(
        "--server-timeout", type=float, default=20.0, metavar="S", help="longest wait for grasp_execution (default: 20)"
    )


def run(options: argparse.Namespace) -> int:
    import tempfile
    from pathlib import Path

    from morphit_ros.bringup import NodeDescription
    from morphit_ros.bringup.parameter_files import write_parameters
    from morphit_ros.bringup.supervisor import node_environment
    from morphit_ros.dependencies import OWN_MESSAGES, require

    require("this command", "rclpy", OWN_MESSAGES)
    node = NodeDescription("arm_client", _parameters(options), namespace=options.namespace.strip("/"))
    environment = node_environment()
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="morphit_parameters_") as folder:
        return _foreground(node.command(write_parameters(node, Path(folder))), environment)


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    from morphit_ros.errors import InvalidInputError

    given = {name: value for name in _ONLY if (value := getattr(options, name)) is not None}
    for name, value in given.items():
        if options.action not in _ONLY[name].split():
            raise InvalidInputError(f"--{name}", value, f"none with {options.action}", f"It is of {_ONLY[name]}.")
    pose, frame = given.pop("pose", None), given.pop("frame", "world")
    region, size = given.pop("region", None), given.pop("size", None)
    if region is None and size is not None:
        raise InvalidInputError("--size", size, "none without --region")
    if region is not None and pose is not None:
        raise InvalidInputError("--region", region, "none with --pose", "Give one of them.")
    parameters = {"action": _ACTIONS[options.action], "timeout": options.timeout, **given}
    if pose is not None:
        parameters |= {"frame": frame, "position": pose[:3], "orientation": pose[3:]}
    if region is not None:
        parameters |= {"frame": frame, "region": region, "region_size": size or [0.0, 0.0]}
    return {**parameters, "server_timeout": options.server_timeout}


def _foreground(command: list[str], environment: dict[str, str]) -> int:
    """Run a process to its end, which gets the signals that a terminal or a supervisor sends to this one."""
    import signal
    import subprocess

    process = subprocess.Popen(command, env=environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Ctrl-C reaches both by itself; a second SIGINT changes nothing there.
        signal.signal(number, lambda received, _: process.send_signal(received))
    status = process.wait()
    return status if status >= 0 else 128 - status
