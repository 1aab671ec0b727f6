"""Picks of heavy-headed objects, planned with centres of mass from different sources.

What each source has to go by:
- seen: the centroid of the points that the cameras see;
- completed: the shape with its hidden sides, of one material (what the planner does by itself);
- learned: a density field learned from the same clouds, of one material: geometry, too;
- materials: that field, and what somebody says each part is made of;
- identified: that field, and how the object moves in four pushes, seen with a millimetre of noise;
- true: the centre itself, which no robot has.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.evaluation.heavy_objects import HeavyObject
from morphit_ros.evaluation.identifying_pushes import PushedCenter, push_and_identify
from morphit_ros.evaluation.outcome import Outcome, PickResult
from morphit_ros.evaluation.pick import PickJob
from morphit_ros.evaluation.runs import come_to_rest, workcell_config
from morphit_ros.evaluation.trials import Trial, TrialConfig, draw_trial, trial_object
from morphit_ros.evaluation.views import ObjectView, observed_shape
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.grasping import Grasp, GraspPlan, Gripper, PlannerConfig, plan_grasps
from morphit_ros.grasping.completion import AutoCompletion, KnownMass
from morphit_ros.grasping.scene import Table
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.objects.known_object import KnownObject, know_object
from morphit_ros.neural.solid.materials import MaterialRegion
from morphit_ros.neural.views.cloud_views import views_of_cloud
from morphit_ros.simulation.workcell import Workcell

SOURCES = ("seen", "completed", "learned", "materials", "identified", "true")
# Kilograms per cubic metre of what nothing is known of; a centre of mass does not depend on it.
_SOME_DENSITY = 500.0


@dataclass(frozen=True)
class KnownCenter:
    """A centre of mass.

    Attributes:
        position: (3,) in the world, None if it is not known [m].
        confidence: how far it can be trusted, in [0, 1].
        seconds: processor time spent on it [s].
        note: what is to be said of it.
        told: whether the planner is told; else it finds its own.
    """

    position: Array | None
    confidence: float = 1.0
    seconds: float = 0.0
    note: str = ""
    told: bool = True


class CenterPlanner:
    """This package's planner with a centre of mass from elsewhere; a `GraspMethod`.

    Args:
        center: (3,) in the world [m]; None to leave it to the planner's own completion.
        confidence: see `KnownMass`.
        mass: [kg], None to leave it open.
    """

    name = "morphit"

    def __init__(self, center: Array | None, confidence: float = 1.0, mass: float | None = None) -> None:
        self._center, self._confidence, self._mass = center, confidence, mass

    def plan(
        self,
        cloud: PointCloud,
        gripper: Gripper,
        table: Table | None = None,
        seed: int = 0,
        *,
        approach: ArrayLike | None = None,
        center_of_mass: ArrayLike | None = None,
        reachable: Callable[[Grasp], bool] | None = None,
        obstacles: Array | None = None,
        viewpoints: Array | None = None,
    ) -> GraspPlan:
        """As `planner.plan_grasps`."""
        completion = None
        if self._center is not None:
            shape = AutoCompletion(viewpoints, obstacles if obstacles is not None and len(obstacles) else None)
            completion = KnownMass(self._center, self._confidence, shape, self._mass)
        return plan_grasps(
            cloud, gripper, PlannerConfig(), table, seed, approach, center_of_mass, reachable,
            obstacles=obstacles, viewpoints=viewpoints, completion=completion,
        )  # fmt: skip


@dataclass(frozen=True)
class CenterRecord:
    """One pick.

    Attributes:
        object, number: which trial.
        source: of the centre of mass.
        error: distance of the centre as known to the true one [m], NaN if there is none.
        horizontal_error: the same on the table's plane [m].
        lever: horizontal distance of the executed grasp to the true centre of mass [m]; NaN without one.
        seconds: processor time that the centre took [s].
        result: of the pick.
        note: what is to be said of the source.
    """

    object: str
    number: int
    source: str
    error: float
    horizontal_error: float
    lever: float
    seconds: float
    result: PickResult
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "object": self.object, "number": self.number, "source": self.source, "error": self.error,
            "horizontal_error": self.horizontal_error, "lever": self.lever, "seconds": self.seconds,
            "outcome": self.result.kind.value, "stage": self.result.stage, "message": self.result.message,
            "turn": self.result.turn, "offset": self.result.offset, "note": self.note,
        }  # fmt: skip


def run_trial(job: PickJob, heavy: HeavyObject, number: int, sources: tuple[str, ...] = SOURCES) -> list[CenterRecord]:
    """One drawn trial of an object with each source, in one workcell that is reset between them.

    Args:
        job: robot, or a gripper that flies.
        heavy: the object.
        number: of the trial.
        sources: some of `SOURCES`.

    Raises:
        InvalidInputError: an unknown source.
    """
    for source in sources:
        if source not in SOURCES:
            raise InvalidInputError("source", repr(source), f"one of {', '.join(SOURCES)}")
    # As it usually lies; the mass as it is: the materials say it.
    ranges = TrialConfig(mass_variation=0.0, other_pose=0.0)
    trial = draw_trial(heavy.body.name, number, ranges)
    body = trial_object(heavy.body, trial, ranges)
    records = []
    with Workcell(workcell_config(trial), job.robot, body) as workcell:
        centers = _Centers(workcell, replace(heavy, body=body), trial)
        for source in sources:
            workcell.reset()
            come_to_rest(workcell)
            truth = transform_points(workcell.object_pose(), body.center_of_mass[None])[0]
            try:
                center = centers.of(source)
                method = CenterPlanner(center.position if center.told else None, center.confidence)
                result = job.pick(workcell, "observed", method, seed=trial.seed)
            except MorphitError as error:
                center = KnownCenter(None, note=str(error))
                result = PickResult(Outcome.ERROR, "error", f"{type(error).__name__}: {error}")
            records.append(_record(heavy.name, number, source, center, truth, result))
    return records


def _record(name: str, number: int, source: str, center: KnownCenter, truth: Array, result: PickResult) -> CenterRecord:
    off = np.full(3, np.nan) if center.position is None else center.position - truth
    lever = float("nan")
    if result.T_world_gripper:
        lever = float(np.linalg.norm(np.array(result.T_world_gripper)[:2, 3] - truth[:2]))
    return CenterRecord(
        name, number, source, float(np.linalg.norm(off)), float(np.linalg.norm(off[:2])), lever, center.seconds, result,
        center.note,
    )  # fmt: skip


class _Centers:
    """The centres of mass of one trial, each found once; the field is learned for the first that needs it."""

    def __init__(self, workcell: Workcell, heavy: HeavyObject, trial: Trial) -> None:
        self._workcell, self._heavy, self._trial = workcell, heavy, trial
        self._learned: tuple[KnownObject, Array, float] | None = None

    def of(self, source: str) -> KnownCenter:
        """The centre of a source; the workcell is at rest.

        Raises:
            MorphitError: nothing was seen, or nothing can be learned from it.
        """
        if source == "true":
            pose = self._workcell.object_pose()
            return KnownCenter(transform_points(pose, self._heavy.body.center_of_mass[None])[0])
        if source in ("seen", "completed"):
            view = self._see()
            assert view.cloud is not None
            if source == "seen":
                return KnownCenter(view.cloud.points.mean(axis=0))
            # Only measured here: the planner is not told and completes the shape itself.
            shape = AutoCompletion(view.viewpoints, view.obstacles)
            assert view.cloud.normals is not None
            found = shape(view.cloud.points, view.cloud.normals, view.table)
            return KnownCenter(found.center_of_mass, found.confidence, note=found.method, told=False)
        known, T_world_field, seconds = self._learn()
        began = time.process_time()
        note = " ".join(known.inertia.remarks)
        if source == "materials":
            known = known.made_of(self._heavy.density, self._regions(T_world_field))
        elif source == "identified":
            pushed = self._identify(known, T_world_field)
            known, note = pushed.known, pushed.message
        center = transform_points(T_world_field, known.inertia.center_of_mass[None])[0]
        return KnownCenter(center, known.confidence, seconds + time.process_time() - began, note)

    def _see(self) -> ObjectView:
        view = observed_shape(self._workcell, self._trial.seed)
        if view.cloud is None:
            raise InvalidInputError("view", view.message, "the object")
        return view

    def _learn(self) -> tuple[KnownObject, Array, float]:
        if self._learned is None:
            view = self._see()
            began = time.process_time()
            assert view.cloud is not None and view.cloud.normals is not None and view.viewpoints is not None
            cloud = view.cloud.points
            middle = 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
            T_world_field = make_transform(translation=middle)
            eyes = view.viewpoints - middle
            result = learn_from_depths(views_of_cloud(cloud - middle, view.cloud.normals, eyes))
            if result.field is None:
                raise InvalidInputError("views", result.message, "views of an object")
            known = know_object(result.field, _SOME_DENSITY, eyes=eyes, support=_support(view, middle))
            self._learned = known, T_world_field, time.process_time() - began
        return self._learned

    def _regions(self, T_world_field: Array) -> list[MaterialRegion]:
        """The object's materials where they really are, in the field's frame."""
        T_field_object = invert_transform(T_world_field) @ self._workcell.object_pose()
        return [
            MaterialRegion(
                T_field_object @ make_transform(translation=0.5 * (box.lowest + box.highest)),
                box.highest - box.lowest, box.density,
            )
            for box in self._heavy.materials
        ]  # fmt: skip

    def _identify(self, known: KnownObject, T_world_field: Array) -> PushedCenter:
        return push_and_identify(
            known, T_world_field, self._heavy.body, self._workcell.object_pose(), self._trial.friction, self._trial.seed
        )


def _support(view: ObjectView, middle: Array) -> SupportPlane | None:
    """The table in the field's frame."""
    if view.table is None:
        return None
    return SupportPlane(make_transform(translation=-middle) @ view.table.T_world_table)
