"""What a planner is given of the object: its true shape, or what depth cameras see of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, make_transform, transform_points, transform_vectors
from morphit_ros.memory.tracks import View
from morphit_ros.perception import PerceptionConfig, Scene, SceneStatus, perceive
from morphit_ros.perception.scene import LOOSE, ON_TABLE
from morphit_ros.simulation.workcell import CAMERAS, Workcell

SETTINGS = ("known", "observed")
# Where the cameras stand [m]: two across the table from the robot, two that face each other over it, or the
# first two and one or two more beside the robot.
EYES: dict[str, tuple[tuple[float, ...], ...]] = {
    "front": ((0.88, 0.32, 0.45), (0.88, -0.32, 0.45)),
    "opposite": ((0.88, -0.32, 0.45), (0.2, 0.5, 0.5)),
    "three": ((0.88, 0.32, 0.45), (0.88, -0.32, 0.45), (0.1, 0.5, 0.5)),
    "four": ((0.88, 0.32, 0.45), (0.88, -0.32, 0.45), (0.2, 0.5, 0.5), (0.25, -0.45, 0.55)),
}
# Points that a known shape is given as; the paper's number.
KNOWN_POINTS = 3000
# Points of nothing else this close to the target belong to it [m].
_OWN_REACH = 0.01


def camera_positions(eyes: Sequence[tuple[float, ...]]) -> dict[str, Any]:
    """The settings of a `WorkcellConfig` by which its cameras stand at 2 to 4 places (x, y, z) [m]."""
    return {f"{name}_camera_position": eye for name, eye in zip(CAMERAS, eyes, strict=False)}


@dataclass(frozen=True)
class ObjectView:
    """The input of a planner, in the world frame.

    Attributes:
        cloud: of the object, None if it was not found.
        table: what it stands on, None if it was not found.
        center_of_mass: (3,) [m], None if it is not known.
        obstacles: (M, 3) points of what else was seen, None if the shape is known.
        viewpoints: (N, 3) positions of the cameras, None if the shape is known.
        mass: [kg], None if it is not known.
        message: why there is no cloud.
        seconds: spent on seeing.
    """

    cloud: PointCloud | None
    table: SupportPlane | None
    center_of_mass: Array | None
    message: str = ""
    seconds: float = 0.0
    obstacles: Array | None = None
    viewpoints: Array | None = None
    mass: float | None = None


def known_shape(workcell: Workcell, seed: int, count: int = KNOWN_POINTS) -> ObjectView:
    """Points sampled evenly from the true mesh at the true pose, with the true mass, its centre and the table."""
    item, pose = workcell.object, workcell.object_pose()
    points, normals = sample_surface_evenly(item.mesh, count, np.random.default_rng(seed))
    cloud = PointCloud(transform_points(pose, points), transform_vectors(pose, normals), frame="world")
    config = workcell.config
    table = SupportPlane(make_transform(translation=(*config.table_center, 0.0)), np.array(config.table_size))
    return ObjectView(cloud, table, transform_points(pose, item.center_of_mass[None])[0], mass=item.mass)


def observed_shape(
    workcell: Workcell,
    seed: int,
    config: PerceptionConfig | None = None,
    robot_spheres: Callable[[Workcell], tuple[Array, Array] | None] | None = None,
) -> ObjectView:
    """What the depth cameras make of the object, noise and all.

    Args:
        workcell: is looked at as it stands now.
        seed: of perception.
        config: of perception.
        robot_spheres: of the robot's present place, which its points are removed with.
    """
    scene, eyes, seconds, _ = look(workcell, seed, config, robot_spheres)
    if scene.status is not SceneStatus.OK or scene.target is None:
        return ObjectView(None, None, None, scene.message, seconds)
    return replace(view_of(scene, scene.target, eyes), seconds=seconds)


def look(
    workcell: Workcell,
    seed: int,
    config: PerceptionConfig | None = None,
    robot_spheres: Callable[[Workcell], tuple[Array, Array] | None] | None = None,
    known: Callable[[Array], NDArray[np.bool_]] | None = None,
) -> tuple[Scene, Array, float, list[View]]:
    """What the depth cameras see now, their positions (N, 3), the time that perception took [s], and all they measured.

    Args:
        workcell, seed, config, robot_spheres: as of `observed_shape`.
        known: as of `perceive`.
    """
    left, right, *rest = (workcell.capture(name).cloud(frame=f"{name}_camera") for name in workcell.camera_names)
    spheres = None if robot_spheres is None else robot_spheres(workcell)
    poses = [workcell.T_world_camera(name) for name in workcell.camera_names]
    views = [View(pose, cloud.points) for pose, cloud in zip(poses, (left, right, *rest), strict=True)]
    began = time.perf_counter()
    settings = config or PerceptionConfig()
    more = dict(zip(workcell.camera_names[2:], zip(rest, poses[2:], strict=True), strict=True))
    scene = perceive(
        left, right, poses[0], poses[1], settings, robot_spheres=spheres, seed=seed, known=known, more=more
    )
    return scene, np.array([pose[:3, 3] for pose in poses]), time.perf_counter() - began, views


def view_of(scene: Scene, target: int, eyes: Array) -> ObjectView:
    """One object of a scene as a planner is given it.

    Args:
        scene: with objects.
        target: index of the object.
        eyes: (N, 3) positions of the cameras [m].
    """
    table = None if scene.table is None else SupportPlane(scene.table.T_world_table, scene.table.size)
    others = scene.obstacle_points(target)
    # Loose points at the target's foot and outline are its own.
    loose = scene.labels[(scene.labels != ON_TABLE) & (scene.labels != target)] == LOOSE
    own = loose & near_points(others, scene.objects[target].points)
    return ObjectView(scene.objects[target], table, None, "", 0.0, others[~own], eyes)


def near_points(points: Array, target: Array) -> NDArray[np.bool_]:
    """Which of loose points (N, 3) are so near to an object's (M, 3) that they are its own."""
    return np.asarray(cKDTree(target).query(points, distance_upper_bound=_OWN_REACH)[0] <= _OWN_REACH)
