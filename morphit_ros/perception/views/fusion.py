"""One cloud of what all cameras saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.perception.views.view import CameraView


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


def fuse_views(views: Sequence[CameraView], voxel_size: float, frame: str) -> FusedCloud:
    """Join the views.

    Args:
        views: in one frame.
        voxel_size: above the plane [m].
        frame: name of the views' frame.
    """
    points = np.concatenate([view.points for view in views])
    merged = merge_views(points, np.concatenate([view.normals for view in views]), voxel_size)
    colors = None
    if all(view.cloud.colors is not None for view in views):
        above = np.concatenate([_colors(view, view.rows) for view in views])[merged.rows]
        colors = np.concatenate([above, *(_colors(view, view.on_plane.rows) for view in views)])
    stamps = [view.cloud.stamp for view in views if view.cloud.stamp is not None]
    cloud = PointCloud(
        np.concatenate([merged.points, *(view.on_plane.points for view in views)]),
        np.concatenate([merged.normals, *(view.plane_normals for view in views)]),
        colors,
        frame,
        max(stamps) if stamps else None,
    )
    borders = np.cumsum([len(view.points) for view in views])[:-1]
    return FusedCloud(cloud, len(merged.points), np.split(merged.places, borders))


def _colors(view: CameraView, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    assert view.cloud.colors is not None
    return view.cloud.colors[rows]
