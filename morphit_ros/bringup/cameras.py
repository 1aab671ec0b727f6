"""Where the cameras of the grasp job stand: from its arguments, or from the file of a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from morphit_ros.bringup.poses import parse_pose
from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.configuration import RobotConfiguration

# As many as `cameras` says are there, the first two always.
CAMERAS = ("left", "right", "third", "fourth")


def camera_parameters(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the nodes that see: where the cameras' poses come from, and those that are known.

    Args:
        values: of the arguments of the grasp job.

    Raises:
        InvalidInputError: a pose that is none, two poses of one camera, a camera file of another robot, or one where
            nobody says where the base stands.
        ResourceNotFoundError: no such camera file.
    """
    names = (f"{camera}_extrinsics" for camera in CAMERAS)
    given = {name: parse_pose(name, values[name]) for name in names if values[name]}
    return {"camera_source": values["camera_source"], **_calibrated(values, set(given)), **given}


def _calibrated(values: Mapping[str, Any], given: Set[str]) -> dict[str, Any]:
    """Poses in the world of the cameras of a camera file."""
    if not values["camera_file"]:
        return {}
    from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw, matrix_from_rpy
    from morphit_ros.robot.camera_file import pose_numbers, read_camera_file

    robot, content = RobotConfiguration.load(values["robot"]), read_camera_file(values["camera_file"])
    if (content.robot, content.base_link) != (robot.name, robot.base_link):
        found, bound = f"of {content.robot}, in {content.base_link}", f"of {robot.name}, in {robot.base_link}"
        raise InvalidInputError("camera_file", found, bound, "Give the file of this robot, or calibrate it.")
    if values["base_source"] == "tf":
        remedy = "Give base_pose; or publish the cameras' poses on tf too, with camera_source:=tf."
        raise InvalidInputError("camera_file", "with base_source:=tf", "a base_pose to place the cameras with", remedy)
    if values["sim"]:
        T_world_base = make_transform(matrix_from_rpy((0.0, 0.0, robot.base_yaw)), robot.base_position)
    else:
        pose = parse_pose("base_pose", values["base_pose"])
        T_world_base = make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3])
    poses = {f"{camera}_extrinsics": pose_numbers(T_world_base @ T) for camera, T in content.T_base_camera.items()}
    doubled = sorted(set(poses) & given)
    if doubled:
        remedy = "Give one of the two: nobody could know which counts."
        raise InvalidInputError("camera_file", f"together with {', '.join(doubled)}", "one pose a camera", remedy)
    return poses
