"""One cloud of what all cameras saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.perception.view import View


class FusedCloud(NamedTuple):
    """The views' points, above the plane one a voxel and side.

    Attributes:
        cloud: first what is above the support plane, then the cells of the plane of each view.
        above: number of points above the plane.
        places: for each view, (M,) row in the cloud that each of its points above the plane went into.
    """

    cloud: PointCloud
    above: int
    places: list[NDArray[np.int64]]


def fuse_views(views: Sequence[View], voxel_size: float, frame: str) -> FusedCloud:
    """Join the views.

    Args:
        views: in one frame.
        voxel_size: above the plane [m].
        frame: name of the views' frame.
    """
    points = np.concatenate([view.points for view in views])
    merged, normals, rows = merge_views(points, np.concatenate([view.normals for view in views]), voxel_size)
    colors = None
    if all(view.cloud.colors is not None for view in views):
        above = np.concatenate([_colors(view, view.rows) for view in views])[rows]
        colors = np.concatenate([above, *(_colors(view, view.on_plane.rows) for view in views)])
    stamps = [view.cloud.stamp for view in views if view.cloud.stamp is not None]
    cloud = PointCloud(
        np.concatenate([merged, *(view.on_plane.points for view in views)]),
        np.concatenate([normals, *(view.plane_normals for view in views)]),
        colors,
        frame,
        max(stamps) if stamps else None,
    )
    borders = np.cumsum([len(view.points) for view in views])[:-1]
    return FusedCloud(cloud, len(merged), np.split(_places(points, rows, voxel_size), borders))


def _colors(view: View, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    assert view.cloud.colors is not None
    return view.cloud.colors[rows]


def _places(points: Array, rows: NDArray[np.int64], size: float) -> NDArray[np.int64]:
    """(N,) which of the voxels, known by a row of a point in each, every point (N, 3) is in."""
    if len(points) == 0:
        return np.empty(0, np.int64)
    cells = np.floor(points / size).astype(np.int64)
    cells -= cells.min(axis=0)
    keys = (cells[:, 0] * (cells[:, 1].max() + 1) + cells[:, 1]) * (cells[:, 2].max() + 1) + cells[:, 2]
    order = np.argsort(keys[rows])
    found: NDArray[np.int64] = order[np.searchsorted(keys[rows][order], keys)]
    return found
