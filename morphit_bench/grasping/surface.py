"""The object and the pads as the published planners see them.

Object: thinned to one point a voxel, normals of local planes, each turned away from the cloud's centroid (which is
wrong on concave parts; that is part of what is compared). Pads: a grid that starts at one edge with the full step and
ends with the other edge, so that the last gap is short where the step does not divide the pad.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.gripper import Gripper


@dataclass(frozen=True)
class ObservedSurfaceConfig(Config):
    """How a cloud becomes the object's surface; the defaults are the paper's for observed clouds."""

    voxel_size: float = parameter(0.003, "One point a voxel; 0 keeps the cloud as it is [m]", minimum=0.0, maximum=0.1)
    normal_radius: float = parameter(
        0.005, "Neighbours within it make the plane of a normal [m]", minimum=1e-4, maximum=1.0
    )
    normal_neighbors: int = parameter(30, "Nearest neighbours used at most", minimum=3, maximum=1000)
    normals: str = parameter(
        "published",
        "Estimated and turned away from the centroid as published, or the cloud's own",
        choices=("published", "given"),
    )


# Known shapes are sampled with 3000 points and not thinned; YCB clouds are denser.
SURFACES = {
    "known": ObservedSurfaceConfig(voxel_size=0.0, normal_radius=0.1),
    "ycb": ObservedSurfaceConfig(voxel_size=0.005, normal_radius=0.1),
    "observed": ObservedSurfaceConfig(),
}


def prepare_surface(cloud: PointCloud, config: ObservedSurfaceConfig) -> PointCloud:
    """The object's surface: thinned points with unit normals.

    Raises:
        InvalidInputError: fewer than four finite points, or the cloud's own normals are asked for and missing.
    """
    finite = cloud.finite()
    if len(finite) < 4:
        raise InvalidInputError("cloud", f"{len(finite)} finite points of {len(cloud)}", "at least 4 points")
    given = finite.normals
    if config.normals == "given" and (given is None or not np.isfinite(given).all()):
        raise InvalidInputError("cloud", "no finite normals", "one normal a point", "Set normals to 'published'.")
    points = finite.points
    if config.voxel_size > 0.0:
        lowest = points.min(axis=0) - 0.5 * config.voxel_size
        cells = np.floor((points - lowest) / config.voxel_size).astype(np.int64)
        _, cell, count = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
        points = _cell_sums(points, cell, len(count)) / count[:, None]
        if given is not None:
            given = _cell_sums(given, cell, len(count))
    if config.normals == "given" and given is not None:
        normals: Array = given / np.maximum(np.linalg.norm(given, axis=1, keepdims=True), 1e-12)
    else:
        normals = plane_normals(points, config.normal_radius, config.normal_neighbors)
        inwards = np.einsum("ij,ij->i", normals, points - points.mean(axis=0)) < 0.0
        normals[inwards] *= -1.0
    return PointCloud(np.ascontiguousarray(points), np.ascontiguousarray(normals), frame=cloud.frame)


def _cell_sums(values: Array, cell: NDArray[Any], count: int) -> Array:
    return np.stack([np.bincount(cell.ravel(), weights=values[:, k], minlength=count) for k in range(3)], axis=1)


def plane_normals(points: Array, radius: float, neighbors: int) -> Array:
    """(N, 3) directions of least variance of the nearest points within a radius, either sign; z with under three."""
    distances, index = cKDTree(points).query(points, k=min(neighbors, len(points)), distance_upper_bound=radius)
    near = np.isfinite(distances)
    weights = near.astype(np.float64)[:, :, None]
    around = points[np.where(near, index, 0)]
    counts = near.sum(axis=1)
    offsets = (around - (around * weights).sum(axis=1, keepdims=True) / counts[:, None, None]) * weights
    normals: Array = np.linalg.eigh(np.einsum("nki,nkj->nij", offsets, offsets))[1][:, :, 0]
    normals[counts < 3] = (0.0, 0.0, 1.0)
    return normals


def published_pads(gripper: Gripper) -> Array:
    """(K, 3) canonical pad points as published, in this package's gripper frame (see `frames`) [m]; read-only."""
    return _grid(gripper.pad_width, gripper.pad_height, gripper.pad_step)


@lru_cache(maxsize=16)
def _grid(width: float, height: float, step: float) -> Array:
    def axis(length: float) -> Array:
        return np.append(step * np.arange(math.ceil(length / step - 1e-9)), length) - 0.5 * length

    # The published x axis points the other way (`frames.T_PUBLISHED_OURS`), and so does its short last gap.
    x, z = np.meshgrid(-axis(width), axis(height), indexing="ij")
    grid = np.stack([x.ravel(), np.zeros(x.size), z.ravel()], axis=1)
    grid.flags.writeable = False
    return grid
