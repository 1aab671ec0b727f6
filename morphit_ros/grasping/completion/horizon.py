"""How far a round surface goes on beyond its horizon.

A camera sees a ball up to where its rays graze it: behind that horizon the surface bulges out further before it turns
back, by a third of its radius if seen from 45° above. A box ends at its edge instead, which its camera sees steeply.
What tells them apart is how the normals turn towards the border of what was seen: along a circle of radius R their
outward component grows by 1/R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

# The border's neighbourhood that is looked at: inwards, and half of its width [m].
_INWARDS, _ASIDE = 0.02, 0.01
# A surface that is round at its horizon leans outwards there by at least this sine, and its radius is below this [m]:
# larger ones are flat within the noise of the normals. Fewer points don't tell.
_LEAST_LEAN, _LARGEST_RADIUS, _LEAST_POINTS = 0.25, 0.08, 8
# No more is made up than this [m].
_FURTHEST = 0.025


@dataclass(frozen=True)
class Horizon:
    """Circles that continue the surface in the upright plane of each border point.

    Attributes:
        extents: (E,) how far out the surface goes beyond its border [m]; 0 where it ends.
        radii: (E,) of the circles [m].
        leans: (E,) sine of the angle between the normal at the border and the vertical.
    """

    extents: Array
    radii: Array
    leans: Array

    @property
    def drops(self) -> Array:
        """(E,) height between the border and where the surface is upright [m]."""
        drop: Array = self.radii * np.sqrt(np.maximum(1.0 - self.leans**2, 0.0))
        return np.where(self.extents > 0.0, drop, 0.0)


def find_horizon(local: Array, normals: Array, edge: Array, outward: Array, room: Array) -> Horizon:
    """Continue the surface beyond the border of what was seen of it.

    Args:
        local, normals: (N, 3) seen points, z up.
        edge, outward: (E, 2) points of the border and unit directions away from the object.
        room: (E,) height of the border above what the object stands on: it turns back above that [m].
    """
    fits = np.zeros((len(edge), 2))
    _fit_circles(np.ascontiguousarray(local), np.ascontiguousarray(normals), edge, outward, fits)
    leans, curvatures = np.clip(fits[:, 0], 0.0, 1.0), fits[:, 1]
    rise = np.sqrt(np.maximum(1.0 - leans**2, 1e-6))
    radii = np.minimum(1.0 / np.maximum(curvatures, 1e-3), np.maximum(room, 0.0) / rise)
    extents = np.minimum(radii * (1.0 - leans), _FURTHEST)
    extents[(room <= 0.0) | (leans < _LEAST_LEAN) | (curvatures < 1.0 / _LARGEST_RADIUS)] = 0.0
    smooth = np.where(room > 0.0, _smoothed(edge, extents), 0.0)
    # A border point whose own normals don't tell goes with the others.
    leans = np.where((extents > 0.0) | (smooth == 0.0), leans, 0.5)
    return Horizon(smooth, np.where(extents > 0.0, radii, smooth / 0.5), leans)


def arcs(edge: Array, outward: Array, height: Array, horizon: Horizon, spacing: float) -> tuple[Array, Array]:
    """Points (A, 3), about `spacing` [m] apart, and normals (A, 3) on the circles, from the border to their sides.

    Args:
        edge, outward, height: (E, 2), (E, 2), (E,) of the border.
        horizon: of the same border.
        spacing: [m].
    """
    begin = np.arcsin(np.clip(horizon.leans, 0.0, 1.0))
    length = np.where(horizon.extents > 0.0, horizon.radii * (0.5 * np.pi - begin), 0.0)
    numbers = np.round(length / spacing).astype(np.int64)
    which = np.repeat(np.arange(len(edge)), numbers)
    step = np.arange(len(which)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    angle = begin[which] + (0.5 * np.pi - begin[which]) * (step + 0.5) / numbers[which]
    # Smoothing the extents along the border stretches the circles a little.
    full = horizon.radii * (1.0 - horizon.leans)
    stretch = (horizon.extents / np.maximum(full, 1e-9))[which]
    out = stretch * horizon.radii[which] * (np.sin(angle) - horizon.leans[which])
    down = horizon.radii[which] * (np.cos(begin[which]) - np.cos(angle))
    points = np.column_stack([edge[which] + out[:, None] * outward[which], height[which] - down])
    return points, np.column_stack([np.sin(angle)[:, None] * outward[which], np.cos(angle)])


def _smoothed(edge: Array, extents: Array, reach: float = 0.015) -> Array:
    """Median along the border of the extents that are not 0, where those are a third of all at least."""
    near = np.linalg.norm(edge[:, None] - edge[None], axis=2) <= reach
    further = near & (extents > 0.0)[None]
    smooth = np.zeros(len(edge))
    for e in np.flatnonzero(3 * further.sum(axis=1) >= near.sum(axis=1)):
        smooth[e] = np.median(extents[further[e]])
    return smooth


@njit(cache=True, nogil=True)
def _fit_circles(local: Array, normals: Array, edge: Array, outward: Array, fits: Array) -> None:
    """Lean at the border and curvature (E, 2): the outward component of the normals as a line over the distance."""
    for e in range(edge.shape[0]):
        count = 0
        x1, x2, y1, xy = 0.0, 0.0, 0.0, 0.0
        for i in range(local.shape[0]):
            dx, dy = local[i, 0] - edge[e, 0], local[i, 1] - edge[e, 1]
            x = dx * outward[e, 0] + dy * outward[e, 1]
            if x < -_INWARDS or x > 0.005 or abs(dy * outward[e, 0] - dx * outward[e, 1]) > _ASIDE:
                continue
            lean = normals[i, 0] * outward[e, 0] + normals[i, 1] * outward[e, 1]
            # What faces away is another side of the object.
            if normals[i, 2] < 0.1 or lean < -0.5:
                continue
            y = lean / np.sqrt(lean * lean + normals[i, 2] * normals[i, 2])
            count += 1
            x1 += x
            x2 += x * x
            y1 += y
            xy += x * y
        if count < _LEAST_POINTS:
            continue
        spread = x2 - x1 * x1 / count
        if spread < 1e-6 * count:
            continue
        slope = (xy - x1 * y1 / count) / spread
        fits[e, 0] = y1 / count - slope * x1 / count
        fits[e, 1] = slope
