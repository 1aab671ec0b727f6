"""Grasp planners by name, set up for what they are given."""

from __future__ import annotations

from morphit_bench.grasping.methods import METHODS, GraspMethod, PublishedMethod, grasp_method
from morphit_bench.grasping.protocols import PaperProtocol
from morphit_bench.grasping.start_table import OBSERVED, START_TABLE
from morphit_bench.grasping.surface import SURFACES
from morphit_bench.picks.peers import PREFIX, FileMethod
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping import PlannerConfig

# The DISF paper's, from the start poses that its authors picked for an object and gripper.
_PAPER = ":paper"
PLANNERS = (*METHODS, *(f"{name}{_PAPER}" for name in ("disf", "visf", "cma_es")))
GraspPlanner = GraspMethod


def grasp_planner(
    name: str, setting: str, stem: str = "", thing: str = "", T_world_file: Array | None = None
) -> GraspPlanner:
    """A planner by its name, or one whose grasps are in files (``file:FOLDER``, see `morphit_bench.picks.peers`).

    Of a known shape, ours is given the true normals. The published ones estimate them, and thin known shapes and
    observed clouds, as their authors do.

    Args:
        name: one of `PLANNERS`, or of `peers.parse_peer`.
        setting: known or observed.
        stem: of the trial, for those in files.
        thing: the object's name, for those from the paper's start poses.
        T_world_file: (4, 4) pose of the frame that its mesh was stored in, for these.

    Raises:
        ResourceNotFoundError: no such planner; lists the known ones. The paper has no start pose for the object.
        InvalidInputError: there is no such folder, or no pose.
    """
    if name.startswith(PREFIX):
        return FileMethod(name, stem)
    if name == "morphit":
        return grasp_method(name, config=PlannerConfig(normals="given" if setting == "known" else "auto"))
    if name.endswith(_PAPER) and name in PLANNERS:
        key = thing.rpartition("/")[2]
        if key not in START_TABLE:
            known = ", ".join(key for key in START_TABLE if not key.startswith(OBSERVED))
            raise ResourceNotFoundError(f"start pose of '{thing}'", [], f"The paper has them for {known}.")
        if T_world_file is None:
            raise InvalidInputError("T_world_file", None, "the pose of the object's stored frame")
        protocol = PaperProtocol(key, T_world_file)
        return PublishedMethod(name.removesuffix(_PAPER), protocol=protocol, surface=SURFACES[setting])
    if name not in METHODS or name == "gpd":
        return grasp_method(name)
    return PublishedMethod(name, surface=SURFACES[setting])
