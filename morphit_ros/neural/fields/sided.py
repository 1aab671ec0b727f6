"""An occupancy between sides: walls thinner than the cells of the grid that they are stored on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit
from morphit_ros.neural.fields.evaluation import checked_bounds, checked_points, in_parts, inside_box
from morphit_ros.neural.fields.grid import checked_grid, interpolate, interpolate_gradient


class SidedField:
    """Inside is what lies behind every side.

    Each side is a signed distance on the nodes of one grid. A distance is smooth across a wall, so that it may be
    interpolated between nodes far from it; only then is the largest of all sides taken. One distance of both sides
    together would need several nodes within the wall.

    Args:
        distances: (S, X, Y, Z) of each side, positive in front of it [m].
        bounds: (2, 3) box of the grid, beyond which the density is zero [m].
        edge: over which the density falls from one to zero, in the middle of it at the surface [m].

    Raises:
        InvalidInputError: wrong shapes, distances that are not finite, an edge that is not positive, a box without
            volume.
    """

    def __init__(self, distances: ArrayLike, bounds: ArrayLike, edge: float) -> None:
        self.distances = checked_grid("distances", np.moveaxis(np.asarray(distances), 0, -1), 4)
        self._bounds = checked_bounds(bounds)
        self.edge = float(edge)
        if not (np.isfinite(self.edge) and self.edge > 0.0):
            raise InvalidInputError("edge", edge, "a positive width [m]")

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return self._bounds.copy()

    @property
    def spacing(self) -> Array:
        """(3,) distance of the nodes along each axis [m]."""
        return (self._bounds[1] - self._bounds[0]) / (np.array(self.distances.shape[:3]) - 1)

    def sides(self, points: Array) -> Array:
        """(N, S) distances of points (N, 3) in front of each side [m]."""
        return interpolate(self.distances, self._bounds, checked_points(points))

    def clearance(self, points: Array) -> Array:
        """(N,) distance of points (N, 3) in front of the side that they are farthest in front of [m]."""
        queries = checked_points(points)
        largest: Array = _largest(self.distances, self._bounds[0], 1.0 / self.spacing, queries)
        return largest

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        queries = checked_points(points)
        return np.clip(0.5 - self.clearance(queries) / self.edge, 0.0, 1.0) * inside_box(queries, self._bounds)

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points, of the side that counts."""

        def part(queries: Array) -> Array:
            distances = interpolate(self.distances, self._bounds, queries)
            side = distances.argmax(axis=1)
            rows = np.arange(len(queries))
            slopes = interpolate_gradient(self.distances, self._bounds, queries)[rows, side]
            soft = np.abs(distances[rows, side]) < 0.5 * self.edge
            return -slopes / self.edge * (soft & inside_box(queries, self._bounds))[:, None]

        return in_parts(part, checked_points(points), 3)


@njit(cache=True, nogil=True, error_model="numpy")
def _largest(grid, low, per_metre, points):  # type: ignore[no-untyped-def]
    """(N,) the largest of all trilinear values of a grid (X, Y, Z, S) at points (N, 3); clamped outside."""
    result = np.empty(len(points))
    nx, ny, nz, sides = grid.shape
    for index in range(len(points)):
        px = min(max((points[index, 0] - low[0]) * per_metre[0], 0.0), nx - 1.0)
        py = min(max((points[index, 1] - low[1]) * per_metre[1], 0.0), ny - 1.0)
        pz = min(max((points[index, 2] - low[2]) * per_metre[2], 0.0), nz - 1.0)
        x, y, z = min(int(px), nx - 2), min(int(py), ny - 2), min(int(pz), nz - 2)
        a, b, c = px - x, py - y, pz - z
        best = -np.inf
        for side in range(sides):
            low_x = (grid[x, y, z, side] * (1 - c) + grid[x, y, z + 1, side] * c) * (1 - b) + (
                grid[x, y + 1, z, side] * (1 - c) + grid[x, y + 1, z + 1, side] * c
            ) * b
            high_x = (grid[x + 1, y, z, side] * (1 - c) + grid[x + 1, y, z + 1, side] * c) * (1 - b) + (
                grid[x + 1, y + 1, z, side] * (1 - c) + grid[x + 1, y + 1, z + 1, side] * c
            ) * b
            best = max(best, low_x * (1 - a) + high_x * a)
        result[index] = best
    return result
