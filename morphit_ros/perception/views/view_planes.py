"""The support plane that each camera sees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import Array
from morphit_ros.perception.configuration import TableConfig
from morphit_ros.perception.tabletop.table import find_plane, may_be_table, refine_plane
from morphit_ros.perception.thinning import Bounds, sample_view
from morphit_ros.perception.views.view import CameraView

# A view's own plane is believed before the common one if it has this many times its points.
_MORE_POINTS = 1.5


def middle_eye(views: Sequence[CameraView]) -> Array:
    """(3,) a point on the side that the plane was seen from [m]."""
    return np.mean([view.eye for view in views], axis=0)


def find_view_planes(
    views: Sequence[CameraView],
    bounds: Sequence[Bounds],
    placed: bool,
    up: Array | None,
    config: TableConfig,
    rng: np.random.Generator,
) -> list[PlaneFit | None]:
    """The support plane to thin each view with, found in a sample of its measurements.

    Args:
        views: the cameras.
        bounds: what is used of each.
        placed: whether the views are in one frame; they share a plane then, unless one contradicts it.
        up: (3,) against gravity in that frame, None where it is not known.
        config: tolerance, tilt, least area.
        rng: source of randomness.
    """
    samples = [sample_view(view.cloud, view.T_frame_camera, bound) for view, bound in zip(views, bounds, strict=True)]
    if not placed:
        return [find_plane(points, view.eye, config, rng, up) for points, view in zip(samples, views, strict=True)]
    common = find_plane(np.concatenate(samples), middle_eye(views), config, rng, up)
    planes: list[PlaneFit | None] = []
    for points, view in zip(samples, views, strict=True):
        shared = 0
        if common is not None:
            shared = int(np.count_nonzero(np.abs(points @ common.normal - common.offset) <= config.tolerance))
        plane = common
        # A view that shows little of the table may show a larger plane on an object, so the common plane goes
        # first; where a camera's pose is wrong, its table is elsewhere.
        if _MORE_POINTS * shared < len(points):
            own = find_plane(points, view.eye, config, rng, up)
            if own is not None and len(own.points) > _MORE_POINTS * shared:
                plane = own
        planes.append(plane)
    # Without a table, the largest plane may be an object's, and nothing below it may be dropped.
    if common is not None and not may_be_table(common, config):
        common, planes = None, [None if plane is common else plane for plane in planes]
    return [
        plane if plane is common or (plane is not None and may_be_table(plane, config)) else None for plane in planes
    ]


def refine_view_plane(
    view: CameraView, plane: PlaneFit | None, up: Array | None, config: TableConfig
) -> PlaneFit | None:
    """The plane through all that the camera saw of it; the one given where that is next to nothing."""
    if plane is None:
        return None
    return refine_plane(view.on_plane.points, plane.normal, plane.offset, view.eye, config, up) or plane
