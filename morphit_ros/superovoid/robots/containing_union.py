"""Several superovoids whose union contains a solid, proven."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.deviation import parts_outside
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.samples import SurfaceSamples
from morphit_ros.superovoid.fits.search import ShapeCandidate
from morphit_ros.superovoid.robots.deviation import Superovoids, shape_deviation
from morphit_ros.superovoid.robots.union_descent import Shapes, UnionDescent

# What a point outside costs more than one inside, in descents one after the other.
_OUTSIDE = (1.0, 10.0, 100.0, 1000.0, 1000.0)
# Searches for points outside that are tried, and by how much shapes are larger than the points in them ask for: where
# two shapes meet, the smallest parts of the search have to fit into one of them.
_SEARCHES, _MARGIN = 60, 2e-3


def containing_union(
    shapes: Shapes,
    descent: UnionDescent,
    solid: Solid,
    samples: SurfaceSamples,
    placed: Callable[[Shapes], Sequence[PlacedSuperovoid]],
) -> tuple[Shapes, bool]:
    """Shapes that contain a solid, and whether that is proven.

    The shapes are pressed outwards, then each grows until it holds the points that are its own. A
    search for points of the solid that are in none of the shapes proves that there are none, or adds those that it
    finds. Of the unions that this gives, pressed more or less, that is taken which sticks out least.

    Args:
        shapes: convex, to start from.
        descent: of them.
        solid: in the frame of the input [m].
        samples: of its surface.
        placed: puts shapes into the frame of the input.
    """
    corners = samples.in_samples(solid.vertices)
    held = list(np.concatenate([descent.target.points, corners])[:, None])
    best, least = None, math.inf
    for outside in _OUTSIDE:
        target = descent.target.joined(corners, np.empty((0, 3)))
        pressing = replace(descent, descent=replace(descent.descent, outside=outside), target=target)
        shapes = pressing.improved(shapes)
        found = _grown_around(solid, samples, shapes, held, placed)
        if found is not None:
            sticks_out = shape_deviation(solid, placed(found), contained=True).model_to_solid
            if sticks_out < least:
                best, least = found, sticks_out
    return (best, True) if best is not None else (_grown(shapes, held), False)


def _grown_around(
    solid: Solid,
    samples: SurfaceSamples,
    shapes: Shapes,
    held: list[Array],
    placed: Callable[[Shapes], Sequence[PlacedSuperovoid]],
) -> Shapes | None:
    """Grown shapes that contain the solid, None if that is not proven; groups of points that this took join `held`."""
    for _ in range(_SEARCHES):
        grown = _grown(shapes, held)
        outside = parts_outside(solid, Superovoids(placed(grown)))
        if not outside:
            return grown
        held += [samples.in_samples(group) for group in outside]
    return None


def _grown(shapes: Shapes, held: list[Array]) -> Shapes:
    """Shapes grown to all sides, so that each group of points is in that which has to grow least for it."""
    owners = _greatest(shapes, held, ShapeCandidate.distances).argmin(axis=0)
    grown = []
    for k, shape in enumerate(shapes):
        larger = shape.copy()
        own = [held[group] for group in np.flatnonzero(owners == k)]
        if own:
            points = np.concatenate(own)
            larger.numbers[:3] += max(float(shape.distances(points).max()), 0.0)
            larger.numbers[:3] *= (1.0 + _MARGIN) * float(larger.gauges(points).max())
        grown.append(larger)
    return tuple(grown)


def _greatest(shapes: Shapes, held: list[Array], measure: Callable[[ShapeCandidate, Array], Array]) -> Array:
    """(K, G) the greatest of what a measure says of the points of each group and each shape."""
    starts = np.cumsum([0, *(len(group) for group in held[:-1])])
    points = np.concatenate(held)
    return np.maximum.reduceat(np.stack([measure(shape, points) for shape in shapes]), starts, axis=1)
