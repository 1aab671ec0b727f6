"""Options that the commands of a calibration share."""

from __future__ import annotations

from typing import Any

CAMERAS = ("left", "right")


def add_robot_name(parser: Any) -> None:
    """Add ``--robot``."""
    parser.add_argument(
        "--robot", default="panda", metavar="ROBOT", help="name in config/robots, or a file like those (default: panda)"
    )


def add_cameras(parser: Any) -> None:
    """Add ``--cameras``."""
    parser.add_argument(
        "--cameras", nargs="+", choices=CAMERAS, default=list(CAMERAS), help="which (default: left right)"
    )


def add_pose_options(parser: Any) -> None:
    """Add what `calibration.poses.draw_poses` takes."""
    parser.add_argument("--poses", type=int, default=12, metavar="N", help="how many (default: 12)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default: 0)")
    parser.add_argument(
        "--middle", type=float, nargs=3, metavar=("X", "Y", "Z"),
        help="where the hand is to be, in the robot's base [m] (default: where it is at home)",
    )  # fmt: skip
    parser.add_argument("--reach", type=float, default=0.2, metavar="M", help="how far from there (default: 0.2)")
