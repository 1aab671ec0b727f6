"""Clouds of objects as cameras see them: only what faces a camera, and nothing of the side that they stand on."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh, sample_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import invert_transform, look_at, transform_points

# Of a camera's pixels, tangent of their angle: 0.5 m away they are 1.5 mm apart.
_PIXEL = 0.003


def eyes_around(
    mesh: TriangleMesh, azimuths: list[float], elevation: float = 35.0, distance: float = 0.5
) -> np.ndarray:
    """Positions (K, 3) of cameras that look at a mesh from azimuths and an elevation [deg] and a distance [m]."""
    turn, rise = np.radians(azimuths), np.radians(elevation)
    flat = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.cos(rise)
    directions = np.column_stack([flat, np.full(len(turn), np.sin(rise))])
    return mesh.bounds.mean(axis=0) + distance * directions


def seen_cloud(mesh: TriangleMesh, eyes: np.ndarray, seed: int = 0, noise: float = 3e-4) -> PointCloud:
    """What cameras at `eyes` (K, 3) see of a mesh, with noise [m] along their rays; without normals."""
    rng = np.random.default_rng(seed)
    surface, normals = sample_surface(mesh, 200_000, rng)
    views = []
    for eye in eyes:
        facing = surface[np.einsum("ij,ij->i", eye - surface, normals) > 0.0]
        inside = transform_points(invert_transform(look_at(eye, mesh.bounds.mean(axis=0))), facing)
        column, row = np.floor(inside[:, :2] / inside[:, 2:] / _PIXEL).astype(np.int64).T
        order = np.lexsort((inside[:, 2], row, column))
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (np.diff(row[order]) != 0) | (np.diff(column[order]) != 0)
        points = facing[order[first]]
        rays = (points - eye) / np.linalg.norm(points - eye, axis=1, keepdims=True)
        views.append(points + noise * rng.standard_normal((len(points), 1)) * rays)
    return PointCloud(np.concatenate(views))
