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
# Points whose sums are formed side by side: they fit into the first-level cache.
_BLOCK = 256


class Effort:
    """How much work on openings is left, in pairs of a patch and a triangle or edge: about ten nanoseconds each."""

    def __init__(self, pairs: float) -> None:
        self.left = pairs

    @property
    def is_spent(self) -> bool:
        """Whether something was left out for it."""
        return self.left < 0.0

    def spend(self, pairs: float) -> bool:
        """Take so much of what is left; False, and nothing is left from then on, if that is too much."""
        self.left = self.left - pairs if self.left >= pairs else -math.inf
        return self.left >= 0.0


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
        # Of a soup of triangles the filling is no less work than the mesh itself.
        self._triangles = np.ascontiguousarray(mesh.triangles) if 2 * len(self._filling) > len(faces) else None
        self._pairs_per_patch = len(edges) + len(self._filling if self._triangles is None else self._triangles)

    def _winding_numbers(self, points: Array) -> Array:
        """Winding number (P,), exact to rounding."""
        if self._triangles is not None:
            return _turns(points, self._triangles)
        # The approximate number differs from that of the filling, which has few triangles, by a whole number.
        exact = _turns(points, self._filling)
        result: Array = np.rint(self._inside.winding_numbers(points) - exact) + exact
        return result

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (P, 3) are inside."""
        return np.abs(self._winding_numbers(points)) > 0.5

    def undecided_points(
        self, centers: Array, radii: Array, unit: float, limit: int, effort: Effort
    ) -> tuple[Array, int]:
        """Points just outside the balls where the winding number may reach one half, and how many patches were tried.

        The triangles are known to be covered. Once the effort is spent, what is not decided yet stays so.
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
            if not effort.spend(len(points) * self._pairs_per_patch):
                return points[:limit] + 4.0 * unit * middles[:limit], checked
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


@njit(cache=True, nogil=True, error_model="numpy")
def _winding_changes(points, spans, edges):  # type: ignore[no-untyped-def]
    """Bound (P,) of how much the winding number changes within a distance (P,) of points (P, 3).

    Its gradient is that of the solid angle, the Biot-Savart integral over the boundary edges: for an edge of length
    l at distance d its magnitude is at most the smaller of l / (4 π d²) and 1 / (4 d).
    """
    result = np.empty(len(points))
    x, y, z, span, total = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, len(points), _BLOCK):
        size = min(_BLOCK, len(points) - start)
        for i in range(size):
            x[i], y[i], z[i] = points[start + i, 0], points[start + i, 1], points[start + i, 2]
            span[i], total[i] = spans[start + i], 0.0
        for e in range(len(edges)):
            ex, ey, ez = edges[e, 0, 0], edges[e, 0, 1], edges[e, 0, 2]
            ux, uy, uz = edges[e, 1, 0] - ex, edges[e, 1, 1] - ey, edges[e, 1, 2] - ez
            squared = ux * ux + uy * uy + uz * uz
            far = math.sqrt(squared) / (4.0 * math.pi)
            inverse = 1.0 / squared if squared > 0.0 else 0.0
            # Points inside, edges outside: the inner loop has no branch and becomes SIMD code.
            for i in range(size):
                px, py, pz = x[i] - ex, y[i] - ey, z[i] - ez
                share = min(max((px * ux + py * uy + pz * uz) * inverse, 0.0), 1.0)
                px, py, pz = px - share * ux, py - share * uy, pz - share * uz
                distance = math.sqrt(px * px + py * py + pz * pz) - span[i]
                change = min(far / (distance * distance), 0.25 / distance)
                total[i] += change if distance > 0.0 else np.inf
        for i in range(size):
            result[start + i] = total[i] * span[i]
    return result


@njit(cache=True, nogil=True, error_model="numpy")
def _turns(points, triangles):  # type: ignore[no-untyped-def]
    """Winding numbers (P,) of triangles (T, 3, 3): the sum of their solid angles (Van Oosterom and Strackee 1983).

    Half a solid angle is the angle of a complex number. The numbers are multiplied and whole turns of the product
    counted, so that no angle has to be computed before the last.
    """
    result = np.empty(len(points))
    x, y, z = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    real, imaginary, turns = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, len(points), _BLOCK):
        size = min(_BLOCK, len(points) - start)
        for i in range(size):
            x[i], y[i], z[i] = points[start + i, 0], points[start + i, 1], points[start + i, 2]
            real[i], imaginary[i], turns[i] = 1.0, 0.0, 0.0
        for t in range(len(triangles)):
            for i in range(size):
                ax, ay, az = triangles[t, 0, 0] - x[i], triangles[t, 0, 1] - y[i], triangles[t, 0, 2] - z[i]
                bx, by, bz = triangles[t, 1, 0] - x[i], triangles[t, 1, 1] - y[i], triangles[t, 1, 2] - z[i]
                cx, cy, cz = triangles[t, 2, 0] - x[i], triangles[t, 2, 1] - y[i], triangles[t, 2, 2] - z[i]
                a = math.sqrt(ax * ax + ay * ay + az * az)
                b = math.sqrt(bx * bx + by * by + bz * bz)
                c = math.sqrt(cx * cx + cy * cy + cz * cz)
                sine = ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)
                cosine = a * b * c + (ax * bx + ay * by + az * bz) * c
                cosine += (bx * cx + by * cy + bz * cz) * a + (cx * ax + cy * ay + cz * az) * b
                scale = 1.0 / math.sqrt(sine * sine + cosine * cosine + 1e-300)
                sine, cosine = sine * scale, cosine * scale
                before, after = imaginary[i], real[i] * sine + imaginary[i] * cosine
                real[i], imaginary[i] = real[i] * cosine - before * sine, after
                upper = 1.0 if before >= 0.0 else 0.0
                turned = 1.0 if sine >= 0.0 else 0.0
                reached = 1.0 if after >= 0.0 else 0.0
                turns[i] += upper * turned * (1.0 - reached) - (1.0 - upper) * (1.0 - turned) * reached
        for i in range(size):
            # Adding zero turns -0, which counts as the upper half, into 0.
            result[start + i] = turns[i] + math.atan2(imaginary[i] + 0.0, real[i]) / (2.0 * math.pi)
    return result
