"""Compile the kernels before the first scene has to wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.primitives import box_mesh
from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.pipeline import perceive
from morphit_ros.perception.scene import Scene


def warm_up() -> Scene:
    """Segment a small box on a table. Takes up to half a minute without numba's cache, else under a second."""
    rng = np.random.default_rng(0)
    box, normals = sample_surface(box_mesh((0.06, 0.06, 0.1)), 4000, rng)
    table = np.column_stack([rng.uniform(-0.3, 0.3, (20_000, 2)), np.zeros(20_000)])
    # Without the part that the box may hide: a table seen through a box contradicts it.
    table = table[np.linalg.norm(table, axis=1) > 0.2]
    clouds, poses = [], []
    for side in (-0.4, 0.4):
        pose = look_at((0.5, side, 0.5), (0.0, 0.0, 0.05))
        seen = box[np.einsum("ij,ij->i", normals, pose[:3, 3] - box) > 0.0] + [0.0, 0.0, 0.05]
        clouds.append(PointCloud(transform_points(invert_transform(pose), np.concatenate([seen, table]))))
        poses.append(pose)
    robot = np.array([[0.0, 0.0, 0.5]]), np.array([0.05])
    return perceive(clouds[0], clouds[1], poses[0], poses[1], PerceptionConfig(), robot_spheres=robot)
