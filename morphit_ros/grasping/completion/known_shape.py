"""Completion of an object whose surface is known: from a mesh, or learned as a density field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.thinning import point_spacing, thin_evenly
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.completion.shape import CompletedShape

# A point of the surface was seen if so near to it, times the spacing of the seen points, one of so many was seen that
# faces the same way: the inside of a thin wall lies nearer to its outside than that.
_NEAR, _NEIGHBOURS, _SAME_WAY = 2.0, 8, 0.5


@dataclass(frozen=True)
class KnownShape:
    """Completes a cloud by what of a known surface was not seen.

    The centre of mass is the middle of the surface; see `KnownMass` for one that is known.

    Attributes:
        points, normals: (M, 3) of the whole surface, outward, in the cloud's frame [m].
        confidence: how far it can be trusted, in [0, 1].
        source: where it comes from, for people.

    Raises:
        InvalidInputError: no points, shapes that do not fit, values that are not finite, a confidence out of range.
    """

    points: Array
    normals: Array
    confidence: float = 1.0
    source: str = "known"

    def __post_init__(self) -> None:
        shape = self.points.shape
        if shape != self.normals.shape or len(shape) != 2 or shape[1] != 3 or not shape[0]:
            raise InvalidInputError("surface", f"points {shape}, normals {self.normals.shape}", "(M, 3) of both")
        if not (np.isfinite(self.points).all() and np.isfinite(self.normals).all()):
            raise InvalidInputError("surface", "a value that is not finite", "finite points and normals")
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidInputError("confidence", self.confidence, "a number in [0, 1]")

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`; what stands under it does not matter."""
        from scipy.spatial import cKDTree

        spacing = point_spacing(points)
        limit = _NEAR * spacing
        count = min(_NEIGHBOURS, len(points))
        distances, rows = cKDTree(points).query(self.points, k=count, distance_upper_bound=limit)
        near = np.isfinite(distances.reshape(len(self.points), count))
        facing = np.zeros(near.shape)
        found = normals[rows.reshape(near.shape)[near]]
        facing[near] = np.einsum("ij,ij->i", found, np.repeat(self.normals, near.sum(axis=1), axis=0))
        hidden = np.flatnonzero((facing < _SAME_WAY).all(axis=1))
        # No denser than what was seen: each point counts for as much surface.
        most = int(np.ceil(len(hidden) * (point_spacing(self.points) / spacing) ** 2)) if len(hidden) else 0
        if most < len(hidden):
            kept = thin_evenly(self.points[hidden], self.normals[hidden], max(most, 1), np.random.default_rng(0))
            hidden = hidden[kept]
        middle = self.points.mean(axis=0)
        return CompletedShape(
            self.points[hidden], self.normals[hidden], middle, self.confidence, method=f"shape {self.source}"
        )
