"""How far what was measured lies from what was learned of it, and what that leaves open of the object.

A measured point lies on the object's surface. Where poses are off by as much as a part is thick, carving takes the part
away, or its sides off, and the points that showed it lie outside of what is left. Which views are right nobody can tell
then; but how much is missing, or too much, the points do.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.moments import difference, point_moments
from morphit_ros.neural.solid.silhouette_hull import MomentDeviation

# Places in the field's box that its volume and its surface are estimated from, and measured points that are looked at.
_PLACES, _POINTS = 400_000, 2000
# Densities around the threshold whose places are of the surface.
_LAYER = 0.2
# Distances are told in such steps up to so many pixels: what is farther out was lost, or never was there.
_STEP, _FARTHEST = 0.25, 2.0


def offset_deviation(field: DensityField, threshold: float, points: Array, pixel: float) -> MomentDeviation | None:
    """What changes of a body if its surface is moved to what was measured of it; None if there is no body.

    Points that lie farther out than two pixels are of parts that are missing. They are taken to be as thick as all the
    rest is in the mean.

    Args:
        field: what was learned, with the density at its surface.
        threshold: this density.
        points: (N, 3) what was measured of the surface [m].
        pixel: what a pixel shows of the object [m].
    """
    rng = np.random.default_rng(0)
    low, high = field.bounds
    places = rng.uniform(low, high, size=(_PLACES, 3))
    room = float(np.prod(high - low)) / _PLACES
    densities = field.density(places)
    inside = places[densities > threshold]
    layer = places[np.abs(densities - threshold) < _LAYER]
    if len(inside) == 0 or len(layer) == 0:
        return None
    middle = field.bounds.mean(axis=0)
    own = point_moments(inside, np.full(len(inside), room), middle)
    # The integral of the gradient over a layer is its surface times the difference of density (coarea formula).
    area = room * float(np.linalg.norm(field.gradient(layer), axis=1).sum()) / (2.0 * _LAYER)
    chosen = points[rng.permutation(len(points))[:_POINTS]]
    offsets = signed_distances(field, threshold, chosen, pixel)
    lost = np.isinf(offsets)
    if lost.all():
        return MomentDeviation(1.0, float(np.linalg.norm(np.sqrt(np.diag(own.second_moment) / own.volume))), 1.0, 1.0)
    shift = float(offsets[~lost].mean())
    offsets[lost] = own.volume / area + max(shift, 0.0)
    moved = area / np.count_nonzero(~lost) * offsets
    all_points = np.concatenate([inside, chosen])
    moved_moments = point_moments(all_points, np.concatenate([np.full(len(inside), room), moved]), middle)
    volume, center, per_volume, tensor = difference(own, moved_moments).tolist()
    return MomentDeviation(volume, center, tensor, per_volume)


def signed_distances(field: DensityField, threshold: float, points: Array, pixel: float) -> Array:
    """(N,) distances of points (N, 3) from the surface, to a quarter of a pixel, negative inside [m].

    Infinite where it is farther outside than two pixels; inside no farther than that.
    """
    steps = np.indices((3, 3, 3)).reshape(3, -1).T - 1.0
    directions = steps[np.abs(steps).sum(axis=1) > 0.0]
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    within = field.density(points) > threshold
    found = np.where(within, -_FARTHEST, np.inf)
    left = np.arange(len(points))
    for reach in np.arange(_STEP, _FARTHEST + 0.5 * _STEP, _STEP):
        around = (points[left, None] + reach * pixel * directions).reshape(-1, 3)
        across = (field.density(around) > threshold).reshape(len(left), len(directions))
        other = (across != within[left, None]).any(axis=1)
        met = left[other]
        found[met] = np.where(within[met], -1.0, 1.0) * (reach - 0.5 * _STEP)
        left = left[~other]
    return np.asarray(pixel * found, dtype=np.float64)
