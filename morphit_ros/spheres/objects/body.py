"""The body of an object that is given by its surface, and its surface in small pieces."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest

# Cells on the surface of an object in which it is sampled, and the most along its longest side.
_CELLS, _LONGEST = 3000, 100
# Points that stand for a body: what lies between two of them is in a sphere nearly everywhere.
_BODY_POINTS = 4000


def body_of_cloud(points: Array) -> Array:
    """Points (B, 3) in the body whose surface a cloud shows.

    A place belongs to the body if the cloud has points on both sides of it along two of the cloud's three principal
    axes. So a box whose underside nobody saw is solid, as a cup is, while the space below the bar of a T stays free.
    A surface seen from one side only has no body: how far the object reaches behind it is not known.

    Args:
        points: (P, 3), at least one [m].
    """
    center = points.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(points - center, rowvar=False) if len(points) > 1 else np.eye(3))
    local = (points - center) @ axes
    low, size = local.min(axis=0), np.ptp(local, axis=0)
    a, b, c = size
    # Not finer than twice the distance of the points, or a line would pass between them.
    cell = _cell(2.0 * (a * b + a * c + b * c), size.max(), min(_CELLS, len(points) / 4.0))
    if cell <= 0.0:
        return np.empty((0, 3))
    shape = np.floor(size / cell).astype(np.int64) + 1
    filled = np.zeros(shape, dtype=np.bool_)
    filled[tuple(np.minimum(((local - low) / cell).astype(np.int64), shape - 1).T)] = True
    enclosed = np.zeros(shape, dtype=np.int64)
    for axis in range(3):
        before = np.logical_or.accumulate(filled, axis=axis)
        behind = np.flip(np.logical_or.accumulate(np.flip(filled, axis), axis=axis), axis)
        enclosed += before & behind
    body = (enclosed >= 2) & ~filled
    step = int(np.ceil(np.cbrt(np.count_nonzero(body) / _BODY_POINTS))) or 1
    inside = np.argwhere(body[::step, ::step, ::step]) * step
    return center + (low + (inside + 0.5) * cell) @ axes.T


def _cell(area: float, longest_side: float, cells: float = _CELLS) -> float:
    """Edge of a cell [m] such that about so many are on a surface of that area [m²]; of a needle's there are fewer."""
    return max(float(np.sqrt(area / cells)), longest_side / _LONGEST)


def body_of_mesh(mesh: TriangleMesh) -> Array:
    """Points (B, 3) inside a mesh, on a grid.

    Args:
        mesh: the object; a sheet has no inside.
    """
    step = max(float(np.cbrt(mesh.extents.prod() / _BODY_POINTS)), _cell(mesh.area, mesh.extents.max()))
    axes = [np.arange(low + 0.5 * step, high, step) for low, high in mesh.bounds.T]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return grid[InsideTest(mesh).contains(grid)] if len(grid) else grid


def small_triangles(mesh: TriangleMesh) -> Array:
    """The surface of a mesh (M, 3, 3), large triangles halved until no edge is longer than a cell."""
    longest = _cell(mesh.area, mesh.extents.max())
    small, rest = [], mesh.triangles
    while len(rest):
        edges = np.linalg.norm(np.roll(rest, -1, axis=1) - rest, axis=2)
        large = edges.max(axis=1) > longest
        small.append(rest[~large])
        # Halved at the middle of the longest edge, so that slivers become shorter and not thinner.
        rest, first = rest[large], edges[large].argmax(axis=1)
        a, b, c = (rest[np.arange(len(rest)), (first + corner) % 3] for corner in range(3))
        middle = 0.5 * (a + b)
        rest = np.concatenate([np.stack([a, middle, c], axis=1), np.stack([middle, b, c], axis=1)])
    return np.concatenate(small)
