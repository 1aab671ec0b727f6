"""Cells of a grid cut by a surface: their volume, moments and triangles, by marching tetrahedra.

Each cube of eight nodes is six tetrahedra along its main diagonal (Kuhn's subdivision). The surface crosses an edge
between a node inside and one outside at a given place, so that neighbours share it: the surface is closed, and volume
and moments are those of exactly this polyhedron.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.neural.contact.compilation import inner

# Edges of the subdivision, from a node to its neighbours in the positive direction, and where to find each by its
# steps (4 x + 2 y + z).
EDGE_STEPS = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]], np.int64)
_EDGE_OF_STEP = np.array([-1, 2, 1, 5, 0, 4, 3, 6], np.int64)
# The six ways from corner (0, 0, 0) to (1, 1, 1) along the axes, as the two corners in between.
_WAYS = np.array([[4, 6], [4, 5], [2, 6], [2, 3], [1, 5], [1, 3]], np.int64)


# As part of the loop over cells: a call for each piece takes twice the time.
_inlined = njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True
)


class CutEdges(NamedTuple):
    """Edges between a node inside and one outside.

    Attributes:
        first: (number of nodes) index of each node's first cut edge.
        mask: (number of nodes) a bit for each of the seven edges of a node that is cut.
        inside, outside: (E, 3) grid indices of the two nodes of each cut edge.
    """

    first: NDArray[np.int64]
    mask: NDArray[np.uint8]
    inside: NDArray[np.int64]
    outside: NDArray[np.int64]


def find_cut_edges(inside: NDArray[np.bool_]) -> CutEdges:
    """The edges between nodes (X, Y, Z) that are inside and others."""
    first, mask, count = _mark_cut_edges(inside)
    return CutEdges(first, mask, *_list_cut_edges(inside, mask, count))


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_cut_edges(inside):  # type: ignore[no-untyped-def]
    nx, ny, nz = inside.shape
    first = np.zeros(nx * ny * nz, np.int64)
    mask = np.zeros(nx * ny * nz, np.uint8)
    count = 0
    for i in range(nx):
        for j in range(ny):
            for k in range(nz):
                node = (i * ny + j) * nz + k
                first[node] = count
                for edge in range(7):
                    a, b, c = i + EDGE_STEPS[edge, 0], j + EDGE_STEPS[edge, 1], k + EDGE_STEPS[edge, 2]
                    if a < nx and b < ny and c < nz and inside[a, b, c] != inside[i, j, k]:
                        mask[node] |= np.uint8(1 << edge)
                        count += 1
    return first, mask, count


@njit(cache=True, nogil=True, error_model="numpy")
def _list_cut_edges(inside, mask, count):  # type: ignore[no-untyped-def]
    nx, ny, nz = inside.shape
    near = np.empty((count, 3), np.int64)
    far = np.empty((count, 3), np.int64)
    found = 0
    for i in range(nx):
        for j in range(ny):
            for k in range(nz):
                bits = mask[(i * ny + j) * nz + k]
                for edge in range(7):
                    if (bits >> edge) & 1:
                        a, b, c = i + EDGE_STEPS[edge, 0], j + EDGE_STEPS[edge, 1], k + EDGE_STEPS[edge, 2]
                        if inside[i, j, k]:
                            near[found, 0], near[found, 1], near[found, 2] = i, j, k
                            far[found, 0], far[found, 1], far[found, 2] = a, b, c
                        else:
                            near[found, 0], near[found, 1], near[found, 2] = a, b, c
                            far[found, 0], far[found, 1], far[found, 2] = i, j, k
                        found += 1
    return near, far


class CutVolume(NamedTuple):
    """What is inside of the surface, in units of the grid's spacing, from its first node.

    Attributes:
        occupancy: (X − 1, Y − 1, Z − 1) share of each cell.
        volume, first_moment (3,), second_moment (3, 3): ∫ 1, ∫ x, ∫ x xᵀ about `middle`.
        faces: (F, 3) triangles between the crossings of cut edges, counter-clockwise from outside.
    """

    occupancy: Array
    volume: float
    first_moment: Array
    second_moment: Array
    faces: NDArray[np.int64]


def measure_cut_cells(
    inside: NDArray[np.bool_], edges: CutEdges, crossings: Array, middle: Array, with_faces: bool = True
) -> CutVolume:
    """Volume, moments and surface of nodes (X, Y, Z) inside, with crossings (E, 3) of the cut edges [grid units]."""
    occupancy, sums, faces = _measure(inside, edges.first, edges.mask, crossings, middle, with_faces)
    second = np.array(
        [[sums[4], sums[7], sums[8]], [sums[7], sums[5], sums[9]], [sums[8], sums[9], sums[6]]], np.float64
    )
    return CutVolume(occupancy, float(sums[0]), sums[1:4].copy(), second, faces)


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(inside, first, mask, crossings, middle, with_faces):  # type: ignore[no-untyped-def]
    nx, ny, nz = inside.shape
    occupancy = np.zeros((nx - 1, ny - 1, nz - 1))
    sums = np.zeros(10)
    faces = np.empty((1024 if with_faces else 0, 3), np.int64)
    found = 0
    # Of one tetrahedron: corners from low to high and whether they are inside, cut edges and where they are, corners of
    # the part inside. Not in a tuple: taking arrays out of one costs as much as half of the work.
    node, within = np.empty((4, 3), np.int64), np.empty(4, np.bool_)
    ids, cut, corners = np.empty(4, np.int64), np.empty((4, 3)), np.empty((6, 3))
    for i in range(nx - 1):
        for j in range(ny - 1):
            for k in range(nz - 1):
                total = 0
                for corner in range(8):
                    total += inside[i + (corner >> 2), j + ((corner >> 1) & 1), k + (corner & 1)]
                if total == 0:
                    continue
                if total == 8:
                    occupancy[i, j, k] = 1.0
                    x, y, z = i + 0.5 - middle[0], j + 0.5 - middle[1], k + 0.5 - middle[2]
                    sums[0] += 1.0
                    sums[1] += x
                    sums[2] += y
                    sums[3] += z
                    sums[4] += x * x + 1.0 / 12.0
                    sums[5] += y * y + 1.0 / 12.0
                    sums[6] += z * z + 1.0 / 12.0
                    sums[7] += x * y
                    sums[8] += x * z
                    sums[9] += y * z
                    continue
                if with_faces and found + 12 > len(faces):
                    larger = np.empty((2 * len(faces), 3), np.int64)
                    larger[:found] = faces[:found]
                    faces = larger
                volume = 0.0
                for way in range(6):
                    count = _take(inside, i, j, k, way, node, within)
                    if count == 0:
                        continue
                    if count == 4:
                        _set(corners, node)
                        volume += _add(sums, corners, 0, middle, 1.0)
                        continue
                    _cut(node, within, count, first, mask, crossings, ny, nz, ids, cut, corners)
                    volume += _add(sums, corners, 0, middle, -1.0 if count == 3 else 1.0)
                    if count == 2:
                        volume += _add(sums, corners, 1, middle, 1.0)
                        volume += _add(sums, corners, 2, middle, 1.0)
                    elif count == 3:
                        _set(corners, node)
                        volume += _add(sums, corners, 0, middle, 1.0)
                    if with_faces:
                        found = _add_faces(faces, found, node, within, ids, cut, count)
                occupancy[i, j, k] = min(max(volume, 0.0), 1.0)
    return occupancy, sums, faces[:found].copy()


@_inlined
def _take(inside, i, j, k, way, node, within):  # type: ignore[no-untyped-def]
    """Corners of a cell's tetrahedron; how many are inside."""
    count = 0
    for place in range(4):
        corner = 0 if place == 0 else (7 if place == 3 else _WAYS[way, place - 1])
        node[place, 0] = i + (corner >> 2)
        node[place, 1] = j + ((corner >> 1) & 1)
        node[place, 2] = k + (corner & 1)
        within[place] = inside[node[place, 0], node[place, 1], node[place, 2]]
        count += within[place]
    return count


@_inlined
def _cut(node, within, count, first, mask, crossings, ny, nz, ids, cut, corners):  # type: ignore[no-untyped-def]
    """Fill the cut edges of a tetrahedron with `count` corners inside, and the corners of what they cut off.

    That is the inside, a tetrahedron or (count 2) a wedge; with count 3 the tetrahedron outside.
    """
    place, row = 0, 1 if count == 3 else 0
    for near in range(4):
        if not within[near]:
            continue
        if count < 3:
            for axis in range(3):
                corners[row, axis] = node[near, axis]
            row += 1
        for far in range(4):
            if within[far]:
                continue
            edge = _edge(node, near, far, first, mask, ny, nz)
            ids[place] = edge
            for axis in range(3):
                cut[place, axis] = crossings[edge, axis]
                corners[row, axis] = crossings[edge, axis]
                if count == 3:
                    corners[0, axis] = node[far, axis]
            place += 1
            row += 1


@_inlined
def _add_faces(faces, found, node, within, ids, cut, count):  # type: ignore[no-untyped-def]
    """Append the one or two triangles of a cut tetrahedron, turned outwards; how many there are then."""
    # The side is told by nodes, which never lie on the surface, as crossings may.
    sx = sy = sz = 0.0
    for place in range(4):
        sign = -1.0 / count if within[place] else 1.0 / (4 - count)
        sx += sign * node[place, 0]
        sy += sign * node[place, 1]
        sz += sign * node[place, 2]
    for a in range(2 if count == 2 else 1):
        b, c = a + 1, a + 2
        ux, uy, uz = cut[b, 0] - cut[a, 0], cut[b, 1] - cut[a, 1], cut[b, 2] - cut[a, 2]
        vx, vy, vz = cut[c, 0] - cut[a, 0], cut[c, 1] - cut[a, 1], cut[c, 2] - cut[a, 2]
        along = (uy * vz - uz * vy) * sx + (uz * vx - ux * vz) * sy + (ux * vy - uy * vx) * sz
        faces[found, 0] = ids[a]
        faces[found, 1] = ids[b] if along >= 0.0 else ids[c]
        faces[found, 2] = ids[c] if along >= 0.0 else ids[b]
        found += 1
    return found


@inner
def _set(corners, node):  # type: ignore[no-untyped-def]
    for place in range(4):
        for axis in range(3):
            corners[place, axis] = node[place, axis]


@inner
def _edge(node, near, far, first, mask, ny, nz):  # type: ignore[no-untyped-def]
    """Index of the cut edge between two corners of a tetrahedron, which lie on one way from low to high."""
    low, high = (near, far) if near < far else (far, near)
    step = 0
    for axis in range(3):
        step = 2 * step + node[high, axis] - node[low, axis]
    edge = _EDGE_OF_STEP[step]
    start = (node[low, 0] * ny + node[low, 1]) * nz + node[low, 2]
    index = first[start]
    for lower in range(edge):
        index += (mask[start] >> lower) & 1
    return index


@inner
def _add(sums, points, a, middle, sign):  # type: ignore[no-untyped-def]
    """Add the moments of the tetrahedron of four points, from row a; returns its signed volume."""
    b, c, d = a + 1, a + 2, a + 3
    ax, ay, az = points[a, 0] - middle[0], points[a, 1] - middle[1], points[a, 2] - middle[2]
    bx, by, bz = points[b, 0] - middle[0], points[b, 1] - middle[1], points[b, 2] - middle[2]
    cx, cy, cz = points[c, 0] - middle[0], points[c, 1] - middle[1], points[c, 2] - middle[2]
    dx, dy, dz = points[d, 0] - middle[0], points[d, 1] - middle[1], points[d, 2] - middle[2]
    ux, uy, uz = bx - ax, by - ay, bz - az
    vx, vy, vz = cx - ax, cy - ay, cz - az
    wx, wy, wz = dx - ax, dy - ay, dz - az
    volume = abs(ux * (vy * wz - vz * wy) - uy * (vx * wz - vz * wx) + uz * (vx * wy - vy * wx)) * sign / 6.0
    sx, sy, sz = ax + bx + cx + dx, ay + by + cy + dy, az + bz + cz + dz
    sums[0] += volume
    sums[1] += volume * sx * 0.25
    sums[2] += volume * sy * 0.25
    sums[3] += volume * sz * 0.25
    weight = volume * 0.05
    sums[4] += weight * (ax * ax + bx * bx + cx * cx + dx * dx + sx * sx)
    sums[5] += weight * (ay * ay + by * by + cy * cy + dy * dy + sy * sy)
    sums[6] += weight * (az * az + bz * bz + cz * cz + dz * dz + sz * sz)
    sums[7] += weight * (ax * ay + bx * by + cx * cy + dx * dy + sx * sy)
    sums[8] += weight * (ax * az + bx * bz + cx * cz + dx * dz + sx * sz)
    sums[9] += weight * (ay * az + by * bz + cy * cz + dy * dz + sy * sz)
    return volume
