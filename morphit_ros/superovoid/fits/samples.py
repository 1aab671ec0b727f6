"""What a fit sees of a shape: points of its outer surface in a frame and a unit that move and grow with the shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import SurfaceLike, as_surface
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes, sample_surface_evenly
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, make_transform, transform_points
from morphit_ros.jit import njit

# Fewer points than numbers of a placed superovoid say nothing.
MIN_POINTS = 13
# Thickness over width of points that lie in a plane.
_FLAT = 1e-5
# Points that visibility is decided with, and directions of view.
_DENSE, _VIEWS = 8000, 64
# A point is on the outer surface if so large a share of the views on its side of the surface see it.
_SEEN = 0.2
# Share of points that are hidden from everywhere, from which on the orientation of the faces is not believed.
_DOUBTFUL = 0.9
# How far beyond the convex hull free points lie, by turns, in RMS distances of its points from their centre:
# near ones keep a fit from bulging, far ones from being the corner of something much larger.
_BEYOND = (0.05, 0.4)
# A point of a cloud is a stray if its so-manieth neighbour is so many times further than that of most points.
_NEIGHBOURS, _SPARSE = 6, 2.0


@dataclass(frozen=True)
class SurfaceSamples:
    """Points of a surface in the frame and unit of the fit.

    Attributes:
        points: (N, 3), centred, about 1 in size, in an order in which every k-th are spread evenly.
        free: (M, 3), points just beyond the convex hull of a mesh, which no fit has reason to cover; none of a cloud,
            which may show one side of a thing only.
        vertices: (V, 3), all corners of the convex hull of the input, in the same frame and unit.
        T_mesh_samples: (4, 4), the frame in that of the input [m].
        scale: length of the unit [m].
        is_mesh: whether the input had faces.
    """

    points: Array
    free: Array
    vertices: Array
    T_mesh_samples: Array
    scale: float
    is_mesh: bool

    def in_samples(self, points: Array) -> Array:
        """Points (P, 3) of the input's frame [m] in that of the samples."""
        return (points - self.T_mesh_samples[:3, 3]) @ self.T_mesh_samples[:3, :3] / self.scale


def checked_surface(surface: SurfaceLike) -> tuple[TriangleMesh, ...] | PointCloud:
    """Meshes or a cloud, of whatever `geometry.inputs` knows.

    Raises:
        InvalidInputError: something else, or an array with values that are not finite: only a cloud may have holes.
    """
    found = as_surface(surface)
    is_array = isinstance(surface, (np.ndarray, list, tuple))
    if is_array and isinstance(found, PointCloud) and not np.isfinite(found.points).all():
        raise InvalidInputError("points", "values that are not finite", "finite numbers", "Drop these points.")
    return found


def sample_fit_surface(surface: SurfaceLike, count: int, rng: np.random.Generator) -> SurfaceSamples:
    """Points of a mesh's outer surface, or of a cloud.

    The frame is that of the principal axes of the faces' area, or of the points; so is the drawing of points: a shape
    that is moved is sampled in the same places. Of meshes only what can be seen from outside counts: walls of cavities
    and parts buried in one another do not.

    Args:
        surface: a mesh, meshes in one frame that mean their union, a cloud, or points (N, 3) [m].
        count: number of points at most.
        rng: source of randomness.

    Raises:
        InvalidInputError: no mesh, no area; fewer than 13 points, points that are not finite (a `PointCloud` may have
            some, which are left out), all in one place, on a line or in a plane.
    """
    found = checked_surface(surface)
    if isinstance(found, PointCloud):
        return _cloud_samples(found.finite().points, count, rng)
    return _mesh_samples(found, count, rng)


def _mesh_samples(meshes: Sequence[TriangleMesh], count: int, rng: np.random.Generator) -> SurfaceSamples:
    mesh = concatenate_meshes([part if part.volume >= 0.0 else _turned(part) for part in meshes])
    if mesh.area <= 0.0:
        raise InvalidInputError("mesh", "zero area", "a mesh with area")
    # Exact moments of the faces: the second moments of a triangle are those of its corners and its centroid.
    corners = mesh.triangles
    center = np.average(corners.mean(axis=1), axis=0, weights=mesh.face_areas)
    arms = corners - center
    nodes = np.concatenate([arms, 3.0 * arms.mean(axis=1, keepdims=True)], axis=1)
    moments = np.einsum("f,fki,fkj->ij", mesh.face_areas, nodes, nodes) / (12.0 * mesh.area)
    T_mesh_samples, scale = _principal_frame(center, moments, arms.reshape(-1, 3), np.repeat(mesh.face_areas, 3))
    moved = TriangleMesh((mesh.vertices - center) @ T_mesh_samples[:3, :3] / scale, mesh.faces)
    points, normals = sample_surface_evenly(moved, max(_DENSE, 2 * count), rng)
    seen = outer_points(points, normals, math.sqrt(moved.area / len(points)))
    outer = points[seen]
    chosen = outer[_spread_order(len(outer))][:count]
    vertices = moved.vertices[np.unique(moved.faces)]
    corners, free = hull_and_beyond(vertices, count // 2)
    return SurfaceSamples(chosen, free, corners, T_mesh_samples, scale, True)


def _cloud_samples(points: Array, count: int, rng: np.random.Generator) -> SurfaceSamples:
    if len(points) < MIN_POINTS:
        raise InvalidInputError("points", f"{len(points)} finite points", f"at least {MIN_POINTS}")
    trusted = _dense_points(points)
    center = points[trusted].mean(axis=0)
    arms = points[trusted] - center
    moments = arms.T @ arms / len(arms)
    T_cloud_samples, scale = _principal_frame(center, moments, arms, np.ones(len(arms)))
    moved = (points - center) @ T_cloud_samples[:3, :3] / scale
    chosen = rng.permutation(len(moved))[:count]
    # Early rounds see the beginning only.
    chosen = np.concatenate([chosen[trusted[chosen]], chosen[~trusted[chosen]]])
    corners, _ = hull_and_beyond(moved, 0)
    return SurfaceSamples(moved[chosen], np.empty((0, 3)), corners, T_cloud_samples, scale, False)


def _dense_points(points: Array) -> NDArray[np.bool_]:
    """Which of the points (N, 3) have neighbours about as near as most have: strays don't, (N,)."""
    from scipy.spatial import cKDTree

    reach = cKDTree(points).query(points, k=_NEIGHBOURS + 1)[0][:, -1]
    dense: NDArray[np.bool_] = reach <= _SPARSE * float(np.percentile(reach, 40.0))
    return dense if dense.sum() >= max(MIN_POINTS, len(points) // 4) else np.ones(len(points), dtype=np.bool_)


def _turned(mesh: TriangleMesh) -> TriangleMesh:
    return TriangleMesh(mesh.vertices, mesh.faces[:, ::-1])


def _principal_frame(center: Array, moments: Array, arms: Array, weights: Array) -> tuple[Array, float]:
    """Principal axes, longest first, each towards its longer tail, as a frame; RMS distance from the centre."""
    scale = math.sqrt(float(np.trace(moments)))
    values, axes = np.linalg.eigh(moments)
    spread = np.sqrt(np.maximum(values[::-1], 0.0))
    if scale <= 0.0 or spread[1] <= _FLAT * spread[0] or spread[2] <= _FLAT * spread[0]:
        kinds = ("in one place", "on a line", "in a plane")
        kind = kinds[0] if scale <= 0.0 else kinds[1 if spread[1] <= _FLAT * spread[0] else 2]
        raise InvalidInputError("surface", f"points {kind}", "a surface that encloses a volume", "Give it a thickness.")
    rotation = axes[:, ::-1].copy()
    tails = weights @ ((arms / scale) @ rotation) ** 3
    rotation[:, tails < 0.0] *= -1.0
    if np.linalg.det(rotation) < 0.0:
        rotation[:, int(np.argmin(np.abs(tails)))] *= -1.0
    return make_transform(rotation, center), scale


def hull_and_beyond(points: Array, count: int) -> tuple[Array, Array]:
    """Corners (V, 3) of the convex hull of points about 1 in size, and `count` points spread evenly just beyond it."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return points, np.empty((0, 3))
    corners = points[np.sort(hull.vertices)]
    if count < 1:
        return corners, np.empty((0, 3))
    # Always the same points: the hull has them, the seed has no say.
    reach = float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))
    surface = TriangleMesh(points, hull.simplices.astype(np.int64))
    beyond, normals = sample_surface_evenly(surface, count, np.random.default_rng(0))
    outwards = np.sign(np.einsum("ij,ij->i", beyond - corners.mean(axis=0), normals))
    order = _spread_order(count)
    lengths = reach * np.where(np.arange(count) % 2 == 0, *_BEYOND)
    return corners, beyond[order] + (lengths * outwards[order])[:, None] * normals[order]


def _spread_order(count: int) -> NDArray[np.int64]:
    """An order of a sequence whose every beginning is spread over it: bit reversal."""
    bits = max(1, (count - 1).bit_length())
    indices = np.arange(1 << bits)
    reverse = np.zeros_like(indices)
    for bit in range(bits):
        reverse |= ((indices >> bit) & 1) << (bits - 1 - bit)
    return reverse[reverse < count]


def outer_points(points: Array, normals: Array, spacing: float) -> NDArray[np.bool_]:
    """Which of the points (N, 3) of a surface, about `spacing` apart, can be seen from outside: (N,)."""
    steps = np.arange(_VIEWS) + 0.5
    heights = 1.0 - 2.0 * steps / _VIEWS
    turns = steps * math.pi * (3.0 - math.sqrt(5.0))
    radii = np.sqrt(1.0 - heights**2)
    views = np.stack([radii * np.cos(turns), radii * np.sin(turns), heights], axis=1)
    seen = _seen_shares(points, normals, views, 2.5 * spacing, False) >= _SEEN
    if seen.mean() < 1.0 - _DOUBTFUL:
        seen = _seen_shares(points, normals, views, 2.5 * spacing, True) >= _SEEN
    # A soup of triangles may hide itself from any rule: then all of it counts.
    return seen if seen.sum() >= MIN_POINTS else np.ones(len(points), dtype=np.bool_)


@njit(cache=True, nogil=True)
def _seen_shares(points, normals, views, cell, two_sided):  # type: ignore[no-untyped-def]
    """Share of the views on its side of the surface in which no other point hides a point (N,)."""
    count = len(points)
    seen, facing = np.zeros(count), np.zeros(count)
    columns, rows = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    depth = np.empty(count)
    for v in range(len(views)):
        d = views[v]
        helper = np.zeros(3)
        helper[np.argmin(np.abs(d))] = 1.0
        u = np.cross(d, helper)
        u /= np.sqrt(u @ u)
        w = np.cross(d, u)
        low_u, low_w, high_u, high_w = np.inf, np.inf, -np.inf, -np.inf
        for i in range(count):
            a = points[i, 0] * u[0] + points[i, 1] * u[1] + points[i, 2] * u[2]
            b = points[i, 0] * w[0] + points[i, 1] * w[1] + points[i, 2] * w[2]
            low_u, high_u = min(low_u, a), max(high_u, a)
            low_w, high_w = min(low_w, b), max(high_w, b)
        width, height = int((high_u - low_u) / cell) + 1, int((high_w - low_w) / cell) + 1
        front = np.full((width, height), -np.inf)
        for i in range(count):
            a = points[i, 0] * u[0] + points[i, 1] * u[1] + points[i, 2] * u[2]
            b = points[i, 0] * w[0] + points[i, 1] * w[1] + points[i, 2] * w[2]
            columns[i], rows[i] = int((a - low_u) / cell), int((b - low_w) / cell)
            depth[i] = points[i, 0] * d[0] + points[i, 1] * d[1] + points[i, 2] * d[2]
            front[columns[i], rows[i]] = max(front[columns[i], rows[i]], depth[i])
        for i in range(count):
            slope = normals[i, 0] * d[0] + normals[i, 1] * d[1] + normals[i, 2] * d[2]
            if two_sided:
                slope = abs(slope)
            if slope > 0.3:
                facing[i] += 1.0
                # The surface itself climbs within a cell.
                if depth[i] >= front[columns[i], rows[i]] - 1.5 * cell / slope:
                    seen[i] += 1.0
    return seen / np.maximum(facing, 1.0)


def placed(T_mesh_samples: Array, scale: float, rotation: Array, origin: Array) -> Array:
    """``T_mesh_shape`` (4, 4) of a shape placed in the frame and unit of the samples."""
    turn = T_mesh_samples[:3, :3] @ rotation
    return make_transform(turn, transform_points(T_mesh_samples, origin * scale))
