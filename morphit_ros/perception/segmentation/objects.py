"""From connected points of both views to object clouds, labels and their diagnostics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.perception.configuration import ObjectConfig, PerceptionConfig
from morphit_ros.perception.scene import LOOSE, ObjectExtent, Table
from morphit_ros.perception.segmentation.balance import join_balanced
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
    """Connected points that stand on the table, and what would balance on them together with these.

    A cluster counts with all of its points if enough of them are over the visible part of the table
    or near it, so that what juts out over the edge is not cut off.

    Args:
        cloud: what is above the table, of both views, with normals; everything without a table.
        table: None where there is none; all of the cloud is looked at then.
        config: heights, link distance, least size, margin, seams.
    """
    local, beyond = _relative_to_table(cloud.points, table)
    height = local[:, 2]
    candidates = np.arange(len(cloud))
    if table is not None:
        candidates = np.flatnonzero((height > config.objects.min_height) & (height < config.objects.max_height))
    found: list[tuple[Rows, int]] = []
    small: list[Rows] = []
    for cluster in find_clusters(cloud.points[candidates], config.objects):
        rows = candidates[cluster]
        standing = rows[beyond[rows] <= config.table.margin]
        if len(standing) < config.objects.min_points:
            small += [standing] if len(standing) else []
            continue
        found.extend(_parts(cloud, rows, config.objects))
    if table is not None:
        found, small = _joined(local, found, small)
    found.sort(key=lambda item: (-len(item[0]), item[0][0]))
    labels = np.full(len(cloud), LOOSE)
    for number, (rows, _) in enumerate(found):
        labels[rows] = number
    axes = np.eye(3) if table is None else table.T_world_table[:3, :3]
    extents = [
        ObjectExtent(np.ptp(axes.T @ cloud.points[rows].T, axis=1), parts, float((beyond[rows] > 0.0).mean()))
        for rows, parts in found
    ]
    return Objects([cloud.select(rows) for rows, _ in found], extents, labels, (len(small), sum(map(len, small))))


def _relative_to_table(points: Array, table: Table | None) -> tuple[Array, Array]:
    """Points (N, 3) in the frame of the table, z up, and how far beyond the edge of its visible part (N,) [m].

    That is 0 above it. Without a table both are zeros.
    """
    if table is None:
        return np.zeros((len(points), 3)), np.zeros(len(points))
    local = transform_points(invert_transform(table.T_world_table), points)
    outside = np.abs(local[:, :2]) - 0.5 * table.size
    return local, np.maximum(np.maximum(outside[:, 0], outside[:, 1]), 0.0)


def _joined(
    points: Array, found: list[tuple[Rows, int]], small: list[Rows]
) -> tuple[list[tuple[Rows, int]], list[Rows]]:
    """Objects and clusters that are too small for one, those joined that would topple alone; points as of the table."""
    rows = [*(own for own, _ in found), *small]
    whole, left = [], []
    for group in join_balanced(points, rows):
        own = np.sort(np.concatenate([rows[index] for index in group]))
        if group[0] >= len(found):
            left += [rows[index] for index in group]
        else:
            whole.append((own, found[group[0]][1]))
    return whole, left


def _parts(cloud: PointCloud, rows: Rows, config: ObjectConfig) -> list[tuple[Rows, int]]:
    """Rows of each object of a cluster, and of how many parts each consists."""
    normals = np.zeros_like(cloud.points) if cloud.normals is None else cloud.normals
    if config.split_touching:
        parts = split_convex(cloud.points[rows], normals[rows], config.seam_angle, config.min_points)
        return [(rows[part], 1) for part in parts]
    return [(rows, len(split_at_seams(cloud.points[rows], normals[rows], config)))]
