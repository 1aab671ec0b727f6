"""Depth by direction: clouds of one camera compared without knowing its pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class DepthByDirection:
    """The depth in each cell of an `AngularGrid`, infinite where there is none.

    Attributes:
        grid: its cells.
        depth: (R, C) [m].
    """

    grid: AngularGrid
    depth: Array

    def at(self, points: Array) -> Array:
        """(N,) depth in the cells of points (N, 3)."""
        rows, columns = self.grid.cells(points)
        return self.depth[rows, columns]

    def around(self, points: Array) -> Array:
        """(N,) least depth in the cells of points (N, 3) and their eight neighbours."""
        from scipy.ndimage import minimum_filter

        return DepthByDirection(self.grid, minimum_filter(self.depth, 3, mode="nearest")).at(points)


@dataclass(frozen=True)
class AngularGrid:
    """Directions x/z, y/z of a camera's optical frame in square cells; what is beyond the edge counts to the edge.

    Attributes:
        low: (2,) corner.
        shape: rows (of y/z) and columns (of x/z).
        size: edge of a cell, in tangents of angles.
    """

    low: Array
    shape: tuple[int, int]
    size: float

    @classmethod
    def of(cls, clouds: list[Array], size: float) -> AngularGrid:
        """The grid that holds clouds (N, 3), all in front of the camera."""
        tangents = np.concatenate([cloud[:, :2] / cloud[:, 2:] for cloud in clouds])
        low, high = np.percentile(tangents, 0.05, axis=0), np.percentile(tangents, 99.95, axis=0)
        columns, rows = (np.ceil((np.maximum(high - low, size)) / size).astype(int) + 1).tolist()
        return cls(low, (min(rows, 4000), min(columns, 4000)), size)

    def cells(self, points: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows (N,) and columns (N,) of points (N, 3) with z > 0."""
        cells = np.floor((points[:, :2] / points[:, 2:] - self.low) / self.size)
        columns, rows = (np.clip(cells[:, axis], 0, self.shape[1 - axis] - 1).astype(np.int64) for axis in (0, 1))
        return rows, columns

    def inside(self, points: Array) -> NDArray[np.bool_]:
        """(N,) whether points (N, 3) are in the grid's view."""
        cells = np.floor((points[:, :2] / np.maximum(points[:, 2:], 1e-6) - self.low) / self.size)
        return (points[:, 2] > 0.0) & (cells >= 0).all(axis=1) & (cells < (self.shape[1], self.shape[0])).all(axis=1)

    def nearest(self, points: Array) -> DepthByDirection:
        """The least depth of points (N, 3) in each cell."""
        depth = np.full(self.shape, np.inf)
        np.minimum.at(depth, self.cells(points), points[:, 2])
        return DepthByDirection(self, depth)

    def farthest(self, points: Array) -> DepthByDirection:
        """The greatest depth of points (N, 3) in each cell."""
        depth = np.full(self.shape, -np.inf)
        np.maximum.at(depth, self.cells(points), points[:, 2])
        return DepthByDirection(self, np.where(np.isfinite(depth), depth, np.inf))
