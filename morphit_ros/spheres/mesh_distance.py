"""Exact distances from points to the triangles of meshes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.spatial_order import hilbert_codes, order_of_codes
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# Triangles that lie together and are passed over together where their box is too far away.
_BLOCK = 16


class MeshDistance:
    """Triangles prepared for many questions."""

    def __init__(self, meshes: Sequence[TriangleMesh]) -> None:
        triangles = np.concatenate([mesh.triangles for mesh in meshes])
        order = order_of_codes(hilbert_codes(triangles.mean(axis=1)))
        self._triangles = np.ascontiguousarray(triangles[order])
        starts = np.arange(0, len(order), _BLOCK)
        low = np.minimum.reduceat(self._triangles.min(axis=1), starts)
        self._boxes = np.stack([low, np.maximum.reduceat(self._triangles.max(axis=1), starts)], axis=1)

    def __call__(self, points: Array) -> Array:
        """(P,) distances [m] of points (P, 3) to the nearest triangle; quickest where neighbours follow each other."""
        return _distances(np.ascontiguousarray(points), self._triangles, self._boxes)


@njit(cache=True, nogil=True)
def _distances(points, triangles, boxes):  # type: ignore[no-untyped-def]
    result = np.empty(len(points))
    nearest = 0
    for p in range(len(points)):
        # What was nearest to the point before bounds what is nearest to this one.
        best = _squared_distance(points[p], triangles[nearest])
        for block in range(len(boxes)):
            squared = 0.0
            for axis in range(3):
                beyond = max(boxes[block, 0, axis] - points[p, axis], points[p, axis] - boxes[block, 1, axis], 0.0)
                squared += beyond * beyond
            if squared < best:
                for t in range(_BLOCK * block, min(_BLOCK * (block + 1), len(triangles))):
                    squared = _squared_distance(points[p], triangles[t])
                    if squared < best:
                        best, nearest = squared, t
        result[p] = np.sqrt(best)
    return result


@njit(cache=True, nogil=True, inline="always")
def _dot(ax, ay, az, bx, by, bz):  # type: ignore[no-untyped-def]
    return ax * bx + ay * by + az * bz


@njit(cache=True, nogil=True, error_model="numpy")
def _squared_distance(point, triangle):  # type: ignore[no-untyped-def]
    """To a triangle, flat ones too: the foot in its plane where that is within it, else the nearest of its edges."""
    best = np.inf
    for c in range(3):
        n = (c + 1) % 3
        ux, uy, uz = (triangle[n, 0] - triangle[c, 0], triangle[n, 1] - triangle[c, 1], triangle[n, 2] - triangle[c, 2])
        px, py, pz = point[0] - triangle[c, 0], point[1] - triangle[c, 1], point[2] - triangle[c, 2]
        length = _dot(ux, uy, uz, ux, uy, uz)
        share = min(max(_dot(px, py, pz, ux, uy, uz) / length, 0.0), 1.0) if length > 0.0 else 0.0
        px, py, pz = px - share * ux, py - share * uy, pz - share * uz
        best = min(best, _dot(px, py, pz, px, py, pz))
    ax, ay, az = triangle[1, 0] - triangle[0, 0], triangle[1, 1] - triangle[0, 1], triangle[1, 2] - triangle[0, 2]
    bx, by, bz = triangle[2, 0] - triangle[0, 0], triangle[2, 1] - triangle[0, 1], triangle[2, 2] - triangle[0, 2]
    px, py, pz = point[0] - triangle[0, 0], point[1] - triangle[0, 1], point[2] - triangle[0, 2]
    nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    squared = _dot(nx, ny, nz, nx, ny, nz)
    if squared > 0.0:
        # Barycentric coordinates of the foot, times the squared normal.
        v = _dot(py * bz - pz * by, pz * bx - px * bz, px * by - py * bx, nx, ny, nz)
        w = _dot(ay * pz - az * py, az * px - ax * pz, ax * py - ay * px, nx, ny, nz)
        if v >= 0.0 and w >= 0.0 and v + w <= squared:
            height = _dot(px, py, pz, nx, ny, nz)
            best = min(best, height * height / squared)
    return best
