"""Completion of an object that stands on a table: its silhouette, extruded down.

Seen from above, a convex object's far sides begin where its silhouette ends and reach down to the table. Virtual
points on these sides let the planner close a finger on a side that no camera saw, and keep the palm out of it. They
are added only where no side was seen, and all around low objects, whose sides are too short for good normals: that
is how a plate of 3 mm gets an edge that can be gripped. The same columns, from what they stand on up to the highest
seen point, give a centre of mass that is not biased to the seen side as the centroid of the points is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points, transform_vectors
from morphit_ros.grasping.completion.free_space import DepthImages, depth_images, in_free_space
from morphit_ros.grasping.completion.horizon import Horizon, arcs, find_horizon
from morphit_ros.grasping.completion.shape import CompletedShape, confidence_of_error
from morphit_ros.jit import njit

# Empty cells around the silhouette, for the filters.
_BORDER = 4
# Holes of the silhouette up to so many cells are gaps of the sampling, not openings of the object.
_PINHOLE = 9
# Largest silhouette in cells along one side: coarser cells for larger objects.
_LARGEST = 200


@dataclass(frozen=True)
class TableExtrusion:
    """Extrudes the silhouette down to the table, or to what the object lies on.

    Attributes:
        viewpoints: (K, 3) positions of the cameras, None if unknown: what they looked through, such as the air
            under an overhang, is not filled.
        obstacles: (M, 3) seen points of other things, in the cloud's frame: nothing is extruded into them.
        low_height: columns lower than this get virtual sides even where a side was seen [m].
    """

    viewpoints: Array | None = None
    obstacles: Array | None = None
    low_height: float = 0.032

    def is_low(self, points: Array, table: SupportPlaneLike) -> bool:
        """Whether the object is so low that it gets virtual sides all around."""
        return bool(transform_points(invert_transform(table.T_world_table), points)[:, 2].max() < self.low_height)

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`.

        Raises:
            ValueError: no table.
        """
        if table is None:
            raise ValueError("TableExtrusion needs a table; take HullCompletion or AutoCompletion without one")
        cell = max(0.003, 0.8 * point_spacing(points))
        return extrude_to_table(
            points, normals, table.T_world_table, cell, self.low_height, self.obstacles, self.viewpoints
        )


def extrude_to_table(
    points: Array,
    normals: Array,
    T_world_table: Array,
    cell: float = 0.003,
    low_height: float = 0.032,
    obstacles: Array | None = None,
    viewpoints: Array | None = None,
    made_up: NDArray[np.bool_] | None = None,
) -> CompletedShape:
    """Extrude the silhouette of a cloud down to its table.

    Args:
        points, normals: (N, 3) seen points, world frame.
        T_world_table: (4, 4), z = 0 is the table's upper face.
        cell: size of the silhouette's cells and spacing of the virtual points [m].
        low_height: columns lower than this get virtual sides even where a side was seen [m].
        obstacles: (M, 3) points of other things: a column over them stands on them.
        viewpoints: (K, 3) positions of the cameras, None if unknown.
        made_up: (N,) which of the points no camera saw (mirrored ones); all were seen if None.
    """
    T_table_world = invert_transform(T_world_table)
    local, local_normals = transform_points(T_table_world, points), transform_vectors(T_table_world, normals)
    span = float((local[:, :2].max(axis=0) - local[:, :2].min(axis=0)).max())
    cell = max(cell, span / _LARGEST)
    # Half a cell more, so that the outermost points do not lie on the border of two cells.
    origin = local[:, :2].min(axis=0) - (_BORDER + 0.5) * cell
    cells = ((local[:, :2] - origin) / cell).astype(np.int64)
    shape = (int(cells[:, 0].max()) + _BORDER + 1, int(cells[:, 1].max()) + _BORDER + 1)
    heights, occupied = _silhouette(local, local_normals, cells, shape)
    around = ndimage.maximum_filter(heights, size=3)
    floors = _floors(obstacles, T_table_world, origin, cell, around)
    tops = np.where(heights > 0.0, heights, around)
    images = _images(local, made_up, T_table_world, obstacles, viewpoints, cell)
    com, volume = _columns(tops, floors, occupied, origin, cell, images)

    edge, outward, edge_x, edge_y = _outline(occupied, origin, cell)
    top = around[edge_x, edge_y]
    seen = _side_is_seen(local, local_normals, edge, outward, 2.5 * cell)
    wanted = ~seen | (top < low_height)
    floor = floors[edge_x, edge_y]
    eyed = slice(None) if made_up is None else ~made_up
    horizon = find_horizon(local[eyed], local_normals[eyed], edge, outward, np.where(seen, 0.0, top - floor))
    com, volume = _with_bulges(com, volume, edge, outward, top, horizon, cell)
    further = edge + horizon.extents[:, None] * outward
    sides, side_normals = _sides(further[wanted], outward[wanted], floor[wanted], (top - horizon.drops)[wanted], cell)
    round_sides, round_normals = arcs(edge, outward, top, horizon, cell)
    sides, side_normals = np.concatenate([sides, round_sides]), np.concatenate([side_normals, round_normals])
    if images is not None:
        # A side that a camera looked through isn't there: an overhang is in the way.
        closed = ~in_free_space(sides, images)
        sides, side_normals = sides[closed], side_normals[closed]
    error = _expected_error(local, float((~seen & (top >= low_height)).mean()) if len(edge) else 1.0, volume)
    return CompletedShape(
        transform_points(T_world_table, sides),
        transform_vectors(T_world_table, side_normals),
        transform_points(T_world_table, com),
        confidence_of_error(error),
        method="table extrusion",
    )


def _with_bulges(
    com: Array, volume: float, edge: Array, outward: Array, top: Array, horizon: Horizon, cell: float
) -> tuple[Array, float]:
    """Centre of mass (3,) and volume [m³] with what lies beyond the horizon."""
    # Two thirds of the height, since it is round above and below.
    pieces = cell * horizon.extents * top * (2.0 / 3.0)
    total = volume + float(pieces.sum())
    if not total > volume:
        return com, volume
    middles = np.column_stack([edge + 0.4 * horizon.extents[:, None] * outward, 0.5 * top])
    return (volume * com + pieces @ middles) / total, total


def _expected_error(local: Array, hidden: float, volume: float) -> float:
    """Of the centre of mass [m]: grows with the hidden share of the outline, and with how little of its box it fills.

    Unseen sides may lie further out than the tops that were seen. Where little of the box is filled, small errors of
    thickness (thin sheets, undercuts, cavities) shift much of the mass.
    """
    flat = local[:, :2] - local[:, :2].mean(axis=0)
    along = flat @ np.linalg.eigh(flat.T @ flat)[1]
    sides = np.append(along.max(axis=0) - along.min(axis=0), max(float(local[:, 2].max()), 1e-4))
    filled = min(volume / max(float(np.prod(sides)), 1e-12), 1.0)
    extent = float(sides.max())
    return 0.001 + (0.06 * (1.0 - filled) + 0.04 * hidden) * extent


def _images(
    local: Array, made_up: NDArray[np.bool_] | None, T_table_world: Array, obstacles: Array | None,
    viewpoints: Array | None, cell: float,
) -> DepthImages | None:  # fmt: skip
    if viewpoints is None:
        return None
    seen = local if made_up is None else local[~made_up]
    if obstacles is not None:
        seen = np.concatenate([seen, transform_points(T_table_world, obstacles)])
    return depth_images(seen, transform_points(T_table_world, viewpoints), 1.25 * cell)


def _columns(
    tops: Array, floors: Array, occupied: NDArray[np.bool_], origin: Array, cell: float, images: DepthImages | None
) -> tuple[Array, float]:
    """Centre of mass (3,) and volume [m³] of the columns, without the parts that a camera looked through."""
    grid_x, grid_y = np.nonzero(occupied & (tops > floors))
    if len(grid_x) == 0:
        grid_x, grid_y = np.nonzero(occupied)
    floor, column = floors[grid_x, grid_y], np.maximum(tops - floors, 1e-6)[grid_x, grid_y]
    numbers = np.maximum(np.ceil(column / (2.0 * cell)), 1.0).astype(np.int64)
    which = np.repeat(np.arange(len(column)), numbers)
    step = np.arange(len(which)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    height = column / numbers
    blocks = np.column_stack([
        origin[0] + cell * (grid_x[which] + 0.5), origin[1] + cell * (grid_y[which] + 0.5),
        floor[which] + (step + 0.5) * height[which],
    ])  # fmt: skip
    weights = height[which]
    if images is not None:
        free = in_free_space(blocks, images)
        # The block under the seen top is solid however thin the object.
        free[step == numbers[which] - 1] = False
        weights = np.where(free, 0.0, weights)
    center: Array = weights @ blocks / max(float(weights.sum()), 1e-12)
    return center, float(weights.sum()) * cell * cell


def _silhouette(
    local: Array, normals: Array, cells: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[Array, NDArray[np.bool_]]:
    """Highest seen point of each cell (0 where none), and the cells that belong to the object."""
    heights, facing_up, numbers = np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape)
    index = (cells[:, 0], cells[:, 1])
    np.maximum.at(heights, index, np.maximum(local[:, 2], 1e-6))
    facing_up[cells[normals[:, 2] > 0.5, 0], cells[normals[:, 2] > 0.5, 1]] = True
    np.add.at(numbers, index, 1.0)
    # A tall side puts many points into its cells and, by noise, some into cells beyond it, which are not the object.
    stray = ~facing_up & (numbers < 0.25 * ndimage.maximum_filter(numbers, size=3))
    heights[stray] = 0.0
    occupied = ndimage.binary_closing(heights > 0.0, np.ones((3, 3)))
    empty = np.logical_not(occupied)
    holes, count = ndimage.label(empty)
    sizes = np.bincount(holes.ravel(), minlength=count + 1)
    filled: NDArray[np.bool_] = occupied | (empty & (sizes <= _PINHOLE)[holes])
    return heights, filled


def _floors(obstacles: Array | None, T_table_world: Array, origin: Array, cell: float, tops: Array) -> Array:
    """Height that each column stands on: the table, or the highest other thing seen below its top."""
    floors = np.zeros(tops.shape)
    if obstacles is None or len(obstacles) == 0:
        return floors
    local = transform_points(T_table_world, obstacles)
    cells = np.floor((local[:, :2] - origin) / cell).astype(np.int64)
    inside = ((cells >= 0) & (cells < tops.shape)).all(axis=1)
    cells, height = cells[inside], local[inside, 2]
    below = height < tops[cells[:, 0], cells[:, 1]] + cell
    np.maximum.at(floors, (cells[below, 0], cells[below, 1]), height[below])
    floors = ndimage.maximum_filter(floors, size=3)
    return np.minimum(floors, tops)


def _outline(
    occupied: NDArray[np.bool_], origin: Array, cell: float
) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]:
    """Points (E, 2) and outward directions (E, 2) of the silhouette's edge, finer than its cells, and their cells."""
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
    return edge, outward, edge_x, edge_y


def _sides(edge: Array, outward: Array, floor: Array, top: Array, cell: float) -> tuple[Array, Array]:
    """Virtual points on vertical sides from floor to top, at least one each, and their normals."""
    height = np.maximum(top - floor, 0.0)
    numbers = np.where(height > 0.0, np.maximum(np.round(height / cell), 1.0), 0.0).astype(np.int64)
    which = np.repeat(np.arange(len(edge)), numbers)
    step = np.arange(len(which)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    z = floor[which] + (step + 0.5) * (height / np.maximum(numbers, 1))[which]
    points = np.column_stack([edge[which], z])
    return points, np.column_stack([outward[which], np.zeros(len(which))])


@njit(cache=True, nogil=True)
def _side_is_seen(local: Array, local_normals: Array, edge: Array, outward: Array, radius: float) -> NDArray[np.bool_]:
    """(E,) whether a seen point near each edge faces outwards there."""
    facing = np.zeros(edge.shape[0], np.bool_)
    for i in range(local.shape[0]):
        for e in range(edge.shape[0]):
            if facing[e]:
                continue
            dx, dy = local[i, 0] - edge[e, 0], local[i, 1] - edge[e, 1]
            if dx * dx + dy * dy > radius * radius:
                continue
            facing[e] = local_normals[i, 0] * outward[e, 0] + local_normals[i, 1] * outward[e, 1] > 0.7
    return facing
