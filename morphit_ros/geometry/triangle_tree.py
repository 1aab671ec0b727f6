"""Closest points of a triangle mesh: nodes of a tree of boxes, compiled. Exact; warm starts only save time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import lean_njit, njit

# Triangles in a leaf; depth of the search in a tree of 2^40 leaves; bits of a place along each axis.
_LEAF, _DEPTH, _BITS = 8, 42, 20
# Pieces of triangles so small are not divided further: nearer meshes are said to meet [m].
_FINEST = 1e-4


class TreeArrays(NamedTuple):
    """Trees over the triangles of several meshes, for kernels of others.

    Attributes:
        triangles: (F, 3, 3) of all meshes [m].
        order: (F,) triangles along the curve, mesh by mesh.
        boxes: (B, 6) nodes, mesh by mesh.
        tables: (M, 4) where a mesh begins in `order`, how many triangles it has, and the same of `boxes`.
    """

    triangles: Array
    order: NDArray[np.int64]
    boxes: Array
    tables: NDArray[np.int64]


class TriangleTree:
    """A tree over triangles: neighbours along a Z-order curve share leaves, leaves next to each other share parents.

    Args:
        triangles: (F, 3, 3) with an area [m].
    """

    def __init__(self, triangles: Array) -> None:
        self._triangles = np.ascontiguousarray(triangles, dtype=np.float64)
        count = len(self._triangles)
        lows, highs = self._triangles.min(axis=1), self._triangles.max(axis=1)
        self._order = np.argsort(_curve_places(0.5 * (lows + highs)), kind="stable")
        starts = np.arange(0, count, _LEAF)
        leaves = 1 << int(np.ceil(np.log2(len(starts))))
        # A heap: children of node i are 2 i + 1 and 2 i + 2; leaves come last, the empty ones far away.
        boxes = np.full((2 * leaves - 1, 6), -np.inf)
        boxes[:, :3] = np.inf
        filled = slice(leaves - 1, leaves - 1 + len(starts))
        boxes[filled, :3] = np.minimum.reduceat(lows[self._order], starts)
        boxes[filled, 3:] = np.maximum.reduceat(highs[self._order], starts)
        size = leaves // 2
        while size:
            children = boxes[2 * size - 1 : 4 * size - 1].reshape(size, 2, 6)
            boxes[size - 1 : 2 * size - 1, :3] = children[:, :, :3].min(axis=1)
            boxes[size - 1 : 2 * size - 1, 3:] = children[:, :, 3:].max(axis=1)
            size //= 2
        self._boxes = boxes

    @staticmethod
    def arrays(trees: Sequence[TriangleTree]) -> TreeArrays:
        """Several trees for kernels."""
        tables = np.zeros((len(trees), 4), dtype=np.int64)
        triangles, order, boxes = [np.zeros((0, 3, 3))], [np.zeros(0, dtype=np.int64)], [np.zeros((0, 6))]
        faces = nodes = 0
        for row, tree in enumerate(trees):
            tables[row] = faces, len(tree._order), nodes, len(tree._boxes)
            triangles.append(tree._triangles)
            order.append(tree._order + faces)
            boxes.append(tree._boxes)
            faces, nodes = faces + len(tree._order), nodes + len(tree._boxes)
        return TreeArrays(np.concatenate(triangles), np.concatenate(order), np.concatenate(boxes), tables)

    def query(self, points: Array, guesses: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int64], Array]:
        """Faces (N,) and weights (N, 3) of their corners at the points of the mesh closest to `points` (N, 3) [m].

        Args:
            guesses: (N,) faces that are likely near, such as those found before.
        """
        faces = np.zeros(len(points), dtype=np.int64) if guesses is None else guesses.copy()
        weights = np.empty((len(points), 3))
        _search(
            np.ascontiguousarray(points, dtype=np.float64), self._triangles, self._order, self._boxes, faces, weights
        )  # fmt: skip
        return faces, weights


def _curve_places(points: Array) -> NDArray[np.uint64]:
    """(F,) places along a Z-order curve: the bits of the three coordinates in turn."""
    low, reach = points.min(axis=0), float(np.ptp(points, axis=0).max())
    cells = ((points - low) * ((2**_BITS - 1) / max(reach, 1e-300))).astype(np.uint64)
    places = np.zeros(len(points), dtype=np.uint64)
    for bit in range(_BITS):
        for axis in range(3):
            places |= ((cells[:, axis] >> np.uint64(bit)) & np.uint64(1)) << np.uint64(3 * bit + axis)
    return places


# Scalars in and out: numba takes half a minute for the same with slices of arrays.
@njit(cache=True, nogil=True, error_model="numpy")
def _search(points, triangles, order, boxes, faces, weights):  # type: ignore[no-untyped-def]
    """From guesses in `faces` to the closest faces, with weights of their corners."""
    stack = np.empty(_DEPTH, dtype=np.int64)
    parents = len(boxes) // 2
    for k in range(len(points)):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        face = faces[k]
        best, best_v, best_w = _closest(x, y, z, triangles, face)
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            if not _box_square(x, y, z, boxes, node) < best:
                continue
            if node >= parents:
                begin = _LEAF * (node - parents)
                for place in range(begin, min(begin + _LEAF, len(order))):
                    square, v, w = _closest(x, y, z, triangles, order[place])
                    if square < best:
                        best, best_v, best_w, face = square, v, w, order[place]
                continue
            near, far = 2 * node + 1, 2 * node + 2
            if _box_square(x, y, z, boxes, far) < _box_square(x, y, z, boxes, near):
                near, far = far, near
            stack[depth], stack[depth + 1] = far, near
            depth += 2
        faces[k] = face
        weights[k, 0], weights[k, 1], weights[k, 2] = max(1.0 - best_v - best_w, 0.0), best_v, best_w


@njit(cache=True, nogil=True, error_model="numpy")
def least_square(trees, mesh, x, y, z, limit, enough):  # type: ignore[no-untyped-def]
    """Squared distance of a point from one mesh of `TreeArrays`; `limit` if it is not less.

    The first that is found below `enough` is taken, nearest or not.
    """
    stack = np.empty(_DEPTH, dtype=np.int64)
    first, count, base, nodes = trees.tables[mesh]
    parents = nodes // 2
    best = limit
    stack[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if not _box_square(x, y, z, trees.boxes, base + node) < best:
            continue
        if node >= parents:
            begin = _LEAF * (node - parents)
            for place in range(begin, min(begin + _LEAF, count)):
                square, _, _ = _closest(x, y, z, trees.triangles, trees.order[first + place])
                best = min(best, square)
            if best < enough:
                return best
            continue
        near, far = 2 * node + 1, 2 * node + 2
        if _box_square(x, y, z, trees.boxes, base + far) < _box_square(x, y, z, trees.boxes, base + near):
            near, far = far, near
        stack[depth], stack[depth + 1] = far, near
        depth += 2
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def surface_gap(trees, first, second, first_pose, second_pose, limit):  # type: ignore[no-untyped-def]
    """A bound of the distance of two meshes of `TreeArrays`: at least half of it, less `_FINEST`; `limit` if not less.

    Not above zero where they meet, and the first such bound that is found. Balls around the boxes of the first mesh and
    around pieces of its triangles are held against the second, down to balls half as large as they are far from it.
    Poses (4, 4) in a common frame.
    """
    turn, shift = np.zeros((3, 3)), np.zeros(3)
    for r in range(3):
        for k in range(3):
            shift[r] += second_pose[k, r] * (first_pose[k, 3] - second_pose[k, 3])
            for c in range(3):
                turn[r, c] += second_pose[k, r] * first_pose[k, c]
    nodes, pieces = np.empty(_DEPTH, dtype=np.int64), np.empty((_DEPTH, 3, 3))
    begin, count, base, size = trees.tables[first]
    parents, least = size // 2, limit
    nodes[0], depth = 0, 1
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        box = trees.boxes[base + node]
        if not box[0] <= box[3]:
            continue
        a, b, c = 0.5 * (box[3] - box[0]), 0.5 * (box[4] - box[1]), 0.5 * (box[5] - box[2])
        distance, radius = (
            _moved_distance(trees, second, turn, shift, box[0] + a, box[1] + b, box[2] + c, least, a, b, c),
            np.sqrt(a * a + b * b + c * c),
        )
        if distance - radius >= least:
            continue
        if node < parents:
            nodes[depth], nodes[depth + 1] = 2 * node + 1, 2 * node + 2
            depth += 2
            continue
        last = min(_LEAF * (node - parents) + _LEAF, count)
        for place in range(_LEAF * (node - parents), last):
            pieces[0] = trees.triangles[trees.order[begin + place]]
            waiting = 1
            while waiting > 0:
                waiting -= 1
                piece = pieces[waiting]
                x = (piece[0, 0] + piece[1, 0] + piece[2, 0]) / 3.0
                y = (piece[0, 1] + piece[1, 1] + piece[2, 1]) / 3.0
                z = (piece[0, 2] + piece[1, 2] + piece[2, 2]) / 3.0
                square, longest, edge = 0.0, -1.0, 0
                for e in range(3):
                    o = (e + 1) % 3
                    square = max(square, (piece[e, 0] - x) ** 2 + (piece[e, 1] - y) ** 2 + (piece[e, 2] - z) ** 2)
                    length = (
                        (piece[e, 0] - piece[o, 0]) ** 2
                        + (piece[e, 1] - piece[o, 1]) ** 2
                        + (piece[e, 2] - piece[o, 2]) ** 2
                    )
                    if length > longest:
                        longest, edge = length, e
                # A little larger against rounding.
                radius = np.sqrt(square) * (1.0 + 1e-9) + 1e-12
                distance = _moved_distance(trees, second, turn, shift, x, y, z, least, radius, 0.0, 0.0)
                if distance - radius >= least:
                    continue
                if radius <= 0.5 * distance or radius <= _FINEST or waiting + 2 > len(pieces):
                    least = distance - radius
                    if least <= 0.0:
                        return least
                    continue
                other = (edge + 1) % 3
                for axis in range(3):
                    corner, middle = piece[other, axis], 0.5 * (piece[edge, axis] + piece[other, axis])
                    for e in range(3):
                        pieces[waiting + 1, e, axis] = piece[e, axis]
                    pieces[waiting + 1, edge, axis] = middle
                    pieces[waiting, other, axis] = middle
                    pieces[waiting + 1, other, axis] = corner
                waiting += 2
    return least


@lean_njit(error_model="numpy")
def _moved_distance(trees, mesh, turn, shift, x, y, z, reach, a, b, c):  # type: ignore[no-untyped-def]
    """Distance of a moved point from a mesh, or what is as far as a reach and half a diagonal (a, b, c) at least."""
    u = turn[0, 0] * x + turn[0, 1] * y + turn[0, 2] * z + shift[0]
    v = turn[1, 0] * x + turn[1, 1] * y + turn[1, 2] * z + shift[1]
    w = turn[2, 0] * x + turn[2, 1] * y + turn[2, 2] * z + shift[2]
    limit = (reach + np.sqrt(a * a + b * b + c * c)) * (1.0 + 1e-9) + 1e-12
    return np.sqrt(least_square(trees, mesh, u, v, w, limit * limit, -1.0))


@lean_njit(error_model="numpy")
def _box_square(x, y, z, boxes, node):  # type: ignore[no-untyped-def]
    """Squared distance of a point from a box."""
    dx = max(max(boxes[node, 0] - x, x - boxes[node, 3]), 0.0)
    dy = max(max(boxes[node, 1] - y, y - boxes[node, 4]), 0.0)
    dz = max(max(boxes[node, 2] - z, z - boxes[node, 5]), 0.0)
    return dx * dx + dy * dy + dz * dz


@lean_njit(error_model="numpy")
def _closest(x, y, z, triangles, face):  # type: ignore[no-untyped-def]
    """Squared distance of a point from a triangle, and the weights of its second and third corner there.

    The foot on the plane if it is inside; or the closest point of the three edges.
    """
    ax, ay, az = triangles[face, 0, 0], triangles[face, 0, 1], triangles[face, 0, 2]
    px, py, pz = x - ax, y - ay, z - az
    bx, by, bz = triangles[face, 1, 0] - ax, triangles[face, 1, 1] - ay, triangles[face, 1, 2] - az
    cx, cy, cz = triangles[face, 2, 0] - ax, triangles[face, 2, 1] - ay, triangles[face, 2, 2] - az
    bb, bc, cc = bx * bx + by * by + bz * bz, bx * cx + by * cy + bz * cz, cx * cx + cy * cy + cz * cz
    pb, pc = px * bx + py * by + pz * bz, px * cx + py * cy + pz * cz
    best, best_v, best_w = np.inf, 0.0, 0.0
    # By the normal: the determinant of the Gram matrix cancels in needles.
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    square = nx * nx + ny * ny + nz * nz
    v = ((py * cz - pz * cy) * nx + (pz * cx - px * cz) * ny + (px * cy - py * cx) * nz) / square
    w = ((by * pz - bz * py) * nx + (bz * px - bx * pz) * ny + (bx * py - by * px) * nz) / square
    if v >= 0.0 and w >= 0.0 and v + w <= 1.0:
        dx, dy, dz = px - v * bx - w * cx, py - v * by - w * cy, pz - v * bz - w * cz
        best, best_v, best_w = dx * dx + dy * dy + dz * dz, v, w
    # From the first to the second corner, from the first to the third, from the second to the third.
    shares = (pb / bb, pc / cc, (pc - pb + bb - bc) / (bb - 2.0 * bc + cc))
    for edge in range(3):
        share = min(max(shares[edge], 0.0), 1.0)
        v = share if edge == 0 else (0.0 if edge == 1 else 1.0 - share)
        w = 0.0 if edge == 0 else share
        dx, dy, dz = px - v * bx - w * cx, py - v * by - w * cy, pz - v * bz - w * cz
        square = dx * dx + dy * dy + dz * dz
        if square < best:
            best, best_v, best_w = square, v, w
    return best, best_v, best_w
