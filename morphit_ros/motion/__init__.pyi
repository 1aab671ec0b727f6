from ..robot.solids import Solid as Solid
from .arm_planner import (
    ArmPlanner as ArmPlanner,
    ArmPlannerConfig as ArmPlannerConfig,
    MotionAnswer as MotionAnswer,
    MotionRequest as MotionRequest,
    PoseGoal as PoseGoal,
)
from .certificate import Certificate as Certificate, Verdict as Verdict, certify_path as certify_path
from .cloud import CloudObstacle as CloudObstacle
from .embedded import EmbeddedBackend as EmbeddedBackend, EmbeddedConfig as EmbeddedConfig
from .model import ArmModel as ArmModel, Body as Body, bodies_of as bodies_of, covering_spheres as covering_spheres
from .planner import (
    PathConfig as PathConfig,
    PathPlan as PathPlan,
    PathStatus as PathStatus,
    path_length as path_length,
    plan_path as plan_path,
)
from .refinement import Carried as Carried, RefinableArm as RefinableArm, plan_refined as plan_refined
from .world import World as World
