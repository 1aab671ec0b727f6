"""Picks of heavy-headed objects, planned with centres of mass from different sources.

What each source has to go by:
- seen: the centroid of the points that the cameras see;
- completed: the shape with its hidden sides, of one material (what the planner does by itself);
- learned: a density field learned from the same clouds, of one material: geometry, too;
- materials: that field, and what somebody says each part is made of;
- identified: that field, and how the object moves in four pushes, seen with a millimetre of noise;
- around: a field of one material from twelve views around the object, recorded before and laid where it lies with an
  error of 2 mm and 1°; the planner is told its shape, too;
- true: the centre itself, which no robot has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Any

import numpy as np

from morphit_bench.grasping.methods import MorphitMethod
from morphit_bench.neural.heavy_objects import HeavyObject
from morphit_bench.neural.identifying_pushes import push_and_identify
from morphit_bench.picks.outcome import Outcome, PickResult
from morphit_bench.picks.pick import PickJob
from morphit_bench.picks.runs import come_to_rest, workcell_config
from morphit_bench.picks.trials import Trial, TrialConfig, draw_trial, trial_object
from morphit_bench.picks.views import ObjectView, observed_shape
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import (
    Array,
    invert_transform,
    make_transform,
    matrix_from_rpy,
    transform_points,
)
from morphit_ros.grasping import PlannerConfig
from morphit_ros.grasping.completion import AutoCompletion, KnownMass, KnownShape
from morphit_ros.neural.contact.parameters import GRAVITY
from morphit_ros.neural.learning.depth import learn_from_depths
from morphit_ros.neural.objects.known_object import KnownObject, know_object
from morphit_ros.neural.objects.mass_sources import TotalMassSource
from morphit_ros.neural.solid.materials import MaterialRegion
from morphit_ros.neural.views.cloud_views import views_of_cloud
from morphit_ros.neural.views.posed_views import PosedDepths
from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object
from morphit_ros.simulation.workcell import Workcell

SOURCES = ("seen", "completed", "learned", "materials", "identified", "around", "true")
# Of a field that was recorded before: its views, the noise of their depth, and of the pose that it is laid at, of each
# axis [m], [m], [rad].
_AROUND, _DEPTH_NOISE = ObjectViewsConfig(views=12, size=100, arrangement="dome"), 0.0015
_LAID_OFF, _LAID_TURNED = 0.002 / np.sqrt(3.0), np.radians(1.0) / np.sqrt(3.0)
# As many as `neural_object` publishes.
_SURFACE_POINTS = 3000
# Kilograms per cubic metre of what nothing is known of; a centre of mass does not depend on it.
_SOME_DENSITY = 500.0


@dataclass(frozen=True)
class KnownCenter:
    """A centre of mass, and what else its source knows.

    Attributes:
        position: (3,) in the world, None if it is not known [m].
        confidence: how far it can be trusted, in [0, 1].
        mass: None if the source says nothing of it [kg].
        seconds: processor time spent on it [s].
        note: what is to be said of it.
        told: whether the planner is told; else it finds its own.
        mass_told: whether it is told the mass, too: not one that is only assumed.
        shape: in the world, that the planner is told as well; None: it completes what it sees.
    """

    position: Array | None
    confidence: float = 1.0
    mass: float | None = None
    seconds: float = 0.0
    note: str = ""
    told: bool = True
    mass_told: bool = True
    shape: KnownShape | None = None


def planner_told(center: KnownCenter, view: ObjectView) -> MorphitMethod:
    """This package's planner as a pick uses it, told a centre of mass (and mass) as the planning node tells it.

    Args:
        center: what it is told; nothing if that has no position, or is not to be told.
        view: the one that the pick will see.
    """
    config = PlannerConfig(normals="auto")
    if center.position is None or not center.told:
        return MorphitMethod(config)
    mass = center.mass if center.mass_told else None
    shape = center.shape or _completion(view)
    return MorphitMethod(config, completion=KnownMass(center.position, center.confidence, shape, mass))


@dataclass(frozen=True)
class CenterRecord:
    """One pick.

    Attributes:
        object, number: which trial.
        source: of the centre of mass.
        error: distance of the centre as known to the true one [m], NaN if there is none.
        horizontal_error: the same on the table's plane [m].
        mass_error: of the mass as known, as a share of the true one; NaN where nothing is known of it.
        lever: horizontal distance of the executed grasp to the true centre of mass [m]; NaN without one.
        moment: of the weight at that lever, which the fingers have to bear [N m].
        seconds: processor time that the centre took [s].
        result: of the pick.
        note: what is to be said of the source.
    """

    object: str
    number: int
    source: str
    error: float
    horizontal_error: float
    mass_error: float
    lever: float
    moment: float
    seconds: float
    result: PickResult
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data; numbers that are not finite become None."""
        data = {
            "object": self.object, "number": self.number, "source": self.source, "error": self.error,
            "horizontal_error": self.horizontal_error, "mass_error": self.mass_error, "lever": self.lever,
            "moment": self.moment, "seconds": self.seconds, "outcome": self.result.kind.value,
            "stage": self.result.stage, "message": self.result.message, "turn": self.result.turn,
            "offset": self.result.offset, "note": self.note,
        }  # fmt: skip
        return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in data.items()}


def run_trial(job: PickJob, heavy: HeavyObject, number: int, sources: tuple[str, ...] = SOURCES) -> list[CenterRecord]:
    """One drawn trial of an object with each source, in one workcell that is reset between them.

    The centres are found first, from one look. After each reset the cameras see the same, noise and all, so that
    picks differ in nothing but what the planner is told.

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
        come_to_rest(workcell)
        T_world_body = workcell.object_pose()
        centers = _Centers(replace(heavy, body=body), T_world_body, trial, observed_shape(workcell, trial.seed))
        truth = transform_points(T_world_body, body.center_of_mass[None])[0]
        for source in sources:
            workcell.reset()
            come_to_rest(workcell)
            try:
                center = centers.of(source)
                result = job.pick(workcell, "observed", planner_told(center, centers.view), seed=trial.seed)
            except MorphitError as error:
                center = KnownCenter(None, note=str(error))
                result = PickResult(Outcome.ERROR, "error", f"{type(error).__name__}: {error}")
            records.append(_record(heavy, number, source, center, truth, result))
    return records


def _record(
    heavy: HeavyObject, number: int, source: str, center: KnownCenter, truth: Array, result: PickResult
) -> CenterRecord:
    off = np.full(3, np.nan) if center.position is None else center.position - truth
    mass_error = nan if center.mass is None else abs(center.mass / heavy.body.mass - 1.0)
    lever = nan
    if result.T_world_gripper:
        lever = float(np.linalg.norm(np.array(result.T_world_gripper)[:2, 3] - truth[:2]))
    return CenterRecord(
        heavy.name, number, source, float(np.linalg.norm(off)), float(np.linalg.norm(off[:2])), mass_error, lever,
        heavy.body.mass * GRAVITY * lever, center.seconds, result, center.note,
    )  # fmt: skip


def _completion(view: ObjectView) -> AutoCompletion:
    """The planner's own, of what was seen."""
    return AutoCompletion(
        view.viewpoints, view.obstacles if view.obstacles is not None and len(view.obstacles) else None
    )


class _Centers:
    """The centres of mass of one trial, each found once; the field is learned for the first that needs it.

    Args:
        heavy: the object.
        T_world_body: (4, 4) where it lies.
        trial: draw.
        view: what the cameras see of it.
    """

    def __init__(self, heavy: HeavyObject, T_world_body: Array, trial: Trial, view: ObjectView) -> None:
        self.view = view
        self._heavy, self._T_world_body, self._trial = heavy, T_world_body, trial
        self._learned: tuple[KnownObject, Array, float] | None = None

    def of(self, source: str) -> KnownCenter:
        """The centre of a source.

        Raises:
            MorphitError: nothing was seen, or nothing can be learned from it.
        """
        if source == "true":
            body = self._heavy.body
            return KnownCenter(transform_points(self._T_world_body, body.center_of_mass[None])[0], mass=body.mass)
        view = self.view
        if view.cloud is None:
            raise InvalidInputError("view", view.message, "the object")
        if source == "seen":
            return KnownCenter(view.cloud.points.mean(axis=0))
        if source == "completed":
            # Only measured here: the planner is not told and completes the shape itself.
            assert view.cloud.normals is not None
            found = _completion(view)(view.cloud.points, view.cloud.normals, view.table)
            return KnownCenter(found.center_of_mass, found.confidence, note=found.method, told=False)
        if source == "around":
            return self._recorded()
        known, T_world_field, seconds = self._learn()
        began = time.process_time()
        note = " ".join(known.inertia.remarks)
        if source == "materials":
            known = known.made_of(self._heavy.density, self._regions(T_world_field))
        elif source == "identified":
            pushed = push_and_identify(
                known, T_world_field, self._heavy.body, self._T_world_body, self._trial.friction, self._trial.seed
            )
            known, note = pushed.known, pushed.message
        center = transform_points(T_world_field, known.inertia.center_of_mass[None])[0]
        seconds += time.process_time() - began
        vouched = known.total_source is not TotalMassSource.ASSUMED
        return KnownCenter(center, known.confidence, known.inertia.mass, seconds, note, mass_told=vouched)

    def _recorded(self) -> KnownCenter:
        """What a field from all around says, whose pose is known with an error."""
        began, rng = time.process_time(), np.random.default_rng([self._trial.seed, 3])
        views = render_object(self._heavy.body, np.eye(4), _AROUND)
        depth = views.depth + rng.normal(0.0, _DEPTH_NOISE, views.depth.shape)
        result = learn_from_depths(PosedDepths(depth, views.intrinsics, views.T_world_camera, views.masks))
        if result.field is None:
            raise InvalidInputError("views", result.message, "views of an object")
        known = know_object(
            result.field, _SOME_DENSITY, eyes=views.T_world_camera[:, :3, 3], support=SupportPlane(np.eye(4)),
            density_known=False,
        )  # fmt: skip
        error = make_transform(matrix_from_rpy(rng.normal(0.0, _LAID_TURNED, 3)), rng.normal(0.0, _LAID_OFF, 3))
        center = known.inertia.center_of_mass
        about = make_transform(translation=center)
        T_world_field = self._T_world_body @ about @ error @ invert_transform(about)
        points, normals = sample_surface_evenly(known.solid.surface, _SURFACE_POINTS, rng)
        shape = KnownShape(
            transform_points(T_world_field, points), normals @ T_world_field[:3, :3].T, known.confidence, "recorded"
        )
        seconds = time.process_time() - began
        return KnownCenter(
            transform_points(T_world_field, center[None])[0], known.confidence, known.inertia.mass, seconds,
            " ".join(known.inertia.remarks), mass_told=False, shape=shape,
        )  # fmt: skip

    def _learn(self) -> tuple[KnownObject, Array, float]:
        if self._learned is None:
            view, began = self.view, time.process_time()
            assert view.cloud is not None and view.cloud.normals is not None and view.viewpoints is not None
            cloud = view.cloud.points
            middle = 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
            T_world_field = make_transform(translation=middle)
            eyes = view.viewpoints - middle
            result = learn_from_depths(views_of_cloud(cloud - middle, view.cloud.normals, eyes))
            if result.field is None:
                raise InvalidInputError("views", result.message, "views of an object")
            known = know_object(
                result.field, _SOME_DENSITY, eyes=eyes, support=_support(view, middle), density_known=False
            )
            self._learned = known, T_world_field, time.process_time() - began
        return self._learned

    def _regions(self, T_world_field: Array) -> list[MaterialRegion]:
        """The object's materials where they really are, in the field's frame."""
        T_field_object = invert_transform(T_world_field) @ self._T_world_body
        return [
            MaterialRegion(
                T_field_object @ make_transform(translation=0.5 * (box.lowest + box.highest)),
                box.highest - box.lowest, box.density,
            )
            for box in self._heavy.materials
        ]  # fmt: skip


def _support(view: ObjectView, middle: Array) -> SupportPlane | None:
    """The table in the field's frame."""
    if view.table is None:
        return None
    return SupportPlane(make_transform(translation=-middle) @ view.table.T_world_table)
