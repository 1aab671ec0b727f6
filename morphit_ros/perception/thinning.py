"""One camera's cloud to what later stages work on: voxels above the support plane, coarser cells on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, plane_axes
from morphit_ros.geometry.voxel_grid import PlaneCells, crop_to_voxels
from morphit_ros.perception.configuration import CropConfig
from morphit_ros.perception.synchronizer import SIDES

# The box of a cloud whose place in the world is not known yet: everything within the largest range.
_ANYWHERE = 100.0
# The support plane is looked for among this many measurements of a view, in voxels of this size [m].
_SAMPLES = 20_000
_SAMPLE_VOXEL = 0.01
# Cells of the layer on the plane along each side of it, at most: a bound on memory.
_MOST_CELLS = 2000


class Bounds(NamedTuple):
    """Where measurements are used: `depth` (low, high) in the optical frame, box corners in the target frame [m]."""

    depth: tuple[float, float]
    lower: Array
    upper: Array


class Points(NamedTuple):
    """Points (M, 3) in the target frame [m], and the rows (M,) of the camera's cloud that they stand for."""

    points: Array
    rows: NDArray[np.int64]


class ThinnedView(NamedTuple):
    """What `thin_view` keeps.

    Attributes:
        above: mean of the measurements in each voxel above the plane, or of all without a plane.
        on_plane: mean of the measurements in each cell of the plane.
        counts: step → measurements, later points, left after it.
    """

    above: Points
    on_plane: Points
    counts: dict[str, int]


def view_bounds(side: str, config: CropConfig, workspace: bool) -> Bounds:
    """The bounds of the camera at `side`, the widest for further ones; the workspace's box only if `workspace`."""
    sides = (side,) if side in SIDES else SIDES
    nearest = min(getattr(config, f"{name}_min_range") for name in sides)
    depth = (nearest, max(getattr(config, f"{name}_max_range") for name in sides))
    box: tuple[Sequence[float], Sequence[float]] = (config.workspace_min, config.workspace_max)
    if not workspace:
        box = ((-_ANYWHERE,) * 3, (_ANYWHERE,) * 3)
    return Bounds(depth, np.array(box[0]), np.array(box[1]))


def sample_view(cloud: PointCloud, T_target_camera: Array, bounds: Bounds) -> Array:
    """Points (M, 3) in the target frame, spread evenly over what the camera sees within the bounds [m]."""
    stride = max(1, len(cloud) // _SAMPLES)
    few = cloud.points[::stride]
    return crop_to_voxels(few, T_target_camera, bounds.depth, (bounds.lower, bounds.upper), _SAMPLE_VOXEL).points


def thin_view(
    cloud: PointCloud,
    T_target_camera: Array,
    bounds: Bounds,
    voxel_size: float,
    plane: PlaneFit | None,
    tolerance: float,
    cell_size: float,
) -> ThinnedView:
    """Drop NaN, clip depth, move, crop to a box and thin, in one pass over the cloud.

    What lies below the plane is dropped. Everything that costs much is done later with what is
    above it; the plane itself, mostly the larger part of a view, is only kept in coarse cells.

    Args:
        cloud: in the camera's optical frame, NaN where nothing was seen.
        T_target_camera: pose of the camera in the target frame.
        bounds: depths and box.
        voxel_size: edge of a voxel above the plane [m].
        plane: in the target frame; its `points` bound the part of it that is kept.
        tolerance: half the thickness of the plane [m].
        cell_size: edge of a cell on the plane [m].
    """
    layer = None
    if plane is not None:
        axes = plane_axes(plane.normal)
        flat = axes @ plane.points.T
        low, extent = flat.min(axis=1) - _SAMPLE_VOXEL, np.ptp(flat, axis=1) + 2.0 * _SAMPLE_VOXEL
        size = max(cell_size, float(extent.max()) / _MOST_CELLS)
        frame = np.column_stack([[*axes, plane.normal], [-low[0], -low[1], -plane.offset]])
        layer = PlaneCells(frame, (int(extent[0] / size) + 1, int(extent[1] / size) + 1), size, tolerance)
    found = crop_to_voxels(cloud.points, T_target_camera, bounds.depth, (bounds.lower, bounds.upper), voxel_size, layer)
    counts = {"received": len(cloud), "finite": found.finite, "in range": found.in_range}
    counts |= {"in workspace": found.in_box, "on the plane": found.on_plane}
    counts |= {"not below the plane": found.in_box - found.below, "voxels": len(found.points)}
    return ThinnedView(Points(found.points, found.rows), Points(found.layer, found.layer_rows), counts)
