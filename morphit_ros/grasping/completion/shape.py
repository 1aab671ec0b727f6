"""What completing a shape means: the protocol that methods keep, and what they return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class CompletedShape:
    """What the cameras did not see of an object, as a method believes it to be; all in the cloud's frame.

    Attributes:
        points, normals: (V, 3) virtual points and their outward normals.
        center_of_mass: (3,) of the whole object [m].
        confidence: in [0, 1], how far centre and virtual points can be trusted; see `confidence_of_error`.
        weights: (V,) trust in each virtual point, in [0, 1]; the confidence for all of them if None.
        mass: of the object, None where the method cannot know it [kg].
        method: name of the method for people.
    """

    points: Array
    normals: Array
    center_of_mass: Array
    confidence: float
    weights: Array | None = None
    mass: float | None = None
    method: str = ""


class ShapeCompletion(Protocol):
    """Completes a partly seen object; also how a learned object model supplies what it knows."""

    def __call__(self, points: Array, normals: Array, table: SupportPlaneLike | None) -> CompletedShape:
        """Complete a cloud.

        Args:
            points, normals: (N, 3) finite seen points and their outward unit normals [m].
            table: what the object stands on, None if unknown.
        """
        ...


def confidence_of_error(expected_error: float, scale: float = 0.02) -> float:
    """Confidence in (0, 1] of an expected error of the centre of mass [m]: 1 for none, 1/2 at the scale."""
    return 1.0 / (1.0 + max(expected_error, 0.0) / scale)
