"""Planners of others on the same trials: their clouds are written, and the grasps that they made of them read.

    folder/clouds/mug_0_observed.npz    what a planner is given, see `save_view`
    folder/mug_0_observed.yaml          what it made of that, in any format of `morphit_bench.grasping.grasp_files`

Clouds and grasps are in the optical frame of a camera (z forward, x right, y down), which those planners learned in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_bench.grasping.closing import closed_grasp, whole_object
from morphit_bench.grasping.grasp_files import SUFFIXES, read_grasps
from morphit_bench.picks.views import ObjectView
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points, transform_vectors
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.resources import atomic_write

PREFIX = "file:"
_CLOUDS = "clouds"
# The table is written so far around the object, one point a cell [m].
_AROUND, _CELL = 0.25, 0.004
# An object whose points have another middle lies elsewhere than the one that was written [m].
_ELSEWHERE = 0.01


def trial_stem(name: str, number: int, setting: str) -> str:
    """How the files of a trial are called."""
    return f"{name.replace('/', '_')}_{number}_{setting}"


def save_view(folder: str | Path, stem: str, view: ObjectView, T_world_camera: Array) -> Path:
    """Write what a planner is given, as .npz; all of it in the frame of the camera [m].

    ``points`` (N, 3) of the object, ``normals`` (N, 3) where it has any; ``xyz`` (M, 3) of the whole scene, as
    Contact-GraspNet reads it: object, what else was seen, and the table as a grid; ``T_world_camera`` (4, 4).

    Args:
        folder: of the planner.
        stem: of the trial.
        view: with a cloud.
        T_world_camera: (4, 4) pose of the camera.
    """
    assert view.cloud is not None
    to_camera, points = invert_transform(T_world_camera), view.cloud.points
    scene = [points] if view.obstacles is None else [points, view.obstacles]
    if view.table is not None:
        T_table = view.table.T_world_table
        middle = transform_points(invert_transform(T_table), points).mean(axis=0)[:2]
        low, high = (np.floor((middle + side) / _CELL) for side in (-_AROUND, _AROUND))
        u, v = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
        flat = _CELL * np.column_stack([u.ravel(), v.ravel(), np.zeros(u.size)])
        scene.append(transform_points(T_table, flat))
    arrays: dict[str, Any] = {
        "points": transform_points(to_camera, points).astype(np.float32),
        "xyz": transform_points(to_camera, np.concatenate(scene)).astype(np.float32),
        "T_world_camera": T_world_camera,
    }
    if view.cloud.normals is not None:
        arrays["normals"] = transform_vectors(to_camera, view.cloud.normals).astype(np.float32)
    path = Path(folder) / _CLOUDS / f"{stem}.npz"
    with atomic_write(path, "wb") as stream:
        np.savez_compressed(stream, **arrays)
    return path


def grasp_file(folder: Path, stem: str) -> Path | None:
    """The file of grasps of a trial, None if there is none; Contact-GraspNet puts `predictions_` before the name."""
    names = [f"{start}{stem}{suffix}" for suffix in SUFFIXES for start in ("", "predictions_")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def parse_peer(name: str) -> tuple[Path, float | None]:
    """Folder and depth of ``file:FOLDER`` or ``file:FOLDER@METRES``, the distance from their hand to our pads.

    Raises:
        InvalidInputError: no folder.
    """
    folder, at, depth = name.removeprefix(PREFIX).rpartition("@")
    try:
        path, length = (Path(folder), float(depth)) if at else (Path(depth), None)
    except ValueError:
        path, length = Path(name.removeprefix(PREFIX)), None
    if path == Path() or not path.is_dir() or (length is not None and not math.isfinite(length)):
        raise InvalidInputError("planner", repr(name), f"{PREFIX}FOLDER of grasps, or {PREFIX}FOLDER@METRES")
    return path, length


class FileMethod:
    """A planner whose grasps of a trial are in a file.

    Args:
        name: as of `parse_peer`.
        stem: of the trial, see `trial_stem`.
    """

    def __init__(self, name: str, stem: str) -> None:
        self.name, self._stem, self._asked = name, stem, False
        self._folder, self._depth = parse_peer(name)

    def plan(
        self,
        cloud: PointCloud,
        gripper: Gripper,
        table: SupportPlaneLike | None = None,
        seed: int = 0,
        *,
        approach: ArrayLike | None = None,
        center_of_mass: ArrayLike | None = None,
        reachable: Callable[[Grasp], bool] | None = None,
        obstacles: Array | None = None,
        viewpoints: Array | None = None,
        mass: float | None = None,
    ) -> GraspPlan:
        """The grasps of the file in the order of their scores: those that hold a point of the object and are reachable.

        A second look has no file: the object may have moved. Of a trial without a file there are no grasps.

        Raises:
            ResourceNotFoundError: the cloud of the trial was not written.
            InvalidInputError: a file that cannot be read; an object that lies elsewhere than the written cloud.
        """
        if self._asked:
            return GraspPlan([], {}, 0, message="No grasp: a file has those of the first look only.")
        self._asked = True
        written = self._folder / _CLOUDS / f"{self._stem}.npz"
        if not written.is_file():
            raise ResourceNotFoundError(str(written), [], "Write the clouds of the trials first, with --clouds.")
        with np.load(written, allow_pickle=False) as arrays:
            T_world_camera, points = arrays["T_world_camera"], arrays["points"]
        middle = transform_points(T_world_camera, points.astype(np.float64)).mean(axis=0)
        off = float(np.linalg.norm(middle - cloud.finite().points.mean(axis=0)))
        if off > _ELSEWHERE:
            bound = f"within {1e3 * _ELSEWHERE:g} mm of the written cloud's"
            raise InvalidInputError(
                f"middle of {self._stem}", f"{1e3 * off:.0f} mm off", bound, "Write the clouds again."
            )
        path = grasp_file(self._folder, self._stem)
        if path is None:
            return GraspPlan([], {}, 0, message=f"No grasp: no file {self._stem} of {', '.join(SUFFIXES)}.")
        read = read_grasps(path, gripper, self._depth)
        rejected = {"no point between the pads": 0, "unreachable": 0}
        whole = whole_object(cloud, table, obstacles, viewpoints)
        grasps: list[Grasp] = []
        for pose, opening, score in zip(read.poses, read.openings, read.scores, strict=True):
            grasp = closed_grasp(whole, gripper, T_world_camera @ pose, float(opening), float(score))
            if grasp is None:
                rejected["no point between the pads"] += 1
            elif reachable is not None and not reachable(grasp):
                rejected["unreachable"] += 1
            else:
                grasps.append(grasp)
        message = "" if grasps else f"No grasp of {len(read.poses)} in {path.name}: {rejected}."
        return GraspPlan(grasps, rejected, len(read.poses), message=message)
