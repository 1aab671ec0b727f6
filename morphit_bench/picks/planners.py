"""Grasp planners by name, set up for what they are given."""

from __future__ import annotations

from morphit_bench.grasping.methods import METHODS, GraspMethod, PublishedMethod, grasp_method
from morphit_bench.grasping.surface import SURFACES
from morphit_bench.picks.peers import PREFIX, FileMethod
from morphit_ros.grasping import PlannerConfig

PLANNERS = METHODS
GraspPlanner = GraspMethod


def grasp_planner(name: str, setting: str, stem: str = "") -> GraspPlanner:
    """A planner by its name, or one whose grasps are in files (``file:FOLDER``, see `morphit_bench.picks.peers`).

    Of a known shape, ours is given the true normals. The published ones estimate them, and thin known shapes and
    observed clouds, as their authors do.

    Args:
        name: one of `PLANNERS`, or of `peers.parse_peer`.
        setting: known or observed.
        stem: of the trial, for those in files.

    Raises:
        ResourceNotFoundError: no such planner; lists the known ones.
        InvalidInputError: there is no such folder.
    """
    if name.startswith(PREFIX):
        return FileMethod(name, stem)
    if name == "morphit":
        return grasp_method(name, config=PlannerConfig(normals="given" if setting == "known" else "auto"))
    if name not in METHODS or name == "gpd":
        return grasp_method(name)
    return PublishedMethod(name, surface=SURFACES[setting])
