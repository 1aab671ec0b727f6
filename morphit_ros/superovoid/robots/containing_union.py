"""Several superovoids whose union contains a solid, proven."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from morphit_ros.geometry.deviation import parts_outside
from morphit_ros.geometry.solid import Solid
from morphit_ros.geometry.transforms import Array
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.samples import SurfaceSamples
from morphit_ros.superovoid.robots.deviation import Superovoids
from morphit_ros.superovoid.robots.union_descent import Shapes, UnionDescent

# What a point outside costs more than one inside, in descents one after the other.
_OUTSIDE = (10.0, 100.0, 1000.0, 1000.0)
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

    The shapes are pressed outwards, then each grows about its origin until it holds the points that are its own. A
    search for points of the solid that are in none of the shapes proves that there are none, or adds those that it
    finds.

    Args:
        shapes: convex, to start from.
        descent: of them.
        solid: in the frame of the input [m].
        samples: of its surface.
        placed: puts shapes into the frame of the input.
    """
    corners = samples.in_samples(solid.vertices)
    held = list(np.concatenate([descent.target.points, corners])[:, None])
    best: Shapes | None = None
    for outside in _OUTSIDE:
        target = descent.target.joined(corners, np.empty((0, 3)))
        pressing = replace(descent, descent=replace(descent.descent, outside=outside), target=target)
        shapes = pressing.improved(shapes)
        found = _grown_around(solid, samples, shapes, held, placed)
        if found is not None:
            shapes = found
            best = found if best is None else min(best, found, key=descent.error)
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
    """Shapes grown about their origins, so that each group of points is in that which has to grow least for it."""
    starts = np.cumsum([0, *(len(group) for group in held[:-1])])
    points = np.concatenate(held)
    gauges = np.maximum.reduceat(np.stack([shape.gauges(points) for shape in shapes]), starts, axis=1)
    owners = gauges.argmin(axis=0)
    grown = []
    for k, shape in enumerate(shapes):
        larger = shape.copy()
        larger.numbers[:3] *= (1.0 + _MARGIN) * float(gauges[k][owners == k].max(initial=1e-3))
        grown.append(larger)
    return tuple(grown)
