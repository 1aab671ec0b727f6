"""Walls from depth pictures: each side is averaged over the views that see it, and never with the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.fields.sided import SidedField
from morphit_ros.neural.solid.silhouette_hull import MomentDeviation
from morphit_ros.neural.views.carving import Silhouettes
from morphit_ros.neural.views.oriented_depths import (
    DIRECTIONS,
    FACING,
    OrientedSurface,
    side_evidence,
)
from morphit_ros.neural.views.posed_views import Mask, PosedDepths

# A side is known to so many spacings, or deviations of the noise, in front of it and behind.
_REACH, _NOISES = 2.5, 3.0
# Views of a side may say of a node that a few others see through it: rays at the edges of pixels.
_MOST_AGAINST = 0.1
# Less weight than any ray has.
_NO_WEIGHT = 1e-9
# Outlines are rounded to pixels, and the largest of many lies inside of the object by so much [px].
_OUTLINE = 0.5
# Width of the edge of the field [spacings]: walls keep a density of one.
_EDGE = 0.1
# Share of the measured points that may lie beyond the object on each side.
_BEYOND = 0.002
# Points at which a wall's deviation is measured, and the layer at the surface that they lie in [spacings].
_POINTS, _LAYER = 400_000, 0.1


class WalledGrid(NamedTuple):
    """What was carved.

    Attributes:
        field: an occupancy, a half at the surface.
        deviation: how well its volume and moments are known, from how far the views of each side agree.
    """

    field: SidedField
    deviation: MomentDeviation


def carve_walls(
    views: PosedDepths,
    surfaces: list[OrientedSurface],
    bounds: Array,
    spacing: float,
    noise: float,
    pixel: float,
    smoothing: float = 0.7,
    progress: Callable[[float], None] | None = None,
) -> WalledGrid:
    """Occupancies behind every side that the views measured, with an empty frame around.

    Args:
        views: depths that agree.
        surfaces: see `oriented_surfaces`.
        bounds: (2, 3) box around the object [m].
        spacing: of the nodes [m].
        noise: of the depths, one deviation [m].
        pixel: what a pixel shows of the object [m].
        smoothing: standard deviation of a Gaussian over the distances of each side, in spacings.
        progress: told the share done, now and then; may raise to end it.
    """
    reach = max(_REACH * spacing, _NOISES * noise)
    shape: Any = tuple(int(count) for count in np.ceil((bounds[1] - bounds[0]) / spacing).astype(int) + 3)
    low = bounds[0] - spacing
    frame = np.stack([low, low + (np.array(shape) - 1) * spacing])
    nodes = grid_nodes(frame, shape)
    sums, weights = np.zeros((2, len(DIRECTIONS), len(nodes)))
    through, near = np.zeros((2, len(nodes)))
    for number, surface in enumerate(surfaces):
        said = side_evidence(views, number, surface, nodes, reach, _NOISES * noise)
        through += said.through
        found = np.flatnonzero(said.weights > 0.0)
        near[found] += 1
        for side, share in enumerate(_shares(said.normals[found])):
            weights[side, found] += share * said.weights[found]
            sums[side, found] += share * said.weights[found] * said.distances[found]
        if progress is not None:
            progress((number + 1) / len(surfaces))
    limit = reach + 0.5 * spacing
    known = weights > _NO_WEIGHT
    sides = [
        _smoothed((total / np.maximum(weight, _NO_WEIGHT)).reshape(shape), there.reshape(shape), smoothing, limit)
        for total, weight, there in zip(sums, weights, known, strict=True)
    ]
    free = (through > np.maximum(0.5, _MOST_AGAINST * near)).reshape(shape) | (np.max(sides, axis=0) > spacing)
    sides.append(_carved(views, free, nodes, spacing, pixel, limit))
    field = SidedField(np.clip(sides, -limit, limit), frame, _EDGE * spacing)
    return WalledGrid(field, _deviation(views, surfaces, field, spacing, noise, pixel))


def _shares(normals: Array) -> Array:
    """(6, N) how much normals (N, 3) face each direction."""
    shares: Array = np.maximum(normals @ DIRECTIONS.T - FACING, 0.0).T
    return shares


def _smoothed(distances: Array, known: Mask, smoothing: float, limit: float) -> Array:
    """Distances of one side (X, Y, Z), smoothed where it is known, and carried on a little where it is behind."""
    from scipy.ndimage import gaussian_filter

    if smoothing > 0.0:
        weight = gaussian_filter(known.astype(np.float64), smoothing, truncate=3.0)
        smooth = gaussian_filter(np.where(known, distances, 0.0), smoothing, truncate=3.0) / np.maximum(weight, 1e-6)
    else:
        weight, smooth = known.astype(np.float64), distances
    # In front it would carve into a wall that the side ends at.
    beyond = np.where((weight > 1e-3) & (smooth < 0.0), smooth, -limit)
    return np.where(known, smooth, beyond)


def _carved(views: PosedDepths, free: Mask, nodes: Array, spacing: float, pixel: float, limit: float) -> Array:
    """Distance (X, Y, Z) in front of what no side tells: rays that pass, outlines, the box of what was measured."""
    carved = np.where(free.ravel(), spacing, -limit)
    if views.masks is not None:
        carved = np.maximum(carved, Silhouettes(views, views.masks).clearance(nodes) - _OUTLINE * pixel)
    robust = np.quantile(np.concatenate(views.surface_points()), [_BEYOND, 1.0 - _BEYOND], axis=0)
    carved = np.maximum(carved, np.maximum(robust[0] - nodes, nodes - robust[1]).max(axis=1)).reshape(free.shape)
    for axis in range(3):
        side = np.moveaxis(carved, axis, 0)
        side[0] = side[-1] = limit
    return carved


def _deviation(
    views: PosedDepths, surfaces: list[OrientedSurface], field: SidedField, spacing: float, noise: float, pixel: float
) -> MomentDeviation:
    """Jackknife over the views: how the moments change with the surface if one of them is left out.

    A side that moves by δ adds δ dA to the volume, and as much to the other moments as they are at that place.
    """
    rng = np.random.default_rng(0)
    solid = np.argwhere(np.abs(field.distances.max(axis=3)) < 2.0 * spacing)
    unknown = MomentDeviation(1.0, spacing, 1.0, 1.0)
    if len(solid) == 0:
        return unknown
    places = field.bounds[0] + field.spacing * (
        solid[rng.integers(len(solid), size=_POINTS)] + rng.uniform(-0.5, 0.5, size=(_POINTS, 3))
    )
    volume = len(solid) * spacing**3 / _POINTS
    clearance = field.clearance(places)
    layer = places[np.abs(clearance) < _LAYER * spacing]
    area = volume / (2.0 * _LAYER * spacing)
    inside = places[clearance < 0.0]
    if len(layer) == 0 or len(inside) == 0:
        return unknown
    center = inside.mean(axis=0)
    gyration = float(((inside - center) ** 2).sum(axis=1).mean())
    side = field.sides(layer).argmax(axis=1)
    sums, weights = np.zeros((2, len(surfaces), len(layer)))
    for number, surface in enumerate(surfaces):
        said = side_evidence(views, number, surface, layer, max(_REACH * spacing, _NOISES * noise), 0.0)
        shares = np.concatenate([_shares(said.normals), np.zeros((1, len(layer)))])
        weights[number] = shares[side, np.arange(len(layer))] * said.weights
        sums[number] = weights[number] * np.nan_to_num(said.distances)
    total = weights.sum(axis=0)
    mean = sums.sum(axis=0) / np.maximum(total, _NO_WEIGHT)
    rest = total - weights
    without = np.where(rest > _NO_WEIGHT, (sums.sum(axis=0) - sums) / np.maximum(rest, _NO_WEIGHT), mean + pixel)
    moved = -np.clip(np.where(weights > 0.0, without - mean, 0.0), -pixel, pixel)
    count = len(inside) * volume
    offsets = layer - center
    square = (offsets**2).sum(axis=1) / gyration
    effects = area / count * np.stack([moved.sum(axis=1), *(moved @ offsets).T, moved @ square], axis=1)
    spread = (len(views) - 1.0) / len(views) * ((effects - effects.mean(axis=0)) ** 2).sum(axis=0)
    deviations = np.sqrt(spread)
    return MomentDeviation(
        float(deviations[0]), float(np.linalg.norm(deviations[1:4])), float(np.hypot(deviations[0], deviations[4])),
        float(deviations[4]),
    )  # fmt: skip
