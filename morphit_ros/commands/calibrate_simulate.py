"""`morphit calibrate simulate`: a recording from the simulated workcell, to try a calibration.

Put the simulated arm at drawn or given poses and record what both simulated cameras see, with the noise of depth
cameras. Beside the recording, truth.yaml says where the cameras stand.
"""

from __future__ import annotations

import argparse

from morphit_ros.commands.calibrate_options import add_pose_options, add_robot_name
from morphit_ros.commands.output_files import add_output
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    add_output(parser, "folder", "folder to write", "DIR")
    add_robot_name(parser)
    add_pose_options(parser)
    parser.add_argument("--joints", metavar="FILE", help="CSV of poses instead, as morphit calibrate poses writes it")
    parser.add_argument("--object", default="mug", metavar="NAME", help="that lies on the table (default: mug)")
    parser.add_argument(
        "--joint-noise", type=float, default=0.0005, metavar="RAD", help="of reported positions (default: 0.0005)"
    )


def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    import numpy as np

    from morphit_ros.calibration.poses import draw_poses
    from morphit_ros.calibration.recording import JOINTS, read_joints, write_pose
    from morphit_ros.calibration.robot_surface import RobotSurface
    from morphit_ros.commands.reports import say
    from morphit_ros.errors import InvalidInputError
    from morphit_ros.geometry.transforms import invert_transform, transform_points
    from morphit_ros.robot.camera_file import CameraFile, write_camera_file
    from morphit_ros.robot.description import load_robot_description
    from morphit_ros.simulation.arm_views import see_arm_at
    from morphit_ros.simulation.cameras import CameraConfig
    from morphit_ros.simulation.workcell import Workcell, WorkcellConfig

    folder = Path(options.folder)
    if (folder / JOINTS).exists():
        raise InvalidInputError("DIR", options.folder, "one without a recording", "Name another one, or remove it.")
    given = read_joints(Path(options.joints)) if options.joints else ()
    camera = CameraConfig(flying_pixels=0.4, noise_growth=0.001)
    with Workcell(WorkcellConfig(robot=options.robot, object=options.object, seed=options.seed, camera=camera)) as cell:
        robot, T_base_world = cell.robot, invert_transform(cell.T_world_base)
        if given:
            missing = [name for name in robot.arm_joints if name not in given[0]]
            if missing:
                raise InvalidInputError("--joints", f"no {', '.join(missing)}", f"joints of {robot.name}")
            poses = np.array([[row[name] for name in robot.arm_joints] for row in given])
        else:
            surface = RobotSurface(load_robot_description(robot.description), robot.base_link)
            middle = options.middle or transform_points(T_base_world, np.array([0.5, 0.0, 0.25])).tolist()
            poses = draw_poses(robot, surface, options.poses, options.seed, middle, options.reach)
        positions, clouds = see_arm_at(cell, poses, robot.arm_joints, options.seed, options.joint_noise, 0.005)
        truth = {name: T_base_world @ cell.T_world_camera(name) for name in cell.camera_names}
    for number in range(len(positions)):
        write_pose(folder, number, positions[: number + 1], {name: clouds[name][number] for name in clouds})
    write_camera_file(folder / "truth.yaml", CameraFile(robot.name, robot.base_link, truth))
    say(f"{len(positions)} poses in {folder}; now: morphit calibrate solve {folder} --robot {options.robot}")
    return 0
