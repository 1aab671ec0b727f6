"""Contact-stable grasps on point clouds by disentangled iterative surface fitting (DISF)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.grasping.disf import DisfConfig, fit_disf
    from morphit_ros.grasping.fit_result import DisfResult, FitStatus
    from morphit_ros.grasping.grasp import Grasp, GraspPlan
    from morphit_ros.grasping.gripper import Gripper
    from morphit_ros.grasping.planner import plan_grasps
    from morphit_ros.grasping.planner_config import PlannerConfig
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "disf": ("DisfConfig", "fit_disf"),
            "fit_result": ("DisfResult", "FitStatus"),
            "grasp": ("Grasp", "GraspPlan"),
            "gripper": ("Gripper",),
            "planner": ("plan_grasps",),
            "planner_config": ("PlannerConfig",),
        },
    )

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
