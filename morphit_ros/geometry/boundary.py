"""The boundary of a triangle mesh, and triangles that close it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Faces = NDArray[np.int64]


def welded_faces(vertices: Array, faces: Faces) -> Faces:
    """The faces (F, 3) with one index for all vertices (V, 3) of the same coordinates, the lowest."""
    # Adding zero turns -0 into 0, which has other bits.
    bits = (np.ascontiguousarray(vertices) + 0.0).view(np.int64)
    return first_of_equal_rows(bits)[faces]


def first_of_equal_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Index (R,) of the first of all rows that equal each of the rows (R, 3)."""
    return _first_of_equal(np.ascontiguousarray(rows))


def boundary_edges(faces: Faces) -> Faces:
    """Directed edges (B, 2) that no opposite edge cancels, as often as they are left over.

    Their start and end points are in balance at every vertex, so they make up closed loops. None are left exactly
    if the winding number of the mesh is a whole number everywhere.
    """
    return _uncancelled(faces, int(faces.max()) + 1)


def filling_faces(edges: Faces) -> Faces:
    """Triangles (T, 3) whose boundary is the given one, which is in balance at every vertex.

    Each loop is filled from long chords to short ones, so that most triangles are as small as the edges. They may
    intersect: winding numbers only ask for their boundary.
    """
    if len(edges) == 0:
        return np.empty((0, 3), dtype=np.int64)
    order = np.argsort(edges[:, 0], kind="stable")
    starts = np.ascontiguousarray(edges[order, 0])
    return _fill_loops(starts, np.searchsorted(starts, edges[order, 1]), np.ascontiguousarray(edges[order, 1]))


@njit(cache=True, nogil=True)
def _first_of_equal(bits):  # type: ignore[no-untyped-def]
    """By open addressing."""
    size = 16
    while size < 2 * len(bits):
        size *= 2
    table = np.full(size, -1, dtype=np.int64)
    result = np.empty(len(bits), dtype=np.int64)
    for v in range(len(bits)):
        mixed = np.uint64(0)
        for axis in range(3):
            mixed = (mixed ^ np.uint64(bits[v, axis])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        slot = np.int64(mixed & np.uint64(size - 1))
        while table[slot] >= 0:
            other = table[slot]
            if bits[other, 0] == bits[v, 0] and bits[other, 1] == bits[v, 1] and bits[other, 2] == bits[v, 2]:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = v
        result[v] = table[slot]
    return result


@njit(cache=True, nogil=True)
def lower_vertices(faces, vertex_count):  # type: ignore[no-untyped-def]
    """Where the list of edges with each lower vertex starts (V + 1,) in one of all edges, and where it goes on (V,)."""
    starts = np.zeros(vertex_count + 1, dtype=np.int64)
    for f in range(len(faces)):
        for c in range(3):
            starts[min(faces[f, c], faces[f, (c + 1) % 3]) + 1] += 1
    starts = np.cumsum(starts)
    return starts, starts[:-1].copy()


@njit(cache=True, nogil=True)
def _uncancelled(faces, vertex_count):  # type: ignore[no-untyped-def]
    """Edges by their lower vertex, then forwards minus backwards for each upper vertex."""
    starts, cursor = lower_vertices(faces, vertex_count)
    upper = np.empty(3 * len(faces), dtype=np.int64)
    sign = np.empty(3 * len(faces), dtype=np.int8)
    for f in range(len(faces)):
        for c in range(3):
            a, b = faces[f, c], faces[f, (c + 1) % 3]
            place = cursor[min(a, b)]
            cursor[min(a, b)] += 1
            upper[place] = max(a, b)
            sign[place] = np.sign(b - a)
    surplus = np.zeros(vertex_count, dtype=np.int64)
    # What is left over takes at most as many edges as there are.
    edges = np.empty((3 * len(faces), 2), dtype=np.int64)
    count = 0
    for low in range(vertex_count):
        for place in range(starts[low], starts[low + 1]):
            surplus[upper[place]] += sign[place]
        for place in range(starts[low], starts[low + 1]):
            high = upper[place]
            for _ in range(abs(surplus[high])):
                edges[count, 0], edges[count, 1] = (low, high) if surplus[high] > 0 else (high, low)
                count += 1
            surplus[high] = 0
    return edges[:count].copy()


@njit(cache=True, nogil=True)
def _fill_loops(starts, followers, ends):  # type: ignore[no-untyped-def]
    """Walk the edges (sorted by start; `followers`: first edge that starts where each ends) loop by loop."""
    count = len(starts)
    used = np.zeros(count, dtype=np.bool_)
    # The next unused edge of the group that begins at this index.
    cursor = np.arange(count)
    loop = np.empty(count, dtype=np.int64)
    faces = np.empty((count, 3), dtype=np.int64)
    ranges = np.empty((128, 2), dtype=np.int64)
    filled = 0
    for first in range(count):
        if used[first]:
            continue
        length, edge = 0, first
        while True:
            used[edge] = True
            loop[length] = starts[edge]
            length += 1
            if ends[edge] == starts[first]:
                break
            group = followers[edge]
            while used[cursor[group]]:
                cursor[group] += 1
            edge = cursor[group]
        depth = 1
        ranges[0, 0], ranges[0, 1] = 0, length - 1
        while depth > 0:
            depth -= 1
            i, j = ranges[depth, 0], ranges[depth, 1]
            if j - i < 2:
                continue
            middle = (i + j) // 2
            faces[filled, 0], faces[filled, 1], faces[filled, 2] = loop[i], loop[middle], loop[j]
            filled += 1
            ranges[depth, 0], ranges[depth, 1] = i, middle
            ranges[depth + 1, 0], ranges[depth + 1, 1] = middle, j
            depth += 2
    return faces[:filled]
