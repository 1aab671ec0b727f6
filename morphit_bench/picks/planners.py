"""Grasp planners by name, set up for what they are given."""

from __future__ import annotations

from morphit_bench.grasping.methods import METHODS, GraspMethod, PublishedMethod, grasp_method
from morphit_bench.grasping.surface import SURFACES
from morphit_ros.grasping import PlannerConfig

PLANNERS = METHODS
GraspPlanner = GraspMethod


def grasp_planner(name: str, setting: str) -> GraspPlanner:
    """A planner by its name.

    Of a known shape, ours is given the true normals. The published ones estimate them, and thin known shapes and
    observed clouds, as their authors do.

    Raises:
        ResourceNotFoundError: no such planner; lists the known ones.
    """
    if name == "morphit":
        return grasp_method(name, config=PlannerConfig(normals="given" if setting == "known" else "auto"))
    if name not in METHODS:
        return grasp_method(name)
    return PublishedMethod(name, surface=SURFACES[setting])
