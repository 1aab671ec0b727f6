"""A shape as the baselines see it: points on its surface, a grid of voxels and the distance to the surface.

All of it is in a frame that does not depend on the shape's size: the box is centred on the origin, its diagonal is 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import MeshesLike, as_meshes
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.jit import njit
from morphit_ros.spheres.exposed_surface import sample_exposed_surface, shape_bounds

# Voxels inside the shape that are aimed at, and voxels of the box at most (a thin shape fills little of its box).
_INSIDE_VOXELS, _MOST_VOXELS = 12000, 150000
_SURFACE_POINTS = 20000
# Spheres need a radius; one that stands for a single point gets this share of the diagonal.
SMALLEST_RADIUS = 1e-4


@dataclass(frozen=True)
class VoxelSolid:
    """A shape in its normalised frame, ``shape = normalised · diagonal + origin``.

    Attributes:
        surface, normals: (S, 3) points on the surface of the union and outward unit normals.
        corners: (K, 3) vertices of the meshes, at most a few thousand.
        interior: (I, 3) centres of the voxels inside; none where the shape has no inside (a sheet).
        depth: (X, Y, Z) distance of every voxel's centre to the surface, negative outside.
        filled: (X, Y, Z + 1) filled voxels of a column of the grid below each level, in voxels: a voxel that the
            surface crosses counts in part.
        low: (3,) corner of the grid.
        spacing: side of a voxel.
        inside: test of points in the normalised frame.
        origin, diagonal: of the shape's box [m].
    """

    surface: Array
    normals: Array
    corners: Array
    interior: Array
    depth: Array
    filled: Array
    low: Array
    spacing: float
    inside: InsideTest
    origin: Array
    diagonal: float

    @property
    def grid(self) -> tuple[Array, Array, float]:
        """What `outside_volume` needs: filled, low and spacing."""
        return self.filled, self.low, self.spacing

    def in_mesh_frame(self, centers: Array, radii: Array) -> tuple[Array, Array]:
        """Spheres of the normalised frame in the shape's own: centres (N, 3) and radii (N,) [m]."""
        return centers * self.diagonal + self.origin, np.maximum(radii, SMALLEST_RADIUS) * self.diagonal


def checked_count(count: int) -> int:
    """The number of spheres asked for.

    Raises:
        InvalidInputError: below one.
    """
    if count < 1:
        raise InvalidInputError("count", count, "at least 1")
    return count


def make_solid(mesh: MeshesLike, rng: np.random.Generator) -> VoxelSolid:
    """Sample a shape, the union of its meshes.

    Raises:
        InvalidInputError: no mesh, or no area.
    """
    meshes = as_meshes(mesh)
    bounds = shape_bounds(meshes)
    origin, diagonal = bounds.mean(axis=0), float(np.linalg.norm(bounds[1] - bounds[0]))
    scale = 1.0 / diagonal if diagonal > 0.0 else 1.0
    parts = [TriangleMesh((part.vertices - origin) * scale, part.faces) for part in meshes]
    surface, normals = sample_exposed_surface(parts, _SURFACE_POINTS, rng)
    test = InsideTest(parts)
    size = (bounds[1] - bounds[0]) * scale
    spacing = _grid_spacing(size, 0.5 * _INSIDE_VOXELS)
    inside, voxels, low = _voxels(test, size, spacing)
    if inside.any():
        # The share of the box that is filled is known now.
        spacing = _grid_spacing(size, min(_INSIDE_VOXELS * inside.size / np.count_nonzero(inside), _MOST_VOXELS))
        inside, voxels, low = _voxels(test, size, spacing)
    distance = _surface_distances(voxels, surface, normals).reshape(inside.shape)
    depth = np.where(inside, distance, -distance)
    filled = np.zeros((*inside.shape[:2], inside.shape[2] + 1))
    if inside.any():
        np.cumsum(np.clip(0.5 + depth / spacing, 0.0, 1.0), axis=2, out=filled[:, :, 1:])
    return VoxelSolid(
        surface,
        normals,
        _corners(parts, rng),
        voxels[inside.ravel()],
        depth,
        filled,
        low,
        spacing,
        test,
        origin,
        diagonal,
    )


def _grid_spacing(size: Array, count: float) -> float:
    """Side of about `count` cubes that fill a box; a flat one is taken as a hundredth of its diagonal thick."""
    return float((np.prod(np.maximum(size, 0.01)) / count) ** (1.0 / 3.0))


def _voxels(test: InsideTest, size: Array, spacing: float) -> tuple[NDArray[np.bool_], Array, Array]:
    """Inside flags (X, Y, Z) of a grid around a box centred on the origin, voxel centres (XYZ, 3), its corner."""
    shape = np.maximum(np.ceil(size / spacing), 1).astype(np.int64)
    low = -0.5 * spacing * shape.astype(np.float64)
    cells = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    centers = low + (cells + 0.5) * spacing
    return test.contains(centers).reshape(tuple(shape)), centers, low


def _surface_distances(points: Array, surface: Array, normals: Array) -> Array:
    """Distances (P,) to a surface known by samples: to the plane of the nearest one, if that is where it was drawn."""
    from scipy.spatial import cKDTree

    tree = cKDTree(surface)
    distances, nearest = tree.query(points)
    heights = np.abs(np.einsum("ij,ij->i", points - surface[nearest], normals[nearest]))
    # Typical distance between samples.
    pitch = float(np.median(tree.query(surface[:1000], k=2)[0][:, 1]))
    beside = np.sqrt(np.maximum(distances**2 - heights**2, 0.0))
    return np.where(beside < 3.0 * pitch, heights, distances)


def _corners(parts: Sequence[TriangleMesh], rng: np.random.Generator) -> Array:
    vertices = np.unique(np.concatenate([part.vertices[np.unique(part.faces)] for part in parts]), axis=0)
    limit = _SURFACE_POINTS // 10
    return vertices if len(vertices) <= limit else vertices[rng.choice(len(vertices), limit, replace=False)]


@njit(cache=True, nogil=True)
def outside_volume(filled, low, spacing, x, y, z, radius):  # type: ignore[no-untyped-def]
    """Volume of a sphere outside the solid: the sphere column by column of the grid, less what is filled there.

    The error of the columns is that of the whole sphere and of its filled part alike, so that a sphere inside the
    solid has none.
    """
    cx, cy, cz = (x - low[0]) / spacing, (y - low[1]) / spacing, (z - low[2]) / spacing
    r = radius / spacing
    levels = filled.shape[2] - 1
    total = 0.0
    for ix in range(math.floor(cx - r), math.ceil(cx + r)):
        dx = ix + 0.5 - cx
        rest = r * r - dx * dx
        if rest <= 0.0:
            continue
        reach = math.sqrt(rest)
        for iy in range(math.floor(cy - reach), math.ceil(cy + reach)):
            dy = iy + 0.5 - cy
            squared = rest - dy * dy
            if squared <= 0.0:
                continue
            half = math.sqrt(squared)
            total += 2.0 * half
            if 0 <= ix < filled.shape[0] and 0 <= iy < filled.shape[1]:
                top, bottom = min(max(cz + half, 0.0), levels), min(max(cz - half, 0.0), levels)
                total -= _level(filled[ix, iy], top) - _level(filled[ix, iy], bottom)
    return total * spacing**3


@njit(cache=True, nogil=True)
def _level(column, height):  # type: ignore[no-untyped-def]
    """Filled voxels of a column below a height in voxels, which may lie between two levels."""
    below = min(int(height), len(column) - 2)
    return column[below] + (height - below) * (column[below + 1] - column[below])
