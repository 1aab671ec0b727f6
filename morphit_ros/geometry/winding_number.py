"""Generalised winding number: inside or outside also for meshes that are not watertight.

Jacobson et al. 2013 (definition), Barill et al. 2018 (far triangles as dipoles). The winding
number is 1 inside a closed mesh, 0 outside, and degrades gracefully near holes, where the parity
of ray hits is arbitrary.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array

_LEAF_SIZE = 8
# A group of triangles is a dipole beyond this many times its radius: below 1e-2 of error, against a threshold of 0.5.
_FAR_RATIO = 2.5


class InsideTest:
    """Winding numbers of points with respect to one mesh; builds its tree once.

    Works on any triangle soup: holes, several overlapping pieces and inverted orientation of the whole mesh.
    """

    def __init__(self, mesh: TriangleMesh) -> None:
        self._mesh = mesh

    @cached_property
    def _tree(self) -> tuple[Array, NDArray[np.int64], Array]:
        return _build_tree(np.ascontiguousarray(self._mesh.triangles))

    def winding_numbers(self, points: Array) -> Array:
        """Winding number (P,) of points (P, 3).

        Raises:
            InvalidInputError: wrong shape.
        """
        queries = np.ascontiguousarray(points, dtype=np.float64)
        if queries.ndim != 2 or queries.shape[1] != 3:
            raise InvalidInputError("points", f"shape {queries.shape}", "shape (P, 3)")
        triangles, nodes, moments = self._tree
        return _winding_numbers(queries, triangles, nodes, moments)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether each of the points (P, 3) is inside: |winding number| above one half."""
        return np.abs(self.winding_numbers(points)) > 0.5


def _build_tree(triangles: Array) -> tuple[Array, NDArray[np.int64], Array]:
    """Triangles in tree order, nodes (first, last, right child or 0) and moments (centre, area vector, radius)."""
    vectors = 0.5 * np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    areas = np.linalg.norm(vectors, axis=1)
    keep = areas > 0.0
    triangles, vectors, areas = triangles[keep], vectors[keep], areas[keep]
    if len(triangles) == 0:
        return np.empty((0, 3, 3)), np.empty((0, 3), dtype=np.int64), np.empty((0, 7))
    centers = triangles.mean(axis=1)
    order = np.arange(len(triangles))
    nodes: list[list[int]] = []
    # Depth first, left child next to its parent; a node's right child is known when its left half is done.
    pending = [(0, len(triangles), -1)]
    while pending:
        first, last, parent = pending.pop()
        index = len(nodes)
        if parent >= 0:
            nodes[parent][2] = index
        nodes.append([first, last, 0])
        if last - first > _LEAF_SIZE:
            part = order[first:last]
            axis = int(np.ptp(centers[part], axis=0).argmax())
            middle = (last - first) // 2
            order[first:last] = part[np.argpartition(centers[part, axis], middle)]
            pending.append((first + middle, last, index))
            pending.append((first, first + middle, -1))
    moments = np.empty((len(nodes), 7))
    triangles = np.ascontiguousarray(triangles[order])
    _fill_moments(triangles, vectors[order], areas[order], centers[order], np.array(nodes), moments)
    return triangles, np.array(nodes), moments


@njit(cache=True, fastmath=False)
def _fill_moments(triangles, vectors, areas, centers, nodes, moments):  # type: ignore[no-untyped-def]
    for node in range(len(nodes)):
        first, last = nodes[node, 0], nodes[node, 1]
        total = 0.0
        for axis in range(3):
            moments[node, axis] = 0.0
            moments[node, 3 + axis] = 0.0
        for t in range(first, last):
            total += areas[t]
            for axis in range(3):
                moments[node, axis] += areas[t] * centers[t, axis]
                moments[node, 3 + axis] += vectors[t, axis]
        for axis in range(3):
            moments[node, axis] /= total
        largest = 0.0
        for t in range(first, last):
            for corner in range(3):
                distance = 0.0
                for axis in range(3):
                    distance += (triangles[t, corner, axis] - moments[node, axis]) ** 2
                largest = max(largest, distance)
        moments[node, 6] = math.sqrt(largest)


@njit(cache=True, fastmath=False)
def _winding_numbers(points, triangles, nodes, moments):  # type: ignore[no-untyped-def]
    result = np.zeros(len(points))
    if len(nodes) == 0:
        return result
    stack = np.empty(128, dtype=np.int64)
    for p in range(len(points)):
        x, y, z = points[p, 0], points[p, 1], points[p, 2]
        total = 0.0
        depth = 1
        stack[0] = 0
        while depth > 0:
            depth -= 1
            node = stack[depth]
            dx, dy, dz = moments[node, 0] - x, moments[node, 1] - y, moments[node, 2] - z
            squared = dx * dx + dy * dy + dz * dz
            far = _FAR_RATIO * moments[node, 6]
            if squared > far * far:
                dipole = moments[node, 3] * dx + moments[node, 4] * dy + moments[node, 5] * dz
                total += dipole / (squared * math.sqrt(squared))
            elif nodes[node, 2] > 0:
                stack[depth] = node + 1
                stack[depth + 1] = nodes[node, 2]
                depth += 2
            else:
                for t in range(nodes[node, 0], nodes[node, 1]):
                    total += _solid_angle(triangles[t], x, y, z)
        result[p] = total / (4.0 * math.pi)
    return result


@njit(cache=True, fastmath=False)
def _solid_angle(triangle, x, y, z):  # type: ignore[no-untyped-def]
    """Van Oosterom and Strackee 1983."""
    ax, ay, az = triangle[0, 0] - x, triangle[0, 1] - y, triangle[0, 2] - z
    bx, by, bz = triangle[1, 0] - x, triangle[1, 1] - y, triangle[1, 2] - z
    cx, cy, cz = triangle[2, 0] - x, triangle[2, 1] - y, triangle[2, 2] - z
    a = math.sqrt(ax * ax + ay * ay + az * az)
    b = math.sqrt(bx * bx + by * by + bz * bz)
    c = math.sqrt(cx * cx + cy * cy + cz * cz)
    determinant = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
    denominator = (
        a * b * c
        + (ax * bx + ay * by + az * bz) * c
        + (bx * cx + by * cy + bz * cz) * a
        + (cx * ax + cy * ay + cz * az) * b
    )
    return 2.0 * math.atan2(determinant, denominator)
