"""A piece of a target near a cover as triangles, to be looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.cover.goals.targets import SurfaceTarget
from morphit_ros.cover.model import Cover
from morphit_ros.geometry.transforms import Array

# Points along each side of a piece of a height target.
_POINTS = 24


def target_surface(
    target: SurfaceTarget, cover: Cover, positions: Array, time: float
) -> tuple[Array, NDArray[np.int64]]:
    """Corners (V, 3) [m] and triangles (F, 3) of the target where the cover is; none where it is not finite.

    A height target over the rectangle that the cover takes up, a pitch larger on each side; of others the points that
    the nodes go to, joined as nodes are.

    Args:
        positions: (N, 3) of the nodes [m].
        time: t of the target [s].
    """
    heights = getattr(target, "heights", None)
    if heights is not None:
        low, high = positions[:, :2].min(axis=0) - cover.pitch, positions[:, :2].max(axis=0) + cover.pitch
        x, y = (axis.ravel() for axis in np.meshgrid(*np.linspace(low, high, _POINTS).T))
        corners = np.stack([x, y, heights(x, y, time)[:, 0]], axis=1)
        triangles = grid_triangles(_POINTS, _POINTS)
        # Steep formulas leave the picture beyond the edge of the cover.
        middle, reach = positions[:, 2].mean(), cover.pitch * max(cover.rows, cover.cols)
        shown = np.isfinite(corners).all(axis=1) & (np.abs(corners[:, 2] - middle) < reach)
    else:
        corners = positions - target.sample(positions, time).offsets
        triangles = grid_triangles(cover.rows, cover.cols)
        shown = np.isfinite(corners).all(axis=1)
    return np.where(shown[:, None], corners, 0.0), triangles[shown[triangles].all(axis=1)]


def grid_triangles(rows: int, cols: int) -> NDArray[np.int64]:
    """(F, 3) triangles between points of a grid, row by row."""
    places = np.arange(rows * cols).reshape(rows, cols)
    a, b, c, d = (corner.ravel() for corner in (places[:-1, :-1], places[:-1, 1:], places[1:, :-1], places[1:, 1:]))
    return np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1)]).astype(np.int64)
