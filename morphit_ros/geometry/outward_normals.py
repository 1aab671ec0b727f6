"""Outward normals of an object cloud: the check of given ones, and an estimate where they fail.

Normals that a camera's position gave their sign are right wherever they come from, and are taken as they are. Normals
that point away from the centroid are wrong on concave parts; normals of a merge of two views are often of mixed
sign. The estimate takes the line from the local plane and its sign from visibility: a point is seen from outside, so
its normal has a positive component towards the directions from which it is visible in a depth buffer.

Everything is built in the cloud's own principal frame, so that the result moves with the object.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.normals import estimate_normals
from morphit_ros.geometry.spatial_hash import CellList, adjacent_ranges, build_cells
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Index = NDArray[np.int64]

# Pixels of a depth buffer along its longer side, at most.
_BUFFER = 160
# Points whose neighbours are asked, and among which the farthest ones are looked for.
_PROBES = 1000
# Neighbours are this close [m]: two noisy layers of one surface are, the two sides of most walls aren't.
_NEIGHBORHOOD = 0.005
# Of neighbouring pairs, mugs and glasses of one or two camera-oriented views have up to a tenth with opposite normals,
# merges of mixed signs a fifth and more. The balance of outward and inward normals is 1 for a ball, -1 if flipped.
_MIXED, _CONSISTENT, _INWARDS = 0.15, 0.03, -0.4


def principal_frame(points: Array) -> tuple[Array, Array]:
    """Centroid (3,) and right-handed principal axes (3, 3) as columns, shortest first; they move with the cloud."""
    center = points.mean(axis=0)
    offsets = points - center
    axes = np.linalg.eigh(offsets.T @ offsets)[1]
    # The sign of an eigenvector is arbitrary: let it follow the data.
    skew = ((offsets @ axes) ** 3).sum(axis=0)
    axes = axes * np.where(skew < 0.0, -1.0, 1.0)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    return center, axes


def sphere_directions(count: int) -> Array:
    """(count, 3) unit vectors spread evenly over the sphere (a golden spiral)."""
    golden = math.pi * (3.0 - math.sqrt(5.0))
    k = np.arange(count)
    height = 1.0 - 2.0 * (k + 0.5) / count
    ring = np.sqrt(1.0 - height * height)
    return np.stack([ring * np.cos(golden * k), ring * np.sin(golden * k), height], axis=1)


def normals_point_outwards(points: Array, normals: Array, directions: int = 64) -> bool:
    """Whether normals agree with their neighbours, and with the one place where the outside is certain.

    A merge of two views without the cameras' positions has normals of both signs side by side. Where neighbours
    agree, all of them may still point inwards: then the points that lie farthest out in each direction tell. Of a
    plate seen from above, as many of those face outwards as inwards (the lowest points face up): that is accepted.

    Args:
        points, normals: (N, 3).
        directions: in which the farthest point is looked for.
    """
    some = slice(None, None, max(1, len(points) // _PROBES))
    center, axes = principal_frame(points[some])
    offsets = points[some] - center
    outwards = sphere_directions(directions) @ axes.T
    reach = outwards @ offsets.T
    along = np.einsum("ij,ij->i", outwards, normals[some][np.argmax(reach, axis=1)])
    widths = reach.max(axis=1) - reach.min(axis=1)
    # Where the object is wide, its farthest points lie on opposite sides.
    balance = float((along * widths).sum()) / max(float((np.abs(along) * widths).sum()), 1e-12)
    cells = build_cells(np.ascontiguousarray(points), _NEIGHBORHOOD)
    opposite = _opposite_share(np.ascontiguousarray(normals), cells, max(1, len(points) // _PROBES))
    if opposite > _MIXED or balance < _INWARDS:
        return False
    if float((along > 0.0).mean()) >= 0.6 or opposite < _CONSISTENT:
        return True
    # Thin walls, or two layers of different signs: let visibility decide.
    probes = np.arange(0, len(points), max(1, len(points) // _PROBES))
    estimated = estimate_outward_normals(points, probes)
    return float((np.einsum("ij,ij->i", estimated, normals[probes]) > 0.0).mean()) > 0.6


def normals_face_viewpoints(points: Array, normals: Array, viewpoints: Array, least_fraction: float = 0.95) -> bool:
    """Whether nearly all normals face one of the viewpoints (K, 3), as those of visible points must."""
    facing = np.zeros(len(points), dtype=bool)
    for eye in viewpoints:
        facing |= np.einsum("ij,ij->i", eye - points, normals) > 0.0
    return float(facing.mean()) >= least_fraction


def estimate_outward_normals(
    points: Array, rows: Index | None = None, viewpoints: ArrayLike | None = None, views: int = 20
) -> Array:
    """Outward unit normals (M, 3) of the local planes.

    Args:
        points: (N, 3) [m].
        rows: (M,) points whose normals are wanted, all if None; every point serves as a neighbour.
        viewpoints: (K, 3) positions of the cameras that saw the points [m]; None for cameras all around.
        views: directions from which visibility is judged where viewpoints are not known.

    Raises:
        InvalidInputError: fewer than four points.
    """
    if len(points) < 4:
        raise InvalidInputError("cloud", f"{len(points)} points", "at least 4 to estimate normals")
    points = np.ascontiguousarray(points)
    chosen = np.arange(len(points)) if rows is None else rows
    wanted = np.zeros(len(points), np.bool_)
    wanted[chosen] = True
    subset = np.ascontiguousarray(points[chosen])
    spacing = point_spacing(subset)
    center, axes = principal_frame(subset)
    # About ten neighbours at the thinned cloud's spacing.
    radius = float(np.clip(1.25 * spacing, 0.004, 0.01))
    normals = np.ascontiguousarray(estimate_normals(points, radius, center, wanted)[0][chosen])
    lonely = (normals == 0.0).all(axis=1)
    outwards = subset - center
    normals[lonely] = outwards[lonely] / np.maximum(np.linalg.norm(outwards[lonely], axis=1, keepdims=True), 1e-12)
    normals[(normals == 0.0).all(axis=1)] = axes[:, 0]
    if viewpoints is None:
        directions = sphere_directions(views) @ axes.T
    else:
        offsets = np.asarray(viewpoints, dtype=np.float64).reshape(-1, 3) - center
        directions = offsets / np.linalg.norm(offsets, axis=1, keepdims=True)
    sees = _visible_directions(subset, directions, axes, spacing)
    votes = np.einsum("ij,ij->i", normals, sees)
    normals *= np.where(votes < 0.0, -1.0, 1.0)[:, None]
    # A point seen from nowhere (or edge-on) takes the side of its neighbours.
    unsure = np.abs(votes) < 0.2
    flips = _against_neighbors(normals, unsure, build_cells(subset, 1.6 * spacing))
    normals[flips] *= -1.0
    return normals


def smooth_normals(points: Array, normals: Array, radius: float, rows: Index | None = None) -> Array:
    """Normals (M, 3) averaged over neighbours within a radius that face the same way (within 60°).

    Args:
        points, normals: (N, 3).
        radius: of the neighbourhood [m].
        rows: (M,) points whose smoothed normals are wanted, all if None.
    """
    chosen = np.arange(len(points)) if rows is None else rows
    wanted = np.zeros(len(points), np.bool_)
    wanted[chosen] = True
    cells = build_cells(np.ascontiguousarray(points), radius)
    return _smooth(np.ascontiguousarray(normals), wanted, cells)[chosen]


def _visible_directions(points: Array, directions: Array, axes: Array, spacing: float) -> Array:
    """(N, 3) mean direction from which each point is visible; short where it rarely is."""
    frames = np.empty((len(directions), 3, 3))
    for k, direction in enumerate(directions):
        across = axes[:, int(np.argmin(np.abs(direction @ axes)))]
        right = np.cross(direction, across)
        right /= np.linalg.norm(right)
        frames[k] = np.stack([right, np.cross(direction, right), direction])
    return _look(points, frames, spacing)


@njit(cache=True, nogil=True)
def _look(points: Array, frames: Array, spacing: float) -> Array:
    """Mean of the directions (rows 2 of the frames) in whose depth buffer each point is not behind another."""
    count = points.shape[0]
    sees = np.zeros((count, 3))
    number = np.zeros(count)
    u = np.empty(count)
    v = np.empty(count)
    depth = np.empty(count)
    for k in range(frames.shape[0]):
        for i in range(count):
            u[i] = frames[k, 0, 0] * points[i, 0] + frames[k, 0, 1] * points[i, 1] + frames[k, 0, 2] * points[i, 2]
            v[i] = frames[k, 1, 0] * points[i, 0] + frames[k, 1, 1] * points[i, 1] + frames[k, 1, 2] * points[i, 2]
            depth[i] = frames[k, 2, 0] * points[i, 0] + frames[k, 2, 1] * points[i, 1] + frames[k, 2, 2] * points[i, 2]
        u -= u.min()
        v -= v.min()
        extent = max(u.max(), v.max())
        cell = max(spacing, extent / _BUFFER)
        width, height = int(u.max() / cell) + 3, int(v.max() / cell) + 3
        nearest = np.full((width, height), -np.inf)
        for i in range(count):
            a, b = int(u[i] / cell) + 1, int(v[i] / cell) + 1
            if depth[i] > nearest[a, b]:
                nearest[a, b] = depth[i]
        for i in range(count):
            a, b = int(u[i] / cell) + 1, int(v[i] / cell) + 1
            hidden = nearest[a, b] > depth[i] + 1.5 * cell
            covering = 0
            for da in range(-1, 2):
                for db in range(-1, 2):
                    # A surface at 45° may rise by a cell in the next cell.
                    if nearest[a + da, b + db] > depth[i] + 2.5 * cell:
                        covering += 1
            # Surfaces in front are sampled too: one that covers three of the nine cells covers the gaps between.
            if hidden or covering >= 3:
                continue
            number[i] += 1.0
            for axis in range(3):
                sees[i, axis] += frames[k, 2, axis]
    for i in range(count):
        if number[i] > 0.0:
            for axis in range(3):
                sees[i, axis] /= number[i]
    return sees


@njit(cache=True, nogil=True)
def _against_neighbors(normals: Array, unsure: NDArray[np.bool_], cells: CellList) -> NDArray[np.bool_]:
    """Which unsure normals point against the sum of the sure ones around them."""
    flips = np.zeros(unsure.size, np.bool_)
    ranges = np.empty((27, 2), np.int64)
    squared = cells.size * cells.size
    for cell in range(cells.packed.size):
        used = adjacent_ranges(cells, cells.packed[cell], ranges)
        for row in range(cells.starts[cell], cells.starts[cell + 1]):
            i = cells.order[row]
            if not unsure[i]:
                continue
            agreement = 0.0
            for part in range(used):
                for other in range(ranges[part, 0], ranges[part, 1]):
                    j = cells.order[other]
                    gap = 0.0
                    for axis in range(3):
                        gap += (cells.points[other, axis] - cells.points[row, axis]) ** 2
                    if gap > squared or unsure[j]:
                        continue
                    for axis in range(3):
                        agreement += normals[i, axis] * normals[j, axis]
            flips[i] = agreement < 0.0
    return flips


@njit(cache=True, nogil=True)
def _opposite_share(normals: Array, cells: CellList, stride: int) -> float:
    """Share of the neighbours of every so manyth point whose normals differ from its own by more than 110°."""
    ranges = np.empty((27, 2), np.int64)
    squared = cells.size * cells.size
    pairs, opposite = 0, 0
    for cell in range(cells.packed.size):
        used = 0
        for row in range(cells.starts[cell], cells.starts[cell + 1]):
            if row % stride != 0:
                continue
            if used == 0:
                used = adjacent_ranges(cells, cells.packed[cell], ranges)
            x, y, z = cells.points[row, 0], cells.points[row, 1], cells.points[row, 2]
            i = cells.order[row]
            for part in range(used):
                for other in range(ranges[part, 0], ranges[part, 1]):
                    dx, dy, dz = cells.points[other, 0] - x, cells.points[other, 1] - y, cells.points[other, 2] - z
                    if dx * dx + dy * dy + dz * dz > squared:
                        continue
                    j = cells.order[other]
                    pairs += 1
                    agreement = normals[i, 0] * normals[j, 0] + normals[i, 1] * normals[j, 1]
                    if agreement + normals[i, 2] * normals[j, 2] < -0.34:
                        opposite += 1
    return opposite / max(pairs, 1)


@njit(cache=True, nogil=True)
def _smooth(normals: Array, wanted: NDArray[np.bool_], cells: CellList) -> Array:
    smoothed = np.zeros(normals.shape)
    ranges = np.empty((27, 2), np.int64)
    squared = cells.size * cells.size
    for cell in range(cells.packed.size):
        used = 0
        for row in range(cells.starts[cell], cells.starts[cell + 1]):
            i = cells.order[row]
            if not wanted[i]:
                continue
            if used == 0:
                used = adjacent_ranges(cells, cells.packed[cell], ranges)
            x, y, z = cells.points[row, 0], cells.points[row, 1], cells.points[row, 2]
            nx, ny, nz = normals[i, 0], normals[i, 1], normals[i, 2]
            sx, sy, sz = 0.0, 0.0, 0.0
            for part in range(used):
                for other in range(ranges[part, 0], ranges[part, 1]):
                    dx = cells.points[other, 0] - x
                    dy = cells.points[other, 1] - y
                    dz = cells.points[other, 2] - z
                    if dx * dx + dy * dy + dz * dz > squared:
                        continue
                    j = cells.order[other]
                    if nx * normals[j, 0] + ny * normals[j, 1] + nz * normals[j, 2] > 0.5:
                        sx += normals[j, 0]
                        sy += normals[j, 1]
                        sz += normals[j, 2]
            length = math.sqrt(sx * sx + sy * sy + sz * sz)
            if length < 1e-12:
                smoothed[i, 0], smoothed[i, 1], smoothed[i, 2] = nx, ny, nz
            else:
                smoothed[i, 0], smoothed[i, 1], smoothed[i, 2] = sx / length, sy / length, sz / length
    return smoothed
