"""Multi-start grasp planning: many starts, each fitted by DISF, checked and ranked.

    starts → fit → table → contact of both fingers → object → ranking → diverse top-k

in rounds (`search`) until a good grasp is found. Each stage counts what it removes, so that an empty plan says which
one emptied it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.geometry.inputs import CloudLike, as_cloud
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.candidate_record import CandidateRecord
from morphit_ros.grasping.checking.sweeps import gripper_boxes
from morphit_ros.grasping.completion import ShapeCompletion
from morphit_ros.grasping.explanation import explain_heavy, explain_no_grasp
from morphit_ros.grasping.grasp import Grasp, GraspPlan
from morphit_ros.grasping.gripper import Gripper
from morphit_ros.grasping.planner_config import PlannerConfig
from morphit_ros.grasping.scene import ObjectScene, prepare_scene, solid_points
from morphit_ros.grasping.scoring.ranking import certify_grasps, select_grasps
from morphit_ros.grasping.search import GraspSearch, Stopwatch
from morphit_ros.grasping.unseen import occupied_space
from morphit_ros.robot.clearance import ClearanceFunction


def plan_grasps(
    cloud: CloudLike,
    gripper: Gripper,
    config: PlannerConfig | None = None,
    table: SupportPlaneLike | None = None,
    seed: int = 0,
    approach: ArrayLike | None = None,
    center_of_mass: ArrayLike | None = None,
    reachable: Callable[[Grasp], bool] | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    obstacles: CloudLike | None = None,
    completion: ShapeCompletion | None = None,
    viewpoints: ArrayLike | None = None,
    clearance: ClearanceFunction | None = None,
    record: CandidateRecord | None = None,
) -> GraspPlan:
    """Ranked, collision-checked grasps of an object.

    Args:
        cloud: the object [m], a cloud of any kind that `geometry.inputs` knows, with outward normals if there are any.
        gripper: which gripper.
        config: see `PlannerConfig`.
        table: what the object stands on, in the frame of the cloud; its plane is kept clear and its
            z axis is up. Unseen sides are extruded down to it.
        seed: of all random draws.
        approach: (3,) preferred approach direction; down onto the table if None and a table is given.
        center_of_mass: (3,) if it is known [m]; else that of the completed shape.
        reachable: asked for each grasp in the order of the ranking, from the best, until enough are
            found; those it refuses are dropped.
        progress: called with the name of a stage and the finished share.
        obstacles: a cloud of what stands around the object [m]; palm, fingers and approach keep clear of them.
        completion: what supplies the sides that were not seen and the centre of mass; chosen by the data if None.
        viewpoints: (V, 3) positions of the cameras, if they are known [m].
        clearance: distance function of the open gripper in the frame of the cloud; grasps that it puts closer than
            `min_clearance` are dropped, and the others carry its answer as their metric `clearance`.
        record: takes the candidates and what became of each; nothing is kept without one.

    Raises:
        InvalidInputError: empty or tiny cloud, coordinates that look like millimetres, bad transform
            or direction, obstacles or viewpoints of a wrong shape, normals required but missing.
    """
    settings = config or PlannerConfig()
    rng = np.random.default_rng(seed)
    report = progress or (lambda stage, share: None)
    clock = Stopwatch()
    around = _checked_obstacles(obstacles)
    scene = prepare_scene(
        as_cloud(cloud), settings, table, approach, center_of_mass, rng,
        completion=completion, obstacles=around if len(around) else None, viewpoints=viewpoints,
    )  # fmt: skip
    solid = _solid_points(scene, around, gripper, settings)
    if table is not None:
        settings = replace(settings, table_clearance=_clearance_above(table, scene, settings))
    clock.lap("prepare")
    search = GraspSearch(
        scene, solid, occupied_space(scene, around, settings, table, viewpoints), gripper, settings, table, rng,
        None if record is None else [],
    )  # fmt: skip
    clear = None if clearance is None else _Measured(clearance, settings.min_clearance)
    reaches = None if reachable is None else _Remembered(reachable)
    found = search.round(report, clock)
    grasps = select_grasps(found.poses, found.ranking, scene, gripper, settings, reaches, clear)
    for _ in range(settings.rounds - 1):
        if grasps and grasps[0].score >= settings.good_score:
            break
        found = found.joined(search.round(report, clock, found))
        grasps = select_grasps(found.poses, found.ranking, scene, gripper, settings, reaches, clear)
    grasps = certify_grasps(grasps, scene, gripper, settings)
    clock.lap("rank")
    report("rank", 1.0)
    asked = {"unreachable": reaches, "clearance": clear}
    refused = {name: answers.refused_poses for name, answers in asked.items() if answers is not None}
    rejected = {**found.rejected, **{name: len(poses) for name, poses in refused.items()}}
    if record is not None:
        record.fill(search, found, grasps, refused)
    if grasps:
        message = " ".join(filter(None, (scene.note, explain_heavy(grasps[0], found, search))))
    else:
        message = explain_no_grasp(rejected, search)
    return GraspPlan(grasps, rejected, found.starts, clock.laps, message)


class _Remembered:
    """Asks for each pose once, however many rounds it takes part in."""

    def __init__(self, reachable: Callable[[Grasp], bool]) -> None:
        self._reachable = reachable
        self._answers: dict[bytes, bool] = {}

    def __call__(self, grasp: Grasp) -> bool:
        key = grasp.T_world_gripper.tobytes()
        if key not in self._answers:
            self._answers[key] = bool(self._reachable(grasp))
        return self._answers[key]

    @property
    def refused_poses(self) -> set[bytes]:
        """The poses (4, 4) that were refused, as bytes."""
        return {pose for pose, answer in self._answers.items() if not answer}


class _Measured:
    """Asks a distance function for each pose once, however many rounds it takes part in."""

    def __init__(self, clearance: ClearanceFunction, least: float) -> None:
        self._clearance, self._least = clearance, least
        self._answers: dict[bytes, float] = {}

    def __call__(self, grasp: Grasp) -> float | None:
        """The clearance [m], None if it is too small."""
        key = grasp.T_world_gripper.tobytes()
        if key not in self._answers:
            self._answers[key] = float(self._clearance(grasp.T_world_gripper, grasp.open_aperture))
        found = self._answers[key]
        return found if found >= self._least else None

    @property
    def refused_poses(self) -> set[bytes]:
        """The poses (4, 4) that were too near, as bytes."""
        return {pose for pose, answer in self._answers.items() if not answer >= self._least}


def _clearance_above(table: SupportPlaneLike, scene: ObjectScene, config: PlannerConfig) -> float:
    """Fingers must get well below the top of a thin thing that lies on the table, wherever they grasp it [m]."""
    up, origin = table.T_world_table[:3, 2], table.T_world_table[:3, 3]
    heights = (scene.points - origin) @ up
    # The usual top, not the highest: of a wrench the handle, not the head.
    tops = heights[scene.normals @ up > 0.7]
    height = float(np.median(tops)) if len(tops) >= 20 else float(np.quantile(heights, 0.9))
    return min(config.table_clearance, max(height / 3.0, 5e-4))


def _checked_obstacles(obstacles: CloudLike | None) -> Array:
    return np.empty((0, 3)) if obstacles is None else as_cloud(obstacles, "obstacles").finite().points


def _solid_points(scene: ObjectScene, around: Array, gripper: Gripper, config: PlannerConfig) -> Array:
    """The object's points, and those of its surroundings that the gripper could meet."""
    corners = gripper_boxes(gripper)
    size = np.abs(np.concatenate([table.reshape(-1, 3) for table in corners[:4]])).max()
    # The palm is behind the pads by more where they are ahead of the gripper frame.
    size = float(size) + float(np.abs(corners.advances).max())
    return solid_points(scene, around, size + 0.5 * gripper.aperture_max + config.pregrasp_distance)
