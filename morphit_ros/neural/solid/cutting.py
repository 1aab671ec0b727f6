"""The surface of nodes inside: it crosses the grid's edges where the field itself passes the threshold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.cut_cells import CutEdges, find_cut_edges, measure_cut_cells
from morphit_ros.neural.solid.moments import VolumeMoments

# The place of a crossing on its edge is found to this share of the edge.
_CROSSING_TOLERANCE = 1e-3
_MAX_CROSSING_STEPS = 12


def cut_nodes(
    field: DensityField,
    densities: Array,
    inside: NDArray[np.bool_],
    threshold: float,
    origin: Array,
    spacing: float,
    coarse: bool = False,
) -> tuple[VolumeMoments, TriangleMesh, Array]:
    """Moments, surface and occupancy of nodes inside."""
    inside = np.ascontiguousarray(inside)
    edges = find_cut_edges(inside)
    crossings = _crossings(field, densities, edges, threshold, origin, spacing)
    middle = 0.5 * np.array(inside.shape)
    cut = measure_cut_cells(inside, edges, crossings, middle, with_faces=not coarse)
    if cut.volume <= 0.0:  # cells so large that no node is inside
        nothing = VolumeMoments(0.0, origin + spacing * middle, np.zeros((3, 3)))
        return nothing, _NO_SURFACE, cut.occupancy
    center = cut.first_moment / cut.volume
    moments = VolumeMoments(
        cut.volume * spacing**3,
        origin + spacing * (middle + center),
        (cut.second_moment - cut.volume * np.outer(center, center)) * spacing**5,
    )
    surface = _NO_SURFACE if coarse else TriangleMesh(origin + spacing * crossings, cut.faces)
    return moments, surface, cut.occupancy


_NO_SURFACE = TriangleMesh(np.zeros((1, 3)), np.zeros((1, 3), np.int64))


def _crossings(
    field: DensityField, densities: Array, edges: CutEdges, threshold: float, origin: Array, spacing: float
) -> Array:
    """(E, 3) where the field passes the threshold on each cut edge, in units of the grid."""
    start, end = edges.inside.astype(np.float64), edges.outside.astype(np.float64)
    direction = end - start
    low_value = densities[tuple(edges.inside.T)] - threshold
    high_value = densities[tuple(edges.outside.T)] - threshold
    low, high = np.zeros(len(start)), np.ones(len(start))
    place = np.full(len(start), 0.5)
    # Others end at a hollow that was filled, or at a piece that was left out: the surface passes midway.
    active = np.flatnonzero((low_value > 0.0) & (high_value <= 0.0))
    tolerance = _CROSSING_TOLERANCE * (low_value - high_value)
    for step in range(_MAX_CROSSING_STEPS):
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], low_value[active], high_value[active]
        # Regula falsi, with a bisection every third step for edges sharper than the grid.
        guess = 0.5 * (a + b) if step % 3 == 2 else a + (b - a) * np.clip(fa / (fa - fb), 0.02, 0.98)
        value = field.density(origin + spacing * (start[active] + guess[:, None] * direction[active])) - threshold
        inner = value > 0.0
        low[active[inner]], low_value[active[inner]] = guess[inner], value[inner]
        high[active[~inner]], high_value[active[~inner]] = guess[~inner], value[~inner]
        met = np.abs(value) <= tolerance[active]
        narrow = high[active] - low[active] < _CROSSING_TOLERANCE
        place[active] = np.where(met, guess, 0.5 * (low[active] + high[active]))
        active = active[~(met | narrow)]
    return start + np.clip(place, 1e-6, 1.0 - 1e-6)[:, None] * direction
