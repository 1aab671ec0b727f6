"""How far the superovoids of a link are from the link at most, proven."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.geometry.deviation import Deviation, measure_deviation
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.jit import njit
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.support import support_point
from morphit_ros.superovoid.fits.gauge import closest_foot, local

# Angles along both directions of the surface points to begin with.
_ANGLES = 40


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
        return self._bounds_of(k, points)[0]

    def nearest(self, k: int, points: Array) -> Array:
        return self._bounds_of(k, points)[1]

    def _bounds_of(self, k: int, points: Array) -> tuple[Array, Array]:
        placed = self._shapes[k]
        parameters = placed.shape.parameters.copy()
        # In units of the shape: thresholds of the search for the closest point are absolute.
        scale = float(parameters[:3].max())
        parameters[:3] /= scale
        pose = placed.T_link_shape
        far, near = np.empty(len(points)), np.empty(len(points))
        _fill_bounds(parameters, np.ascontiguousarray(pose[:3, :3]), pose[:3, 3] / scale, points / scale, far, near)
        return scale * far, scale * near


def _corners(box: Array) -> Array:
    return np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_bounds(shape, rotation, origin, points, far, near):  # type: ignore[no-untyped-def]
    """Upper and lower bounds of the distances of points (N, 3) to a placed shape, both 0 inside."""
    for i in range(len(points)):
        x, y, z = local(rotation, origin, points, i)
        distance, fx, fy, fz = closest_foot(shape, x, y, z)
        far[i], near[i] = 0.0, 0.0
        if distance > 0.0:
            far[i] = distance
            # The plane across the way to the foot has the shape's convex hull on one side.
            nx, ny, nz = (x - fx) / distance, (y - fy) / distance, (z - fz) / distance
            near[i] = max(nx * x + ny * y + nz * z - support_point(shape, nx, ny, nz)[0], 0.0)
