"""`morphit calibrate poses`: draw joint positions for a calibration.

Joint positions at which the hand is near a place that the cameras see, with the wrist turned in many ways; above the
table and free of contact of the arm with itself. Nobody has looked at what else stands there, nor planned the ways.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.calibrate_options import add_pose_options, add_robot_name
from morphit_ros.commands.output_files import ResultFiles, add_output
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    add_robot_name(parser)
    add_pose_options(parser)
    parser.add_argument("--table-height", type=float, default=0.0, metavar="M", help="in the robot's base (default: 0)")
    add_output(parser, "--output", "CSV: a line of joint names, then one a pose [rad] (default: -)", default="-")


def run(options: argparse.Namespace) -> int:
    from morphit_ros.calibration.poses import draw_poses
    from morphit_ros.calibration.robot_surface import RobotSurface
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    robot = RobotConfiguration.load(options.robot)
    surface = RobotSurface(load_robot_description(robot.description), robot.base_link)
    poses = draw_poses(
        robot, surface, options.poses, options.seed, options.middle or (), options.reach, options.table_height
    )
    lines = [",".join(robot.arm_joints), *(",".join(f"{value:.4f}" for value in row) for row in poses.tolist())]
    with ResultFiles() as files:
        files.text("--output", options.output, "\n".join(lines) + "\n")
    return 0
