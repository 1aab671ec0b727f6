"""The search for the best placed superovoid: many starts on few points, the best of them on more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.rotations import matrices_of_quats
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.fits import gauge
from morphit_ros.superovoid.fits.config import SuperovoidFitConfig
from morphit_ros.superovoid.fits.descent import GEMAN_MCCLURE, HUBER, SQUARES, FitBounds, FitCost, descend
from morphit_ros.superovoid.fits.gauge import CLOSEST, RADIAL

# Points and steps of the two rounds before the last, and how many of the starts go on after each.
_FIRST_POINTS, _FIRST_STEPS, _FIRST_KEPT = 120, 15, 5
_SECOND_POINTS, _SECOND_STEPS, _SECOND_KEPT = 360, 30, 2
_TOLERANCE = 1e-5
# What a point that must not be inside weighs beside one of the surface.
_FREE_WEIGHT = 4.0
# Exponents at the start: rounded, with derivatives that tell where to go.
_SQUARENESS = 0.8
# Widths of the bounded loss in spreads (1.4826 MAD) of the distances; the first is in units of the samples.
_FIRST_WIDTH, _WIDTH_IN_SPREADS, _LEAST_WIDTH = 0.3, 3.0, 1e-7
# Bounds of semi-axes relative to the greatest distance of a point from the centroid. A cloud may show one end of a
# thing only. A mesh shows all of it, and what grew larger could slip out between the points that must not be inside.
_LEAST_AXIS, _GREATEST_AXIS, _GREATEST_AXIS_OF_CLOUD = 1e-4, 1.05, 2.0


@dataclass
class ShapeCandidate:
    """A superovoid in the frame and unit of the samples.

    Attributes:
        numbers: (7,) as `Superovoid.parameters`.
        rotation, origin: (3, 3) and (3,), its frame.
        cost: of the points that it was last fitted to.
        converged: whether the last descent ended by itself.
    """

    numbers: Array
    rotation: Array
    origin: Array
    cost: float = math.inf
    converged: bool = False

    def distances(self, points: Array) -> Array:
        """Signed distances (N,) of points (N, 3) to the surface, negative inside."""
        out = np.empty(len(points))
        gauge.distances(self.numbers, self.rotation, self.origin, points, out)
        return out

    def limited_distances(self, points: Array, limits: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Signed distances (N,) of points (N, 3), and which are exact: of those within limits (N,), or inside.

        The others are too small, but greater than their limits.
        """
        out, exact = np.empty(len(points)), np.empty(len(points), dtype=np.bool_)
        gauge.limited_distances(self.numbers, self.rotation, self.origin, points, limits, out, exact)
        return out, exact

    def gauges(self, points: Array) -> Array:
        """G (N,) of points (N, 3): below 1 inside."""
        out = np.empty(len(points))
        gauge.gauges(self.numbers, self.rotation, self.origin, points, out)
        return out

    def copy(self) -> ShapeCandidate:
        return replace(self, numbers=self.numbers.copy(), rotation=self.rotation.copy(), origin=self.origin.copy())


@dataclass(frozen=True)
class FitTarget:
    """What shapes are fitted to.

    Attributes:
        points, weights: (N, 3) and (N,).
        free: (N,), whether a point must not be inside, and does not matter otherwise.
    """

    points: Array
    weights: Array
    free: NDArray[np.bool_]

    @classmethod
    def of(cls, surface: Array, weights: Array, free: Array, count: int) -> FitTarget:
        """At most `count` points of a surface, and as large a share of the points that must not be inside.

        Args:
            surface, weights: (N, 3) and (N,), in an order in which every beginning is spread evenly.
            free: (M, 3), in such an order too.
        """
        kept = min(count, len(surface))
        beyond = -(-len(free) * kept // len(surface))
        points = np.concatenate([surface[:kept], free[:beyond]])
        level = _FREE_WEIGHT * float(weights[:kept].mean())
        return cls(
            points,
            np.concatenate([weights[:kept], np.full(beyond, level)]),
            np.arange(len(points)) >= kept,
        )


@dataclass(frozen=True)
class ShapeDescent:
    """What a descent minimises and within which bounds.

    Attributes:
        loss: SQUARES, HUBER or GEMAN_MCCLURE.
        width: of the loss.
        low, high: bounds of the numbers (7,).
        convex: whether to stay convex.
        outside: factor on the cost of points that are outside.
    """

    loss: int
    width: float
    low: Array
    high: Array
    convex: bool
    outside: float = 1.0

    def run(self, shape: ShapeCandidate, target: FitTarget, kind: int, steps: int) -> None:
        """Improve a shape in place."""
        cost = FitCost(
            kind, self.loss, float(self.width), float(self.outside), target.points, target.weights, target.free
        )
        bounds = FitBounds(self.low, self.high, self.convex)
        shape.cost, _, shape.converged = descend(
            cost, bounds, shape.numbers, shape.rotation, shape.origin, steps, _TOLERANCE
        )


def make_descent(config: SuperovoidFitConfig, reach: float, is_mesh: bool) -> ShapeDescent:
    """The descent that a configuration asks for; `reach` is the greatest distance of a point from the centre."""
    largest = _GREATEST_AXIS if is_mesh else _GREATEST_AXIS_OF_CLOUD
    low = np.array([_LEAST_AXIS * reach] * 3 + [config.min_squareness] * 2 + [-config.max_tapering] * 2)
    high = np.array([largest * reach] * 3 + [config.max_squareness] * 2 + [config.max_tapering] * 2)
    if config.family != "superovoid":
        low[5:], high[5:] = 0.0, 0.0
    if config.family == "ellipsoid":
        low[3:5], high[3:5] = 1.0, 1.0
    names = {"squares": SQUARES, "huber": HUBER, "geman_mcclure": GEMAN_MCCLURE}
    loss = (HUBER if is_mesh else GEMAN_MCCLURE) if config.loss == "auto" else names[config.loss]
    width = _FIRST_WIDTH if loss == GEMAN_MCCLURE else config.huber_width
    return ShapeDescent(loss, width, low, high, config.convex or config.mode == "outer")


def make_starts(points: Array, weights: Array, count: int, rng: np.random.Generator) -> list[ShapeCandidate]:
    """Boxes around the points: each principal axis as z, twice, half a corner turned; then at random."""
    center = np.average(points, axis=0, weights=weights)
    arms = points - center
    axes = np.linalg.eigh((arms * weights[:, None]).T @ arms)[1][:, ::-1]
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    rotations = []
    for turned in (False, True):
        for z in range(3):
            rotation = axes[:, [(z + 1) % 3, (z + 2) % 3, z]]
            if turned:
                x, y = rotation[:, 0].copy(), rotation[:, 1].copy()
                rotation = np.stack([(x + y), (y - x), math.sqrt(2.0) * rotation[:, 2]], axis=1) / math.sqrt(2.0)
            rotations.append(rotation)
    while len(rotations) < count:
        quaternion = rng.normal(size=4)
        rotations.append(matrices_of_quats(np.roll(quaternion / np.linalg.norm(quaternion), -1)[None])[0])
    return [_box_start(points, rotation) for rotation in rotations[:count]]


def _box_start(points: Array, rotation: Array) -> ShapeCandidate:
    local = points @ rotation
    # A few points far off must not decide how large the box is.
    low, high = np.percentile(local, (2.0, 98.0), axis=0)
    half = np.maximum(0.5 * (high - low), 1e-3 * float(np.ptp(local)))
    numbers = np.array([*half, _SQUARENESS, _SQUARENESS, 0.0, 0.0])
    return ShapeCandidate(numbers, np.ascontiguousarray(rotation), rotation @ (0.5 * (low + high)))


def search(
    points: Array,
    weights: Array,
    free: Array,
    descent: ShapeDescent,
    config: SuperovoidFitConfig,
    rng: np.random.Generator,
    starts: Sequence[ShapeCandidate] = (),
) -> list[ShapeCandidate]:
    """The best placed shapes, best first.

    Early rounds take distances along rays, which cost little; the last takes those to the closest point.

    Args:
        points, weights, free: as of `FitTarget.of`.
        descent: what to minimise.
        config: number of starts and of steps.
        rng: source of random starts.
        starts: shapes to start from besides those made here; not changed.
    """
    shapes = [start.copy() for start in starts] + make_starts(points, weights, config.starts, rng)
    first, second = (FitTarget.of(points, weights, free, count) for count in (_FIRST_POINTS, _SECOND_POINTS))
    last = FitTarget.of(points, weights, free, len(points))
    for shape in shapes:
        descent.run(shape, first, RADIAL, _FIRST_STEPS)
    shapes = sorted(shapes, key=lambda shape: shape.cost)[:_FIRST_KEPT]
    descent = _narrowed(descent, shapes[0], second.points[~second.free])
    for shape in shapes:
        descent.run(shape, second, RADIAL, _SECOND_STEPS)
    shapes = sorted(shapes, key=lambda shape: shape.cost)[:_SECOND_KEPT]
    for shape in shapes:
        own = descent
        for _ in range(3 if descent.loss == GEMAN_MCCLURE else 1):
            own = _narrowed(own, shape, points)
            own.run(shape, last, CLOSEST, config.iterations)
    if descent.loss == GEMAN_MCCLURE:
        # Each has narrowed its loss for itself; compared by one, that of the first.
        common = _narrowed(descent, shapes[0], points)
        for shape in shapes:
            ratio = (shape.distances(points) / common.width) ** 2
            shape.cost = float((weights * ratio / (1.0 + ratio)).sum()) * common.width**2
    return sorted(shapes, key=lambda shape: shape.cost)


def _narrowed(descent: ShapeDescent, shape: ShapeCandidate, points: Array) -> ShapeDescent:
    """The bounded loss with a width from the spread of the distances; other losses as they are."""
    if descent.loss != GEMAN_MCCLURE:
        return descent
    spread = 1.4826 * float(np.median(np.abs(shape.distances(points))))
    return replace(descent, width=min(descent.width, max(_WIDTH_IN_SPREADS * spread, _LEAST_WIDTH)))
