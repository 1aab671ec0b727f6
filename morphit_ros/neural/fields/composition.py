"""Fields made of fields: several in one frame, one in another frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    check_transform,
    invert_transform,
    transform_points,
    transform_vectors,
)
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.evaluation import LARGEST, checked_bounds, checked_points, within_range


@dataclass(frozen=True)
class UnionField:
    """Several fields in one frame: the largest density counts, so that a steel head stays one on a wooden handle.

    Raises:
        InvalidInputError: no field at all.
    """

    fields: Sequence[DensityField]

    def __post_init__(self) -> None:
        if len(self.fields) == 0:
            raise InvalidInputError("fields", "none", "at least one field")
        object.__setattr__(self, "fields", tuple(self.fields))

    @property
    def bounds(self) -> Array:
        """(2, 3) box around the boxes of all fields [m]."""
        boxes = np.stack([field.bounds for field in self.fields])
        return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        queries = checked_points(points)
        return np.max([field.density(queries) for field in self.fields], axis=0)

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points, of the field whose density counts."""
        queries = checked_points(points)
        winner = np.argmax([field.density(queries) for field in self.fields], axis=0)
        gradients = np.zeros((len(queries), 3))
        for number, field in enumerate(self.fields):
            chosen = winner == number
            gradients[chosen] = field.gradient(queries[chosen])
        return gradients


class TransformedField:
    """A field at a pose.

    Args:
        field: in its own frame.
        T_parent_field: (4, 4) pose of that frame in the frame of this field.

    Raises:
        InvalidInputError: not a rigid transform, or one to a place too far away.
    """

    def __init__(self, field: DensityField, T_parent_field: ArrayLike) -> None:
        self.field = field
        if not within_range(np.asarray(T_parent_field, dtype=np.float64)):
            raise InvalidInputError("T_parent_field", "values that are not finite", f"numbers of at most {LARGEST:g}")
        self.T_parent_field = check_transform(T_parent_field, "T_parent_field").copy()
        self._T_field_parent = invert_transform(self.T_parent_field)
        checked_bounds(self.bounds)

    @property
    def bounds(self) -> Array:
        """(2, 3) box around the turned box of the field [m]."""
        low, high = self.field.bounds
        signs = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
        corners = transform_points(self.T_parent_field, low + signs * (high - low))
        return np.stack([corners.min(axis=0), corners.max(axis=0)])

    def density(self, points: Array) -> Array:
        """(N,) densities at (N, 3) points."""
        return self.field.density(transform_points(self._T_field_parent, checked_points(points)))

    def gradient(self, points: Array) -> Array:
        """(N, 3) gradients at (N, 3) points."""
        gradients = self.field.gradient(transform_points(self._T_field_parent, checked_points(points)))
        return transform_vectors(self.T_parent_field, gradients)
