"""Why a plan is empty, or its best grasp too weak: the cause, with its value, its bound and what can be done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.outward_normals import estimate_outward_normals, normals_point_outwards
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.starts import AntipodalPairs, antipodal_pairs
from morphit_ros.grasping.grasp import Grasp
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import ObjectScene
from morphit_ros.grasping.search import Found, GraspSearch, Stopwatch

# Stages with one cause between them, in their order; the first of a group names it.
_GROUPS = (
    ("approach direction",),
    ("collision with the object", "collision at the start"),
    ("no contact", "contact on one finger only", "overlap"),
    ("too thin",),
    ("friction cone",),
    ("aperture margin",),
)
# What candidates went through: the order of the stages.
_ORDER = (
    "approach direction", "collision at the start", "contact on one finger only", "no contact", "overlap",
    "friction cone", "aperture margin", "too thin", "collision with the object",
)  # fmt: skip


def explain_no_grasp(rejected: Mapping[str, int], search: GraspSearch) -> str:
    """One line: what stood in the way, by how much, and what can be done; then the counts of all stages.

    What comes after the checks (reach, the distance function) is the cause where it refused anything: those grasps
    were good. Then the seen surfaces are asked: normals, width, thickness. Where some fit the gripper, a
    round is tried without each thing in the way: unseen space, what is around, the table. Else it is the stage that
    the least of its candidates passed; the last one passes none and has not refused most for that.

    Args:
        rejected: stage → number of candidates that it removed, see `GraspPlan`.
        search: that found nothing.
    """
    scene, gripper, config = search.scene, search.gripper, search.config
    cause = (
        _refused_good_ones(rejected, config)
        or _surfaces(scene, gripper, config, alone=True)
        or _in_the_way(search)
        or _surfaces(scene, gripper, config, alone=False)
        or _of_stage(_least_passed(rejected), scene, gripper, config)
    )
    counts = ", ".join(f"{stage}: {count}" for stage, count in rejected.items() if count > 0)
    return " ".join(filter(None, (f"No grasp: {cause}", f"Removed: {counts}." if counts else "", scene.note)))


def explain_heavy(best: Grasp, found: Found, search: GraspSearch) -> str:
    """One line where even the best grasp's hard pads hold less than the weight asks for; else empty.

    Args:
        best: grasp that is offered.
        found: all that were scored.
        search: that found them.
    """
    if best.metrics.get("hard_load", 0.0) <= 1.0:
        return ""
    asked, held, lever = (best.metrics[name] for name in ("torque", "torsion", "lever"))
    nearest = float(found.ranking.figures["lever"].min())
    return (
        f"'hard_load': of the best grasp it is {best.metrics['hard_load']:.2f}, at most 1 is held. The weight turns "
        f"the object about the pads' normal with {asked:.3f} N m; at {search.gripper.max_force:g} N hard pads hold "
        f"{held:.3f} N m. Grip nearer the centre of mass (this is {1e3 * lever:.0f} mm from it, the nearest place that "
        f"fits is {1e3 * nearest:.0f} mm away), or use a gripper with more force or larger pads."
    )


def _refused_good_ones(rejected: Mapping[str, int], config: PlannerConfig) -> str:
    if rejected.get("unreachable"):
        return (
            f"'unreachable': the robot reaches none of {rejected['unreachable']} grasps that passed all other checks, "
            "at least 1 is needed. Move the object or the robot."
        )
    if rejected.get("clearance"):
        return (
            f"'clearance': by the distance function the open gripper is nearer than {1e3 * config.min_clearance:g} mm "
            f"to something at all {rejected['clearance']} grasps that passed the other checks. "
            "Lower min_clearance or opening_margin."
        )
    return ""


def _surfaces(scene: ObjectScene, gripper: Gripper, config: PlannerConfig, alone: bool) -> str:
    """What is wrong with the seen surfaces: their normals, their width, their thickness.

    With `alone`, only where no pair of them fits the gripper: then it is the cause, whatever else is in the way.
    """
    seen = scene.observed >= 1.0
    points, normals = scene.points[seen], scene.normals[seen]
    pairs = _pairs(points, normals, scene, gripper, config)
    if pairs.paired > (0 if alone else pairs.too_wide + pairs.thin):
        return ""
    if not normals_point_outwards(points, normals):
        outward = float((np.einsum("ij,ij->i", estimate_outward_normals(points), normals) > 0.0).mean())
        if outward < 0.5:
            return (
                f"{100.0 * outward:.0f}% of the normals point outwards, most must. "
                "Turn them round, or set normals to 'estimate'."
            )
    if pairs.too_wide > max(pairs.paired, pairs.thin):
        return (
            f"object wider ({pairs.narrowest_rejected:.3f} m) than the gripper opens "
            f"({gripper.aperture_max:.3f} m), {1e3 * config.min_opening_margin:g} mm on each side left free. "
            "Use a wider gripper."
        )
    if pairs.too_wide == pairs.thin == 0 and _pairs(scene.points, scene.normals, scene, gripper, config).paired == 0:
        return _of_stage("no opposite surface", scene, gripper, config)
    least = max(gripper.aperture_min, scene.min_width)
    if pairs.thin > max(pairs.paired, pairs.too_wide):
        remedy = (
            "Use a gripper that closes further."
            if least == gripper.aperture_min
            else "Lower min_width, or give outward normals if they were estimated (min_width_estimated)."
        )
        return (
            f"object thinner ({1e3 * pairs.widest_thin:.1f} mm) than the gripper may close to ({1e3 * least:.1f} mm). "
            f"{remedy}"
        )
    return ""


def _in_the_way(search: GraspSearch) -> str:
    """The first of what is around the object without which there are grasps."""
    config = search.config
    search = replace(search, rng=np.random.default_rng(0), removed=None)
    if len(search.unseen) and _finds(replace(search, unseen=search.unseen[:0])):
        return (
            f"'unseen space': the hand would pass through space of {len(search.unseen)} cells that no camera saw, more "
            f"than {config.allowed_hits} of them. Look at the object from more sides, tell where the cameras stood, or "
            "set unseen to 'free'."
        )
    around = len(search.solid) - len(search.scene.points)
    if around and _finds(replace(search, solid=search.solid[: len(search.scene.points)])):
        return (
            f"'obstacles': palm or fingers would hit what is around the object ({around} cells), more than "
            f"{config.allowed_hits} of them. Clear its surroundings, lower opening_margin or use a slimmer gripper."
        )
    if search.table is not None and _finds(replace(search, table=None)):
        T_world_table = search.table.T_world_table
        top = float(((search.scene.points - T_world_table[:3, 3]) @ T_world_table[:3, 2]).max())
        return (
            f"'table': palm or fingers would come nearer to the table than {1e3 * config.table_clearance:.1f} mm; the "
            f"object rises {1e3 * top:.1f} mm above it. Lower table_clearance, or correct the table's height."
        )
    return ""


def _finds(search: GraspSearch) -> bool:
    return len(search.round(lambda stage, share: None, Stopwatch()).poses) > 0


def _pairs(
    points: Array, normals: Array, scene: ObjectScene, gripper: Gripper, config: PlannerConfig
) -> AntipodalPairs:
    widest = gripper.aperture_max - 2.0 * config.min_opening_margin
    least, angle = max(gripper.aperture_min, scene.min_width), math.radians(config.opposing_angle)
    rng = np.random.default_rng(0)
    return antipodal_pairs(points, normals, config.pairs, least, widest, angle, rng, scene.up)


def _least_passed(rejected: Mapping[str, int]) -> str:
    """The group of stages that the smallest share of its candidates passed."""
    left = {stage: rejected.get(stage, 0) for stage in _ORDER}
    chances: dict[str, float] = {}
    arrived = sum(left.values())
    for stage in _ORDER:
        # By the rule of succession: a stage that refuses the only two it got has not refused most.
        chances[stage] = (arrived - left[stage] + 1.0) / (arrived + 2.0) if left[stage] else 1.0
        arrived -= left[stage]
    groups = {group[0]: math.prod(chances[stage] for stage in group) for group in _GROUPS}
    least = min(groups, key=lambda name: groups[name])
    return least if groups[least] < 1.0 else "no opposite surface"


def _of_stage(stage: str, scene: ObjectScene, gripper: Gripper, config: PlannerConfig) -> str:
    cone = math.degrees(math.atan(config.friction))
    texts = {
        "no opposite surface": "'no opposite surface': no surface faces away from a seen one within "
        f"{config.opposing_angle:g}°. Look at the object from more sides, or raise opposing_angle.",
        "approach direction": f"'approach direction': all approaches are more than {config.max_approach_tilt:g}° off "
        "the preferred one. Raise max_approach_tilt.",
        "collision with the object": "'collision': palm or fingers would hit the object, with "
        f"{1e3 * config.opening_margin:g} mm beside the object and an approach of "
        f"{1e3 * config.pregrasp_distance:g} mm. Lower opening_margin or pregrasp_distance, or use a slimmer gripper.",
        "no contact": "'contact': both pads press less than the least area, "
        f"{1e6 * config.min_overlap * config.contact_area:.0f} mm² at once. Look at the object from more sides, or "
        "lower min_overlap.",
        "too thin": f"'too thin': the fingers would close to less than {1e3 * scene.min_width:.1f} mm. Lower "
        "min_width, or give outward normals if they were estimated (min_width_estimated).",
        "friction cone": f"'friction cone': the surfaces are more slanted than friction {config.friction:g} holds, "
        f"{cone:.0f}°. Raise friction if the pads grip better.",
        "aperture margin": f"'aperture margin': less than {1e3 * config.min_opening_margin:g} mm is left on each side "
        f"of the object in {1e3 * gripper.aperture_max:.0f} mm. Lower min_opening_margin or use a wider gripper.",
    }
    return texts.get(stage, texts["no opposite surface"])
