"""From clusters of the fused cloud to object clouds and their diagnostics."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.perception.clusters import Rows, split_at_seams
from morphit_ros.perception.configuration import ObjectConfig, PerceptionConfig
from morphit_ros.perception.scene import ObjectExtent, Table


def points_above(points: Array, table: Table | None, config: PerceptionConfig) -> Rows:
    """Rows of the points (N, 3) over the table, between the lowest and highest object; all without a table."""
    if table is None:
        return np.arange(len(points))
    local = transform_points(invert_transform(table.T_world_table), points)
    half = 0.5 * table.size + config.table.margin
    across = (np.abs(local[:, 0]) < half[0]) & (np.abs(local[:, 1]) < half[1])
    height = (local[:, 2] > config.objects.min_height) & (local[:, 2] < config.objects.max_height)
    return np.flatnonzero(across & height)


def describe_objects(
    cloud: PointCloud, clusters: list[Rows], table: Table | None, config: ObjectConfig
) -> tuple[list[PointCloud], list[ObjectExtent]]:
    """Clouds of the objects, most points first, and how large and how divided each is.

    Args:
        cloud: the fused cloud, with normals.
        clusters: rows of each cluster.
        table: gives the axes of the extents; the world's without one.
        config: whether and where clusters are split.
    """
    normals = np.zeros_like(cloud.points) if cloud.normals is None else cloud.normals
    found: list[tuple[Rows, int]] = []
    for cluster in clusters:
        # What has too few neighbours for a normal tells nothing of the surface, and planners need normals of all.
        rows = cluster[normals[cluster].any(axis=1)] if cloud.normals is not None else cluster
        parts = split_at_seams(cloud.points[rows], normals[rows], config)
        if config.split_touching:
            found.extend((rows[part], 1) for part in parts)
        else:
            found.append((rows, len(parts)))
    found.sort(key=lambda item: (-len(item[0]), item[0][0]))
    axes = np.eye(3) if table is None else table.T_world_table[:3, :3]
    objects = [cloud.select(rows) for rows, _ in found]
    extents = [
        ObjectExtent(np.ptp(points.points @ axes, axis=0), parts)
        for points, (_, parts) in zip(objects, found, strict=True)
    ]
    return objects, extents
