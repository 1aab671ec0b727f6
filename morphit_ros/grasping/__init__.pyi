from .fitting.disf import DisfConfig as DisfConfig, fit_disf as fit_disf
from .fitting.fit_result import DisfResult as DisfResult, GraspFitStatus as GraspFitStatus
from .grasp import Grasp as Grasp, GraspPlan as GraspPlan
from .gripper import Gripper as Gripper
from .planner import plan_grasps as plan_grasps
from .planner_config import PlannerConfig as PlannerConfig
