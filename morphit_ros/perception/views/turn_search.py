"""All turns about the table's normal and shifts along it, tried: which bring two views of its objects together."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.nearest_grid import fill_nearest
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.perception.tabletop.table_view import FREE, UNKNOWN, TableView, clearance, over_bare_table, thinned
from morphit_ros.perception.views.view import Surface

# Cells of the maps [m] and the grid of poses: an object 0.2 m from the centre moves by 17 mm in a step of the turn.
_CELL = 0.01
_SHIFT = 0.02
_TURN = math.radians(5.0)
# Points of either view that a pose is judged by.
_SAMPLE = 150
# Points after which a pose without any support is given up.
_GLANCE = 40
# A place this far before what a camera saw is free [m].
_CLEARANCE = 0.02
# Above a table cell that a camera saw, the lowest layers are free.
_BARE_LAYERS = 3
# A point in free space weighs against this many confirmed ones.
_AGAINST = 1.0
_MARGIN = 0.25


class _Map(NamedTuple):
    """A block of space: the row of a point near each cell, FREE or UNKNOWN; `low` is its corner [m]."""

    cells: NDArray[np.int32]
    low: Array
    normals: Array


def search_poses(left: TableView, right: TableView, count: int, rng: np.random.Generator) -> Array:
    """The best local maxima (K, 3) of the agreement of two views: yaw, x, y of the right table frame in the left.

    Each object point of one view counts +cos of the angle between the normals if it falls on a
    surface of the other, −1 if it falls where the other camera saw that nothing is, 0 where that
    camera saw nothing (a correlative search, Olson 2009, in the three directions that a common plane leaves).

    Args:
        left, right: the views.
        count: largest number of poses, best first.
        rng: source of randomness for the samples.
    """
    surfaces = [thinned(view, _CELL) for view in (left, right)]
    if min(len(surface.points) for surface in surfaces) < 10:
        return np.empty((0, 3))
    radii = [float(np.linalg.norm(surface.points[:, :2], axis=1).max()) for surface in surfaces]
    maps = [_map(view, surface) for view, surface in zip((left, right), surfaces, strict=True)]
    samples = []
    total = sum(len(surface.points) for surface in surfaces)
    for surface in surfaces:
        # As many points per area in both views.
        wanted = max(30, round(2 * _SAMPLE * len(surface.points) / total))
        rows = rng.permutation(len(surface.points))[:wanted]
        samples.append(Surface(surface.points[rows], surface.normals[rows]))
    reach = min(0.6, max(radii))
    shifts = np.arange(-reach, reach + 0.5 * _SHIFT, _SHIFT)
    yaws = np.arange(-math.pi, math.pi - 0.5 * _TURN, _TURN)
    scores = _score_all(
        samples[0].points,
        samples[0].normals,
        samples[1].points,
        samples[1].normals,
        maps[0],
        maps[1],
        yaws,
        shifts,
    )
    return _maxima(scores, yaws, shifts, count)


def _maxima(scores: NDArray[np.float32], yaws: Array, shifts: Array, count: int) -> Array:
    from scipy.ndimage import maximum_filter

    # The turn is periodic, the shifts are not.
    highest = maximum_filter(scores, size=3, mode=("wrap", "constant", "constant"))
    rows = np.flatnonzero((scores == highest) & (scores > 0.0))
    rows = rows[np.argsort(-scores.ravel()[rows], kind="stable")[:count]]
    a, i, j = np.unravel_index(rows, scores.shape)
    return np.column_stack([yaws[a], shifts[i], shifts[j]])


def _map(view: TableView, surface: Surface) -> _Map:
    low = np.array([*(surface.points[:, :2].min(axis=0) - _MARGIN), 0.0])
    high = np.array([*(surface.points[:, :2].max(axis=0) + _MARGIN), surface.points[:, 2].max() + 2 * _CELL])
    sizes = np.ceil((high - low) / _CELL).astype(np.int64)
    cells = np.full(tuple(sizes), UNKNOWN, np.int32)
    _mark_free(cells, low, view.T_camera_table, view.depth, view.bare)
    fill_nearest(cells, low, _CELL, surface.points, 1, np.inf)
    return _Map(cells, low, surface.normals)


@njit(cache=True)
def _mark_free(cells, low, camera, depth, bare):  # type: ignore[no-untyped-def]
    for i in range(cells.shape[0]):
        x = low[0] + (i + 0.5) * _CELL
        for j in range(cells.shape[1]):
            y = low[1] + (j + 0.5) * _CELL
            on_bare = over_bare_table(x, y, bare)
            for k in range(cells.shape[2]):
                z = low[2] + (k + 0.5) * _CELL
                if (on_bare and k < _BARE_LAYERS) or clearance(x, y, z, camera, depth) > _CLEARANCE:
                    cells[i, j, k] = FREE


@njit(cache=True)
def _score_all(  # type: ignore[no-untyped-def]
    left, left_normals, right, right_normals, map_left, map_right, yaws, shifts
):
    scores = np.zeros((yaws.size, shifts.size, shifts.size), np.float32)
    turned_right, turned_right_normals = np.empty_like(right), np.empty_like(right)
    turned_left, turned_left_normals = np.empty_like(left), np.empty_like(left)
    total = left.shape[0] + right.shape[0]
    for a in range(yaws.size):
        c, s = math.cos(yaws[a]), math.sin(yaws[a])
        _turn(right, c, s, turned_right)
        _turn(right_normals, c, s, turned_right_normals)
        _turn(left, c, -s, turned_left)
        _turn(left_normals, c, -s, turned_left_normals)
        for i in range(shifts.size):
            for j in range(shifts.size):
                x, y = shifts[i], shifts[j]
                score = _agreement(turned_right, turned_right_normals, map_left, x, y)
                if score <= 0.0:
                    continue
                # The left points in the right frame: R(−yaw)(p − t).
                score += _agreement(turned_left, turned_left_normals, map_right, -(c * x + s * y), s * x - c * y)
                scores[a, i, j] = score / total
    return scores


@njit(cache=True)
def _turn(vectors, c, s, turned):  # type: ignore[no-untyped-def]
    for row in range(vectors.shape[0]):
        turned[row, 0] = c * vectors[row, 0] - s * vectors[row, 1]
        turned[row, 1] = s * vectors[row, 0] + c * vectors[row, 1]
        turned[row, 2] = vectors[row, 2]


@njit(cache=True)
def _agreement(points, normals, other, x, y):  # type: ignore[no-untyped-def]
    score = 0.0
    inverse = 1.0 / _CELL
    offset_x, offset_y = (x - other.low[0]) * inverse, (y - other.low[1]) * inverse
    for row in range(points.shape[0]):
        # The points are in random order: most poses show early that they are wrong.
        if row == _GLANCE and score <= 0.0:
            break
        i = math.floor(points[row, 0] * inverse + offset_x)
        j = math.floor(points[row, 1] * inverse + offset_y)
        if i < 0 or j < 0 or i >= other.cells.shape[0] or j >= other.cells.shape[1]:
            continue
        k = int((points[row, 2] - other.low[2]) * inverse)
        if k >= other.cells.shape[2]:
            continue
        found = other.cells[i, j, k]
        if found >= 0:
            dot = (
                normals[row, 0] * other.normals[found, 0]
                + normals[row, 1] * other.normals[found, 1]
                + normals[row, 2] * other.normals[found, 2]
            )
            if dot > 0.0:
                score += dot
        elif found == FREE:
            score -= _AGAINST
    return score
