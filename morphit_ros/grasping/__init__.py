"""Contact-stable grasps on point clouds by disentangled iterative surface fitting (DISF)."""

from morphit_ros.grasping.disf import DisfConfig, DisfResult, FitStatus, fit_disf
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner import PlannerConfig, plan_grasps

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
