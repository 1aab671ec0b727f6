"""From connected points of both views to object clouds, labels and their diagnostics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.perception.configuration import ObjectConfig, PerceptionConfig
from morphit_ros.perception.scene import LOOSE, ObjectExtent, Table
from morphit_ros.perception.segmentation.clusters import Rows, find_clusters, split_at_seams
from morphit_ros.perception.segmentation.convex_parts import split_convex


class Objects(NamedTuple):
    """Objects of a fused cloud, most points first.

    Attributes:
        clouds: of each object.
        extents: of each object.
        labels: (N,) for each point of the cloud the index of its object, or `LOOSE`.
        too_small: clusters over the table with too few points, and how many points they have together.
    """

    clouds: list[PointCloud]
    extents: list[ObjectExtent]
    labels: NDArray[np.int64]
    too_small: tuple[int, int]


def find_objects(cloud: PointCloud, table: Table | None, config: PerceptionConfig) -> Objects:
    """Connected points that stand on the table.

    A cluster counts with all of its points if enough of them are over the visible part of the table
    or near it, so that what juts out over the edge is not cut off.

    Args:
        cloud: what is above the table, of both views, with normals; everything without a table.
        table: None where there is none; all of the cloud is looked at then.
        config: heights, link distance, least size, margin, seams.
    """
    height, beyond = _relative_to_table(cloud.points, table)
    candidates = np.arange(len(cloud))
    if table is not None:
        candidates = np.flatnonzero((height > config.objects.min_height) & (height < config.objects.max_height))
    found: list[tuple[Rows, int]] = []
    small = small_points = 0
    for cluster in find_clusters(cloud.points[candidates], config.objects):
        rows = candidates[cluster]
        standing = int((beyond[rows] <= config.table.margin).sum())
        if standing < config.objects.min_points:
            small += standing > 0
            small_points += standing
            continue
        found.extend(_parts(cloud, rows, config.objects))
    found.sort(key=lambda item: (-len(item[0]), item[0][0]))
    labels = np.full(len(cloud), LOOSE)
    for number, (rows, _) in enumerate(found):
        labels[rows] = number
    axes = np.eye(3) if table is None else table.T_world_table[:3, :3]
    extents = [
        ObjectExtent(np.ptp(axes.T @ cloud.points[rows].T, axis=1), parts, float((beyond[rows] > 0.0).mean()))
        for rows, parts in found
    ]
    return Objects([cloud.select(rows) for rows, _ in found], extents, labels, (small, small_points))


def _relative_to_table(points: Array, table: Table | None) -> tuple[Array, Array]:
    """Height over the table (N,) and how far beyond the edge of its visible part (N,), 0 above it [m]."""
    if table is None:
        return np.zeros(len(points)), np.zeros(len(points))
    local = transform_points(invert_transform(table.T_world_table), points)
    outside = np.abs(local[:, :2]) - 0.5 * table.size
    return local[:, 2], np.maximum(np.maximum(outside[:, 0], outside[:, 1]), 0.0)


def _parts(cloud: PointCloud, rows: Rows, config: ObjectConfig) -> list[tuple[Rows, int]]:
    """Rows of each object of a cluster, and of how many parts each consists."""
    normals = np.zeros_like(cloud.points) if cloud.normals is None else cloud.normals
    if config.split_touching:
        parts = split_convex(cloud.points[rows], normals[rows], config.seam_angle, config.min_points)
        return [(rows[part], 1) for part in parts]
    return [(rows, len(split_at_seams(cloud.points[rows], normals[rows], config)))]
