"""The file that says where the cameras stand on a robot: written by a calibration, read by the grasp job.

robot: panda
base_link: panda_link0
cameras:
  left: {pose: [x, y, z, qx, qy, qz, qw], std_position: …}     # of the optical frame in the base link [m]
  right: …
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.resources import atomic_write

CAMERAS = ("left", "right")
_REMEDY = "morphit calibrate solve writes one."
# A camera that sees an arm stands within a room.
_FARTHEST = 20.0


@dataclass(frozen=True)
class CameraFile:
    """Where cameras stand.

    Attributes:
        robot: its name.
        base_link: frame of the poses.
        T_base_camera: camera → (4, 4) pose of its optical frame.
        details: camera → what else is known of it, such as standard deviations; written and not read.
    """

    robot: str
    base_link: str
    T_base_camera: Mapping[str, Array]
    details: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}))


def read_camera_file(path: str | Path) -> CameraFile:
    """Read a camera file.

    Raises:
        ResourceNotFoundError: no such file.
        InvalidInputError: not of that layout, a pose that is none, or a camera that is neither left nor right.
    """
    name, data = Path(path).name, read_yaml_file(path, _REMEDY)
    cameras = data.get("cameras") if isinstance(data, dict) else None
    if not isinstance(cameras, dict) or not all(isinstance(data.get(key), str) for key in ("robot", "base_link")):
        raise InvalidInputError(name, type(data).__name__, "the keys robot, base_link and cameras", _REMEDY)
    strangers = sorted(map(str, set(cameras) - set(CAMERAS)))
    if strangers or not cameras:
        raise InvalidInputError(f"{name}: cameras", ", ".join(strangers) or "none", f"some of {', '.join(CAMERAS)}")
    poses = {}
    for camera, body in cameras.items():
        pose = body.get("pose") if isinstance(body, dict) else None
        numbers = isinstance(pose, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in pose)
        values = np.array(pose, dtype=np.float64) if numbers and pose is not None else np.empty(0)
        if (
            values.shape != (7,)
            or not np.isfinite(values).all()
            or abs(float(values[3:] @ values[3:]) - 1.0) > 1e-3
            or np.abs(values[:3]).max() > _FARTHEST
        ):
            bound = f"x y z qx qy qz qw [m] with a quaternion of length 1, at most {_FARTHEST:g} m away"
            raise InvalidInputError(f"{name}: pose of {camera}", repr(pose), bound, _REMEDY)
        poses[str(camera)] = make_transform(matrix_from_quat_xyzw(values[3:]), values[:3])
    return CameraFile(data["robot"], data["base_link"], poses)


def write_camera_file(path: str | Path, content: CameraFile) -> Path | None:
    """Write a camera file; one that is there is kept beside it, as NAME.1 and so on.

    Returns:
        Where the old one is now, None if there was none.
    """
    import yaml

    target = Path(path)
    cameras = {
        camera: {"pose": [float(f"{value:.9f}") for value in pose_numbers(T)], **content.details.get(camera, {})}
        for camera, T in content.T_base_camera.items()
    }
    document = {"robot": content.robot, "base_link": content.base_link, "cameras": cameras}
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120)
    kept = _keep(target) if target.is_file() else None
    with atomic_write(target) as stream:
        stream.write("# Poses of the cameras' optical frames in the robot's base: x y z [m], qx qy qz qw.\n" + text)
    return kept


def pose_numbers(T: Array) -> list[float]:
    """x y z [m] qx qy qz qw of a pose (4, 4)."""
    return [*T[:3, 3].tolist(), *quat_xyzw_from_matrix(T[:3, :3]).tolist()]


def _keep(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    shutil.copy2(path, kept)
    return kept
