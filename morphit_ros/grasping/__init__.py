"""Contact-stable grasps on point clouds by disentangled iterative surface fitting (DISF)."""

from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper

__all__ = ["Grasp", "GraspPlan", "Gripper"]
