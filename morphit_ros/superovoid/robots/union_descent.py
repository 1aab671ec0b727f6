"""The union of several superovoids, improved together: each on the points that it is nearest to, and cut where it pays.

A point of the surface costs its distance from the union, a point outside of the solid its depth in it. Which shape a
point is nearest to changes with the shapes, so that descents of single shapes on their own points alternate with
assigning the points anew. Shapes may overlap: no plane says where one ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.superovoid.fits.gauge import CLOSEST
from morphit_ros.superovoid.fits.samples import MIN_POINTS, SurfaceSamples
from morphit_ros.superovoid.fits.search import FitTarget, ShapeCandidate, ShapeDescent

# Free points: one about each point of the surface, so far away by turns, in units of the samples. Nearer to the surface
# than the least distance, what is inside or not matters little.
_AWAY, _LEAST_DISTANCE = (0.04, 0.1, 0.3), 0.02
# A shape is cut across each of its axes at these shares of the length of its points. Both halves start rounded, and a
# little longer than their part, as superovoids have round ends.
_CUTS, _SQUARENESS, _LENGTHENED, _LEAST_AXIS = (0.3, 0.5, 0.7), 0.5, 1.1, 0.03
# Of the shapes that cost most, how many are cut; with how many points cuts are compared, and how many go on.
_CUT_SHAPES, _QUICK_POINTS, _KEPT = 2, 350, 3
# Rounds of assigning points, and steps of a descent in each: for halves of a cut, and for all shapes.
_QUICK_ROUNDS, _ROUNDS, _STEPS = 2, 12, 6
# A round that takes away less than this of the cost helps no more; two of them are the last.
_ENOUGH = 1e-3
# Free points farther than this from a shape do not press on it, in units of the samples.
_NEAR = 0.06

Shapes = tuple[ShapeCandidate, ...]


@dataclass(frozen=True)
class UnionTarget:
    """What unions are fitted to, in the frame and unit of the samples; every beginning is spread evenly.

    Attributes:
        points: (N, 3) of the surface.
        free: (M, 3) outside of the solid.
    """

    points: Array
    free: Array

    def first(self, count: int) -> UnionTarget:
        """So many points of the surface, and as large a share of the others."""
        if count >= len(self.points):
            return self
        return UnionTarget(self.points[:count], self.free[: len(self.free) * count // len(self.points)])

    def joined(self, points: Array, free: Array) -> UnionTarget:
        """With more of both."""
        return UnionTarget(np.concatenate([self.points, points]), np.concatenate([self.free, free]))


def make_target(solid: Solid, samples: SurfaceSamples, count: int, rng: np.random.Generator) -> UnionTarget:
    """Points of a solid's outer surface, and points around them that are outside.

    Args:
        solid: in the frame of the input.
        samples: of its surface; their `free` points beyond the hull are taken too.
        count: of the points of the surface, at most.
        rng: source of randomness.
    """
    points = np.ascontiguousarray(samples.points[:count])
    ways = rng.normal(size=(len(points), 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    around = points + ways * np.resize(_AWAY, len(points))[:, None]
    beyond = samples.free[: len(points)]
    # The two kinds mixed, so that every beginning has its share of both.
    ranks = np.concatenate([(np.arange(len(some)) + 0.5) / max(len(some), 1) for some in (around, beyond)])
    candidates = np.concatenate([around, beyond])[np.argsort(ranks, kind="stable")]
    in_solid = transform_points(samples.T_mesh_samples, candidates * samples.scale)
    outside = ~solid.contains(in_solid) & (solid.surface_distances(in_solid) > _LEAST_DISTANCE * samples.scale)
    return UnionTarget(points, np.ascontiguousarray(candidates[outside]))


@dataclass(frozen=True)
class UnionDescent:
    """What the descents of unions minimise.

    Attributes:
        descent: of a single shape: loss, bounds, and what a distance outside costs more.
        target: points.
    """

    descent: ShapeDescent
    target: UnionTarget

    def error(self, shapes: Shapes) -> float:
        """RMS of the distances of points of the surface and depths of free points."""
        return self._error(*self._residuals(shapes))

    def improved(self, shapes: Shapes, rounds: int = _ROUNDS, only: Sequence[int] | None = None) -> Shapes:
        """Shapes of lower error, or the same.

        Args:
            shapes: to start from.
            rounds: at most.
            only: indices of the shapes that may change; None for all.
        """
        current = tuple(shape.copy() for shape in shapes)
        surface, free = self._residuals(current)
        best, least = tuple(shape.copy() for shape in current), self._error(surface, free)
        changing = range(len(current)) if only is None else only
        idle = 0
        for _ in range(rounds):
            owners = surface.argmin(axis=0)
            for k in changing:
                self._descend(current[k], owners == k, free[k])
                surface[k], free[k] = self._distances(current[k])
            error = self._error(surface, free)
            idle = 0 if error < (1.0 - _ENOUGH) * least else idle + 1
            if error < least:
                best, least = tuple(shape.copy() for shape in current), error
            if idle == 2:
                break
        return best

    def cut(self, shapes: Shapes) -> Shapes | None:
        """One more shape, in place of those that cost most; None where no part has enough points."""
        quick = replace(self, target=self.target.first(_QUICK_POINTS))
        tried: list[tuple[float, int, Shapes, tuple[int, int]]] = []
        for halved, only in self._cuts(shapes):
            candidate = quick.improved(halved, _QUICK_ROUNDS, only)
            tried.append((quick.error(candidate), len(tried), candidate, only))
        if not tried:
            return None
        better = [self.improved(candidate, _QUICK_ROUNDS, only) for _, _, candidate, only in sorted(tried)[:_KEPT]]
        return self.improved(min(better, key=self.error))

    def _residuals(self, shapes: Shapes) -> tuple[Array, Array]:
        """Signed distances (K, N) of the surface's points from each shape, and those (K, M) of the free points."""
        surface, free = zip(*(self._distances(shape) for shape in shapes), strict=True)
        return np.stack(surface), np.stack(free)

    def _distances(self, shape: ShapeCandidate) -> tuple[Array, Array]:
        """Signed distances (N,) and (M,) of both kinds of points from one shape."""
        return shape.distances(self.target.points), shape.distances(self.target.free)

    def _error(self, surface: Array, free: Array) -> float:
        gaps = surface.min(axis=0)
        depths = np.minimum(free.min(axis=0), 0.0)
        total = (np.where(gaps > 0.0, self.descent.outside, 1.0) * gaps**2).sum() + (depths**2).sum()
        return math.sqrt(float(total) / len(gaps))

    def _descend(self, shape: ShapeCandidate, own: NDArray[np.bool_], free: Array) -> None:
        points = np.concatenate([self.target.points[own], self.target.free[free < _NEAR]])
        is_free = np.arange(len(points)) >= own.sum()
        self.descent.run(shape, FitTarget(points, np.ones(len(points)), is_free), CLOSEST, _STEPS)

    def _cuts(self, shapes: Shapes) -> Iterator[tuple[Shapes, tuple[int, int]]]:
        """Unions with one of the shapes cut in two, and which shapes are new."""
        surface, free = self._residuals(shapes)
        owners = surface.argmin(axis=0)
        costs = (np.where(owners == np.arange(len(shapes))[:, None], np.abs(surface), 0.0) ** 2).sum(axis=1)
        costs += (np.maximum(-free, 0.0) ** 2).sum(axis=1)
        for k in np.argsort(-costs, kind="stable")[:_CUT_SHAPES].tolist():
            shape = shapes[k]
            points = (self.target.points[owners == k] - shape.origin) @ shape.rotation
            for axis in range(3):
                for share in _CUTS:
                    halves = _halves(shape, points, axis, share)
                    if halves is not None:
                        others = [other.copy() for other in shapes]
                        yield (*others[:k], *halves, *others[k + 1 :]), (k, k + 1)


def _halves(shape: ShapeCandidate, points: Array, axis: int, share: float) -> Shapes | None:
    """Two shapes around the points (N, 3) on both sides of a cut, in a shape's frame; None if there are too few."""
    if len(points) == 0:
        return None
    low, high = points.min(axis=0), points.max(axis=0)
    middle = low[axis] + share * (high[axis] - low[axis])
    found = []
    for side in (points[:, axis] <= middle, points[:, axis] > middle):
        if side.sum() < MIN_POINTS:
            return None
        bottom, top = points[side].min(axis=0), points[side].max(axis=0)
        axes = 0.5 * (top - bottom)
        axes[axis] *= _LENGTHENED
        numbers = np.array([*np.maximum(axes, _LEAST_AXIS), _SQUARENESS, _SQUARENESS, 0.0, 0.0])
        origin = shape.origin + shape.rotation @ (0.5 * (bottom + top))
        found.append(ShapeCandidate(numbers, shape.rotation.copy(), origin))
    return tuple(found)
