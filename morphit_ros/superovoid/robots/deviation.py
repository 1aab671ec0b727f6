"""How far the superovoids of a link are from the link at most, proven."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.deviation import Deviation, measure_deviation
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.support import support_point
from morphit_ros.superovoid.fits.gauge import closest_foot, gauge_gradient, gauges, local

# Angles along both directions of the surface points to begin with.
_ANGLES = 40
# The way to a foot nearer than this says nothing of the normal, in units of the shape.
_ON_SURFACE = 1e-6


def shape_deviation(
    solid: Solid, shapes: Sequence[PlacedSuperovoid], enclosing: Solid | None = None, contained: bool = False
) -> Deviation:
    """Bounds of the distances between a solid and the union of placed superovoids.

    Args:
        solid: what they stand for.
        shapes: placed in the same frame.
        enclosing: as of `measure_deviation`.
        contained: it is proven already that the shapes contain the solid.
    """
    return measure_deviation(solid, Superovoids(shapes), enclosing, contained)


class Superovoids:
    """Placed superovoids as `geometry.deviation.Bodies`."""

    def __init__(self, shapes: Sequence[PlacedSuperovoid]) -> None:
        self._shapes = shapes
        self.convex = [placed.shape.convexity().convex for placed in shapes]
        corners = [transform_points(placed.T_link_shape, _corners(placed.shape.bounding_box)) for placed in shapes]
        together = np.concatenate(corners)
        self.bounds = np.stack([together.min(axis=0), together.max(axis=0)])

    def surface_points(self) -> Array:
        around, along = np.meshgrid(
            np.linspace(-np.pi, np.pi, 2 * _ANGLES), np.linspace(-0.5 * np.pi, 0.5 * np.pi, _ANGLES)
        )
        return np.concatenate([
            transform_points(placed.T_link_shape, placed.shape.surface_points(around.ravel(), along.ravel()))
            for placed in self._shapes
        ])  # fmt: skip

    def farthest(self, k: int, points: Array) -> Array:
        far = np.empty(len(points))
        shape, rotation, origin, scale = self._scaled(k)
        _fill_farthest(shape, rotation, origin, points / scale, far)
        return scale * far

    def holds(self, k: int, points: Array) -> NDArray[np.bool_]:
        values = np.empty(len(points))
        shape, rotation, origin, scale = self._scaled(k)
        gauges(shape, rotation, origin, points / scale, values)
        return values <= 1.0

    def planes(self, k: int, points: Array) -> tuple[Array, Array]:
        normals, slacks = np.empty((len(points), 3)), np.empty(len(points))
        shape, rotation, origin, scale = self._scaled(k)
        _fill_planes(shape, rotation, origin, points / scale, normals, slacks)
        return normals @ rotation.T, scale * slacks

    def _scaled(self, k: int) -> tuple[Array, Array, Array, float]:
        """A shape in units of its size, for which the thresholds of the search for the closest point are; its pose."""
        placed = self._shapes[k]
        parameters = placed.shape.parameters.copy()
        scale = float(parameters[:3].max())
        parameters[:3] /= scale
        pose = placed.T_link_shape
        return parameters, np.ascontiguousarray(pose[:3, :3]), pose[:3, 3] / scale, scale


def _corners(box: Array) -> Array:
    return np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_farthest(shape, rotation, origin, points, far):  # type: ignore[no-untyped-def]
    """Distances of points (N, 3) to points of a placed shape, 0 inside."""
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        far[i] = max(closest_foot(shape, x, y, z)[0], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_planes(shape, rotation, origin, points, normals, slacks):  # type: ignore[no-untyped-def]
    """Planes that touch a placed shape near points (N, 3); normals in the shape's frame."""
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        distance, fx, fy, fz = closest_foot(shape, x, y, z)
        if distance > _ON_SURFACE:
            nx, ny, nz = x - fx, y - fy, z - fz
        else:
            _, nx, ny, nz = gauge_gradient(shape, fx, fy, fz)
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = nx / length, ny / length, nz / length
        normals[i, 0], normals[i, 1], normals[i, 2] = nx, ny, nz
        slacks[i] = support_point(shape, nx, ny, nz)[0] - (nx * x + ny * y + nz * z)
