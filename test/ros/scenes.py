"""Small clouds made by hand for the nodes: a box on a table as two cameras see it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points

BOX_SIZE = np.array([0.06, 0.09, 0.12])
CAMERAS = {
    "left": look_at((0.9, 0.45, 0.5), (0.5, 0.0, 0.05)),
    "right": look_at((0.9, -0.45, 0.5), (0.5, 0.0, 0.05)),
    "third": look_at((0.1, 0.2, 0.5), (0.5, 0.0, 0.05)),
}


def _face(center, first, second, step=0.002):
    """Grid (N, 3) on a rectangle given by its centre and two half edges."""
    counts = [max(2, round(2.0 * np.linalg.norm(edge) / step)) for edge in (first, second)]
    a, b = np.meshgrid(*[np.linspace(-1.0, 1.0, count) for count in counts])
    return center + a.reshape(-1, 1) * first + b.reshape(-1, 1) * second


def box_faces(size=BOX_SIZE, center=(0.5, 0.0)):
    """Points and outward normals of the box's sides and top, standing on z = 0."""
    middle = np.array([*center, size[2] / 2.0])
    points, normals = [], []
    for axis in range(3):
        for side in (1.0, -1.0):
            if axis == 2 and side < 0.0:
                continue
            normal = np.zeros(3)
            normal[axis] = side
            edges = [np.eye(3)[other] * size[other] / 2.0 for other in range(3) if other != axis]
            face = _face(middle + normal * size[axis] / 2.0, *edges)
            points.append(face)
            normals.append(np.repeat(normal[None], len(face), axis=0))
    return np.concatenate(points), np.concatenate(normals)


def object_cloud(size=BOX_SIZE, seed=0):
    """The whole box as an object cloud in the world, 0.3 mm noise."""
    points, normals = box_faces(size)
    noise = np.random.default_rng(seed).normal(scale=3e-4, size=points.shape)
    return PointCloud((points + noise)[::2], normals[::2], frame="world")


def _hidden(points, eye, size, center, shrink=0.002):
    """Which points (N, 3) a box on z = 0 hides from a camera: rays against its slabs, made a little smaller."""
    low = np.array([*(center - size[:2] / 2.0), 0.0]) + shrink
    high = np.array([*(center + size[:2] / 2.0), size[2]]) - shrink
    first, second = ((bound - eye) / (points - eye) for bound in (low, high))
    enters, leaves = np.minimum(first, second).max(axis=1), np.maximum(first, second).min(axis=1)
    return (enters < leaves) & (enters < 1.0) & (leaves > 0.0)


def camera_cloud(camera, stamp, size=BOX_SIZE, centers=((0.5, 0.0),), with_table=True):
    """What one camera sees, in its optical frame."""
    T_world_camera = CAMERAS[camera]
    seen = []
    for center in centers:
        points, normals = box_faces(size, center)
        facing = np.einsum("ij,ij->i", normals, T_world_camera[:3, 3] - points) > 0.0
        seen.append(points[facing])
    if with_table:
        table = _face(np.array([0.5, 0.0, 0.0]), np.array([0.25, 0.0, 0.0]), np.array([0.0, 0.3, 0.0]), 0.004)
        seen.append(table)
    points = np.concatenate(seen)
    for center in centers:
        points = points[~_hidden(points, T_world_camera[:3, 3], size, np.array(center))]
    noise = np.random.default_rng(len(camera)).normal(scale=5e-4, size=points.shape)
    moved = transform_points(invert_transform(T_world_camera), points + noise)
    return PointCloud(moved, frame=f"{camera}_camera_optical_frame", stamp=stamp)
