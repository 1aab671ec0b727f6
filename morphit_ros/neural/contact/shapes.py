"""Shapes that bodies of points touch, each in its own frame, as rows for the compiled gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.contact import gaps


class ContactShape(Protocol):
    """What a shape tells the kernels."""

    @property
    def kind(self) -> int:
        """Which branch of `gaps.gap`."""
        ...

    def numbers(self) -> Array:
        """(N,) its data, in the order which that branch reads."""
        ...


def _check_positive(name: str, value: float) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise InvalidInputError(name, value, "a positive number [m]")
    return number


@dataclass(frozen=True)
class ContactHalfSpace:
    """All below the plane z = 0 of its frame."""

    kind: int = field(default=gaps.HALF_SPACE, init=False, repr=False)

    def numbers(self) -> Array:
        """Nothing."""
        return np.zeros(0)


@dataclass(frozen=True)
class ContactSphere:
    """A ball about the origin, radius [m]."""

    radius: float
    kind: int = field(default=gaps.SPHERE, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _check_positive("radius", self.radius))

    def numbers(self) -> Array:
        """Radius."""
        return np.array([self.radius])


@dataclass(frozen=True)
class ContactCapsule:
    """All within radius [m] of the segment of length `length` [m] along z, centred at the origin."""

    radius: float
    length: float
    kind: int = field(default=gaps.CAPSULE, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _check_positive("radius", self.radius))
        object.__setattr__(self, "length", _check_positive("length", self.length))

    def numbers(self) -> Array:
        """Radius and half the length."""
        return np.array([self.radius, 0.5 * self.length])


@dataclass(frozen=True)
class ContactBox:
    """A box with full edge lengths `size` (3,) [m], centred at the origin."""

    size: Array
    kind: int = field(default=gaps.BOX, init=False, repr=False)

    def __post_init__(self) -> None:
        size = np.array(self.size, dtype=np.float64)
        if size.shape != (3,) or not (np.isfinite(size) & (size > 0.0)).all():
            raise InvalidInputError("size", np.asarray(self.size).tolist(), "three positive edge lengths [m]")
        object.__setattr__(self, "size", size)

    def numbers(self) -> Array:
        """Half the edge lengths."""
        return 0.5 * self.size


@dataclass(frozen=True)
class ContactPolytope:
    """All below every plane: normals (N, 3), made unit, and offsets (N,) [m] along them.

    The gap is the largest height over a plane: exact inside and over faces, too small beyond edges and corners.
    """

    normals: Array
    offsets: Array
    kind: int = field(default=gaps.PLANES, init=False, repr=False)

    def __post_init__(self) -> None:
        normals, offsets = np.array(self.normals, dtype=np.float64), np.array(self.offsets, dtype=np.float64)
        if normals.ndim != 2 or normals.shape[1:] != (3,) or offsets.shape != normals.shape[:1] or len(normals) < 4:
            raise InvalidInputError(
                "normals",
                f"shapes {normals.shape} and {offsets.shape}",
                "(N, 3) normals and (N,) offsets, N at least 4",
            )
        lengths = np.linalg.norm(normals, axis=1)
        if not (np.isfinite(normals).all() and np.isfinite(offsets).all() and (lengths > 1e-9).all()):
            raise InvalidInputError("normals", "values that are not finite or zero normals", "finite directions")
        object.__setattr__(self, "normals", normals / lengths[:, None])
        object.__setattr__(self, "offsets", offsets / lengths)

    @classmethod
    def from_vertices(cls, vertices: Array) -> ContactPolytope:
        """The convex hull of (N, 3) vertices [m].

        Raises:
            InvalidInputError: fewer than four, flat, or not finite.
        """
        from scipy.spatial import ConvexHull, QhullError

        points = np.asarray(vertices, dtype=np.float64)
        if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4 or not np.isfinite(points).all():
            raise InvalidInputError("vertices", f"shape {points.shape}", "at least four finite points (N, 3)")
        try:
            equations = np.unique(ConvexHull(points).equations.round(12), axis=0)
        except QhullError:
            raise InvalidInputError("vertices", "points in a plane", "points that span a volume") from None
        return cls(equations[:, :3], -equations[:, 3])

    def numbers(self) -> Array:
        """Normal and offset of each plane."""
        return np.column_stack([self.normals, self.offsets]).ravel()


@dataclass(frozen=True)
class SphereSet:
    """The union of balls, as a robot's links have them: centers (N, 3) and radii (N,) [m]."""

    centers: Array
    radii: Array
    kind: int = field(default=gaps.SPHERES, init=False, repr=False)

    def __post_init__(self) -> None:
        centers, radii = np.array(self.centers, dtype=np.float64), np.array(self.radii, dtype=np.float64)
        if centers.ndim != 2 or centers.shape[1:] != (3,) or radii.shape != centers.shape[:1] or len(radii) == 0:
            raise InvalidInputError(
                "centers", f"shapes {centers.shape} and {radii.shape}", "(N, 3) centres and (N,) radii, N at least 1"
            )
        if not (np.isfinite(centers).all() and np.isfinite(radii).all() and (radii > 0.0).all()):
            raise InvalidInputError("radii", f"a least value of {radii.min():g}", "finite centres, positive radii [m]")
        object.__setattr__(self, "centers", centers)
        object.__setattr__(self, "radii", radii)

    def numbers(self) -> Array:
        """Centre and radius of each ball."""
        return np.column_stack([self.centers, self.radii]).ravel()
