"""The union of several superovoids, improved together: each on the points that it is nearest to, and cut where it pays.

A point of the surface costs its distance from the union, a point outside of the solid its depth in it. Which shape a
point is nearest to changes with the shapes, so that descents of single shapes on their own points alternate with
assigning the points anew. Shapes may overlap: no plane says where one ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.superovoid.fits.descent import SIXTH_POWER
from morphit_ros.superovoid.fits.gauge import CLOSEST
from morphit_ros.superovoid.fits.samples import MIN_POINTS, SurfaceSamples
from morphit_ros.superovoid.fits.search import FitTarget, ShapeCandidate, ShapeDescent

# Free points: one about each point of the surface, so far away by turns, in units of the samples. Nearer to the surface
# than the least distance, what is inside or not matters little.
_AWAY, _LEAST_DISTANCE = (0.04, 0.1, 0.3), 0.02
# Where a greatest distance is asked for: how far beside the surface more free points are, relative to it, how many for
# three others, and of these the least distance, for they are drawn in any direction.
_SHELL, _SHELLS, _LEAST_SHELL = 0.7, 6, 0.7
# A shape is cut across each of its axes at these shares of the length of its points. Both halves start rounded, and a
# little longer than their part, as superovoids have round ends.
_CUTS, _SQUARENESS, _LENGTHENED, _LEAST_AXIS = (0.3, 0.5, 0.7), 0.5, 1.1, 0.03
# Of the shapes that cost most, how many are cut; with how many points cuts are compared, and how many go on.
_CUT_SHAPES, _QUICK_POINTS, _KEPT = 2, 350, 3
# Rounds of assigning points, and steps of a descent in each: for halves of a cut, and for all shapes.
_QUICK_ROUNDS, _ROUNDS, _STEPS = 2, 12, 6
# A round that takes away less than this of the cost helps no more; two of them are the last.
_ENOUGH = 1e-3
# Powers of distances are of their shares of the greatest, which is no smaller than this.
_LEAST_WIDTH = 1e-6
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


def make_target(
    solid: Solid, samples: SurfaceSamples, count: int, rng: np.random.Generator, d_max: float = 0.0
) -> UnionTarget:
    """Points of a solid's outer surface, and points around them that are outside.

    Args:
        solid: in the frame of the input.
        samples: of its surface; their `free` points beyond the hull are taken too.
        count: of the points of the surface, at most.
        rng: source of randomness.
        d_max: greatest distance that is asked for, if any [m]: more free points are a little nearer than it.
    """
    points = np.ascontiguousarray(samples.points[:count])
    away: tuple[float, ...] = _AWAY
    least = _LEAST_DISTANCE
    if d_max > 0.0:
        shell = _SHELL * d_max / samples.scale
        away += (shell,) * _SHELLS
        least = min(least, _LEAST_SHELL * shell)
    number = len(points) * len(away) // len(_AWAY)
    ways = rng.normal(size=(number, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    around = np.resize(points, (number, 3)) + ways * np.resize(away, number)[:, None]
    beyond = samples.free[: len(points)]
    # The two kinds mixed, so that every beginning has its share of both.
    ranks = np.concatenate([(np.arange(len(some)) + 0.5) / max(len(some), 1) for some in (around, beyond)])
    candidates = np.concatenate([around, beyond])[np.argsort(ranks, kind="stable")]
    in_solid = transform_points(samples.T_mesh_samples, candidates * samples.scale)
    outside = ~solid.contains(in_solid) & (solid.surface_distances(in_solid) > least * samples.scale)
    return UnionTarget(points, np.ascontiguousarray(candidates[outside]))


class _Distances:
    """Signed distances of a target's points from each of some shapes, exact where it matters.

    Attributes:
        free: (K, M) of the free points; of those outside only a lower bound.
    """

    def __init__(self, shapes: Shapes, target: UnionTarget) -> None:
        self._shapes, self._target = shapes, target
        self._surface = np.full((len(shapes), len(target.points)), np.inf)
        self._exact = np.zeros(self._surface.shape, dtype=np.bool_)
        self.free = np.empty((len(shapes), len(target.free)))
        self._at_surface = np.zeros(len(target.free))
        for k in range(len(shapes)):
            self.update(k)

    def update(self, k: int) -> None:
        """Look at a shape again that has changed."""
        self._surface[k] = np.inf
        limits = self._surface.min(axis=0)
        self._surface[k], self._exact[k] = self._shapes[k].limited_distances(self._target.points, limits)
        self.free[k], _ = self._shapes[k].limited_distances(self._target.free, self._at_surface)

    def nearest(self) -> tuple[Array, NDArray[np.int64]]:
        """Signed distances (N,) of the surface's points from the nearest shape, and which it is (N,)."""
        every = np.arange(len(self._target.points))
        while True:
            owners = self._surface.argmin(axis=0)
            unsure = ~self._exact[owners, every]
            if not unsure.any():
                return self._surface[owners, every], owners
            for k in np.unique(owners[unsure]).tolist():
                rows = np.flatnonzero(unsure & (owners == k))
                self._surface[k, rows] = self._shapes[k].distances(self._target.points[rows])
                self._exact[k, rows] = True

    def depths(self) -> Array:
        """(M,) how deep free points are in the union, 0 outside."""
        return np.maximum(-self.free.min(axis=0), 0.0)


@dataclass(frozen=True)
class UnionDescent:
    """What the descents of unions minimise.

    Attributes:
        descent: of a single shape: loss, bounds, and what a distance outside costs more.
        target: points.
    """

    descent: ShapeDescent
    target: UnionTarget

    @property
    def power(self) -> float:
        """Of the distances, in the error."""
        return 6.0 if self.descent.loss == SIXTH_POWER else 2.0

    @property
    def pressing(self) -> UnionDescent:
        """The same of which the greatest distances decide."""
        return replace(self, descent=replace(self.descent, loss=SIXTH_POWER))

    def error(self, shapes: Shapes) -> float:
        """Mean of order `power` of the distances of points of the surface and depths of free points."""
        return self._error(_Distances(shapes, self.target))

    def improved(self, shapes: Shapes, rounds: int = _ROUNDS, only: Sequence[int] | None = None) -> Shapes:
        """Shapes of lower error, or the same.

        Args:
            shapes: to start from.
            rounds: at most.
            only: indices of the shapes that may change; None for all.
        """
        current = tuple(shape.copy() for shape in shapes)
        distances = _Distances(current, self.target)
        best, least = tuple(shape.copy() for shape in current), self._error(distances)
        changing = range(len(current)) if only is None else only
        idle = 0
        for _ in range(rounds):
            gaps, owners = distances.nearest()
            width = self.descent.width
            if self.descent.loss == SIXTH_POWER:
                width = max(float(np.abs(gaps).max()), float(distances.depths().max(initial=0.0)), _LEAST_WIDTH)
            for k in changing:
                self._descend(current[k], owners == k, distances.free[k] < _NEAR, width)
                distances.update(k)
            error = self._error(distances)
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

    def _error(self, distances: _Distances) -> float:
        gaps, depths = distances.nearest()[0], distances.depths()
        powers = np.where(gaps > 0.0, self.descent.outside, 1.0) * np.abs(gaps) ** self.power
        total = float(powers.sum() + (depths**self.power).sum())
        return float((total / len(gaps)) ** (1.0 / self.power))

    def _descend(self, shape: ShapeCandidate, own: NDArray[np.bool_], near: NDArray[np.bool_], width: float) -> None:
        points = np.concatenate([self.target.points[own], self.target.free[near]])
        is_free = np.arange(len(points)) >= own.sum()
        target = FitTarget(points, np.ones(len(points)), is_free)
        replace(self.descent, width=width).run(shape, target, CLOSEST, _STEPS)

    def _cuts(self, shapes: Shapes) -> Iterator[tuple[Shapes, tuple[int, int]]]:
        """Unions with one of the shapes cut in two, and which shapes are new."""
        distances = _Distances(shapes, self.target)
        gaps, owners = distances.nearest()
        costs = np.bincount(owners, np.abs(gaps) ** self.power, len(shapes))
        costs += (np.maximum(-distances.free, 0.0) ** self.power).sum(axis=1)
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
