"""Cells of a regular grid in a hash table: the neighbour search behind voxels, normals and clusters.

The kernels are compiled by numba on first use and cached on disk. A cell index is packed into
21 bits an axis, so coordinates may reach about a million cells from the origin in each direction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

EMPTY = -1
_OFFSET = 1 << 20
_MASK = (1 << 21) - 1
# 2**64 divided by the golden ratio, as a signed number: multiplication by it spreads neighbouring keys.
_GOLDEN_RATIO = np.int64(-7046029254386353131)
# Steps from a cell to its neighbours along an axis.
_OWN_FIRST = (0, -1, 1)


# Beyond this many cells from the origin, indices would wrap around.
MAX_CELLS = _OFFSET - 2


class CellList(NamedTuple):
    """Points sorted by the cubic cell that they lie in.

    Attributes:
        keys: (S,) hash table of packed cell indices, `EMPTY` where free; S is a power of two.
        cells: (S,) number of the cell in that slot.
        packed: (C,) packed index of each cell.
        starts: (C + 1,) the points of cell c are sorted rows starts[c] to starts[c + 1].
        order: (N,) original row of each sorted point.
        points: (N, 3) the points in sorted order, so that a cell's points are neighbours in memory.
        size: edge of a cell [m].
    """

    keys: NDArray[np.int64]
    cells: NDArray[np.int64]
    packed: NDArray[np.int64]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    points: Array
    size: float


def check_points(points: ArrayLike) -> Array:
    """The points as a contiguous float64 array, after checking that they are finite and (N, 3).

    Raises:
        InvalidInputError: wrong shape or values that are not finite.
    """
    array = np.ascontiguousarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidInputError("points", f"shape {array.shape}", "shape (N, 3)")
    if not np.isfinite(array).all():
        raise InvalidInputError("points", "values that are not finite", "finite points", "Drop them with finite().")
    return array


def cells_around(points: ArrayLike, size: float) -> CellList:
    """The `CellList` of points (N, 3) for cells of edge `size` [m].

    Raises:
        InvalidInputError: points not finite or further than a million cells from the origin, or a size not above 0.
    """
    array = check_points(points)
    if not size > 0.0:
        raise InvalidInputError("size", size, "above 0")
    if len(array) and np.abs(array).max() > MAX_CELLS * size:
        raise InvalidInputError(
            "points", f"a coordinate of {np.abs(array).max():g} m", f"within {MAX_CELLS * size:g} m", "Crop them first."
        )
    return build_cells(array, size)


def connected_components(points: ArrayLike, reach: float) -> NDArray[np.int64]:
    """Component number (N,) of each point: points within `reach` [m] of each other are connected.

    Raises:
        InvalidInputError: as of `cells_around`.
    """
    # The diagonal of such a cell is the reach: all points of a cell are connected.
    return _linked_cells(cells_around(points, reach / math.sqrt(3.0)), reach)


def distances_to(queries: Array, points: Array, reach: float) -> Array:
    """(Q,) distance of each query to the nearest of the points, inf beyond `reach` [m]."""
    if len(points) == 0 or len(queries) == 0:
        return np.full(len(queries), np.inf)
    return _distances(np.ascontiguousarray(queries), build_cells(np.ascontiguousarray(points), reach))


@njit(cache=True, inline="always")
def pack(ix, iy, iz):  # type: ignore[no-untyped-def]
    """One integer for a cell index."""
    return (((ix + _OFFSET) & _MASK) << 42) | (((iy + _OFFSET) & _MASK) << 21) | ((iz + _OFFSET) & _MASK)


@njit(cache=True, inline="always")
def find_slot(keys, key):  # type: ignore[no-untyped-def]
    """The slot that holds the key, or the free one where it would go (linear probing)."""
    mask = keys.size - 1
    # Two rounds, so that the x index, in the key's upper bits, reaches the lower bits of the slot.
    mixed = np.int64(key) * _GOLDEN_RATIO
    mixed = (mixed ^ (mixed >> 32)) * _GOLDEN_RATIO
    slot = (mixed ^ (mixed >> 29)) & mask
    while keys[slot] != EMPTY and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def grow(keys, values):  # type: ignore[no-untyped-def]
    """The same table with twice the slots."""
    larger_keys = np.full(keys.size * 2, EMPTY, np.int64)
    larger_values = np.empty(keys.size * 2, np.int64)
    for old in range(keys.size):
        if keys[old] != EMPTY:
            slot = find_slot(larger_keys, keys[old])
            larger_keys[slot] = keys[old]
            larger_values[slot] = values[old]
    return larger_keys, larger_values


@njit(cache=True)
def build_cells(points, size):  # type: ignore[no-untyped-def]
    """The `CellList` of finite points (N, 3) for cells of edge `size` [m]."""
    count = points.shape[0]
    keys = np.full(1 << 12, EMPTY, np.int64)
    cells = np.empty(1 << 12, np.int64)
    packed = np.empty(count, np.int64)
    cell_of_point = np.empty(count, np.int64)
    found = 0
    inverse = 1.0 / size
    for row in range(count):
        key = pack(
            np.int64(np.floor(points[row, 0] * inverse)),
            np.int64(np.floor(points[row, 1] * inverse)),
            np.int64(np.floor(points[row, 2] * inverse)),
        )
        slot = find_slot(keys, key)
        if keys[slot] == EMPTY:
            if 2 * found >= keys.size:
                keys, cells = grow(keys, cells)
                slot = find_slot(keys, key)
            keys[slot] = key
            cells[slot] = found
            packed[found] = key
            found += 1
        cell_of_point[row] = cells[slot]
    starts = np.zeros(found + 1, np.int64)
    for row in range(count):
        starts[cell_of_point[row] + 1] += 1
    for cell in range(found):
        starts[cell + 1] += starts[cell]
    cursor = starts[:-1].copy()
    order = np.empty(count, np.int64)
    ordered = np.empty((count, 3))
    for row in range(count):
        place = cursor[cell_of_point[row]]
        cursor[cell_of_point[row]] += 1
        order[place] = row
        for axis in range(3):
            ordered[place, axis] = points[row, axis]
    return CellList(keys, cells, packed[:found].copy(), starts, order, ordered, size)


@njit(cache=True)
def adjacent_ranges(grid, key, ranges):  # type: ignore[no-untyped-def]
    """Sorted rows of the 27 cells around a packed cell index.

    Writes (first, end) pairs into `ranges` (27, 2) and returns how many of the cells hold points.
    """
    ix = ((key >> 42) & _MASK) - _OFFSET
    iy = ((key >> 21) & _MASK) - _OFFSET
    iz = (key & _MASK) - _OFFSET
    used = 0
    for dx in range(-1, 2):
        for dy in range(-1, 2):
            for dz in range(-1, 2):
                slot = find_slot(grid.keys, pack(ix + dx, iy + dy, iz + dz))
                if grid.keys[slot] != EMPTY:
                    cell = grid.cells[slot]
                    ranges[used, 0] = grid.starts[cell]
                    ranges[used, 1] = grid.starts[cell + 1]
                    used += 1
    return used


@njit(cache=True, nogil=True)
def _linked_cells(grid, reach):  # type: ignore[no-untyped-def]
    """Component number (N,) of each point, original order; the points of a cell are within `reach` of each other."""
    count = grid.packed.size
    parent = np.arange(count)
    squared = reach * reach
    # Indices are packed by addition: a neighbour's is a constant away, and those along z follow each other. Of
    # each such column, sorted cells meet their neighbours in order, so that nothing has to be looked up.
    order = np.argsort(grid.packed)
    keys = grid.packed[order]
    for dx in range(3):
        for dy in range(-2 if dx > 0 else 0, 3):
            column = (dx << 42) + (dy << 21)
            least = -2 if dx > 0 or dy > 0 else 1
            first = 0
            for cell in range(count):
                while first < count and keys[first] < keys[cell] + column + least:
                    first += 1
                other = first
                while other < count and keys[other] <= keys[cell] + column + 2:
                    a, b = find_root(parent, order[cell]), find_root(parent, order[other])
                    if a != b and _cells_within(grid, order[cell], order[other], squared):
                        parent[max(a, b)] = min(a, b)
                    other += 1
    labels = np.empty(grid.order.size, np.int64)
    for cell in range(count):
        for row in range(grid.starts[cell], grid.starts[cell + 1]):
            labels[grid.order[row]] = find_root(parent, cell)
    return labels


@njit(cache=True, nogil=True)
def _cells_within(grid, first, second, squared):  # type: ignore[no-untyped-def]
    """Whether a point of one cell lies within a distance, given squared, of a point of the other."""
    for row in range(grid.starts[first], grid.starts[first + 1]):
        for other in range(grid.starts[second], grid.starts[second + 1]):
            dx = grid.points[row, 0] - grid.points[other, 0]
            dy = grid.points[row, 1] - grid.points[other, 1]
            dz = grid.points[row, 2] - grid.points[other, 2]
            if dx * dx + dy * dy + dz * dz <= squared:
                return True
    return False


@njit(cache=True)
def find_root(parent, item):  # type: ignore[no-untyped-def]
    """Representative of an item in a union-find forest, halving the path to it."""
    while parent[item] != item:
        parent[item] = parent[parent[item]]
        item = parent[item]
    return item


@njit(cache=True, nogil=True)
def nearest_facing(grid, directions, point, normal, distance, least_cosine):  # type: ignore[no-untyped-def]
    """Sorted row of the nearest point that faces the same way, -1 if there is none.

    Args:
        grid: `CellList` of the points.
        directions: (N, 3) normals of the sorted points.
        point, normal: three numbers each, of the place asked for.
        distance: largest distance, at most a cell's edge [m].
        least_cosine: between the normals.
    """
    x, y, z = point
    i = np.int64(np.floor(x / grid.size))
    j = np.int64(np.floor(y / grid.size))
    k = np.int64(np.floor(z / grid.size))
    nearest = distance * distance
    match = -1
    # The own cell first: most others are farther away than what it holds then.
    for dx in _OWN_FIRST:
        gap_x = _gap(x, i, dx, grid.size)
        for dy in _OWN_FIRST:
            gap_y = _gap(y, j, dy, grid.size)
            for dz in _OWN_FIRST:
                gap_z = _gap(z, k, dz, grid.size)
                if gap_x * gap_x + gap_y * gap_y + gap_z * gap_z >= nearest:
                    continue
                slot = find_slot(grid.keys, pack(i + dx, j + dy, k + dz))
                if grid.keys[slot] == EMPTY:
                    continue
                cell = grid.cells[slot]
                for row in range(grid.starts[cell], grid.starts[cell + 1]):
                    ex, ey, ez = x - grid.points[row, 0], y - grid.points[row, 1], z - grid.points[row, 2]
                    squared = ex * ex + ey * ey + ez * ez
                    if squared < nearest and (
                        directions[row, 0] * normal[0] + directions[row, 1] * normal[1] + directions[row, 2] * normal[2]
                        > least_cosine
                    ):
                        nearest = squared
                        match = row
    return match


@njit(cache=True, nogil=True, inline="always")
def _gap(value, index, step, size):  # type: ignore[no-untyped-def]
    """Distance along one axis from a coordinate in the cell with this index to the neighbour a step away [m]."""
    if step == 0:
        return 0.0
    return value - index * size if step < 0 else (index + 1) * size - value


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
