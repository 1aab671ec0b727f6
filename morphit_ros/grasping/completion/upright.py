"""The frame that completion works in, so that its grids move with the object; and distances to the seen points."""

from __future__ import annotations

import math

import numpy as np

from morphit_ros.geometry.spatial_hash import CellList, adjacent_ranges, build_cells, pack
from morphit_ros.geometry.transforms import Array, make_transform
from morphit_ros.grasping.normals import principal_frame
from morphit_ros.grasping.table import Table
from morphit_ros.jit import njit


def upright_frame(points: Array, table: Table | None) -> Array:
    """``T_world_upright`` (4, 4): the table's frame, else the cloud's principal axes with the longest as z."""
    if table is not None:
        return np.asarray(table.T_world_table, dtype=np.float64)
    center, axes = principal_frame(points)
    return make_transform(axes, center)


def distances_to(queries: Array, points: Array, reach: float) -> Array:
    """(Q,) distance of each query to the nearest of the points, inf beyond `reach` [m]."""
    if len(points) == 0 or len(queries) == 0:
        return np.full(len(queries), np.inf)
    return _distances(np.ascontiguousarray(queries), build_cells(np.ascontiguousarray(points), reach))


@njit(cache=True, nogil=True)
def _distances(queries: Array, cells: CellList) -> Array:
    result = np.full(queries.shape[0], np.inf)
    ranges = np.empty((27, 2), np.int64)
    for q in range(queries.shape[0]):
        key = pack(
            np.int64(np.floor(queries[q, 0] / cells.size)),
            np.int64(np.floor(queries[q, 1] / cells.size)),
            np.int64(np.floor(queries[q, 2] / cells.size)),
        )
        used = adjacent_ranges(cells, key, ranges)
        best = cells.size * cells.size
        found = False
        for part in range(used):
            for row in range(ranges[part, 0], ranges[part, 1]):
                gap = 0.0
                for axis in range(3):
                    gap += (cells.points[row, axis] - queries[q, axis]) ** 2
                if gap <= best:
                    best = gap
                    found = True
        if found:
            result[q] = math.sqrt(best)
    return result
