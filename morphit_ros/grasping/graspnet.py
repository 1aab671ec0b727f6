"""Grasps as graspnetAPI's rows (GraspNet-1Billion, AnyGrasp): what ``GraspGroup`` saves as .npy and evaluates.

A row has 17 numbers: score, width, height, depth, rotation (9, row by row), translation (3), object number. Its frame
has x along the approach and y along the closing direction; the fingers reach from 0.02 behind the translation, where
the palm is, to `depth` before it, `width` apart, and are `height` thick along z. Read in the released graspnetAPI
(``grasp.py``, ``utils/eval_utils.py``: ``collision_detection``), which wants the poses in the camera's frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper

COLUMNS = 17
# graspnetAPI's palm is so far behind a row's translation; labels have depths within these [m].
_PALM, _DEPTHS = 0.02, (0.01, 0.04)
# Columns: their axes by ours. Their x is our z, their y ours, their z the opposite of our x.
_AXES = np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def fingertips(gripper: Gripper) -> float:
    """How far the fingers reach beyond the middle between the pads [m]."""
    return gripper.fingertips


def graspnet_rows(grasps: Sequence[Grasp], gripper: Gripper, object_id: int = 0) -> Array:
    """Rows (N, 17) of grasps, in the frame of their poses.

    The fingertips end where the gripper's do, the palm is at the gripper's as far as depths of 10 to 40 mm allow, and
    the width is the opening on the approach.

    Args:
        grasps: of this gripper.
        gripper: whose pads, fingers and palm.
        object_id: of all rows.
    """
    palm = max(float(box.center[2] + 0.5 * box.size[2]) for box in gripper.palm_boxes)
    tip = fingertips(gripper)
    depth = float(np.clip(tip - palm - _PALM, *_DEPTHS))
    rows = np.zeros((len(grasps), COLUMNS))
    for row, grasp in zip(rows, grasps, strict=True):
        pose = grasp.T_world_gripper
        row[:4] = grasp.score, grasp.open_aperture, gripper.pad_width, depth
        row[4:13] = (pose[:3, :3] @ _AXES).ravel()
        row[13:16] = pose[:3, 3] + (tip - depth) * pose[:3, 2]
        row[16] = object_id
    return rows


def poses_of_rows(rows: ArrayLike, gripper: Gripper) -> tuple[Array, Array, Array]:
    """Poses (N, 4, 4) of a gripper, widths (N,) [m] and scores (N,) of rows: the inverse of `graspnet_rows`.

    The fingertips end at a row's depth.

    Raises:
        InvalidInputError: no (N, 17) of finite numbers, or rotations that are none.
    """
    array = np.asarray(rows, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != COLUMNS or not np.isfinite(array).all():
        raise InvalidInputError("rows", f"shape {array.shape}", f"(N, {COLUMNS}) finite numbers")
    poses = np.tile(np.eye(4), (len(array), 1, 1))
    poses[:, :3, :3] = array[:, 4:13].reshape(-1, 3, 3) @ _AXES.T
    reach = array[:, 3:4] - fingertips(gripper)
    poses[:, :3, 3] = array[:, 13:16] + reach * poses[:, :3, 2]
    return poses, array[:, 1], array[:, 0]
