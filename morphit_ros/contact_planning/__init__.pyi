from .arm import ContactObject as ContactObject, arm_system as arm_system
from .planner import (
    ContactGoal as ContactGoal,
    ContactLaw as ContactLaw,
    ContactPlan as ContactPlan,
    ContactPlanConfig as ContactPlanConfig,
    ContactPlanner as ContactPlanner,
    PlanStatus as PlanStatus,
)
from .solver import SolverConfig as SolverConfig
from .spinner import spinner_goal as spinner_goal, spinner_system as spinner_system
from .system import ContactSystem as ContactSystem, Inertia as Inertia, SystemBuilder as SystemBuilder
