"""`morphit calibrate solve`: find where the cameras stand from a recording of the moved arm.

Match the clouds of each camera to the model of the arm at all poses at once, and write the cameras' poses in the
robot's base to the file that the grasp job takes as camera_file:=. Needs neither ROS nor a first guess. A result that
is not certain is refused with the reason and the remedy, and is not written.

The recording is a folder with joints.csv (names, then a line a pose [rad or m]) and a cloud a camera and pose in the
optical frame [m]: left_000.npz, left_001.ply … Exit status: 0 all cameras found, 1 one was refused, 2 a mistake.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.calibrate_options import CAMERAS, add_robot_name
from morphit_ros.commands.output_files import ResultFiles, add_json, add_output, finite_or_none
from morphit_ros.commands.parser import CommandParser
from morphit_ros.commands.reports import say
from morphit_ros.compilation import telling_of_compilation

if TYPE_CHECKING:
    from morphit_ros.calibration.calibrate import CameraCalibration
    from morphit_ros.geometry.transforms import Array


_FIGURES = ("sigma", "held_out", "fold_shift", "fold_angle", "systematic", "matched", "seen_through")


def add_options(parser: CommandParser) -> None:
    parser.add_argument("recording", metavar="DIR", help="folder of the recording")
    add_robot_name(parser)
    parser.add_argument(
        "--description", metavar="FILE",
        help="URDF or xacro of the robot (default: the one recorded from its driver, else that of its file)",
    )  # fmt: skip
    for camera in CAMERAS:
        parser.add_argument(
            f"--{camera}-guess", metavar="POSE",
            help=f"first guess of the {camera} camera in the base, 'x y z qx qy qz qw'; may be off by 30 cm and 40°",
        )  # fmt: skip
    add_output(
        parser, "--output", "camera file (default: cameras.yaml); an old one is kept as FILE.1", default="cameras.yaml"
    )
    add_json(parser)


@telling_of_compilation(say)
def run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from morphit_ros.calibration.calibrate import calibrate_camera
    from morphit_ros.calibration.recording import DESCRIPTION, read_recording
    from morphit_ros.calibration.robot_surface import RobotSurface
    from morphit_ros.robot.camera_file import CAMERAS as NAMES
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    robot, recording = RobotConfiguration.load(options.robot), read_recording(options.recording)
    recorded = Path(options.recording) / DESCRIPTION
    description = load_robot_description(options.description or (recorded if recorded.is_file() else robot.description))
    robot.check_description(description)
    surface = RobotSurface(description, robot.base_link)
    found = {}
    for camera in (name for name in recording.clouds if name in NAMES):
        found[camera] = calibrate_camera(
            recording.clouds[camera], recording.positions, surface, _guess(options, camera)
        )
        if options.json != "-":
            print(_shown(camera, found[camera], len(recording.positions)), flush=True)
    good = {camera: result for camera, result in found.items() if result.good and result.T_base_camera is not None}
    with ResultFiles() as files:
        if good and len(good) == len(found):
            files.write("--output", options.output, lambda path: _write(path, robot.name, robot.base_link, good))
        content = {name: _content(one) for name, one in found.items()}
        files.json({"robot": robot.name, "cameras": content}, options.json)
    if not good or len(good) < len(found):
        say(f"{options.output} was not written")
        return 1
    say(f"{options.output}: use it with camera_file:={options.output}")
    return 0


def _guess(options: argparse.Namespace, camera: str) -> Array | None:
    from morphit_ros.bringup.poses import parse_pose
    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw

    text = getattr(options, f"{camera}_guess")
    if not text:
        return None
    pose = parse_pose(f"--{camera}-guess", text)
    return make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3])


def _write(path: Any, robot: str, base_link: str, good: dict[str, CameraCalibration]) -> None:
    from morphit_ros.robot.camera_file import CameraFile, write_camera_file

    poses = {camera: result.T_base_camera for camera, result in good.items() if result.T_base_camera is not None}
    details = {
        camera: {
            "std_position": [round(value, 6) for value in result.std_position],
            "std_angle": [round(value, 6) for value in result.std_angle],
            "residual": round(result.sigma, 6),
            "residual_held_out": round(result.held_out, 6),
            "poses": result.poses,
            **({"notes": list(result.notes)} if result.notes else {}),
        }
        for camera, result in good.items()
    }
    kept = write_camera_file(path, CameraFile(robot, base_link, poses, details))
    if kept is not None:
        say(f"the old {path} is kept as {kept}")


def _shown(camera: str, result: CameraCalibration, poses: int) -> str:
    import numpy as np

    from morphit_ros.robot.camera_file import pose_numbers

    lines = [f"{camera} camera: {'found' if result.good else 'REFUSED'}"]
    if result.T_base_camera is not None:
        numbers = " ".join(f"{value:.5f}" for value in pose_numbers(result.T_base_camera))
        std, angle = 1e3 * np.array(result.std_position), np.degrees(result.std_angle)
        lines += [
            f"  pose in the base        {numbers}",
            f"  standard deviation      {std[0]:.2f} {std[1]:.2f} {std[2]:.2f} mm, "
            f"{angle[0]:.3f} {angle[1]:.3f} {angle[2]:.3f}° about x, y, z of the base",
            f"  distances to the model  {1e3 * result.sigma:.2f} mm; at poses left out {1e3 * result.held_out:.2f} mm",
            f"  without a third of them the result moves by {1e3 * result.fold_shift:.2f} mm and "
            f"{np.degrees(result.fold_angle):.3f}°",
            f"  {result.matched:.0%} of what moved lies on the arm, {result.seen_through:.1%} of the arm is seen "
            f"through; {result.poses} of {poses} poses, {result.points} points",
        ]
    lines += [f"  - {problem}" for problem in result.problems]
    lines += [f"  note: {note}" for note in result.notes]
    return "\n".join(lines)


def _content(result: CameraCalibration) -> dict[str, Any]:
    from morphit_ros.robot.camera_file import pose_numbers

    return {
        "good": result.good,
        "pose": None if result.T_base_camera is None else pose_numbers(result.T_base_camera),
        "problems": list(result.problems),
        "notes": list(result.notes),
        "std_position": [finite_or_none(value) for value in result.std_position],
        "std_angle": [finite_or_none(value) for value in result.std_angle],
        **{name: finite_or_none(getattr(result, name)) for name in _FIGURES},
        "poses": result.poses,
        "points": result.points,
        "link_offsets": dict(result.link_offsets),
    }
