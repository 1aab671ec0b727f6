"""Which of many pairs have to be solved: bounding spheres, then one support height, both proven bounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.bodies import Pair, pair_support, relative_pose
from morphit_ros.superovoid.distances.queries import (
    BEYOND,
    CHARTS,
    DISTANCE,
    ITERATIONS,
    LOWER,
    NORMAL,
    OF_HULL,
    POINTS,
    STATUS,
    UPPER,
    query,
)
from morphit_ros.superovoid.distances.solver import make_workspace
from morphit_ros.superovoid.distances.support import FAST, HALF_SPACE, make_body


class PlacedTable(NamedTuple):
    """Packed shapes at their places.

    Attributes:
        rows, vertices, offsets: as of `packing.ShapeTable`.
        poses: (S, 4, 4) in the world.
        spheres: (S, 4) bounding spheres in the world.
    """

    rows: NDArray
    vertices: NDArray
    offsets: NDArray
    poses: NDArray
    spheres: NDArray


# Roundings of bounds are kept on the safe side by this share of the lengths that enter.
_SAFE = 1e-14


@njit(cache=True, nogil=True, fastmath=FAST, error_model="numpy")
def world_spheres(spheres: NDArray, poses: NDArray) -> NDArray:
    """Bounding spheres (S, 4) moved to the world."""
    moved = np.empty_like(spheres)
    for i in range(spheres.shape[0]):
        for k in range(3):
            moved[i, k] = (
                poses[i, k, 0] * spheres[i, 0]
                + poses[i, k, 1] * spheres[i, 1]
                + poses[i, k, 2] * spheres[i, 2]
                + poses[i, k, 3]
            )
        moved[i, 3] = spheres[i, 3]
    return moved


@njit(cache=True, nogil=True, error_model="numpy")
def sphere_bound(a: NDArray, b: NDArray) -> float:
    """Lower bound of the distance of what two spheres (4,) hold; -inf where one is a half-space's."""
    if not (a[3] < math.inf and b[3] < math.inf):
        return -math.inf
    dx, dy, dz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    reach = abs(a[0]) + abs(a[1]) + abs(a[2]) + abs(b[0]) + abs(b[1]) + abs(b[2]) + a[3] + b[3]
    return length - a[3] - b[3] - _SAFE * reach


@njit(cache=True, nogil=True, error_model="numpy")
def _sphere_bounds(pairs: NDArray, spheres_a: NDArray, spheres_b: NDArray) -> NDArray:
    bounds = np.empty(pairs.shape[0])
    for k in range(pairs.shape[0]):
        bounds[k] = sphere_bound(spheres_a[pairs[k, 0]], spheres_b[pairs[k, 1]])
    return bounds


def sort_pairs(pairs: NDArray, spheres_a: NDArray, spheres_b: NDArray) -> NDArray[np.int64]:
    """Order (P,) of pairs (P, 2) by the distance of their bounding spheres, nearest first."""
    return np.argsort(_sphere_bounds(pairs, spheres_a, spheres_b), kind="stable")


@njit(cache=True, nogil=True, error_model="numpy")
def _write_bound(row: NDArray, bound: float) -> None:
    row[DISTANCE] = row[LOWER] = bound
    row[UPPER] = np.inf
    for k in range(6):
        row[POINTS + k] = np.nan
        row[CHARTS + k] = 0.0
    for k in range(3):
        row[NORMAL + k] = np.nan
    row[ITERATIONS] = 0
    row[STATUS] = BEYOND
    row[OF_HULL] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _height_bound(a: PlacedTable, i: int, b: PlacedTable, j: int, warm: NDArray, vertex: NDArray) -> float:
    """Lower bound of the distance of two shapes: the support height along their centres' line or a warm normal.

    -inf where one is a half-space or there is no such line. `warm` is an earlier row of the pair, or has no elements.
    """
    if a.rows[i, 0] == HALF_SPACE or b.rows[j, 0] == HALF_SPACE:
        return -math.inf
    body1, body2 = make_body(a.rows[i]), make_body(b.rows[j])
    pose = relative_pose(a.poses[i], b.poses[j])
    nx, ny, nz = pose.x, pose.y, pose.z
    if warm.shape[0] > 0:
        T = a.poses[i]
        wx, wy, wz = warm[NORMAL], warm[NORMAL + 1], warm[NORMAL + 2]
        nx = T[0, 0] * wx + T[1, 0] * wy + T[2, 0] * wz
        ny = T[0, 1] * wx + T[1, 1] * wy + T[2, 1] * wz
        nz = T[0, 2] * wx + T[1, 2] * wy + T[2, 2] * wz
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if not length > 0.0:
        return -math.inf
    vertices1, vertices2 = a.vertices[a.offsets[i] : a.offsets[i + 1]], b.vertices[b.offsets[j] : b.offsets[j + 1]]
    pair = Pair(body1, vertices1, body2, vertices2, pose)
    g = pair_support(pair, nx / length, ny / length, nz / length, vertex)
    reach = abs(pose.x) + abs(pose.y) + abs(pose.z) + body1.size + body2.size
    return g - body1.margin - body2.margin - _SAFE * reach


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def solve_pairs(
    a: PlacedTable,
    b: PlacedTable,
    pairs: NDArray,
    order: NDArray,
    threshold: float,
    nearest_only: bool,
    warm: NDArray,
    prove_depth: bool,
    out: NDArray,
) -> None:
    """Solve the pairs (P, 2) named by `order` and write their rows (P, 21); see `min_distances`.

    With `nearest_only` the threshold sinks to the least distance found, which takes pairs in order of their bounds.
    """
    workspace = make_workspace()
    vertex = np.empty(15)
    cold = np.empty(0)
    limit = threshold
    for position in range(order.shape[0]):
        k = order[position]
        i, j = pairs[k, 0], pairs[k, 1]
        start = warm[k] if warm.shape[0] > 0 and abs(warm[k, NORMAL]) <= 1.0 else cold
        if limit < math.inf:
            bound = sphere_bound(a.spheres[i], b.spheres[j])
            if not bound > limit:
                bound = _height_bound(a, i, b, j, start, vertex)
            if bound > limit:
                _write_bound(out[k], bound)
                continue
        query(
            a.rows[i],
            a.vertices[a.offsets[i] : a.offsets[i + 1]],
            a.poses[i],
            b.rows[j],
            b.vertices[b.offsets[j] : b.offsets[j + 1]],
            b.poses[j],
            start,
            prove_depth,
            workspace,
            out[k],
        )
        if nearest_only and out[k, DISTANCE] < limit:
            limit = out[k, DISTANCE]
