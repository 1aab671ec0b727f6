"""Recordings of a moved arm: clouds of each camera and joint positions, pose by pose, as a folder of plain files.

joints.csv          a line of joint names, then a line of positions [rad or m] a pose
left_000.npz        the left camera's cloud at the first pose, in its optical frame [m]; or .ply, .pcd
right_000.npz       …
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from morphit_ros.documents import read_text
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.point_cloud_io import FORMATS, load_point_cloud, save_point_cloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.resources import atomic_write

JOINTS = "joints.csv"
# URDF of the robot as its driver published it; may be missing.
DESCRIPTION = "robot_description.urdf"
_CLOUD = re.compile(r"([A-Za-z][A-Za-z0-9]*)_(\d{3,})\.(?:npz|ply|pcd)")
# Of a table of joints: a million numbers.
_MOST_BYTES = 1 << 24
_MOST_POSES = 500


@dataclass(frozen=True)
class Recording:
    """Clouds and joints of several poses of an arm at rest.

    Attributes:
        positions: joint name → position [rad or m], of each of P poses.
        clouds: camera → (N, 3) in its optical frame [m], of each pose.
    """

    positions: tuple[Mapping[str, float], ...]
    clouds: Mapping[str, tuple[Array, ...]]


def read_recording(folder: str | Path) -> Recording:
    """Read a folder of the layout above.

    Raises:
        ResourceNotFoundError: no such folder, no joints.csv, or a cloud of a camera is missing.
        InvalidInputError: a file that is not what it must be; names file, line and bound.
    """
    place = Path(folder)
    if not (place / JOINTS).is_file():
        raise ResourceNotFoundError(
            f"{place}/{JOINTS}", [str(place.absolute())], "morphit calibrate record FOLDER writes such a folder."
        )
    positions = read_joints(place / JOINTS)
    cameras = sorted({found[1] for path in place.iterdir() if (found := _CLOUD.fullmatch(path.name))})
    if not cameras:
        remedy = "One file a camera and pose, such as left_000.ply for the left camera at the first pose."
        raise ResourceNotFoundError("clouds", [str(place.absolute())], remedy)
    clouds = {
        camera: tuple(load_point_cloud(_cloud_file(place, camera, row)).points for row in range(len(positions)))
        for camera in cameras
    }
    return Recording(positions, clouds)


def write_pose(
    folder: str | Path, number: int, positions: Sequence[Mapping[str, float]], clouds: Mapping[str, Array]
) -> None:
    """Add a pose to a folder: its clouds first, then the table that counts it.

    Args:
        folder: made if it is not there.
        number: of the pose, from 0.
        positions: of all poses so far, this one last; the first one's joints are the columns.
        clouds: camera → (N, 3) of this pose [m].
    """
    place = Path(folder)
    for camera, points in clouds.items():
        # Float32 resolves a tenth of a micrometre at a metre, and files are half as large.
        save_point_cloud(PointCloud(np.asarray(points)), place / f"{camera}_{number:03d}.npz")
    names = list(positions[0])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"{row[name]:.9g}" for name in names] for row in positions)
    with atomic_write(place / JOINTS) as stream:
        stream.write(text.getvalue())


def _cloud_file(folder: Path, camera: str, row: int) -> Path:
    stem = f"{camera}_{row:03d}"
    for suffix in FORMATS:
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    remedy = f"{JOINTS} has a line for each pose: remove the line, or record again."
    raise ResourceNotFoundError(f"{stem}{' or '.join(FORMATS)}", [str(folder.absolute())], remedy)


def read_joints(path: Path) -> tuple[dict[str, float], ...]:
    lines = list(csv.reader(io.StringIO(read_text(path, _MOST_BYTES))))
    if len(lines) < 2 or len(set(lines[0])) != len(lines[0]) or not all(name.strip() for name in lines[0]):
        raise InvalidInputError(str(path), f"{len(lines)} lines", "a line of joint names, each once, then one a pose")
    if len(lines) - 1 > _MOST_POSES:
        raise InvalidInputError(str(path), f"{len(lines) - 1} poses", f"at most {_MOST_POSES}")
    names = [name.strip() for name in lines[0]]
    rows = []
    for number, line in enumerate(lines[1:], 2):
        try:
            values = [float(word) for word in line]
        except ValueError:
            values = []
        if len(values) != len(names) or not np.isfinite(values).all():
            bound = f"{len(names)} finite numbers [rad or m]"
            raise InvalidInputError(f"{path}: line {number}", repr(",".join(line)[:200]), bound)
        rows.append(dict(zip(names, values, strict=True)))
    return tuple(rows)
