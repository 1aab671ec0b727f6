"""Pictures of one object from any number of camera poses: what neural objects are learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, look_at
from morphit_ros.simulation.cameras import CameraConfig, degrade_depth
from morphit_ros.simulation.objects import SimulatedObject
from morphit_ros.simulation.rendering import OffscreenRenderer, import_mujoco
from morphit_ros.simulation.robot_model import VISUAL_GROUP, add_mesh, place
from morphit_ros.simulation.scene import add_camera, add_table, new_scene

# Colours are averaged over so many samples along each side of a pixel: shadows, which MuJoCo ties to its own
# anti-aliasing, cost a software renderer ten times the picture.
_OVERSAMPLING = 3
_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))
# Less of a difference in depth is rounding of the depth buffer [m].
_DEPTH_ROUNDING = 1e-4


@dataclass(frozen=True)
class ObjectViewsConfig(Config):
    """Where the cameras stand around the object, and what they are."""

    views: int = parameter(40, "Number of views", minimum=2, maximum=400)
    size: int = parameter(100, "Width and height of the pictures [px]", minimum=16, maximum=1024)
    arrangement: str = parameter(
        "sphere",
        "sphere: all around, from below too, without a table; dome: above the table; ring: at one elevation",
        choices=("sphere", "dome", "ring"),
    )
    elevation: float = parameter(0.0, "Elevation of a ring [rad]", minimum=-1.5, maximum=1.5)
    start_azimuth: float = parameter(0.0, "Azimuth of a ring's first camera [rad]", minimum=-6.3, maximum=6.3)
    azimuth_range: float = parameter(
        6.283185307179586, "Part of the circle that a ring's cameras share [rad]", minimum=0.0, maximum=6.2832
    )
    distance: float = parameter(3.0, "Distance of the cameras, in sizes of the object", minimum=1.2, maximum=20.0)
    fill: float = parameter(0.8, "Part of the picture that the object's sphere fills", minimum=0.1, maximum=1.0)
    table: bool = parameter(False, "The object stands on the workcell's table")
    noise: bool = parameter(False, "Depth with the noise and the dropouts of the workcell's cameras")
    seed: int = parameter(0, "Seed of the noise", minimum=0)


@dataclass(frozen=True)
class ObjectViews:
    """What the cameras saw.

    Attributes:
        rgb: (V, S, S, 3) colours in [0, 1].
        depth: (V, S, S) distance along the optical axis [m], NaN where nothing was measured.
        masks: (V, S, S) where the object is seen.
        T_world_camera: (V, 4, 4) poses of the optical frames.
        intrinsics: (4,) fx, fy, cx, cy [px].
    """

    rgb: NDArray[np.float32]
    depth: NDArray[np.float32]
    masks: NDArray[np.bool_]
    T_world_camera: Array
    intrinsics: Array


def arrange_cameras(center: ArrayLike, size: float, config: ObjectViewsConfig) -> Array:
    """(V, 4, 4) poses of cameras that look at a point (3,), from `distance` × `size` [m] away."""
    count = config.views
    number = np.arange(count)
    if config.arrangement == "ring":
        full = config.azimuth_range > 2.0 * np.pi - 1e-3
        azimuth = config.start_azimuth + number * config.azimuth_range / (count if full else count - 1)
        height = np.full(count, np.sin(config.elevation))
    else:
        azimuth = number * _GOLDEN_ANGLE
        lowest = -1.0 if config.arrangement == "sphere" else 0.1
        height = 1.0 - (number + 0.5) * (1.0 - lowest) / count
    across = np.sqrt(1.0 - height**2)
    directions = np.stack([across * np.cos(azimuth), across * np.sin(azimuth), height], axis=1)
    middle = np.asarray(center, dtype=np.float64)
    return np.stack([look_at(middle + config.distance * size * direction, middle) for direction in directions])


def render_object(
    item: SimulatedObject,
    T_world_object: Array,
    config: ObjectViewsConfig | None = None,
    progress: Callable[[float], None] | None = None,
) -> ObjectViews:
    """Pictures of an object that is held at a pose, from all cameras of a configuration.

    Args:
        item: the object.
        T_world_object: (4, 4); with a table, its top is z = 0.
        config: the cameras.
        progress: told the share that is done.

    Raises:
        InvalidInputError: a pose that is not rigid, cameras that do not see the object.
        MissingDependencyError: nothing on this machine can render.
    """
    config = config or ObjectViewsConfig()
    check_transform(T_world_object, "T_world_object")
    mesh = item.mesh.transformed(T_world_object)
    size = float(np.linalg.norm(mesh.extents))
    center = mesh.bounds.mean(axis=0)
    poses = arrange_cameras(center, size, config)
    half_angle = float(np.arcsin(min(0.5 / config.distance, 0.99)))
    focal = 0.5 * config.size * config.fill / np.tan(half_angle)
    fov = 2.0 * np.arctan(0.5 * config.size / focal)
    middle = 0.5 * (config.size - 1)
    camera = CameraConfig(
        width=config.size, height=config.size, vertical_fov=float(fov), range_min=0.02, range_max=10.0,
        noise=config.noise, dropout=config.noise,
    )  # fmt: skip
    with_object = _Scene(item, T_world_object, poses, camera, config.table, visible=True)
    without = _Scene(item, T_world_object, poses, camera, config.table, visible=False)
    rng = np.random.default_rng(config.seed)
    colors, depths, masks = [], [], []
    try:
        for number in range(len(poses)):
            depth = with_object.depth(number)
            mask = depth < without.depth(number) - _DEPTH_ROUNDING
            measured = degrade_depth(np.where(depth < camera.range_max, depth, 1e3), camera, rng)
            colors.append(with_object.picture(number))
            depths.append(measured)
            masks.append(mask)
            if progress is not None:
                progress((number + 1) / len(poses))
    finally:
        with_object.close()
        without.close()
    if not np.all([mask.any() for mask in masks]):
        raise InvalidInputError("elevation", config.elevation, "cameras that see the object", "Is the table between?")
    intrinsics = np.array([focal, focal, middle, middle])
    return ObjectViews(np.stack(colors), np.stack(depths), np.stack(masks), poses, intrinsics)


class _Scene:
    """The object alone or on the table, or without it, with all cameras."""

    def __init__(
        self,
        item: SimulatedObject,
        T_world_object: Array,
        poses: Array,
        camera: CameraConfig,
        table: bool,
        visible: bool,
    ) -> None:
        mujoco = import_mujoco()
        spec = new_scene(0.002)
        # The workcell's light comes from its lamps and its sky; a lamp on every camera is MuJoCo's, not the workcell's.
        spec.visual.headlight.ambient = [0.45, 0.45, 0.47]
        spec.visual.headlight.diffuse = [0.0, 0.0, 0.0]
        spec.visual.headlight.specular = [0.0, 0.0, 0.0]
        # Alone means alone: the floor would be measured too.
        if not table:
            spec.delete(spec.geom("floor"))
        else:
            add_table(spec, T_world_object[:2, 3], np.array([1.3, 1.4]), 0.6)
        if visible:
            body = spec.worldbody.add_body(name="object")
            place(body, T_world_object)
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_MESH, meshname=add_mesh(spec, "object", item.mesh), group=VISUAL_GROUP,
                contype=0, conaffinity=0, mass=0.1, rgba=[*item.color, 1.0],
            )  # fmt: skip
        for number, pose in enumerate(poses):
            add_camera(spec, f"view_{number}", pose, camera.vertical_fov, visible=False)
        model = spec.compile()
        self._data: Any = mujoco.MjData(model)
        mujoco.mj_forward(model, self._data)
        self._size = camera.width
        self._depth = OffscreenRenderer(model, camera.width, camera.height, samples=0)
        self._colors: OffscreenRenderer | None = None
        self._model = model

    def depth(self, number: int) -> NDArray[np.float32]:
        return self._depth.depth(self._data, f"view_{number}").copy()

    def picture(self, number: int) -> NDArray[np.float32]:
        fine = self._size * _OVERSAMPLING
        if self._colors is None:
            self._colors = OffscreenRenderer(self._model, fine, fine, samples=0)
        picture = self._colors.picture(self._data, f"view_{number}").astype(np.float32) / 255.0
        shape = (self._size, _OVERSAMPLING, self._size, _OVERSAMPLING, 3)
        averaged: NDArray[np.float32] = picture.reshape(shape).mean(axis=(1, 3))
        return averaged

    def close(self) -> None:
        self._depth.close()
        if self._colors is not None:
            self._colors.close()
