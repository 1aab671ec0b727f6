"""From two depth clouds to one scene: table, objects, target."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.filters import check_spheres, outside_workspace, within_spheres
from morphit_ros.perception.inputs import CameraInput, check_inputs
from morphit_ros.perception.scene import (
    LOOSE,
    ON_TABLE,
    ObjectEvidence,
    RegistrationResult,
    Scene,
    SceneStatus,
    Table,
)
from morphit_ros.perception.segmentation.evidence import gather_evidence
from morphit_ros.perception.segmentation.objects import Objects, find_objects
from morphit_ros.perception.segmentation.target import select_target
from morphit_ros.perception.summary import describe_empty, describe_nothing, describe_objects, judge_consistency
from morphit_ros.perception.tabletop.table import bound_table, refine_plane
from morphit_ros.perception.thinning import thin_view, view_bounds
from morphit_ros.perception.views.extrinsics_check import as_placed, check_extrinsics, plane_misfit
from morphit_ros.perception.views.fusion import FusedCloud, fuse_views
from morphit_ros.perception.views.registration import register_views
from morphit_ros.perception.views.view import View
from morphit_ros.perception.views.view_planes import find_view_planes, middle_eye, refine_view_plane

_UP = np.array([0.0, 0.0, 1.0])
# The support plane is kept in cells this many times as wide as voxels, but for registration without extrinsics.
_PLANE_CELLS = 2.0
# An object that is still displaced by this part of a motion of the whole view is not explained by it.
_UNEXPLAINED = 0.4


def perceive(
    left: CloudLike | None,
    right: CloudLike | None,
    T_world_left: Array | None,
    T_world_right: Array | None,
    config: PerceptionConfig | None = None,
    robot_spheres: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
) -> Scene:
    """Segment what two depth cameras see into a table and objects on it.

    With both poses known, the right view is refined by ICP or only checked, as configured. With one
    pose unknown, it is found from the objects in view. With neither known, the scene is in the
    left camera's optical frame: the workspace box does not apply then, no plane is preferred
    for being horizontal, and `robot_spheres` cannot be used.

    Args:
        left, right: clouds of any kind that `geometry.inputs` knows, in the cameras' optical frames
            (z forward), organised or not, NaN where nothing was seen. One may be None if `config.allow_single_view`.
        T_world_left, T_world_right: poses of the cameras, None where not known.
        config: parameters; defaults if None.
        robot_spheres: centres (K, 3) and radii (K,) of the robot's own spheres in world [m].
        seed: of the random samples; the same seed and clouds give the same scene.

    Returns:
        the scene; a numerical failure is a status in it, with the stage that failed.

    Raises:
        InvalidInputError: a camera is missing, stamps are too far apart, frames or poses
            contradict each other, or the spheres are malformed.
    """
    settings = config or PerceptionConfig()
    cameras = check_inputs(left, right, T_world_left, T_world_right, settings)
    spheres = None if robot_spheres is None else check_spheres(robot_spheres)
    if spheres is not None and all(camera.T_world_camera is None for camera in cameras):
        raise InvalidInputError("robot_spheres", "spheres in world", "a camera pose in world", "Give T_world_left.")
    run = _Run(cameras, settings, spheres, np.random.default_rng(seed))
    try:
        return run.scene()
    except _StoppedError as stop:
        return run.failed_scene(stop)


class _StoppedError(Exception):
    """A stage ended the run: its status and the message for people."""

    def __init__(self, status: SceneStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Run:
    """State of one call of `perceive`: stages fill it in, in the order of `scene`."""

    def __init__(
        self,
        cameras: list[CameraInput],
        config: PerceptionConfig,
        spheres: tuple[Array, Array] | None,
        rng: np.random.Generator,
    ) -> None:
        self.config = config
        self.spheres = spheres
        self.rng = rng
        self.poses = [camera.T_world_camera for camera in cameras]
        self.world_known = any(pose is not None for pose in self.poses)
        # Whether the views' points are in the world frame; a lone camera without a pose is the world.
        self.placed = all(pose is not None for pose in self.poses) or len(cameras) == 1
        self.views = [
            View(camera, np.eye(4) if pose is None or not self.placed else pose)
            for camera, pose in zip(cameras, self.poses, strict=True)
        ]
        self.up = _UP if self.world_known and config.table.gravity_known else None
        self.registration: RegistrationResult | None = None
        # The motion of the right view that was refused, and whether it would put several objects right at once.
        self.motion = np.eye(4)
        self.explained = False
        self.table: Table | None = None
        self.cloud = PointCloud(np.empty((0, 3)), np.empty((0, 3)), frame=config.world_frame)
        self.labels = np.empty(0, np.int64)
        self.timings: dict[str, float] = {}
        self.counts: dict[str, int] = {}

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start

    def scene(self) -> Scene:
        """All stages in order."""
        self._thin()
        self._drop_blind_views()
        self._remove_robot()
        self._estimate_surfaces()
        if len(self.views) == 2:
            self._register()
        self._find_table()
        fused = self._fuse()
        objects = self._segment()
        return self._choose(objects, self._gather_evidence(objects, fused))

    def _thin(self) -> None:
        """The support plane from a sample of each view, then one pass over all measurements."""
        crop, table = self.config.crop, self.config.table
        workspace = self.world_known and self.placed
        bounds = [view_bounds(view.side, crop, workspace) for view in self.views]
        # A camera whose pose is not known does not know where up is.
        up = self.up if self.placed else None
        with self._stage("plane"):
            planes = find_view_planes(self.views, bounds, self.placed, up, table, self.rng)
        with self._stage("crop"):
            cell = crop.voxel_size * (_PLANE_CELLS if self.placed else 1.0)
            for view, plane, bound in zip(self.views, planes, bounds, strict=True):
                pose = view.T_frame_camera
                thinned = thin_view(view.cloud, pose, bound, crop.voxel_size, plane, table.tolerance, cell)
                view.take(thinned)
                for step, count in thinned.counts.items():
                    if workspace or step != "in workspace":
                        self.counts[f"{view.side} {step}"] = count
        with self._stage("plane"):
            for view, plane in zip(self.views, planes, strict=True):
                view.plane = refine_view_plane(view, plane, up, table)

    def _drop_blind_views(self) -> None:
        """Go on with one camera if that is allowed and the other has no points left."""
        blind = [view for view in self.views if view.blind]
        if not blind:
            return
        reasons = "; ".join(f"{view.side} camera: {describe_empty(self.counts, view.side)}" for view in blind)
        if len(blind) == len(self.views) or not self.config.allow_single_view:
            raise _StoppedError(SceneStatus.NO_POINTS, reasons)
        self.views = [view for view in self.views if not view.blind]
        if not self.placed:
            raise _StoppedError(
                SceneStatus.REGISTRATION_FAILED,
                f"{reasons}; without both views the unknown camera pose cannot be found",
            )

    def _remove_robot(self) -> None:
        """Only once the views are in the world frame; `_place` calls it again for views that it places."""
        if self.spheres is None or not self.placed:
            return
        padding = self.config.crop.robot_padding
        with self._stage("robot"):
            for view in self.views:
                view.keep(~within_spheres(view.points, *self.spheres, padding))
                view.keep_on_plane(~within_spheres(view.on_plane.points, *self.spheres, padding))
                self.counts[f"{view.side} not the robot"] = len(view.points)
        self._drop_blind_views()

    def _estimate_surfaces(self) -> None:
        with self._stage("normals"):
            for view in self.views:
                view.estimate_surface(self.config.surface)
                self.counts[f"{view.side} supported"] = len(view.points)
        self._drop_blind_views()

    def _register(self) -> None:
        left, right = self.views
        if self.placed:
            with self._stage("registration"):
                self._check_extrinsics(left, right)
            return
        with self._stage("registration"):
            self.registration = self._register_unknown(left, right)
        if not self.registration.succeeded:
            raise _StoppedError(SceneStatus.REGISTRATION_FAILED, self.registration.message)
        self._place(left, right, self.registration.T_left_right)

    def _check_extrinsics(self, left: View, right: View) -> None:
        """Correct the right view a little, or stop; where only objects disagree, decide once they are known."""
        settings = self.config.registration
        fixed, tested = as_placed(left), as_placed(right)
        self.motion, self.registration = check_extrinsics(fixed, tested, self.config.crop.voxel_size, settings)
        if self.registration.succeeded:
            if settings.refine:
                right.move(self.motion)
        elif not plane_misfit(fixed, tested) <= settings.max_residual:
            right.move(self.motion)
            raise _StoppedError(
                SceneStatus.EXTRINSICS_INCONSISTENT,
                f"{self.registration.message}; calibrate the cameras' extrinsics again",
            )

    def _register_unknown(self, left: View, right: View) -> RegistrationResult:
        for view in (left, right):
            if view.plane is None:
                raise _StoppedError(
                    SceneStatus.REGISTRATION_FAILED,
                    f"the {view.side} view shows no support plane, which registration without extrinsics needs; "
                    "give both camera poses",
                )
        assert left.plane is not None and right.plane is not None
        # A known pose of one camera does not help to find the other: work in the optical frames.
        return register_views(
            left.surface,
            right.surface,
            left.plane,
            right.plane,
            self.config.registration,
            self.config.objects,
            self.rng,
        )

    def _place(self, left: View, right: View, T_left_right: Array) -> None:
        """Bring both views to the world frame, or to the left camera's if no pose is known, and crop them there."""
        T_world_left, T_world_right = self.poses
        if T_world_left is None:
            T_world_left = np.eye(4) if T_world_right is None else T_world_right @ invert_transform(T_left_right)
        left.move(T_world_left)
        right.move(T_world_left @ T_left_right)
        if not self.world_known:
            return
        self.placed = True
        for view in (left, right):
            view.keep(~outside_workspace(view.points, self.config.crop))
            view.keep_on_plane(~outside_workspace(view.on_plane.points, self.config.crop))
            self.counts[f"{view.side} in workspace"] = len(view.points) + len(view.on_plane.points)
        self._drop_blind_views()
        self._remove_robot()

    def _find_table(self) -> None:
        with self._stage("table"):
            settings, start = self.config.table, next((view.plane for view in self.views if view.plane), None)
            flat = np.concatenate([view.on_plane.points for view in self.views])
            if start is not None:
                plane = refine_plane(flat, start.normal, start.offset, middle_eye(self.views), settings, self.up)
                self.table = None if plane is None else bound_table(plane, settings)
        if self.table is None and self.config.require_table:
            kind = "horizontal plane" if self.up is not None else "plane"
            count = len(flat) + sum(len(view.points) for view in self.views)
            raise _StoppedError(
                SceneStatus.NO_TABLE,
                f"no {kind} of at least {settings.min_area:g} m² among {count} points; "
                "check gravity_known and max_tilt, or set require_table to false",
            )

    def _fuse(self) -> FusedCloud:
        with self._stage("fusion"):
            fused = fuse_views(self.views, self.config.crop.voxel_size, self.config.world_frame)
            self.cloud = fused.cloud
            # Without a table, a plane that was found is a thing like others.
            on_table = len(fused.cloud) - fused.above if self.table is not None else 0
            self.labels = np.full(len(fused.cloud), LOOSE)
            self.labels[len(fused.cloud) - on_table :] = ON_TABLE
            self.counts["fused"] = len(fused.cloud)
            self.counts["above the table"] = len(fused.cloud) - on_table
        return fused

    def _segment(self) -> Objects:
        with self._stage("objects"):
            above = self.cloud.select(np.flatnonzero(self.labels == LOOSE))
            objects = find_objects(above, self.table, self.config)
            self.labels[: len(above)] = objects.labels
        self.counts["objects"] = len(objects.clouds)
        if not objects.clouds:
            raise _StoppedError(SceneStatus.NO_OBJECT, describe_nothing(self.counts, objects, self.table, self.config))
        return objects

    def _gather_evidence(self, objects: Objects, fused: FusedCloud) -> list[ObjectEvidence]:
        with self._stage("evidence"):
            labels = [self.labels[places] for places in fused.places]
            count = len(objects.clouds)
            if self.registration is None or self.registration.succeeded:
                return gather_evidence(self.views, labels, count, self.config)
            # Refused, though the views agree on the table: would the motion put all objects right at once?
            most_displaced = _UNEXPLAINED * self.registration.shift
            as_given = gather_evidence(self.views, labels, count, self.config, most_displaced)
            self.views[1].move(self.motion)
            as_fitted = gather_evidence(self.views, labels, count, self.config, most_displaced)
            self.views[1].move(invert_transform(self.motion))
            shared = [known for known in as_fitted if known.views == 2]
            self.explained = len(shared) > 1 and all(known.consistent for known in shared)
            return as_given

    def _choose(self, objects: Objects, evidence: list[ObjectEvidence]) -> Scene:
        rule = self.config.target
        target = select_target(objects.clouds, rule)
        status, doubt = judge_consistency(evidence, self.registration, self.explained, target)
        if status is SceneStatus.EXTRINSICS_INCONSISTENT:
            raise _StoppedError(status, doubt)
        if self.registration is not None and not self.registration.succeeded:
            self.registration = self._as_given(self.registration, evidence)
        count = f"{len(objects.clouds)} object{'s' if len(objects.clouds) > 1 else ''}"
        if target is None:
            status = SceneStatus.TARGET_NOT_FOUND
            message = f"target.index is {rule.index}, but there are only {count}"
        elif status is SceneStatus.OK:
            message = f"{count}, target {target} by rule '{rule.rule}'"
        else:
            message, doubt = doubt, ""
        remarks = [doubt] * bool(doubt) + describe_objects(objects, evidence, self.registration)
        if len(self.views) == 1:
            remarks.append(f"only the {self.views[0].side} camera saw them: backs are unknown, confidence is halved")
        return self._scene(status, "; ".join([message, *remarks]), objects, evidence, target)

    def _as_given(self, refused: RegistrationResult, evidence: list[ObjectEvidence]) -> RegistrationResult:
        """The registration by the given extrinsics, once objects that moved explain why the views do not fit."""
        T_left_right = invert_transform(self.views[0].T_frame_camera) @ self.views[1].T_frame_camera
        vouching = [known.residual for known in evidence if known.consistent and known.compared]
        return replace(
            refused,
            T_left_right=T_left_right,
            residual=float(np.sqrt(np.mean(np.square(vouching)))) if vouching else refused.residual,
            shift=0.0,
            turn=0.0,
            succeeded=bool(vouching),
        )

    def failed_scene(self, stop: _StoppedError) -> Scene:
        """What is known when a stage ended the run."""
        if len(self.cloud) == 0 and any(len(view.normals) for view in self.views):
            self._fuse()
        return self._scene(stop.status, str(stop), None, [], None)

    def _scene(
        self, status: SceneStatus, message: str, objects: Objects | None, evidence: list[ObjectEvidence],
        target: int | None,
    ) -> Scene:  # fmt: skip
        poses = {view.side: view.T_frame_camera for view in self.views}
        return Scene(
            status,
            message,
            [] if objects is None else objects.clouds,
            [] if objects is None else objects.extents,
            evidence,
            target if status is SceneStatus.OK else None,
            self.table,
            self.cloud,
            self.labels if objects is not None else np.minimum(self.labels, LOOSE),
            poses.get("left"),
            poses.get("right"),
            self.registration,
            self.timings,
            self.counts,
        )
