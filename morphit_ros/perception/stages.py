"""The stages from depth clouds to objects: what is known after each goes into the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.filters import outside_workspace, within_spheres
from morphit_ros.perception.inputs import CameraInput
from morphit_ros.perception.scene import (
    LOOSE,
    ON_TABLE,
    ObjectEvidence,
    RegistrationResult,
    SceneStatus,
    Table,
)
from morphit_ros.perception.segmentation.evidence import gather_evidence
from morphit_ros.perception.segmentation.objects import Objects, find_objects
from morphit_ros.perception.summary import describe_empty, describe_nothing
from morphit_ros.perception.tabletop.table import bound_table, refine_plane
from morphit_ros.perception.thinning import thin_view, view_bounds
from morphit_ros.perception.views.extrinsics_check import as_placed, check_extrinsics, joined, plane_misfit
from morphit_ros.perception.views.fusion import FusedCloud, fuse_views
from morphit_ros.perception.views.registration import register_views
from morphit_ros.perception.views.view import CameraView
from morphit_ros.perception.views.view_planes import find_view_planes, middle_eye, refine_view_plane

_UP = np.array([0.0, 0.0, 1.0])
# The support plane is kept in cells this many times as wide as voxels, but for registration without extrinsics.
_PLANE_CELLS = 2.0
# An object that is still displaced by this part of a motion of the whole view is not explained by it.
_UNEXPLAINED = 0.4
_NO_LABELS = np.empty(0, np.int64)


class Seen(NamedTuple):
    """What is known after a stage.

    Attributes:
        views: of the cameras that saw something.
        placed: whether their points are in the world frame; a lone camera without a pose is the world.
        registration: of the first two views.
        motion: of the right view, as it was refused.
        table: once it was found.
        fused, labels: the views in one, and for each of its points `ON_TABLE`, `LOOSE` or the index of its object.
    """

    views: list[CameraView]
    placed: bool
    registration: RegistrationResult | None = None
    motion: Array | None = None
    table: Table | None = None
    fused: FusedCloud | None = None
    labels: NDArray[np.int64] = _NO_LABELS


class StoppedError(Exception):
    """A stage ended the run: its status, the message for people, and what was known by then."""

    def __init__(self, status: SceneStatus, message: str, seen: Seen) -> None:
        super().__init__(message)
        self.status, self.seen = status, seen


@dataclass(frozen=True)
class Task:
    """What all stages work with, and the account of them: stage → time [s], and points left.

    Attributes:
        poses: T_world_camera as given, left first.
        spheres: the robot's own, None if there are none.
        known: which of points (N, 3) in the world belong to what is known to stand there, None for nothing.
    """

    config: PerceptionConfig
    poses: tuple[Array | None, ...]
    spheres: tuple[Array, Array] | None
    rng: np.random.Generator
    known: Callable[[Array], NDArray[np.bool_]] | None = None
    timings: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def world_known(self) -> bool:
        """Whether a pose of a camera is known."""
        return any(pose is not None for pose in self.poses)

    @property
    def up(self) -> Array | None:
        """(3,) unit vector against gravity, None where it is not known."""
        return _UP if self.world_known and self.config.table.gravity_known else None

    def views_of(self, cameras: list[CameraInput]) -> Seen:
        """The views before the first stage."""
        placed = all(pose is not None for pose in self.poses) or len(cameras) == 1
        poses = [np.eye(4) if pose is None or not placed else pose for pose in self.poses]
        return Seen([CameraView(camera, pose) for camera, pose in zip(cameras, poses, strict=True)], placed)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time spent to a stage's."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start


def thin_views(task: Task, seen: Seen) -> Seen:
    """The support plane from a sample of each view, then one pass over all measurements."""
    crop, table, views = task.config.crop, task.config.table, seen.views
    workspace = task.world_known and seen.placed
    bounds = [view_bounds(view.side, crop, workspace) for view in views]
    # A camera whose pose is not known does not know where up is.
    up = task.up if seen.placed else None
    with task.stage("plane"):
        planes = find_view_planes(views, bounds, seen.placed, up, table, task.rng)
    with task.stage("crop"):
        cell = crop.voxel_size * (_PLANE_CELLS if seen.placed else 1.0)
        for view, plane, bound in zip(views, planes, bounds, strict=True):
            pose = view.T_frame_camera
            thinned = thin_view(view.cloud, pose, bound, crop.voxel_size, plane, table.tolerance, cell)
            view.take(thinned)
            for step, count in thinned.counts.items():
                if workspace or step != "in workspace":
                    task.counts[f"{view.side} {step}"] = count
    with task.stage("plane"):
        for view, plane in zip(views, planes, strict=True):
            view.plane = refine_view_plane(view, plane, up, table)
    return _without_blind_views(task, seen)


def _without_blind_views(task: Task, seen: Seen) -> Seen:
    """Go on with one camera if that is allowed and the other has no points left."""
    blind = [view for view in seen.views if view.blind]
    if not blind:
        return seen
    reasons = "; ".join(f"{view.side} camera: {describe_empty(task.counts, view.side)}" for view in blind)
    if len(blind) == len(seen.views) or not task.config.allow_single_view:
        raise StoppedError(SceneStatus.NO_POINTS, reasons, seen)
    seen = seen._replace(views=[view for view in seen.views if not view.blind])
    if not seen.placed:
        message = f"{reasons}; without both views the unknown camera pose cannot be found"
        raise StoppedError(SceneStatus.REGISTRATION_FAILED, message, seen)
    return seen


def remove_known(task: Task, seen: Seen) -> Seen:
    """Without the robot and what is known to stand there.

    Only once the views are in the world frame; `_place` calls it again for views that it places.
    """
    if not seen.placed:
        return seen
    if task.spheres is not None:
        spheres, padding = task.spheres, task.config.crop.robot_padding
        _remove(task, seen, "robot", "not the robot", lambda points: within_spheres(points, *spheres, padding))
    if task.known is not None and task.world_known:
        _remove(task, seen, "fixtures", "no fixture", task.known)
    return _without_blind_views(task, seen)


def _remove(task: Task, seen: Seen, stage: str, rest: str, known: Callable[[Array], NDArray[np.bool_]]) -> None:
    with task.stage(stage):
        for view in seen.views:
            view.keep(~known(view.points))
            view.keep_on_plane(~known(view.on_plane.points))
            task.counts[f"{view.side} {rest}"] = len(view.points)


def estimate_surfaces(task: Task, seen: Seen) -> Seen:
    """Normals of all points; outliers go."""
    with task.stage("normals"):
        for view in seen.views:
            view.estimate_surface(task.config.surface)
            task.counts[f"{view.side} supported"] = len(view.points)
    return _without_blind_views(task, seen)


def register(task: Task, seen: Seen) -> Seen:
    """All views brought together: refined or checked where the poses are known, found where one of two is not."""
    if len(seen.views) == 1:
        return seen
    if seen.placed:
        with task.stage("registration"):
            return _check_extrinsics(task, seen)
    with task.stage("registration"):
        registration = _register_unknown(task, seen)
    seen = seen._replace(registration=registration)
    if not registration.succeeded:
        raise StoppedError(SceneStatus.REGISTRATION_FAILED, registration.message, seen)
    return _place(task, seen, registration.T_left_right)


def _check_extrinsics(task: Task, seen: Seen) -> Seen:
    """Correct all views but the first a little, or stop; where only objects disagree, decide once they are known."""
    settings = task.config.registration
    for number, view in enumerate(seen.views[1:], start=1):
        # Cameras that face each other share little: each is held against all before it.
        fixed, tested = joined(seen.views[:number]), as_placed(view)
        motion, registration = check_extrinsics(fixed, tested, task.config.crop.voxel_size, settings, view.side)
        if number == 1:
            seen = seen._replace(registration=registration, motion=motion)
        if registration.succeeded:
            if settings.refine:
                view.move(motion)
        elif not plane_misfit(fixed, tested) <= settings.max_residual:
            view.move(motion)
            message = f"{registration.message}; calibrate the cameras' extrinsics again"
            raise StoppedError(SceneStatus.EXTRINSICS_INCONSISTENT, message, seen)
    return seen


def _register_unknown(task: Task, seen: Seen) -> RegistrationResult:
    left, right = seen.views
    for view in (left, right):
        if view.plane is None:
            message = (
                f"the {view.side} view shows no support plane, which registration without extrinsics needs; "
                "give both camera poses"
            )
            raise StoppedError(SceneStatus.REGISTRATION_FAILED, message, seen)
    assert left.plane is not None and right.plane is not None
    # A known pose of one camera does not help to find the other: work in the optical frames.
    return register_views(
        left.surface, right.surface, left.plane, right.plane, task.config.registration, task.config.objects, task.rng
    )


def _place(task: Task, seen: Seen, T_left_right: Array) -> Seen:
    """Bring both views to the world frame, or to the left camera's if no pose is known, and crop them there."""
    (left, right), (T_world_left, T_world_right) = seen.views, task.poses
    if T_world_left is None:
        T_world_left = np.eye(4) if T_world_right is None else T_world_right @ invert_transform(T_left_right)
    left.move(T_world_left)
    right.move(T_world_left @ T_left_right)
    if not task.world_known:
        return seen
    for view in (left, right):
        view.keep(~outside_workspace(view.points, task.config.crop))
        view.keep_on_plane(~outside_workspace(view.on_plane.points, task.config.crop))
        task.counts[f"{view.side} in workspace"] = len(view.points) + len(view.on_plane.points)
    return remove_known(task, _without_blind_views(task, seen._replace(placed=True)))


def find_table(task: Task, seen: Seen) -> Seen:
    """The table, from what both views have of the support plane."""
    with task.stage("table"):
        settings, start = task.config.table, next((view.plane for view in seen.views if view.plane), None)
        flat, table = np.concatenate([view.on_plane.points for view in seen.views]), None
        if start is not None:
            plane = refine_plane(flat, start.normal, start.offset, middle_eye(seen.views), settings, task.up)
            table = None if plane is None else bound_table(plane, settings)
    if table is None and task.config.require_table:
        kind = "horizontal plane" if task.up is not None else "plane"
        count = len(flat) + sum(len(view.points) for view in seen.views)
        message = (
            f"no {kind} of at least {settings.min_area:g} m² among {count} points; "
            "check gravity_known and max_tilt, or set require_table to false"
        )
        raise StoppedError(SceneStatus.NO_TABLE, message, seen)
    return seen._replace(table=table)


def fuse(task: Task, seen: Seen) -> Seen:
    """The views in one cloud, labelled as on the table or above it."""
    with task.stage("fusion"):
        fused = fuse_views(seen.views, task.config.crop.voxel_size, task.config.world_frame)
        count = len(fused.cloud)
        # Without a table, a plane that was found is a thing like others.
        above = fused.above if seen.table is not None else count
        labels = np.where(np.arange(count) < above, LOOSE, ON_TABLE)
        task.counts["fused"], task.counts["above the table"] = count, above
    return seen._replace(fused=fused, labels=labels)


def segment(task: Task, seen: Seen) -> tuple[Objects, Seen]:
    """The objects above the table, and the labels that name them."""
    assert seen.fused is not None
    with task.stage("objects"):
        above = seen.fused.cloud.select(np.flatnonzero(seen.labels == LOOSE))
        objects = find_objects(above, seen.table, task.config)
        seen = seen._replace(labels=np.concatenate([objects.labels, seen.labels[len(above) :]]))
    task.counts["objects"] = len(objects.clouds)
    if not objects.clouds:
        message = describe_nothing(task.counts, objects, seen.table, task.config)
        raise StoppedError(SceneStatus.NO_OBJECT, message, seen)
    return objects, seen


def evidence_of(task: Task, seen: Seen, count: int) -> tuple[list[ObjectEvidence], bool]:
    """How well each object is known, and whether the motion that was refused would put several right at once."""
    assert seen.fused is not None
    with task.stage("evidence"):
        labels = [seen.labels[places] for places in seen.fused.places]
        if seen.registration is None or seen.registration.succeeded:
            return gather_evidence(seen.views, labels, count, task.config), False
        # Refused, though the views agree on the table: would the motion put all objects right at once?
        assert seen.motion is not None
        most_displaced = _UNEXPLAINED * seen.registration.shift
        as_given = gather_evidence(seen.views, labels, count, task.config, most_displaced)
        seen.views[1].move(seen.motion)
        as_fitted = gather_evidence(seen.views, labels, count, task.config, most_displaced)
        seen.views[1].move(invert_transform(seen.motion))
        shared = [known for known in as_fitted if known.views > 1]
        return as_given, len(shared) > 1 and all(known.consistent for known in shared)
