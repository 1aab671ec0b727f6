"""Convex pieces of a body that is known as contact points only."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import GridField
from morphit_ros.neural.solid.extraction import SolidConfig, extract_solid
from morphit_ros.simulation.convex_pieces import convex_pieces

# Grid nodes along the longest side of the points' box.
_NODES = 110
# Gaps between points up to this many times their typical distance are closed.
_REACH = 2.1
# Cells of the surface that is split.
_RESOLUTION = 40


def surface_of_points(points: Array) -> TriangleMesh:
    """A closed surface through the outermost of points (N, 3) that fill a body or its shell; hollows are filled.

    Balls about the points are joined, filled, and shrunk again by their radius.

    Raises:
        InvalidInputError: points that enclose nothing.
    """
    unique = np.unique(points, axis=0)
    if len(unique) < 4 or (np.ptp(unique, axis=0) <= 0.0).any():
        raise InvalidInputError("points", f"{len(unique)} different points", "points that enclose a body")
    reach = _REACH * float(np.median(cKDTree(unique).query(unique, k=min(7, len(unique)))[0][:, -1]))
    spacing = float(np.ptp(unique, axis=0).max()) / _NODES
    margin = reach + 3.0 * spacing
    lowest, highest = unique.min(axis=0) - margin, unique.max(axis=0) + margin
    counts = np.ceil((highest - lowest) / spacing).astype(int) + 1
    nodes = lowest + spacing * np.moveaxis(np.indices(counts), 0, -1)
    distance = cKDTree(unique).query(nodes.reshape(-1, 3))[0].reshape(counts)
    grown = ndimage.binary_fill_holes(distance <= reach)
    depth = spacing * ndimage.distance_transform_edt(grown)
    if not (depth > reach).any():
        raise InvalidInputError("points", "a cloud that encloses nothing", "points that fill a body or its shell")
    field = GridField(depth, np.stack([lowest, lowest + spacing * (counts - 1)]))
    return extract_solid(field, reach - 0.5 * spacing, SolidConfig(resolution=_RESOLUTION)).surface


def pieces_of_points(points: Array) -> list[TriangleMesh]:
    """Convex pieces of the body that points (N, 3) fill, in their frame; kept in the cache.

    Raises:
        InvalidInputError: points that enclose nothing.
        MissingDependencyError: CoACD is not installed.
    """
    return convex_pieces(surface_of_points(points))
