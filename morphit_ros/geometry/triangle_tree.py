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
def surface_gap(trees, first, second, first_pose, second_pose, limit, enough):  # type: ignore[no-untyped-def]
    """Distance of two meshes of `TreeArrays` at poses (4, 4) in a common frame; 0 where they meet, `limit` if not less.

    The first that is found at or below `enough` is taken, nearest or not.
    """
    # The first in the frame of the second; boxes turn into boxes around them.
    turn, shift = np.zeros((3, 3)), np.zeros(3)
    for r in range(3):
        for k in range(3):
            shift[r] += second_pose[k, r] * (first_pose[k, 3] - second_pose[k, 3])
            for c in range(3):
                turn[r, c] += second_pose[k, r] * first_pose[k, c]
    begin, count, base, size = trees.tables[first]
    other_begin, other_count, other_base, other_size = trees.tables[second]
    parents, other_parents = size // 2, other_size // 2
    # Of each pair of nodes one is divided, so that there are never more than the depths of both trees.
    stack, squares = np.empty((2 * _DEPTH, 2), dtype=np.int64), np.empty(2 * _DEPTH)
    box, moved, triangle = np.empty(6), np.empty((_LEAF, 3, 3)), np.empty(6)
    best = limit * limit
    stack[0, 0], stack[0, 1], squares[0], depth = 0, 0, 0.0, 1
    while depth > 0:
        depth -= 1
        a, b = stack[depth]
        if not squares[depth] < best:
            continue
        if a >= parents and b >= other_parents:
            last = min(_LEAF, count - _LEAF * (a - parents))
            for i in range(last):
                source = trees.triangles[trees.order[begin + _LEAF * (a - parents) + i]]
                for corner in range(3):
                    for r in range(3):
                        moved[i, corner, r] = shift[r] + (
                            turn[r, 0] * source[corner, 0]
                            + turn[r, 1] * source[corner, 1]
                            + turn[r, 2] * source[corner, 2]
                        )
            other_last = min(_LEAF, other_count - _LEAF * (b - other_parents))
            for j in range(other_last):
                other = trees.triangles[trees.order[other_begin + _LEAF * (b - other_parents) + j]]
                for r in range(3):
                    triangle[r] = min(other[0, r], other[1, r], other[2, r])
                    triangle[3 + r] = max(other[0, r], other[1, r], other[2, r])
                for i in range(last):
                    square = 0.0
                    for r in range(3):
                        low = min(moved[i, 0, r], moved[i, 1, r], moved[i, 2, r])
                        high = max(moved[i, 0, r], moved[i, 1, r], moved[i, 2, r])
                        square += max(max(triangle[r] - high, low - triangle[3 + r]), 0.0) ** 2
                    if square < best:
                        best = min(best, _triangles_square(moved[i], other))
                        if best <= enough * enough:
                            return np.sqrt(best)
            continue
        # The larger of the two is divided.
        own = a < parents and (
            b >= other_parents or _longest_side(trees.boxes, base + a) >= _longest_side(trees.boxes, other_base + b)
        )
        node = a if own else b
        below = depth
        for child in range(2 * node + 1, 2 * node + 3):
            one, two = (child, b) if own else (a, child)
            _move_box(trees.boxes, base + one, turn, shift, box)
            square = 0.0
            for r in range(3):
                row = other_base + two
                gap = max(max(trees.boxes[row, r] - box[3 + r], box[r] - trees.boxes[row, 3 + r]), 0.0)
                square += gap * gap
            # The empty ones are infinitely far.
            if square < best:
                stack[depth, 0], stack[depth, 1], squares[depth] = one, two, square
                depth += 1
        # The nearer of the two comes first.
        if depth == below + 2 and squares[below] < squares[below + 1]:
            a, b, square = stack[below, 0], stack[below, 1], squares[below]
            stack[below, 0], stack[below, 1], squares[below] = (
                stack[below + 1, 0],
                stack[below + 1, 1],
                squares[below + 1],
            )
            stack[below + 1, 0], stack[below + 1, 1], squares[below + 1] = a, b, square
    return np.sqrt(best)


@lean_njit(error_model="numpy")
def _longest_side(boxes, node):  # type: ignore[no-untyped-def]
    """Of a box."""
    return max(boxes[node, 3] - boxes[node, 0], boxes[node, 4] - boxes[node, 1], boxes[node, 5] - boxes[node, 2])


@lean_njit(error_model="numpy")
def _move_box(boxes, node, turn, shift, moved):  # type: ignore[no-untyped-def]
    """Fill the box (6,) around a moved box; infinitely far for an empty one."""
    if not boxes[node, 0] <= boxes[node, 3]:
        for r in range(3):
            moved[r], moved[3 + r] = np.inf, np.inf
        return
    for r in range(3):
        middle, half = shift[r], 0.0
        for c in range(3):
            middle += turn[r, c] * 0.5 * (boxes[node, 3 + c] + boxes[node, c])
            half += abs(turn[r, c]) * 0.5 * (boxes[node, 3 + c] - boxes[node, c])
        moved[r], moved[3 + r] = middle - half, middle + half


@lean_njit(error_model="numpy")
def _triangles_square(first, second):  # type: ignore[no-untyped-def]
    """Squared distance of two triangles (3, 3): of edges or of corners from the other; 0 where an edge pierces."""
    best = np.inf
    for e in range(3):
        o = (e + 1) % 3
        for f in range(3):
            p = (f + 1) % 3
            best = min(best, _segments_square(first, e, o, second, f, p))
    for e in range(3):
        best = min(best, _point_square(first, e, second), _point_square(second, e, first))
        if _pierces(first, e, (e + 1) % 3, second) or _pierces(second, e, (e + 1) % 3, first):
            return 0.0
    return best


@lean_njit(error_model="numpy")
def _segments_square(first, a, b, second, c, d):  # type: ignore[no-untyped-def]
    """Squared distance of the edge between corners a and b of a triangle and that between c and d of another."""
    ux, uy, uz = first[b, 0] - first[a, 0], first[b, 1] - first[a, 1], first[b, 2] - first[a, 2]
    vx, vy, vz = second[d, 0] - second[c, 0], second[d, 1] - second[c, 1], second[d, 2] - second[c, 2]
    wx, wy, wz = first[a, 0] - second[c, 0], first[a, 1] - second[c, 1], first[a, 2] - second[c, 2]
    uu, uv, vv = ux * ux + uy * uy + uz * uz, ux * vx + uy * vy + uz * vz, vx * vx + vy * vy + vz * vz
    uw, vw = ux * wx + uy * wy + uz * wz, vx * wx + vy * wy + vz * wz
    # Where edges are parallel any place along them does.
    across = uu * vv - uv * uv
    s = min(max((uv * vw - vv * uw) / across, 0.0), 1.0) if across > 0.0 else 0.0
    t = (uv * s + vw) / vv
    if t < 0.0 or t > 1.0:
        t = min(max(t, 0.0), 1.0)
        s = min(max((uv * t - uw) / uu, 0.0), 1.0)
    x, y, z = wx + s * ux - t * vx, wy + s * uy - t * vy, wz + s * uz - t * vz
    return x * x + y * y + z * z


@lean_njit(error_model="numpy")
def _plane_and_height(triangle, point):  # type: ignore[no-untyped-def]
    """Normal of a triangle, not of unit length, and the height of a point above its plane times that length."""
    bx, by, bz = triangle[1, 0] - triangle[0, 0], triangle[1, 1] - triangle[0, 1], triangle[1, 2] - triangle[0, 2]
    cx, cy, cz = triangle[2, 0] - triangle[0, 0], triangle[2, 1] - triangle[0, 1], triangle[2, 2] - triangle[0, 2]
    nx, ny, nz = by * cz - bz * cy, bz * cx - bx * cz, bx * cy - by * cx
    height = nx * (point[0] - triangle[0, 0]) + ny * (point[1] - triangle[0, 1]) + nz * (point[2] - triangle[0, 2])
    return nx, ny, nz, height


@lean_njit(error_model="numpy")
def _is_within(x, y, z, nx, ny, nz, triangle):  # type: ignore[no-untyped-def]
    """Whether a point of a triangle's plane is in it."""
    for e in range(3):
        o = (e + 1) % 3
        ux = triangle[o, 0] - triangle[e, 0]
        uy = triangle[o, 1] - triangle[e, 1]
        uz = triangle[o, 2] - triangle[e, 2]
        wx, wy, wz = x - triangle[e, 0], y - triangle[e, 1], z - triangle[e, 2]
        if nx * (uy * wz - uz * wy) + ny * (uz * wx - ux * wz) + nz * (ux * wy - uy * wx) < 0.0:
            return False
    return True


@lean_njit(error_model="numpy")
def _point_square(points, corner, triangle):  # type: ignore[no-untyped-def]
    """Squared distance of a corner from a triangle's plane if its foot is in the triangle; else infinite."""
    nx, ny, nz, height = _plane_and_height(triangle, points[corner])
    square = nx * nx + ny * ny + nz * nz
    if not square > 0.0:
        return np.inf
    share = height / square
    x, y, z = points[corner, 0] - share * nx, points[corner, 1] - share * ny, points[corner, 2] - share * nz
    return height * share if _is_within(x, y, z, nx, ny, nz, triangle) else np.inf


@lean_njit(error_model="numpy")
def _pierces(points, a, b, triangle):  # type: ignore[no-untyped-def]
    """Whether the edge between corners a and b of a triangle goes through another."""
    nx, ny, nz, height = _plane_and_height(triangle, points[a])
    _, _, _, other = _plane_and_height(triangle, points[b])
    if height * other > 0.0 or height == other:
        return False
    share = height / (height - other)
    x = points[a, 0] + share * (points[b, 0] - points[a, 0])
    y = points[a, 1] + share * (points[b, 1] - points[a, 1])
    z = points[a, 2] + share * (points[b, 2] - points[a, 2])
    return _is_within(x, y, z, nx, ny, nz, triangle)


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
