"""Proof of cover, step 3: the openings of meshes that are not closed (see `cover_certificate`)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.boundary import boundary_edges, filling_faces, welded_faces
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.jit import njit
from morphit_ros.spheres.metrics import nearest_gaps

# Openings: halvings of the patches of a sphere, and patches in one step, before giving up.
_MAX_HALVINGS, _MAX_PATCHES = 14, 100_000


class Opening:
    """The holes of a mesh: where its winding number is not a whole number."""

    def __init__(self, mesh: TriangleMesh) -> None:
        faces = welded_faces(mesh.vertices, mesh.faces)
        edges = boundary_edges(faces)
        self._mesh = mesh
        self._edges = np.ascontiguousarray(mesh.vertices[edges])
        self._filling = np.ascontiguousarray(mesh.vertices[filling_faces(edges)])
        self.is_open = len(edges) > 0
        self._inside = InsideTest(mesh)

    def _winding_numbers(self, points: Array) -> Array:
        """Winding number (P,), exact to rounding.

        The approximate number differs from that of the filling, which has few triangles, by a whole number.
        """
        exact = _solid_angles(points, self._filling) / (4.0 * math.pi)
        result: Array = np.rint(self._inside.winding_numbers(points) - exact) + exact
        return result

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (P, 3) are inside."""
        return np.abs(self._winding_numbers(points)) > 0.5

    def undecided_points(self, centers: Array, radii: Array, unit: float, limit: int) -> tuple[Array, int]:
        """Points just outside the balls where the winding number may reach one half, and how many patches were tried.

        The triangles are known to be covered.
        """
        owners = np.repeat(np.arange(len(radii)), 8)
        corners = np.tile(_OCTANTS, (len(radii), 1, 1))
        checked = 0
        for halving in range(_MAX_HALVINGS + 1):
            middles = corners.sum(axis=1)
            middles /= np.linalg.norm(middles, axis=1)[:, None]
            spans = np.linalg.norm(corners - middles[:, None], axis=2).max(axis=1) * radii[owners] * (1.0 + 1e-9)
            points = centers[owners] + middles * radii[owners][:, None]
            bare = _bare_patches(points, spans, owners, centers, radii)
            owners, corners, middles, points, spans = (rows[bare] for rows in (owners, corners, middles, points, spans))
            checked += len(points)
            numbers = self._winding_numbers(points)
            to_one_half = np.abs(np.abs(numbers - np.floor(numbers)) - 0.5)
            split = to_one_half <= _winding_changes(points, spans, self._edges) + 1e-9
            inside = (np.abs(numbers) > 0.5) & (nearest_gaps(points, centers, radii) > -1e-3 * unit)
            found = inside if inside.any() else split
            if inside.any() or (split.any() and (halving == _MAX_HALVINGS or len(points) > _MAX_PATCHES)):
                chosen = np.flatnonzero(found)[:limit]
                return points[chosen] + 4.0 * unit * middles[chosen], checked
            if not split.any():
                break
            owners, corners = np.repeat(owners[split], 4), _quartered(corners[split])
        return np.empty((0, 3)), checked


# Spherical triangles (8, 3, 3) that make up the unit sphere.
_OCTANTS = np.array([np.diag([x, y, z]) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def _quartered(corners: Array) -> Array:
    """Spherical triangles (4 T, 3, 3) on the unit sphere, four for each of the given (T, 3, 3)."""
    middles = corners + np.roll(corners, -1, axis=1)
    middles /= np.linalg.norm(middles, axis=2)[:, :, None]
    (a, b, c), (ab, bc, ca) = corners.transpose(1, 0, 2), middles.transpose(1, 0, 2)
    parts = [np.stack(part, axis=1) for part in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
    return np.stack(parts, axis=1).reshape(-1, 3, 3)


@njit(cache=True, nogil=True)
def _bare_patches(points, spans, owners, centers, radii):  # type: ignore[no-untyped-def]
    """Which patches (middle, radius about it) are not within one other ball."""
    bare = np.ones(len(points), dtype=np.bool_)
    for p in range(len(points)):
        for k in range(len(radii)):
            inner = radii[k] - spans[p]
            if k == owners[p] or inner <= 0.0:
                continue
            x, y, z = points[p, 0] - centers[k, 0], points[p, 1] - centers[k, 1], points[p, 2] - centers[k, 2]
            # Two equal balls must not call each other's patches covered.
            if x * x + y * y + z * z < inner * inner:
                bare[p] = False
                break
    return bare


@njit(cache=True, nogil=True)
def _winding_changes(points, spans, edges):  # type: ignore[no-untyped-def]
    """Bound (P,) of how much the winding number changes within a distance (P,) of points (P, 3).

    Its gradient is that of the solid angle, the Biot-Savart integral over the boundary edges: for an edge of length
    l at distance d its magnitude is at most the smaller of l / (4 π d²) and 1 / (4 d).
    """
    result = np.zeros(len(points))
    for p in range(len(points)):
        total = 0.0
        for e in range(len(edges)):
            length, along = 0.0, 0.0
            for axis in range(3):
                direction = edges[e, 1, axis] - edges[e, 0, axis]
                length += direction * direction
                along += direction * (points[p, axis] - edges[e, 0, axis])
            share = min(max(along / length, 0.0), 1.0)
            squared = 0.0
            for axis in range(3):
                direction = edges[e, 1, axis] - edges[e, 0, axis]
                squared += (points[p, axis] - edges[e, 0, axis] - share * direction) ** 2
            distance = math.sqrt(squared) - spans[p]
            if distance <= 0.0:
                total = math.inf
                break
            total += min(math.sqrt(length) / (4.0 * math.pi * distance * distance), 0.25 / distance)
        result[p] = total * spans[p]
    return result


@njit(cache=True, nogil=True)
def _solid_angles(points, triangles):  # type: ignore[no-untyped-def]
    """Sum (P,) of the solid angles of triangles (T, 3, 3), Van Oosterom and Strackee 1983."""
    result = np.zeros(len(points))
    for p in range(len(points)):
        for t in range(len(triangles)):
            ax, ay, az = (
                triangles[t, 0, 0] - points[p, 0],
                triangles[t, 0, 1] - points[p, 1],
                triangles[t, 0, 2] - points[p, 2],
            )
            bx, by, bz = (
                triangles[t, 1, 0] - points[p, 0],
                triangles[t, 1, 1] - points[p, 1],
                triangles[t, 1, 2] - points[p, 2],
            )
            cx, cy, cz = (
                triangles[t, 2, 0] - points[p, 0],
                triangles[t, 2, 1] - points[p, 1],
                triangles[t, 2, 2] - points[p, 2],
            )
            a = math.sqrt(ax * ax + ay * ay + az * az)
            b = math.sqrt(bx * bx + by * by + bz * bz)
            c = math.sqrt(cx * cx + cy * cy + cz * cz)
            numerator = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
            denominator = a * b * c + (ax * bx + ay * by + az * bz) * c
            denominator += (bx * cx + by * cy + bz * cz) * a + (cx * ax + cy * ay + cz * az) * b
            result[p] += 2.0 * math.atan2(numerator, denominator)
    return result
