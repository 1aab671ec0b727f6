"""A body's contact points spread densely over convex pieces, as an engine with hard contact feels them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, sample_surface_evenly
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.body import ContactBody

# A point this far inside of another piece, in sizes of the body, touches nothing.
_INSIDE = 1e-4
# However small a piece is, it gets as many points besides its corners.
_LEAST = 8


def surface_body(body: ContactBody, pieces: Sequence[TriangleMesh], count: int = 30000, seed: int = 0) -> ContactBody:
    """The same body, felt on the outer surface of convex pieces: their corners, and points spread over their faces.

    For stiff contact, whose points must lie as close as the object's shape is to count: 30000 on a bunny of 1 m are
    1 cm apart, which a sphere of radius 0.25 m feels as 0.1 mm. It stands on corners, so they are points too.

    Args:
        body: gives mass, inertia and frame.
        pieces: convex, in the body's frame.
        count: of points on all faces, of which those inside of other pieces are dropped.
        seed: of the draw.

    Raises:
        InvalidInputError: no pieces, or a count below 8.
    """
    if not pieces:
        raise InvalidInputError("pieces", "none", "at least one convex mesh")
    if count < _LEAST:
        raise InvalidInputError("count", count, f"at least {_LEAST} points")
    rng = np.random.default_rng(seed)
    area = sum(piece.area for piece in pieces)
    planes = [ConvexHull(piece.vertices).equations for piece in pieces]
    kept = []
    for number, piece in enumerate(pieces):
        share = max(_LEAST, round(count * piece.area / area))
        points = np.vstack([piece.vertices, sample_surface_evenly(piece, share, rng)[0]])
        others = planes[:number] + planes[number + 1 :]
        kept.append(points[~_inside(points, others, _INSIDE * body.size)])
    points = np.vstack(kept)
    masses = np.full(len(points), body.mass / len(points))
    return ContactBody(
        points, masses, np.zeros_like(points), body.mass, body.inertia, body.center_of_mass, body.rigid_inertia
    )


def _inside(points: Array, hulls: Sequence[Array], depth: float) -> NDArray[np.bool_]:
    """(N,) whether a point is deeper than `depth` in one of hulls (F, 4) of planes."""
    covered = np.zeros(len(points), dtype=bool)
    for planes in hulls:
        covered |= (points @ planes[:, :3].T + planes[:, 3]).max(axis=1) < -depth
    return covered
