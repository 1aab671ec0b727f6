"""Completion of an object whose mass and centre of mass are known from elsewhere: learned, identified or weighed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.completion.shape import CompletedShape, ShapeCompletion


@dataclass(frozen=True)
class KnownMass:
    """Completes the shape as another method does, with a centre of mass that is known.

    Of a completed shape, only the centre's trust changes: each virtual point keeps the one it has from the shape's
    method, and the confidence becomes that of the known centre.

    Attributes:
        center_of_mass: (3,) in the cloud's frame [m].
        confidence: how far it can be trusted, in [0, 1].
        shape: completes the hidden sides.
        mass: of the object, None if unknown [kg].
        source: where the centre comes from, for people.

    Raises:
        InvalidInputError: a centre that is no point, a confidence out of range, a mass that is not positive.
    """

    center_of_mass: Array
    confidence: float
    shape: ShapeCompletion
    mass: float | None = None
    source: str = "known"

    def __post_init__(self) -> None:
        center = np.asarray(self.center_of_mass, dtype=np.float64)
        if center.shape != (3,) or not np.isfinite(center).all():
            raise InvalidInputError("center_of_mass", self.center_of_mass, "a finite point (3,) [m]")
        if not 0.0 <= self.confidence <= 1.0:
            raise InvalidInputError("confidence", self.confidence, "a number in [0, 1]")
        if self.mass is not None and not (np.isfinite(self.mass) and self.mass > 0.0):
            raise InvalidInputError("mass", self.mass, "a positive number [kg], or None")
        object.__setattr__(self, "center_of_mass", center)

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """See `ShapeCompletion`."""
        completed = self.shape(points, normals, table)
        weights = completed.weights
        if weights is None:
            weights = np.full(len(completed.points), completed.confidence)
        return replace(
            completed, center_of_mass=self.center_of_mass, confidence=self.confidence, weights=weights,
            mass=completed.mass if self.mass is None else self.mass,
            method=f"{completed.method}, centre of mass {self.source}",
        )  # fmt: skip
