"""The grasp that two fingers make where they close on a cloud: for planners that give a pose and nothing more."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import prepare_scene

PREGRASP_DISTANCE = 0.10
"""Length of the straight approach, as of this project's planner [m]."""
# Points so near to the outermost are what a pad touches [m].
_PATCH = 0.002


def whole_object(
    cloud: PointCloud, table: SupportPlaneLike | None, obstacles: Array | None, viewpoints: Array | None
) -> Array:
    """(N, 3) points of an object, its hidden sides made up by this project's completion [m].

    Execution wants to know where the fingers will stop: a cloud of one side would have them close on nothing.

    Raises:
        InvalidInputError: an unusable cloud.
    """
    rng = np.random.default_rng(0)
    scene = prepare_scene(cloud, PlannerConfig(), table, None, None, rng, obstacles=obstacles, viewpoints=viewpoints)
    return scene.points


def closed_grasp(points: Array, gripper: Gripper, pose: Array, opening: float, score: float) -> Grasp | None:
    """What closing at a pose grasps; None where no point of the object is between the pads.

    The aperture is the extent of what is between them.

    Args:
        points: (N, 3) of the object, with what no camera saw (`whole_object`) [m].
        gripper, pose: (4, 4) in the frame of the points.
        opening: on the approach [m], NaN for the widest; kept within the gripper's.
        score: of the grasp.
    """
    widest = gripper.aperture_max if math.isnan(opening) else opening
    opened = min(max(widest, gripper.aperture_min), gripper.aperture_max)
    local = (points - pose[:3, 3]) @ pose[:3, :3]
    half = 0.5 * np.array([gripper.pad_width, opened, gripper.pad_height])
    between = np.flatnonzero((np.abs(local) <= half).all(axis=1))
    if not len(between):
        return None
    across = local[between, 1]
    touched = [across >= across.max() - _PATCH, across <= across.min() + _PATCH]
    pregrasp = pose.copy()
    pregrasp[:3, 3] -= PREGRASP_DISTANCE * pose[:3, 2]
    return Grasp(
        T_world_gripper=pose,
        T_world_pregrasp=pregrasp,
        aperture=float(np.clip(np.ptp(across), gripper.aperture_min, opened)),
        open_aperture=opened,
        score=score,
        metrics={"contacts_1": float(touched[0].sum()), "contacts_2": float(touched[1].sum())},
        contact_points=np.concatenate([points[between[side]] for side in touched]),
        contact_fingers=np.repeat([1, 2], [int(side.sum()) for side in touched]),
    )
