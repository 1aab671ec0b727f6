"""A density known at scattered points, such as those published with the DANO paper."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.evaluation import (
    checked_bounds,
    checked_points,
    checked_positive,
    in_parts,
    within_range,
)

# Keeps the weight of a sample finite at the sample itself, where the field then has (nearly) its density.
_SOFTENING = 0.05
# Weight of the emptiness between and around the samples.
_BACKGROUND = 0.02


class SampledField:
    """A weighted mean of the samples within a radius, and of nothing: smooth, and zero far from all samples.

    φ(x) = Σ w_i φ_i / (Σ w_i + w_0) with w_i = (1 − q²)³ / (q² + .05) for q = ‖x − x_i‖ / radius < 1.

    Args:
        points: (P, 3) [m].
        densities: (P,), not negative.
        radius: reach of a sample [m]; None for twice the median distance to the fifth neighbour.

    Raises:
        InvalidInputError: no points, wrong shapes, values that are not finite, negative densities or radius.
    """

    def __init__(self, points: ArrayLike, densities: ArrayLike, radius: float | None = None) -> None:
        self.points = checked_points(points)
        self.densities = np.array(densities, dtype=np.float64)
        count = len(self.points)
        if count == 0:
            raise InvalidInputError("points", "none", "at least one sample")
        if self.densities.shape != (count,) or not within_range(self.densities) or (self.densities < 0.0).any():
            raise InvalidInputError(
                "densities", f"shape {self.densities.shape}", f"{count} finite numbers, not negative"
            )
        if radius is None:
            radius = self._default_radius()
        self.radius = float(checked_positive("radius", radius))
        checked_bounds(self.bounds)

    def _default_radius(self) -> float:
        count = len(self.points)
        if count < 2:
            raise InvalidInputError("radius", None, "a length [m]", "One sample does not tell how far it reaches.")
        distances = self._tree.query(self.points, k=min(6, count))[0]
        return 2.0 * float(np.median(distances[:, -1]))

    @cached_property
    def _tree(self):  # type: ignore[no-untyped-def]
        from scipy.spatial import cKDTree

        return cKDTree(self.points)

    @property
    def bounds(self) -> Array:
        """(2, 3) box outside of which the density is zero [m]."""
        return np.stack([self.points.min(axis=0) - self.radius, self.points.max(axis=0) + self.radius])

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        return in_parts(lambda part: self._sums(part)[0], checked_points(points))

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points."""
        return in_parts(lambda part: self._sums(part)[1], checked_points(points), 3)

    def _sums(self, queries: Array) -> tuple[Array, Array]:
        """Densities (N,) and gradients (N, 3)."""
        rows, columns = self._pairs(queries)
        count = len(queries)
        offset = queries[rows] - self.points[columns]
        square = np.einsum("ij,ij->i", offset, offset) / self.radius**2
        rest = np.maximum(1.0 - square, 0.0)
        weight = rest**3 / (square + _SOFTENING)
        # d weight / d square, times d square / d x.
        slope = -(3.0 * rest**2 + weight) / (square + _SOFTENING) * 2.0 / self.radius**2
        values = self.densities[columns]
        total = np.bincount(rows, weight, count) + _BACKGROUND
        mean = np.bincount(rows, weight * values, count) / total
        factor = slope * (values - mean[rows])
        gradient = np.stack([np.bincount(rows, factor * offset[:, axis], count) for axis in range(3)], axis=1)
        return mean, gradient / total[:, None]

    def _pairs(self, queries: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query and sample of each pair within the radius."""
        neighbours = self._tree.query_ball_point(queries, self.radius)
        counts = np.fromiter((len(found) for found in neighbours), dtype=np.int64, count=len(neighbours))
        rows = np.repeat(np.arange(len(queries)), counts)
        found = [np.asarray(indices, dtype=np.int64) for indices in neighbours if indices]
        return rows, np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
