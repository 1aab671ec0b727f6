"""A density on the nodes of a regular grid, interpolated between them."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.evaluation import (
    LARGEST,
    checked_bounds,
    checked_points,
    in_parts,
    inside_box,
    within_range,
)


class GridField:
    """Trilinear interpolation: continuous, its gradient jumps at the faces of the cells.

    Args:
        values: (X, Y, Z) densities at the nodes, not negative, at least two along each axis; the first node of an axis
            lies on the lower bound, the last on the upper.
        bounds: (2, 3) lowest and highest corner [m].

    Raises:
        InvalidInputError: wrong shapes, densities that are negative or not finite, a box without volume.
    """

    def __init__(self, values: ArrayLike, bounds: ArrayLike) -> None:
        self.values = checked_grid("values", values, 3)
        if not (self.values >= 0.0).all():
            raise InvalidInputError("values", f"a least density of {self.values.min():g}", "densities >= 0")
        self._bounds = checked_bounds(bounds)

    @classmethod
    def sampled(cls, field: DensityField, shape: tuple[int, int, int], bounds: ArrayLike | None = None) -> Self:
        """Another field at the nodes of a grid, over its own bounds unless told."""
        box = checked_bounds(field.bounds if bounds is None else bounds)
        return cls(field.density(grid_nodes(box, shape)).reshape(shape), box)

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return self._bounds.copy()

    @property
    def spacing(self) -> Array:
        """(3,) distance of the nodes along each axis [m]."""
        return (self._bounds[1] - self._bounds[0]) / (np.array(self.values.shape) - 1)

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        grid = self.values[..., None]

        def part(queries: Array) -> Array:
            return interpolate(grid, self._bounds, queries)[:, 0] * inside_box(queries, self._bounds)

        return in_parts(part, checked_points(points))

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points."""
        grid = self.values[..., None]

        def part(queries: Array) -> Array:
            slopes = interpolate_gradient(grid, self._bounds, queries)[:, 0]
            return slopes * inside_box(queries, self._bounds)[:, None]

        return in_parts(part, checked_points(points), 3)


def checked_grid(name: str, values: ArrayLike, dimensions: int) -> Array:
    """Finite numbers on a grid of at least 2 × 2 × 2 nodes, with any trailing dimensions.

    Raises:
        InvalidInputError: anything else.
    """
    grid = np.array(values, dtype=np.float64)
    if grid.ndim != dimensions or min(grid.shape[:3]) < 2 or grid.size == 0:
        raise InvalidInputError(
            name, f"shape {grid.shape}", f"{dimensions} dimensions, two nodes or more along x, y, z"
        )
    if not within_range(grid):
        raise InvalidInputError(name, "values that are not finite", f"numbers of at most {LARGEST:g}")
    return grid


def grid_nodes(bounds: Array, shape: tuple[int, int, int]) -> Array:
    """(X·Y·Z, 3) nodes of a grid that reaches from corner to corner of a box, z running fastest [m]."""
    axes = [np.linspace(low, high, count) for low, high, count in zip(bounds[0], bounds[1], shape, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def interpolate(grid: Array, bounds: Array, points: Array) -> Array:
    """(N, C) trilinear values of a grid (X, Y, Z, C) over a box (2, 3) at points (N, 3); clamped outside."""
    corner, share, _ = _cells(grid, bounds, points)
    result = np.zeros((len(points), grid.shape[3]))
    for offset in np.ndindex(2, 2, 2):
        weights = np.prod(np.where(offset, share, 1.0 - share), axis=1)
        x, y, z = (corner + offset).T
        result += weights[:, None] * grid[x, y, z]
    return result


def interpolate_gradient(grid: Array, bounds: Array, points: Array) -> Array:
    """(N, C, 3) gradients of `interpolate` with respect to the points."""
    corner, share, spacing = _cells(grid, bounds, points)
    result = np.zeros((len(points), grid.shape[3], 3))
    for offset in np.ndindex(2, 2, 2):
        weights = np.where(offset, share, 1.0 - share)
        slopes = np.where(offset, 1.0, -1.0) / spacing
        x, y, z = (corner + offset).T
        values = grid[x, y, z]
        for axis in range(3):
            others = [other for other in range(3) if other != axis]
            result[:, :, axis] += (slopes[axis] * weights[:, others[0]] * weights[:, others[1]])[:, None] * values
    return result


def _cells(grid: Array, bounds: Array, points: Array) -> tuple[Array, Array, Array]:
    """Lowest corner (N, 3) of each point's cell, position in it (N, 3) in [0, 1], and the spacing (3,) [m]."""
    counts = np.array(grid.shape[:3])
    spacing = (bounds[1] - bounds[0]) / (counts - 1)
    position = np.clip((points - bounds[0]) / spacing, 0.0, counts - 1.0)
    corner = np.minimum(position.astype(np.int64), counts - 2)
    return corner, position - corner, spacing
