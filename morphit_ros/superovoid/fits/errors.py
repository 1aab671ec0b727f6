"""How well placed superovoids stand for a surface: distances of the surface to theirs, and shares of volume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits import gauge

# Points of the volume estimates.
_VOLUME_POINTS = 12_000
# Fewer inside the meshes say nothing about shares.
_LEAST_INSIDE = 100
# Inverse powers of the root of x⁴ = x + 1: spread evenly in space (Roberts 2018).
_STEPS = np.array([0.8191725133961645, 0.6710436067037893, 0.5497004779019703])


@dataclass(frozen=True)
class FitErrors:
    """Differences between a surface and the union of superovoids.

    Attributes:
        mean, rms, max: of the distances of points on the outer surface, or of the cloud, to the superovoids' [m].
            The greatest is among the points looked at.
        inside: volume of mesh ∩ superovoids over the mesh's volume.
        outside: volume of superovoids \\ mesh over the mesh's volume. Cavities don't count as the mesh's.
            Both are NaN for a cloud and for meshes without volume.
    """

    mean: float
    rms: float
    max: float
    inside: float = math.nan
    outside: float = math.nan


def union_distances(shapes: Sequence[PlacedSuperovoid], points: Array) -> Array:
    """Signed distances (N,) [m] of points (N, 3) to the nearest of the shapes' surfaces: negative inside any.

    Outside it is the distance to the union; inside the union it is that to the surface of the shape in which the point
    lies deepest, which is not less than the depth in the union.
    """
    best = np.full(len(points), np.inf)
    out = np.empty(len(points))
    for shape in shapes:
        parameters = shape.shape.parameters
        scale = float(parameters[:3].max())
        scaled = parameters.copy()
        scaled[:3] /= scale
        pose = shape.T_link_shape
        # In units of the shape: thresholds of the search for the closest point are absolute.
        gauge.distances(scaled, np.ascontiguousarray(pose[:3, :3]), pose[:3, 3] / scale, points / scale, out)
        best = np.minimum(best, scale * out)
    return best


def measure_fit(shapes: Sequence[PlacedSuperovoid], points: Array, meshes: Sequence[TriangleMesh] = ()) -> FitErrors:
    """Errors of placed shapes.

    Args:
        shapes: at least one, placed in the frame of the points.
        points: (N, 3) on the surface [m].
        meshes: of the surface, in the same frame; none for a cloud.
    """
    gaps = np.abs(union_distances(shapes, points))
    inside, outside = _volume_shares(shapes, meshes) if meshes else (math.nan, math.nan)
    return FitErrors(float(gaps.mean()), float(math.sqrt(float(np.mean(gaps**2)))), float(gaps.max()), inside, outside)


def _volume_shares(shapes: Sequence[PlacedSuperovoid], meshes: Sequence[TriangleMesh]) -> tuple[float, float]:
    """(inside, outside) as of `FitErrors`, each from an evenly spread sequence of points in a box of its own."""
    test = InsideTest(meshes)
    points, box = _points_between(np.concatenate([mesh.bounds for mesh in meshes]))
    in_mesh = points[test.contains(points)]
    if len(in_mesh) < _LEAST_INSIDE:
        return math.nan, math.nan
    volume = box * len(in_mesh) / _VOLUME_POINTS
    corners = [transform_points(shape.T_link_shape, _box_corners(shape.shape.bounding_box)) for shape in shapes]
    points, box = _points_between(np.concatenate(corners))
    in_shapes = points[_in_any(shapes, points)]
    beyond = int((~test.contains(in_shapes)).sum()) if len(in_shapes) else 0
    return float(_in_any(shapes, in_mesh).mean()), box * beyond / _VOLUME_POINTS / volume


def _points_between(corners: Array) -> tuple[Array, float]:
    """Points (P, 3) spread evenly over the box around others, and its volume [m³]."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    points = low + (np.arange(1, _VOLUME_POINTS + 1)[:, None] * _STEPS % 1.0) * (high - low)
    return points, float(np.prod(high - low))


def _in_any(shapes: Sequence[PlacedSuperovoid], points: Array) -> NDArray[np.bool_]:
    inside = np.zeros(len(points), dtype=np.bool_)
    for shape in shapes:
        inside |= shape.contains(points)
    return inside


def _box_corners(box: Array) -> Array:
    return np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
