"""Compile the kernels before the first object has to wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.outward_normals import estimate_outward_normals
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.grasping.grasp import GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner import plan_grasps
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.grasping.suction.planner import plan_suction

# A tenth of an ordinary plan: every kernel is called, which is all that matters here.
_POINTS = 600
_CONFIG = PlannerConfig(pairs=100, max_starts=200, rounds=1, robust_candidates=20)


def warm_up(gripper: Gripper | SuctionCup) -> GraspPlan:
    """Plan on a small box. Takes up to half a minute where nothing is in numba's cache, else well under a second."""
    width = 4.0 * gripper.cup_radius if isinstance(gripper, SuctionCup) else 0.6 * gripper.aperture_max
    size = np.array([width, 0.06, 0.08])
    points, normals = sample_surface(box_mesh(size), _POINTS, np.random.default_rng(0))
    estimate_outward_normals(points)
    table = SupportPlane(make_transform(translation=(0.0, 0.0, -0.04)))
    cloud = PointCloud(points, normals)
    if isinstance(gripper, SuctionCup):
        return plan_suction(cloud, gripper, _CONFIG, table=table)
    return plan_grasps(cloud, gripper, _CONFIG, table=table)
