"""Contact-stable grasps on point clouds by disentangled iterative surface fitting (DISF)."""

from morphit_ros.grasping.disf import DisfConfig, fit_disf
from morphit_ros.grasping.fit_result import DisfResult, FitStatus
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner import plan_grasps
from morphit_ros.grasping.planner_config import PlannerConfig

__all__ = [
    "DisfConfig",
    "DisfResult",
    "FitStatus",
    "Grasp",
    "GraspPlan",
    "Gripper",
    "PlannerConfig",
    "fit_disf",
    "plan_grasps",
]
