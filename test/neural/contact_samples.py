"""Bodies of points and differences that the tests of contact and motion share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody


def box_body(size: tuple[float, float, float] = (1.0, 0.6, 0.4), count: int = 600, mass: float = 2.0) -> ContactBody:
    """A uniform box, filled with jittered points; its inertia is the solid's."""
    edges = np.array(size)
    counts = np.maximum(2, np.round(edges * (count / edges.prod()) ** (1 / 3))).astype(int)
    grid = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) / n - 0.5 for n in counts], indexing="ij"), axis=-1)
    points = grid.reshape(-1, 3) * edges
    points += np.random.default_rng(0).uniform(-0.4, 0.4, points.shape) * edges / counts
    points -= points.mean(axis=0)
    squares = edges**2
    inertia = mass / 12.0 * np.diag(squares.sum() - squares)
    weights = np.full(len(points), mass / len(points))
    return ContactBody(points, weights, np.zeros_like(points), mass, inertia, np.zeros(3))


def difference(function: Callable[[Array], Array], at: Array, step: float) -> Array:
    """Jacobian by central differences of fourth order."""
    columns = []
    for direction in np.eye(len(at)):
        near = function(at + step * direction) - function(at - step * direction)
        far = function(at + 2.0 * step * direction) - function(at - 2.0 * step * direction)
        columns.append((8.0 * near - far) / (12.0 * step))
    return np.stack(columns, axis=-1)
