"""A carved hull as an occupancy on a grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import GridField, grid_nodes
from morphit_ros.neural.views.carving import DepthHull, Silhouettes

# Some tenths of a second with 40 views: between two parts somebody may be told, or give up.
_NODES_AT_ONCE = 20_000


def carve_grid(
    hull: DepthHull,
    bounds: Array,
    spacing: float,
    noise: float = 0.0,
    edge: float = 1.5,
    smoothing: float = 0.7,
    progress: Callable[[float], None] | None = None,
    within: Silhouettes | None = None,
    slack: float = 0.0,
) -> GridField:
    """Occupancies in [0, 1], a half at the surface of the hull, with an empty frame around what was measured.

    Args:
        hull: what to put on a grid.
        bounds: (2, 3) box around the object [m].
        spacing: of the nodes [m].
        noise: depth within which views are averaged [m].
        edge: width of the soft edge, in spacings.
        smoothing: standard deviation of a Gaussian over the distances, in spacings.
        progress: told the share done, now and then; may raise to end it.
        within: silhouettes that nothing reaches out of, None for those of the hull: depths that are averaged or not
            exact put thin parts beyond them.
        slack: but by this much [m].
    """
    from scipy.ndimage import gaussian_filter

    shape: Any = tuple(int(count) for count in np.ceil((bounds[1] - bounds[0]) / spacing).astype(int) + 3)
    low = bounds[0] - spacing
    frame = np.stack([low, low + (np.array(shape) - 1) * spacing])
    nodes = grid_nodes(frame, shape)
    parts = []
    for begin in range(0, len(nodes), _NODES_AT_ONCE):
        parts.append(hull.clearance(nodes[begin : begin + _NODES_AT_ONCE], noise))
        if progress is not None:
            progress(min(1.0, (begin + _NODES_AT_ONCE) / len(nodes)))
    clearance = np.concatenate(parts)
    # Nothing reaches beyond what was measured: it closes hulls that are open at the back.
    points = hull.surface_points
    robust = np.quantile(points, [0.002, 0.998], axis=0)
    beyond = np.maximum(robust[0] - nodes, nodes - robust[1]).max(axis=1)
    clearance = np.maximum(clearance, beyond)
    # What is farther from the surface than a few nodes needs no distance, and would blur into it.
    limit = 3.0 * spacing
    distance = np.clip(clearance, -limit, limit).reshape(shape)
    if smoothing > 0.0:
        distance = gaussian_filter(distance, smoothing)
    if within is not None:
        flat = distance.ravel()
        near = np.flatnonzero(np.abs(flat) < edge * spacing)
        flat[near] = np.maximum(flat[near], within.clearance(nodes[near]) - slack)
        distance = flat.reshape(shape)
    values = np.clip(0.5 - distance / (edge * spacing), 0.0, 1.0)
    for axis in range(3):
        side = np.moveaxis(values, axis, 0)
        side[0] = side[-1] = 0.0
    return GridField(values, frame)
