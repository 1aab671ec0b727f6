"""What `perceive` is given, checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, check_transform
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.synchronizer import SIDES


class CameraInput(NamedTuple):
    """One camera: its cloud in its optical frame, and its pose in world where that is known."""

    side: str
    cloud: PointCloud
    T_world_camera: Array | None


def check_inputs(
    left: CloudLike | None,
    right: CloudLike | None,
    T_world_left: Array | None,
    T_world_right: Array | None,
    config: PerceptionConfig,
    more: Mapping[str, tuple[CloudLike, Array]] = MappingProxyType({}),
) -> list[CameraInput]:
    """The cameras that delivered a cloud, left before right, and these before more.

    Raises:
        InvalidInputError: a camera is missing and one alone is not allowed, the stamps are further
            apart than the tolerance, a pose is not rigid, or the frames contradict the poses.
    """
    cameras = []
    for side, cloud, pose in zip(SIDES, (left, right), (T_world_left, T_world_right), strict=True):
        checked = None if pose is None else check_transform(pose, f"T_world_{side}")
        if cloud is not None:
            own = as_cloud(cloud, side)
            _check_frame(side, own, checked, config.world_frame)
            cameras.append(CameraInput(side, own, checked))
    if not cameras:
        raise InvalidInputError("left, right", "no cloud", "clouds of two cameras", "Check that the cameras publish.")
    if len(cameras) == 1 and not config.allow_single_view:
        missing = "right" if cameras[0].side == "left" else "left"
        remedy = f"Check the {missing} camera, or set allow_single_view."
        raise InvalidInputError(missing, "no cloud", "a cloud of each camera", remedy)
    if len(cameras) == 2:
        _check_pair(cameras[0], cameras[1], config)
    if more and any(camera.T_world_camera is None for camera in cameras):
        raise InvalidInputError(
            "T_world_left, T_world_right", "an unknown pose", "known ones where there are more cameras than these two"
        )
    for side, (further, place) in more.items():
        if side in SIDES:
            raise InvalidInputError("more", repr(side), "names other than those of the first two cameras")
        own, checked = as_cloud(further, side), check_transform(place, f"T_world_{side}")
        _check_frame(side, own, checked, config.world_frame)
        _check_stamps(cameras[0], CameraInput(side, own, checked), config)
        cameras.append(CameraInput(side, own, checked))
    return cameras


def _check_frame(side: str, cloud: PointCloud, T_world_camera: Array | None, world_frame: str) -> None:
    in_world = cloud.frame != "" and cloud.frame == world_frame
    if in_world and (T_world_camera is None or not np.allclose(T_world_camera, np.eye(4), atol=1e-9)):
        raise InvalidInputError(
            f"{side}.frame",
            repr(cloud.frame),
            "the camera's optical frame",
            f"The cloud is in the world frame already, but T_world_{side} would move it.",
        )


def _check_stamps(first_camera: CameraInput, second_camera: CameraInput, config: PerceptionConfig) -> None:
    first, second = first_camera.cloud.stamp, second_camera.cloud.stamp
    if first is not None and second is not None and abs(first - second) > config.sync_tolerance:
        raise InvalidInputError(
            f"stamps of {first_camera.side} and {second_camera.side}",
            f"{first:.6f} s and {second:.6f} s, {abs(first - second) * 1e3:.1f} ms apart",
            f"stamps within {config.sync_tolerance * 1e3:.1f} ms",
            "Synchronise the cameras' clocks, or raise sync_tolerance.",
        )


def _check_pair(left: CameraInput, right: CameraInput, config: PerceptionConfig) -> None:
    _check_stamps(left, right, config)
    same_frame = left.cloud.frame != "" and left.cloud.frame == right.cloud.frame
    poses = left.T_world_camera, right.T_world_camera
    if same_frame and (poses[0] is None or poses[1] is None or not np.allclose(poses[0], poses[1], atol=1e-9)):
        raise InvalidInputError(
            "frames of left and right",
            f"both {left.cloud.frame!r}, with different or unknown poses",
            "a frame of its own for each camera",
            "Check the frame_id of the camera drivers.",
        )
