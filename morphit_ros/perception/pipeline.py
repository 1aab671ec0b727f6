"""From two depth clouds to one scene: table, objects, target."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.normals import estimate_normals
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.perception.clusters import find_clusters
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.filters import check_spheres, crop_view, outside_workspace, supported_points, within_spheres
from morphit_ros.perception.inputs import CameraInput, check_inputs
from morphit_ros.perception.objects import describe_objects, points_above
from morphit_ros.perception.registration import refine_extrinsics, register_views
from morphit_ros.perception.scene import ObjectExtent, RegistrationResult, Scene, SceneStatus, Table
from morphit_ros.perception.table import Plane, bound_table, find_plane, refine_plane
from morphit_ros.perception.target import select_target
from morphit_ros.perception.view import View

_UP = np.array([0.0, 0.0, 1.0])


def perceive(
    left: PointCloud | None,
    right: PointCloud | None,
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
        left, right: clouds in the cameras' optical frames (z forward), organised or not, NaN where
            nothing was seen. One may be None if `config.allow_single_view`.
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
        self.table: Table | None = None
        self.plane: Plane | None = None
        self.cloud = PointCloud(np.empty((0, 3)), np.empty((0, 3)), frame=config.world_frame)
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
        for view in self.views:
            self._crop(view)
        self._drop_blind_views()
        self._remove_robot()
        self._remove_outliers()
        self._estimate_normals()
        if len(self.views) == 2:
            self._register()
        self._fuse()
        self._find_table()
        objects, extents = self._segment()
        return self._choose(objects, extents)

    def _crop(self, view: View) -> None:
        with self._stage("crop"):
            workspace = self.world_known and self.placed
            kept, counts = crop_view(view.cloud, view.T_frame_camera, view.side, self.config.crop, workspace)
            view.points, view.rows = kept
            self.counts.update({f"{view.side} {step}": count for step, count in counts.items()})

    def _drop_blind_views(self) -> None:
        """Go on with one camera if that is allowed and the other has no points left."""
        blind = [view for view in self.views if len(view.points) == 0]
        seeing = [view for view in self.views if len(view.points) > 0]
        if not blind:
            return
        if not seeing or not self.config.allow_single_view:
            reasons = "; ".join(f"{view.side} camera: {self._where_emptied(view.side)}" for view in blind)
            raise _StoppedError(SceneStatus.NO_POINTS, reasons)
        self.views = seeing
        if not self.placed:
            raise _StoppedError(
                SceneStatus.REGISTRATION_FAILED,
                f"{blind[0].side} camera: {self._where_emptied(blind[0].side)}; without both views the unknown "
                "camera pose cannot be found",
            )

    def _where_emptied(self, side: str) -> str:
        """The first step that left no points of a camera, with the number before it."""
        before: tuple[str, int] | None = None
        for name, count in self.counts.items():
            if not name.startswith(f"{side} "):
                continue
            step = name.removeprefix(f"{side} ")
            if count == 0:
                return "no points received" if before is None else f"0 of {before[1]} points {before[0]} are {step}"
            before = (step, count)
        return "no points left"

    def _remove_robot(self) -> None:
        """Only once the views are in the world frame; `_register` calls it again for views that it places."""
        if self.spheres is None or not self.placed:
            return
        with self._stage("robot"):
            for view in self.views:
                own = within_spheres(view.points, *self.spheres, self.config.crop.robot_padding)
                view.keep(~own)
                self.counts[f"{view.side} not the robot"] = len(view.points)
        self._drop_blind_views()

    def _remove_outliers(self) -> None:
        with self._stage("outliers"):
            for view in self.views:
                view.keep(supported_points(view.points, self.config.surface))
                self.counts[f"{view.side} supported"] = len(view.points)
        self._drop_blind_views()

    def _estimate_normals(self) -> None:
        """Normals towards the camera of each view; points on the support plane take the plane's."""
        with self._stage("plane"):
            if self.placed:
                points = np.concatenate([view.points for view in self.views])
                plane = self._search_plane(points, self._viewpoint())
                planes = [plane] * len(self.views)
                self.plane = plane
            else:
                planes = [self._search_plane(view.points, view.T_frame_camera[:3, 3]) for view in self.views]
                self.view_planes = planes
        with self._stage("normals"):
            for view, plane in zip(self.views, planes, strict=True):
                self._view_normals(view, plane)

    def _view_normals(self, view: View, plane: Plane | None) -> None:
        radius, eye = self.config.surface.radius, view.T_frame_camera[:3, 3]
        if plane is None:
            view.normals = estimate_normals(view.points, radius, eye)[0]
            return
        on_plane = np.abs(view.points @ plane.normal - plane.offset) <= self.config.table.tolerance
        view.normals = estimate_normals(view.points, radius, eye, ~on_plane)[0]
        view.normals[on_plane] = plane.normal

    def _search_plane(self, points: Array, viewpoint: Array) -> Plane | None:
        # The camera whose pose is unknown has no known direction of gravity.
        up = self.up if self.placed else None
        return find_plane(points, viewpoint, self.config.table, self.rng, up)

    def _viewpoint(self) -> Array:
        return np.mean([view.T_frame_camera[:3, 3] for view in self.views], axis=0)

    def _register(self) -> None:
        left, right = self.views
        if self.placed:
            with self._stage("registration"):
                motion, self.registration = refine_extrinsics(
                    left.surface,
                    right.surface,
                    left.T_frame_camera,
                    right.T_frame_camera,
                    self.config.registration,
                    self.rng,
                )
                right.move(motion)
            if not self.registration.succeeded:
                raise _StoppedError(SceneStatus.EXTRINSICS_INCONSISTENT, self.registration.message)
            return
        with self._stage("registration"):
            self.registration = self._register_unknown(left, right)
        if not self.registration.succeeded:
            raise _StoppedError(SceneStatus.REGISTRATION_FAILED, self.registration.message)
        self._place(left, right, self.registration.T_left_right)

    def _register_unknown(self, left: View, right: View) -> RegistrationResult:
        for view, plane in zip((left, right), self.view_planes, strict=True):
            if plane is None:
                raise _StoppedError(
                    SceneStatus.REGISTRATION_FAILED,
                    f"the {view.side} view shows no support plane, which registration without extrinsics needs; "
                    "give both camera poses",
                )
        left_plane, right_plane = self.view_planes
        assert left_plane is not None and right_plane is not None
        # A known pose of one camera does not help to find the other: work in the optical frames.
        return register_views(
            left.surface,
            right.surface,
            left_plane,
            right_plane,
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
            self.counts[f"{view.side} in workspace"] = len(view.points)
        self._drop_blind_views()
        self._remove_robot()

    def _fuse(self) -> None:
        with self._stage("fusion"):
            points = np.concatenate([view.points for view in self.views])
            normals = np.concatenate([view.normals for view in self.views])
            points, normals, rows = merge_views(points, normals, self.config.crop.voxel_size)
            self.cloud = PointCloud(points, normals, self._colors(rows), self.config.world_frame, self._stamp())
            self.counts["fused"] = len(points)

    def _colors(self, rows: NDArray[np.int64]) -> NDArray[np.uint8] | None:
        """Colours of rows of the concatenated views, None unless every camera has colours."""
        colors = [view.cloud.colors[view.rows] for view in self.views if view.cloud.colors is not None]
        return np.concatenate(colors)[rows] if len(colors) == len(self.views) else None

    def _stamp(self) -> float | None:
        stamps = [view.cloud.stamp for view in self.views if view.cloud.stamp is not None]
        return max(stamps) if stamps else None

    def _find_table(self) -> None:
        with self._stage("table"):
            points, table = self.cloud.points, self.config.table
            if self.plane is not None:
                start = self.plane
                self.plane = refine_plane(points, start.normal, start.offset, self._viewpoint(), table, self.up)
            else:
                self.plane = find_plane(points, self._viewpoint(), table, self.rng, self.up)
            if self.plane is not None:
                self.counts["on the plane"] = int(self.plane.inliers.sum())
                self.table = bound_table(points, self.plane, table)
        if self.table is None and self.config.require_table:
            kind = "horizontal plane" if self.up is not None else "plane"
            raise _StoppedError(
                SceneStatus.NO_TABLE,
                f"no {kind} of at least {table.min_area:g} m² among {len(points)} points; "
                "check gravity_known and max_tilt, or set require_table to false",
            )

    def _segment(self) -> tuple[list[PointCloud], list[ObjectExtent]]:
        with self._stage("clusters"):
            candidates = points_above(self.cloud.points, self.table, self.config)
            self.counts["above the table"] = len(candidates)
            clusters = [candidates[rows] for rows in find_clusters(self.cloud.points[candidates], self.config.objects)]
        with self._stage("seams"):
            objects, extents = describe_objects(self.cloud, clusters, self.table, self.config.objects)
        self.counts["objects"] = len(objects)
        if not objects:
            raise _StoppedError(
                SceneStatus.NO_OBJECT,
                f"{len(candidates)} points {'above the table' if self.table else 'in the scene'}, "
                f"none in a cluster of at least {self.config.objects.min_points}",
            )
        return objects, extents

    def _choose(self, objects: list[PointCloud], extents: list[ObjectExtent]) -> Scene:
        rule = self.config.target
        target = select_target(objects, rule)
        if target is None:
            message = f"target.index is {rule.index}, but there are only {len(objects)} objects"
            return self._scene(SceneStatus.TARGET_NOT_FOUND, message, objects, extents, None)
        message = f"{len(objects)} object{'s' if len(objects) > 1 else ''}, target {target} by rule '{rule.rule}'"
        joined = [str(number) for number, extent in enumerate(extents) if extent.parts > 1]
        if joined:
            message += f"; object {', '.join(joined)} may be several that touch: move them apart, or set split_touching"
        return self._scene(SceneStatus.OK, message, objects, extents, target)

    def failed_scene(self, stop: _StoppedError) -> Scene:
        """What is known when a stage ended the run."""
        if len(self.cloud) == 0 and any(len(view.normals) for view in self.views):
            self._fuse()
        return self._scene(stop.status, str(stop), [], [], None)

    def _scene(
        self,
        status: SceneStatus,
        message: str,
        objects: list[PointCloud],
        extents: list[ObjectExtent],
        target: int | None,
    ) -> Scene:
        poses = {view.side: view.T_frame_camera for view in self.views}
        return Scene(
            status,
            message,
            objects,
            extents,
            target,
            self.table,
            self.cloud,
            poses.get("left"),
            poses.get("right"),
            self.registration,
            self.timings,
            self.counts,
        )
