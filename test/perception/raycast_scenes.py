"""Tables with objects as depth cameras see them, by ray casting: ground truth for tests and benchmarks.

Noise is along the ray, as in a time-of-flight camera; rays that graze a surface drop out as NaN.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import trimesh

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, look_at, make_transform, matrix_from_rpy

TABLE = -1
BACKGROUND = -2


@dataclass(frozen=True)
class View:
    """What one camera saw.

    Attributes:
        cloud: organised (H * W, 3) in the optical frame, NaN where nothing was seen.
        T_world_camera: true pose.
        labels: (H * W,) index of the object, `TABLE` or `BACKGROUND`.
        normals: (H * W, 3) true normals towards the camera, world frame.
        surface: (H * W, 3) true points, world frame.
    """

    cloud: PointCloud
    T_world_camera: Array
    labels: np.ndarray
    normals: Array
    surface: Array


def box(x: float, y: float, z: float) -> trimesh.Trimesh:
    return trimesh.creation.box((x, y, z)).apply_translation((0, 0, z / 2))


def cylinder(radius: float, height: float) -> trimesh.Trimesh:
    return trimesh.creation.cylinder(radius, height, sections=64).apply_translation((0, 0, height / 2))


def ball(radius: float) -> trimesh.Trimesh:
    return trimesh.creation.icosphere(subdivisions=4, radius=radius).apply_translation((0, 0, radius))


def cup(radius: float = 0.04, height: float = 0.09, wall: float = 0.004) -> trimesh.Trimesh:
    inner = radius - wall
    profile = [(0, 0), (radius, 0), (radius, height), (inner, height), (inner, wall), (0, wall)]
    return trimesh.creation.revolve(np.array(profile, dtype=float), sections=96)


def t_block() -> trimesh.Trimesh:
    bar = trimesh.creation.box((0.15, 0.04, 0.05)).apply_translation((0, 0.03, 0.025))
    stem = trimesh.creation.box((0.04, 0.10, 0.05)).apply_translation((0, -0.04, 0.025))
    return trimesh.util.concatenate([bar, stem])


def hammer() -> trimesh.Trimesh:
    handle = trimesh.creation.cylinder(0.014, 0.2, sections=48)
    handle.apply_transform(make_transform(matrix_from_rpy((0, math.pi / 2, 0)), (0, 0, 0.02)))
    head = trimesh.creation.box((0.035, 0.10, 0.04)).apply_translation((0.1, 0, 0.02))
    return trimesh.util.concatenate([handle, head])


SHAPES = {
    "box": lambda: box(0.06, 0.09, 0.12),
    "cylinder": lambda: cylinder(0.035, 0.11),
    "ball": lambda: ball(0.04),
    "cup": cup,
    "t_block": t_block,
    "hammer": hammer,
}


@dataclass(frozen=True)
class TableScene:
    """Objects on (or without) a table whose upper face is z = `table_height` in world.

    Attributes:
        objects: meshes in world.
        table_size: along x and y [m]; None for no table.
    """

    objects: list[trimesh.Trimesh]
    table_size: tuple[float, float] | None = (0.8, 0.6)
    table_height: float = 0.0
    table_yaw: float = 0.0

    @staticmethod
    def of(
        shapes: list[str | trimesh.Trimesh], placements: list[tuple[float, float, float]], **table: object
    ) -> TableScene:
        """Shapes at (x, y, yaw) on the table."""
        height = float(table.get("table_height", 0.0))  # type: ignore[arg-type]
        objects = []
        for shape, (x, y, yaw) in zip(shapes, placements, strict=True):
            mesh = SHAPES[shape]() if isinstance(shape, str) else shape.copy()
            objects.append(mesh.apply_transform(make_transform(matrix_from_rpy((0, 0, yaw)), (x, y, height))))
        return TableScene(objects, **table)  # type: ignore[arg-type]

    @staticmethod
    def random(seed: int, count: int = 4) -> TableScene:
        """Shapes at random, at least 0.17 m apart."""
        rng = np.random.default_rng(seed)
        shapes = [str(name) for name in rng.permutation(list(SHAPES))[:count]]
        placements: list[tuple[float, float, float]] = []
        while len(placements) < count:
            x, y, yaw = rng.uniform((-0.2, -0.18, -math.pi), (0.2, 0.18, math.pi))
            if all(math.hypot(x - a, y - b) > 0.17 for a, b, _ in placements):
                placements.append((x, y, yaw))
        return TableScene.of(shapes, placements)

    def render(
        self,
        T_world_camera: Array,
        *,
        width: int = 320,
        height: int = 288,
        fov: float = math.radians(60.0),
        noise: float = 0.0015,
        seed: int = 0,
        frame: str = "",
        stamp: float | None = None,
    ) -> View:
        """The organised cloud of a pinhole camera; `fov` [rad] is horizontal, `noise` [m] is along the ray."""
        import open3d as o3d

        scene = o3d.t.geometry.RaycastingScene()
        labels_of_geometry = []
        for label, mesh in enumerate(self.objects):
            scene.add_triangles(mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32))
            labels_of_geometry.append(label)
        if self.table_size is not None:
            slab = trimesh.creation.box((*self.table_size, 0.03))
            slab.apply_transform(
                make_transform(matrix_from_rpy((0, 0, self.table_yaw)), (0, 0, self.table_height - 0.015))
            )
            scene.add_triangles(slab.vertices.astype(np.float32), slab.faces.astype(np.uint32))
            labels_of_geometry.append(TABLE)
        focal = width / 2 / math.tan(fov / 2)
        u, v = np.meshgrid(np.arange(width) + 0.5 - width / 2, np.arange(height) + 0.5 - height / 2)
        optical = np.stack([u / focal, v / focal, np.ones_like(u)], axis=-1).reshape(-1, 3)
        optical /= np.linalg.norm(optical, axis=1, keepdims=True)
        directions = optical @ T_world_camera[:3, :3].T
        origins = np.broadcast_to(T_world_camera[:3, 3], directions.shape)
        answer = scene.cast_rays(o3d.core.Tensor(np.hstack([origins, directions]).astype(np.float32)))
        distance = answer["t_hit"].numpy().astype(np.float64)
        normals = answer["primitive_normals"].numpy().astype(np.float64)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
        facing = np.einsum("ij,ij->i", normals, directions)
        normals[facing > 0] *= -1
        hit = np.isfinite(distance)
        geometry = answer["geometry_ids"].numpy().astype(np.int64)
        labels = np.full(len(distance), BACKGROUND)
        labels[hit] = np.array(labels_of_geometry)[geometry[hit]]
        rng = np.random.default_rng(seed)
        measured = distance + rng.normal(0.0, noise, len(distance)) if noise else distance
        # Grazing rays return too little light.
        dropped = ~hit | (np.abs(facing) < 0.12)
        points = optical * np.where(dropped, np.nan, measured)[:, None]
        surface = origins + directions * np.where(hit, distance, np.nan)[:, None]
        return View(PointCloud(points, frame=frame, stamp=stamp), T_world_camera, labels, normals, surface)


def camera_pair(
    angle_degrees: float, distance: float = 0.65, elevation_degrees: float = 45.0, azimuth_degrees: float = 30.0
) -> tuple[Array, Array]:
    """``T_world_left`` and ``T_world_right`` whose viewing directions differ by an azimuth of `angle_degrees`."""
    elevation = math.radians(elevation_degrees)
    poses = []
    for azimuth in (azimuth_degrees - angle_degrees / 2, azimuth_degrees + angle_degrees / 2):
        a = math.radians(azimuth)
        offset = (math.cos(a) * math.cos(elevation), math.sin(a) * math.cos(elevation), math.sin(elevation))
        poses.append(look_at(distance * np.array(offset), (0.0, 0.0, 0.03)))
    return poses[0], poses[1]
