"""One camera's cloud to what later stages work on: voxels above the support plane, coarser cells on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.spatial_hash import EMPTY, find_slot, grow, pack
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.voxel_grid import crop_to_voxels
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import CropConfig
from morphit_ros.perception.tabletop.table import PlaneFit, plane_axes

# The box of a cloud whose place in the world is not known yet: everything within the largest range.
_ANYWHERE = 100.0
# The support plane is looked for among this many measurements of a view, in voxels of this size [m].
_SAMPLES = 20_000
_SAMPLE_VOXEL = 0.01
# Cells of the layer on the plane along each side of it, at most: a bound on memory.
_MOST_CELLS = 2000
# A voxel lower than this many tolerances is noise of the plane if it holds less than this share of the
# measurements that lie on the plane beneath it.
_LOW, _NOISE_SHARE = 3.0, 0.2


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
    """The bounds of the camera at `side`; the workspace's box only if `workspace`."""
    depth = (getattr(config, f"{side}_min_range"), getattr(config, f"{side}_max_range"))
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
    frame, cells, size = np.zeros((3, 4)), (0, 0), 1.0
    if plane is not None:
        axes = plane_axes(plane.normal)
        flat = axes @ plane.points.T
        low, extent = flat.min(axis=1) - _SAMPLE_VOXEL, np.ptp(flat, axis=1) + 2.0 * _SAMPLE_VOXEL
        size = max(cell_size, float(extent.max()) / _MOST_CELLS)
        cells = (int(extent[0] / size) + 1, int(extent[1] / size) + 1)
        frame[:, :3] = *axes, plane.normal
        frame[:, 3] = -low[0], -low[1], -plane.offset
    found = _thin(
        np.ascontiguousarray(cloud.points),
        tuple(T_target_camera[:3].ravel().tolist()),
        (*bounds.depth, *bounds.lower.tolist(), *bounds.upper.tolist()),
        voxel_size,
        tuple(frame.ravel().tolist()),
        cells,
        size,
        tolerance if plane is not None else -1.0,
    )
    voxels, rows, layer, layer_rows, finite, in_range, in_box, on_plane, below = found
    counts = {"received": len(cloud), "finite": finite, "in range": in_range, "in workspace": in_box}
    counts |= {"on the plane": on_plane, "not below the plane": in_box - below, "voxels": len(voxels)}
    return ThinnedView(Points(voxels, rows), Points(layer, layer_rows), counts)


@njit(cache=True, nogil=True)
def _thin(points, transform, bounds, voxel, frame, cells, cell, tolerance):  # type: ignore[no-untyped-def]
    # Transform (12), bounds (8) and frame (12) are tuples: arrays would be read again after every store.
    keys = np.full(1 << 15, EMPTY, np.int64)
    places = np.empty(1 << 15, np.int64)
    capacity = 1 << 14
    sums = np.empty((capacity, 4))
    rows = np.empty(capacity, np.int64)
    layer = np.zeros((cells[0] * cells[1], 4))
    layer_rows = np.empty(cells[0] * cells[1], np.int64)
    finite = in_range = in_box = on_plane = below = found = occupied = 0
    inverse, per_cell = 1.0 / voxel, 1.0 / cell
    last_key, last_place = EMPTY, -1
    for row in range(points.shape[0]):
        a, b, c = points[row, 0], points[row, 1], points[row, 2]
        # NaN and infinity fail the first of these comparisons.
        if not (abs(a) < np.inf and abs(b) < np.inf and abs(c) < np.inf):
            continue
        finite += 1
        if c < bounds[0] or c > bounds[1]:
            continue
        in_range += 1
        x = transform[0] * a + transform[1] * b + transform[2] * c + transform[3]
        y = transform[4] * a + transform[5] * b + transform[6] * c + transform[7]
        z = transform[8] * a + transform[9] * b + transform[10] * c + transform[11]
        if x < bounds[2] or y < bounds[3] or z < bounds[4] or x > bounds[5] or y > bounds[6] or z > bounds[7]:
            continue
        in_box += 1
        if tolerance > 0.0:
            height = frame[8] * x + frame[9] * y + frame[10] * z + frame[11]
            if height <= tolerance:
                if height < -tolerance:
                    below += 1
                    continue
                on_plane += 1
                u = int(np.floor((frame[0] * x + frame[1] * y + frame[2] * z + frame[3]) * per_cell))
                v = int(np.floor((frame[4] * x + frame[5] * y + frame[6] * z + frame[7]) * per_cell))
                if 0 <= u < cells[0] and 0 <= v < cells[1]:
                    place = u * cells[1] + v
                    if layer[place, 3] == 0.0:
                        layer_rows[place] = row
                        occupied += 1
                    layer[place, 0] += x
                    layer[place, 1] += y
                    layer[place, 2] += z
                    layer[place, 3] += 1.0
                continue
        key = pack(np.int64(np.floor(x * inverse)), np.int64(np.floor(y * inverse)), np.int64(np.floor(z * inverse)))
        # Neighbouring pixels often share a voxel.
        if key == last_key:
            place = last_place
        else:
            slot = find_slot(keys, key)
            if keys[slot] == EMPTY:
                if 2 * found >= keys.size:
                    keys, places = grow(keys, places)
                    slot = find_slot(keys, key)
                if found == capacity:
                    sums = np.concatenate((sums, np.empty_like(sums)))
                    rows = np.concatenate((rows, np.empty_like(rows)))
                    capacity *= 2
                keys[slot] = key
                places[slot] = found
                sums[found] = 0.0
                rows[found] = row
                found += 1
            place = places[slot]
            last_key, last_place = key, place
        sums[place, 0] += x
        sums[place, 1] += y
        sums[place, 2] += z
        sums[place, 3] += 1.0
    means = np.empty((found, 3))
    kept = 0
    for place in range(found):
        number = sums[place, 3]
        x, y, z = sums[place, 0] / number, sums[place, 1] / number, sums[place, 2] / number
        height = frame[8] * x + frame[9] * y + frame[10] * z + frame[11]
        if height < _LOW * tolerance:
            u = int(np.floor((frame[0] * x + frame[1] * y + frame[2] * z + frame[3]) * per_cell))
            v = int(np.floor((frame[4] * x + frame[5] * y + frame[6] * z + frame[7]) * per_cell))
            if 0 <= u < cells[0] and 0 <= v < cells[1] and number < _NOISE_SHARE * layer[u * cells[1] + v, 3]:
                continue
        means[kept, 0], means[kept, 1], means[kept, 2] = x, y, z
        rows[kept] = rows[place]
        kept += 1
    layer_means = np.empty((occupied, 3))
    first_rows = np.empty(occupied, np.int64)
    filled = 0
    for place in range(layer.shape[0]):
        if layer[place, 3] > 0.0:
            for axis in range(3):
                layer_means[filled, axis] = layer[place, axis] / layer[place, 3]
            first_rows[filled] = layer_rows[place]
            filled += 1
    return means[:kept], rows[:kept].copy(), layer_means, first_rows, finite, in_range, in_box, on_plane, below
