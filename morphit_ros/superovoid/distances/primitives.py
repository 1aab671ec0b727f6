"""Primitives that distances are asked to: frozen shapes in their own frames, SI units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.inputs import SurfaceLike, as_surface
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array


@dataclass(frozen=True)
class Point:
    """The origin of its own frame."""


@dataclass(frozen=True)
class Sphere:
    """A ball about the origin.

    Attributes:
        radius: [m], > 0.
    """

    radius: float

    def __post_init__(self) -> None:
        _set_length(self, "radius")


@dataclass(frozen=True)
class Capsule:
    """A ball swept along the z axis.

    Attributes:
        radius: of the ball [m], > 0.
        length: of its centre's way, symmetric about the origin [m], > 0.
    """

    radius: float
    length: float

    def __post_init__(self) -> None:
        _set_length(self, "radius")
        _set_length(self, "length")


@dataclass(frozen=True)
class Cylinder:
    """A cylinder about the z axis, symmetric about the origin.

    Attributes:
        radius: [m], > 0.
        length: along z [m], > 0.
    """

    radius: float
    length: float

    def __post_init__(self) -> None:
        _set_length(self, "radius")
        _set_length(self, "length")


@dataclass(frozen=True)
class Box:
    """A box about the origin.

    Attributes:
        sides: full lengths along x, y, z [m], > 0.
    """

    sides: tuple[float, float, float]

    def __post_init__(self) -> None:
        sides = np.asarray(self.sides, dtype=np.float64)
        if sides.shape != (3,) or not np.isfinite(sides).all() or not (sides > 0.0).all():
            raise InvalidInputError("sides", self.sides, "three finite lengths > 0 [m]")
        object.__setattr__(self, "sides", tuple(float(side) for side in sides))


@dataclass(frozen=True)
class HalfSpace:
    """All points with z ≤ 0 of its own frame; the plane's outward normal is z."""


@dataclass(frozen=True, eq=False)
class ConvexMesh:
    """The convex hull of points.

    Attributes:
        vertices: (N, 3) corners of the hull [m]; points inside are dropped.
    """

    vertices: Array

    def __init__(self, points: SurfaceLike) -> None:
        from scipy.spatial import ConvexHull, QhullError

        found = as_surface(points, "points")
        parts = (found.points,) if isinstance(found, PointCloud) else tuple(mesh.vertices for mesh in found)
        cloud = np.concatenate(parts)
        if len(cloud) < 4 or not np.isfinite(cloud).all():
            raise InvalidInputError("points", f"shape {cloud.shape}", "at least four finite points (N, 3) [m]")
        try:
            corners = cloud[np.sort(ConvexHull(cloud).vertices)]
        except QhullError as error:
            raise InvalidInputError("points", "points in a plane", "points that span a volume") from error
        corners = np.ascontiguousarray(corners)
        corners.flags.writeable = False
        object.__setattr__(self, "vertices", corners)


Primitive = Point | Sphere | Capsule | Cylinder | Box | HalfSpace | ConvexMesh


def _set_length(shape: object, name: str) -> None:
    value = getattr(shape, name)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise InvalidInputError(name, repr(value), "a finite length > 0 [m]")
    if not (math.isfinite(value) and value > 0.0):
        raise InvalidInputError(name, value, "a finite length > 0 [m]")
    object.__setattr__(shape, name, float(value))
