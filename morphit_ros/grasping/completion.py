"""What the cameras did not see of an object on a table: hidden sides and centre of mass.

Seen from above, a convex object's far sides begin where its silhouette ends and reach down to the
table. Virtual points on these sides let the planner close a finger on a side that no camera saw,
and keep the palm out of it. They are added only where no side was seen, and all around low
objects, whose sides are too short for good normals. The same columns, from the table up to the
highest seen point, give a centre of mass that is not biased to the seen side as the centroid of
the points is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import cKDTree

from morphit_ros.geometry.transforms import Array, invert_transform, transform_points, transform_vectors


@dataclass(frozen=True)
class Completion:
    """Virtual side points and the centre of mass of the extruded object.

    Attributes:
        points, normals: (V, 3) virtual points with horizontal outward normals, world frame.
        center_of_mass: (3,) of the columns, world frame.
    """

    points: Array
    normals: Array
    center_of_mass: Array


def extrude_to_table(
    points: Array, normals: Array, T_world_table: Array, cell: float = 0.003, low_height: float = 0.03
) -> Completion:
    """Extrude the silhouette of a cloud down to its table.

    Args:
        points, normals: (N, 3) seen points, world frame.
        T_world_table: (4, 4), z = 0 is the table's upper face.
        cell: size of the silhouette's cells and spacing of the virtual points [m].
        low_height: columns lower than this get virtual sides even where a side was seen [m].
    """
    T_table_world = invert_transform(T_world_table)
    local, local_normals = transform_points(T_table_world, points), transform_vectors(T_table_world, normals)
    border = 4
    # Half a cell more, so that the outermost points do not lie on the border of two cells.
    origin = local[:, :2].min(axis=0) - (border + 0.5) * cell
    cells = ((local[:, :2] - origin) / cell).astype(np.int64)
    shape = tuple(cells.max(axis=0) + border + 1)
    heights = np.zeros(shape)
    np.maximum.at(heights, (cells[:, 0], cells[:, 1]), np.maximum(local[:, 2], 1e-6))
    occupied = ndimage.binary_closing(heights > 0.0, np.ones((3, 3)))
    occupied = _without_pinholes(occupied)
    around = ndimage.maximum_filter(heights, size=3)
    columns = np.where(heights > 0.0, heights, around) * occupied

    weight = columns.sum()
    grid_x, grid_y = np.nonzero(occupied)
    column = columns[grid_x, grid_y]
    com_xy = origin + cell * (np.array([column @ grid_x, column @ grid_y]) / weight + 0.5)
    com = np.array([com_xy[0], com_xy[1], 0.5 * (column @ column) / weight])

    blurred = ndimage.gaussian_filter(occupied.astype(np.float64), 1.3)
    gradient = np.stack(np.gradient(blurred), axis=-1)
    edge_x, edge_y = np.nonzero(occupied & ~ndimage.binary_erosion(occupied))
    slope = gradient[edge_x, edge_y]
    steepness = np.linalg.norm(slope, axis=1)
    # Ridges (parts one or two cells thin) have no slope and no side to speak of.
    sloped = steepness > 0.08
    edge_x, edge_y, slope, steepness = edge_x[sloped], edge_y[sloped], slope[sloped], steepness[sloped]
    outward = -slope / steepness[:, None]
    level = np.clip((blurred[edge_x, edge_y] - 0.5) / steepness, -1.0, 1.0)
    edge = origin + cell * (np.stack([edge_x, edge_y], axis=1) + 0.5 + level[:, None] * outward)
    top = around[edge_x, edge_y]

    unseen = np.logical_not(_side_is_seen(local, local_normals, edge, outward, 2.5 * cell))
    wanted = unseen | (top < low_height)
    virtual_points, virtual_normals = [], []
    for position, direction, height in zip(edge[wanted], outward[wanted], top[wanted], strict=True):
        z = np.arange(0.5 * cell, height, cell)
        virtual_points.append(np.column_stack([np.broadcast_to(position, (len(z), 2)), z]))
        virtual_normals.append(np.broadcast_to(np.append(direction, 0.0), (len(z), 3)))
    stacked = np.concatenate([np.empty((0, 3)), *virtual_points])
    stacked_normals = np.concatenate([np.empty((0, 3)), *virtual_normals])
    return Completion(
        transform_points(T_world_table, stacked),
        transform_vectors(T_world_table, stacked_normals),
        transform_points(T_world_table, com),
    )


def _without_pinholes(occupied: NDArray[np.bool_], largest: int = 9) -> NDArray[np.bool_]:
    """The silhouette with holes of a few cells filled: gaps of the sampling, not openings of the object."""
    empty = np.logical_not(occupied)
    holes, count = ndimage.label(empty)
    sizes = ndimage.sum_labels(empty, holes, np.arange(count + 1))
    filled: NDArray[np.bool_] = occupied | (sizes <= largest)[holes]
    return filled


def _side_is_seen(local: Array, local_normals: Array, edge: Array, outward: Array, radius: float) -> Array:
    """(E,) whether a seen point near each edge faces outwards there."""
    facing = np.zeros(len(edge), dtype=bool)
    if len(edge) == 0:
        return facing
    for k, near in enumerate(cKDTree(local[:, :2]).query_ball_point(edge, radius)):
        facing[k] = bool((local_normals[near, :2] @ outward[k] > 0.7).any())
    return facing
