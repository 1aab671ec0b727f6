"""Multi-start grasp planning: many starts, each fitted by DISF, checked and ranked.

    starts → fit → contact of both fingers → table → object → ranking → diverse top-k

Each stage counts what it removes, so that an empty plan says which one emptied it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.grasping.candidates import (
    clear_of_table,
    collision_free,
    fit_all,
    make_starts,
    palm_free,
    settle_above_table,
    touching,
    with_coarse_pads,
)
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.ranking import score_candidates, select_grasps
from morphit_ros.grasping.scene import Table, prepare_scene


def plan_grasps(
    cloud: PointCloud,
    gripper: Gripper,
    config: PlannerConfig | None = None,
    table: Table | None = None,
    seed: int = 0,
    approach: ArrayLike | None = None,
    center_of_mass: ArrayLike | None = None,
    reachable: Callable[[Grasp], bool] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> GraspPlan:
    """Ranked, collision-checked grasps of an object.

    Args:
        cloud: the object (N, 3) [m], with outward normals if there are any.
        gripper: which gripper.
        config: see `PlannerConfig`.
        table: what the object stands on, in the frame of the cloud; its plane is kept clear and its
            z axis is up. Unseen sides are extruded down to it.
        seed: of all random draws.
        approach: (3,) preferred approach direction; down onto the table if None and a table is given.
        center_of_mass: (3,) if it is known; estimated otherwise (extruded columns on a table, else
            the centre between centroid and bounding box).
        reachable: asked for each grasp in the order of the ranking, from the best, until enough are
            found; those it refuses are dropped.
        progress: called with the name of a stage and the finished share.

    Raises:
        InvalidInputError: empty or tiny cloud, coordinates that look like millimetres, bad transform
            or direction, normals required but missing.
    """
    settings = config or PlannerConfig()
    rng = np.random.default_rng(seed)
    report = progress or (lambda stage, share: None)
    clock = _Stopwatch()
    scene = prepare_scene(cloud, settings, table, approach, center_of_mass, rng)
    full_gripper, gripper = gripper, with_coarse_pads(gripper)
    clock.lap("prepare")
    report("starts", 0.1)

    rejected: dict[str, int] = {}
    starts, widest = make_starts(scene, gripper, settings, rng, rejected)
    starts = clear_of_table(starts, gripper, settings, table, rejected)
    if len(starts) > settings.max_starts:
        starts = starts.select(np.sort(rng.choice(len(starts), size=settings.max_starts, replace=False)))
    candidates = len(starts)
    starts = palm_free(starts, scene, gripper, settings, rejected)
    clock.lap("starts")
    report("fit", 0.3)

    poses = fit_all(starts, scene, gripper, settings, rejected)
    clock.lap("fit")
    report("check", 0.7)

    poses = settle_above_table(poses, gripper, settings, table, rejected)
    poses = touching(poses, scene, gripper, settings, rejected)
    poses = collision_free(poses, scene, gripper, settings, table, rejected)
    clock.lap("check")
    report("rank", 0.9)

    ranking = score_candidates(poses, scene, gripper, settings)
    grasps = select_grasps(poses, ranking, scene, full_gripper, settings, reachable, rejected)
    clock.lap("rank")
    report("rank", 1.0)
    message = scene.note if grasps else _explain(rejected, widest, gripper, scene.note)
    return GraspPlan(grasps, rejected, candidates, clock.laps, message)


class _Stopwatch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now


_REMEDIES = {
    "no opposite surface": "No surface faces away from a seen one: look at the object from more sides.",
    "approach direction": "Raise max_approach_tilt.",
    "table": "The surfaces lie too close to the table for the fingers: lower table_clearance.",
    "table after the fit": "The surfaces lie too close to the table for the fingers: lower table_clearance.",
    "collision at the start": "Palm or fingers would enter the object: use a longer or wider gripper.",
    "contact on one finger only": "One side was not seen or is not flat enough: look at it from more sides.",
    "no contact": "Check that the normals point outwards.",
    "aperture margin": "Lower min_opening_margin or use a wider gripper.",
    "too thin": "Lower min_width, or give oriented normals and min_width_estimated does not apply.",
    "overlap": "The pads meet too little surface: lower min_overlap.",
    "friction cone": "The surfaces are too slanted to hold: raise friction if the pads grip better.",
    "collision with the object": "Palm or fingers would hit the object on the way: lower opening_margin.",
    "unreachable": "The robot cannot reach the grasps: move the object or the robot.",
}


def _explain(rejected: dict[str, int], narrowest: float, gripper: Gripper, note: str) -> str:
    """Which stage emptied the plan, and what can be done."""
    # If more seeds were too wide than found a pair at all, the width is the cause, whatever became of the rest.
    others = sum(count for stage, count in rejected.items() if stage not in ("too wide", "no opposite surface"))
    if math.isfinite(narrowest) and (others == 0 or rejected["too wide"] > rejected["no opposite surface"]):
        message = (
            f"No grasp: object wider ({narrowest:.3f} m) than the gripper opens ({gripper.aperture_max:.3f} m). "
            "Use a wider gripper."
        )
    else:
        stage = [name for name, count in rejected.items() if count > 0]
        last = stage[-1] if stage else "no opposite surface"
        counts = ", ".join(f"{name}: {rejected[name]}" for name in stage)
        message = f"No grasp: '{last}' removed the last candidates. {_REMEDIES.get(last, '')} Removed: {counts}."
    return f"{message} {note}".strip()
