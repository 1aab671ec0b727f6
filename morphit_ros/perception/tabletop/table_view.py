"""What one camera saw of the objects on a table, and where it saw that nothing is, in the table's frame."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.plane_fit import PlaneFit
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points, transform_vectors
from morphit_ros.geometry.voxel_grid import merge_views
from morphit_ros.jit import njit
from morphit_ros.perception.configuration import ObjectConfig
from morphit_ros.perception.views.view import Surface

# What a place of a view's maps holds, where it is not the row of a point.
FREE, UNKNOWN = -2, -1
# Width of a direction bin of the depth map, as a tangent, and half of the map's width.
_BIN = 0.008
_WIDEST_TANGENT = 1.6
# Cells of the map of the table [m], and how far it reaches from the objects' centre.
_TABLE_CELL = 0.005
_TABLE_REACH = 0.8


class TableView(NamedTuple):
    """One camera's view. The table's frame has z = 0 on the plane, z up, the origin below the objects' centre.

    Attributes:
        T_table_camera: (4, 4) the camera's optical frame.
        points: (N, 3) points on objects [m].
        normals: (N, 3) theirs, towards the camera.
        T_camera_table: (3, 4) the upper rows of the inverse.
        depth: (D, D) smallest depth seen around each direction [m], 0 where nothing was seen.
        bare: (B, B) cells of the table that were seen, and all around them.
    """

    T_table_camera: Array
    points: Array
    normals: Array
    T_camera_table: Array
    depth: Array
    bare: NDArray[np.bool_]


def view_table(surface: Surface, plane: PlaneFit, objects: ObjectConfig) -> TableView:
    """The view of a camera.

    Args:
        surface: all that it saw, in its optical frame.
        plane: the table in the same frame.
        objects: heights between which points belong to objects.
    """
    T_table_camera = _to_plane(plane)
    height = surface.points @ plane.normal - plane.offset
    above = (height > objects.min_height) & (height < objects.max_height)
    if above.any():
        middle = np.median(transform_points(T_table_camera, surface.points[above]), axis=0)
        T_table_camera = make_transform(None, (-middle[0], -middle[1], 0.0)) @ T_table_camera
    points = np.ascontiguousarray(transform_points(T_table_camera, surface.points[above]))
    normals = np.ascontiguousarray(transform_vectors(T_table_camera, surface.normals[above]))
    on_table = transform_points(T_table_camera, surface.points[np.abs(height) < objects.min_height])
    upper = np.ascontiguousarray(invert_transform(T_table_camera)[:3])
    return TableView(T_table_camera, points, normals, upper, _depth_map(surface.points), _bare_cells(on_table))


def thinned(view: TableView, voxel_size: float) -> Surface:
    """The view's object points, one a voxel and side."""
    merged = merge_views(view.points, view.normals, voxel_size)
    return Surface(merged.points, merged.normals)


def _to_plane(plane: PlaneFit) -> Array:
    """``T_plane_camera``: z along the plane's normal, z = 0 on it."""
    axis_x = np.cross(np.eye(3)[int(np.argmin(np.abs(plane.normal)))], plane.normal)
    axis_x /= np.linalg.norm(axis_x)
    rotation = np.stack([axis_x, np.cross(plane.normal, axis_x), plane.normal])
    return make_transform(rotation, (0.0, 0.0, -plane.offset))


def _depth_map(points: Array) -> Array:
    from scipy.ndimage import minimum_filter

    depth = _nearest_depths(np.ascontiguousarray(points))
    # Where nothing was measured, nothing is contradicted; at an outline, a bin and its
    # neighbours may show either surface: believe the nearest.
    depth[np.isinf(depth)] = 0.0
    filtered: Array = minimum_filter(depth, size=3)
    return filtered


@njit(cache=True)
def _nearest_depths(points):  # type: ignore[no-untyped-def]
    side = int(2 * _WIDEST_TANGENT / _BIN)
    depth = np.full((side, side), np.inf)
    for row in range(points.shape[0]):
        z = points[row, 2]
        if z < 1e-3:
            continue
        i = int((points[row, 1] / z + _WIDEST_TANGENT) / _BIN)
        j = int((points[row, 0] / z + _WIDEST_TANGENT) / _BIN)
        if 0 <= i < side and 0 <= j < side and z < depth[i, j]:
            depth[i, j] = z
    return depth


def _bare_cells(points: Array) -> NDArray[np.bool_]:
    from scipy.ndimage import minimum_filter

    side = int(2 * _TABLE_REACH / _TABLE_CELL)
    bare = np.zeros((side, side), np.bool_)
    cells = np.floor((points[:, :2] + _TABLE_REACH) / _TABLE_CELL).astype(np.int64)
    cells = cells[((cells >= 0) & (cells < side)).all(axis=1)]
    bare[cells[:, 0], cells[:, 1]] = True
    filtered: NDArray[np.bool_] = minimum_filter(bare, size=3)
    return filtered


@njit(cache=True, inline="always")
def clearance(x, y, z, camera, depth):  # type: ignore[no-untyped-def]
    """How far a place lies before what the camera saw in its direction [m]; negative behind it, −inf if unknown."""
    c = camera[2, 0] * x + camera[2, 1] * y + camera[2, 2] * z + camera[2, 3]
    if c < 1e-3:
        return -np.inf
    a = camera[0, 0] * x + camera[0, 1] * y + camera[0, 2] * z + camera[0, 3]
    b = camera[1, 0] * x + camera[1, 1] * y + camera[1, 2] * z + camera[1, 3]
    i = int(np.floor((b / c + _WIDEST_TANGENT) / _BIN))
    j = int(np.floor((a / c + _WIDEST_TANGENT) / _BIN))
    if i < 0 or j < 0 or i >= depth.shape[0] or j >= depth.shape[1] or depth[i, j] == 0.0:
        return -np.inf
    return depth[i, j] - c


@njit(cache=True, inline="always")
def over_bare_table(x, y, bare):  # type: ignore[no-untyped-def]
    """Whether the camera saw the table itself at a place, and around it."""
    i = int(np.floor((x + _TABLE_REACH) / _TABLE_CELL))
    j = int(np.floor((y + _TABLE_REACH) / _TABLE_CELL))
    return 0 <= i < bare.shape[0] and 0 <= j < bare.shape[1] and bare[i, j]
