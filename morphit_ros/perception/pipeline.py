"""From depth clouds to one scene: table, objects, target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import CloudLike
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.filters import check_spheres
from morphit_ros.perception.inputs import check_inputs
from morphit_ros.perception.scene import (
    LOOSE,
    ObjectEvidence,
    RegistrationResult,
    Scene,
    SceneStatus,
)
from morphit_ros.perception.segmentation.objects import Objects
from morphit_ros.perception.segmentation.target import select_target
from morphit_ros.perception.stages import (
    Seen,
    StoppedError,
    Task,
    estimate_surfaces,
    evidence_of,
    find_table,
    fuse,
    register,
    remove_known,
    segment,
    thin_views,
)
from morphit_ros.perception.summary import describe_objects, judge_consistency
from morphit_ros.perception.synchronizer import SIDES
from morphit_ros.perception.views.view import CameraView


def perceive(
    left: CloudLike | None,
    right: CloudLike | None,
    T_world_left: Array | None,
    T_world_right: Array | None,
    config: PerceptionConfig | None = None,
    robot_spheres: tuple[ArrayLike, ArrayLike] | None = None,
    seed: int = 0,
    known: Callable[[Array], NDArray[np.bool_]] | None = None,
    more: Mapping[str, tuple[CloudLike, Array]] = MappingProxyType({}),
    choose: Callable[[Sequence[PointCloud]], int | None] | None = None,
) -> Scene:
    """Segment what two depth cameras, or more, see into a table and objects on it.

    With both poses known, the right view is refined by ICP or only checked, as configured. With one
    pose unknown, it is found from the objects in view. With neither known, the scene is in the
    left camera's optical frame: the workspace box does not apply then, no plane is preferred
    for being horizontal, `robot_spheres` cannot be used, and `known` is not asked.

    Args:
        left, right: clouds of any kind that `geometry.inputs` knows, in the cameras' optical frames
            (z forward), organised or not, NaN where nothing was seen. One may be None if `config.allow_single_view`.
        T_world_left, T_world_right: poses of the cameras, None where not known.
        config: parameters; defaults if None.
        robot_spheres: centres (K, 3) and radii (K,) of the robot's own spheres in world [m].
        seed: of the random samples; the same seed and clouds give the same scene.
        known: which of some points (N, 3) in world belong to what is known to stand there; they are left out.
        more: name of each further camera → its cloud, and its pose (4, 4) in world; those of the first two must be
            known then.
        choose: index of the target among the clouds of the objects, None where it is none of them; by default the rule
            of `config`.

    Returns:
        the scene; a numerical failure is a status in it, with the stage that failed.

    Raises:
        InvalidInputError: a camera is missing, stamps are too far apart, frames or poses
            contradict each other, or the spheres are malformed.
    """
    settings = config or PerceptionConfig()
    cameras = check_inputs(left, right, T_world_left, T_world_right, settings, more)
    spheres = None if robot_spheres is None else check_spheres(robot_spheres)
    if spheres is not None and all(camera.T_world_camera is None for camera in cameras):
        raise InvalidInputError("robot_spheres", "spheres in world", "a camera pose in world", "Give T_world_left.")
    task = Task(
        settings, tuple(camera.T_world_camera for camera in cameras), spheres, np.random.default_rng(seed), known
    )
    try:
        seen = thin_views(task, task.views_of(cameras))
        seen = estimate_surfaces(task, remove_known(task, seen))
        seen = find_table(task, register(task, seen))
        objects, seen = segment(task, fuse(task, seen))
        evidence, explained = evidence_of(task, seen, len(objects.clouds))
        return _judged(task, seen, objects, evidence, explained, choose)
    except StoppedError as stop:
        seen = stop.seen
        if seen.fused is None and any(len(view.normals) for view in seen.views):
            seen = fuse(task, seen)
        return _scene(task, seen, stop.status, str(stop))


def _judged(
    task: Task, seen: Seen, objects: Objects, evidence: list[ObjectEvidence], explained: bool,
    choose: Callable[[Sequence[PointCloud]], int | None] | None,
) -> Scene:  # fmt: skip
    rule = task.config.target
    target = select_target(objects.clouds, rule) if choose is None else choose(objects.clouds)
    status, doubt = judge_consistency(evidence, seen.registration, explained, target)
    if status is SceneStatus.EXTRINSICS_INCONSISTENT:
        raise StoppedError(status, doubt, seen)
    if seen.registration is not None and not seen.registration.succeeded:
        seen = seen._replace(registration=_as_given(seen.views, seen.registration, evidence))
    count = f"{len(objects.clouds)} object{'s' if len(objects.clouds) > 1 else ''}"
    if target is None:
        status = SceneStatus.TARGET_NOT_FOUND
        wanted = f"target.index is {rule.index}" if choose is None else "one is wanted that is none of these"
        message = f"{wanted}, but there are only {count}"
    elif status is SceneStatus.OK:
        message = f"{count}, target {target} by " + (f"rule '{rule.rule}'" if choose is None else "its name")
    else:
        message, doubt = doubt, ""
    remarks = [doubt] * bool(doubt) + describe_objects(objects, evidence, seen.registration)
    if len(seen.views) == 1:
        remarks.append(f"only the {seen.views[0].side} camera saw them: backs are unknown, confidence is halved")
    return _scene(task, seen, status, "; ".join([message, *remarks]), objects, evidence, target)


def _as_given(
    views: list[CameraView], refused: RegistrationResult, evidence: list[ObjectEvidence]
) -> RegistrationResult:
    """The registration by the given extrinsics, once objects that moved explain why the views do not fit."""
    T_left_right = invert_transform(views[0].T_frame_camera) @ views[1].T_frame_camera
    vouching = [known.residual for known in evidence if known.consistent and known.compared]
    return replace(
        refused,
        T_left_right=T_left_right,
        residual=float(np.sqrt(np.mean(np.square(vouching)))) if vouching else refused.residual,
        shift=0.0,
        turn=0.0,
        succeeded=bool(vouching),
    )


def _scene(
    task: Task,
    seen: Seen,
    status: SceneStatus,
    message: str,
    objects: Objects | None = None,
    evidence: Sequence[ObjectEvidence] = (),
    target: int | None = None,
) -> Scene:
    """The outcome; without objects what is known by then."""
    poses = {view.side: view.T_frame_camera for view in seen.views}
    nothing = PointCloud(np.empty((0, 3)), np.empty((0, 3)), frame=task.config.world_frame)
    return Scene(
        status,
        message,
        [] if objects is None else objects.clouds,
        [] if objects is None else objects.extents,
        list(evidence),
        target if status is SceneStatus.OK else None,
        seen.table,
        nothing if seen.fused is None else seen.fused.cloud,
        seen.labels if objects is not None else np.minimum(seen.labels, LOOSE),
        poses.get("left"),
        poses.get("right"),
        seen.registration,
        task.timings,
        task.counts,
        [pose for side, pose in poses.items() if side not in SIDES],
    )
