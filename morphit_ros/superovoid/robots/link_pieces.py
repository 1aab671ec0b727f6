"""Parts of a link's shape between cutting planes, each to be fitted by a superovoid of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, plane_axes
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.superovoid.fits.samples import MIN_POINTS, SurfaceSamples, hull_and_beyond

# Cuts that are tried across each principal axis of a piece, as shares of its length.
_CUTS = (0.25, 0.5, 0.75)
# Points along the longer side of a cut, and what one weighs beside a point of the surface: a cut is no surface, it
# only tells where a part ends.
_CAP_POINTS, _CAP_WEIGHT = 14, 0.3
# A part must have so large a share of the link's points.
_LEAST_SHARE = 0.04


@dataclass(frozen=True)
class Plane:
    """The half-space normal · x ≤ offset, in the frame of the samples."""

    normal: Array
    offset: float

    def flipped(self) -> Plane:
        """The other half-space."""
        return Plane(-self.normal, -self.offset)

    def holds(self, points: Array) -> NDArray[np.bool_]:
        """Which of the points (N, 3) are in it, (N,)."""
        return points @ self.normal <= self.offset


class LinkSolid:
    """The solid that a piece is cut from: its samples, and the test what is inside.

    Attributes:
        samples: of the outer surface.
        points: (N, 3) those of the samples that fits see.
    """

    def __init__(self, meshes: Sequence[TriangleMesh], samples: SurfaceSamples, count: int) -> None:
        self.samples = samples
        self.points = np.ascontiguousarray(samples.points[:count])
        self._inside = InsideTest(meshes)
        self._triangles = np.concatenate([samples.in_samples(mesh.vertices)[mesh.faces] for mesh in meshes])

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """Whether points (P, 3) of the samples' frame are in the solid, (P,)."""
        if len(points) == 0:
            return np.zeros(0, dtype=np.bool_)
        frame = self.samples.T_mesh_samples
        return self._inside.contains(points * self.samples.scale @ frame[:3, :3].T + frame[:3, 3])

    def clipped_vertices(self, planes: Sequence[Plane]) -> Array:
        """Corners (V, 3) of the hull of what the faces have in some half-spaces.

        A convex body that holds them holds the part of the solid there: corners of that part lie on its faces, or where
        these meet the planes.
        """
        triangles = self._triangles
        for plane in planes:
            triangles = _clipped(triangles, plane)
        return hull_and_beyond(np.unique(triangles.reshape(-1, 3), axis=0), 0)[0]


@dataclass(frozen=True)
class Piece:
    """A part of a link's surface.

    Attributes:
        planes: half-spaces in whose intersection it lies.
        points: (N, 3) of the surface in there.
        caps: (C, 3) points of the solid on the planes.
        free: (M, 3) points beyond its hull that are outside of the solid.
    """

    planes: tuple[Plane, ...]
    points: Array
    caps: Array = field(repr=False)
    free: Array = field(repr=False)

    @property
    def target_points(self) -> Array:
        """Surface and caps (N + C, 3), mixed so that every beginning has its share of both."""
        return np.concatenate([self.points, self.caps])[self._order]

    @property
    def target_weights(self) -> Array:
        """(N + C,) of the target points."""
        weights = np.concatenate([np.ones(len(self.points)), np.full(len(self.caps), _CAP_WEIGHT)])
        return weights[self._order]

    @property
    def _order(self) -> NDArray[np.int64]:
        ranks = [(np.arange(count) + 0.5) / max(count, 1) for count in (len(self.points), len(self.caps))]
        return np.argsort(np.concatenate(ranks), kind="stable")


def whole_piece(solid: LinkSolid) -> Piece:
    """The link as one piece."""
    free = solid.samples.free[: len(solid.points) // 2]
    return Piece((), solid.points, np.empty((0, 3)), free)


def piece_between(solid: LinkSolid, planes: tuple[Plane, ...]) -> Piece | None:
    """The part of a link in some half-spaces; None where it has too few points."""
    inside = np.ones(len(solid.points), dtype=np.bool_)
    for plane in planes:
        inside &= plane.holds(solid.points)
    points = solid.points[inside]
    if len(points) < max(MIN_POINTS, _LEAST_SHARE * len(solid.points)):
        return None
    caps = [_cap(solid, points, planes, number) for number in range(len(planes))]
    together = np.concatenate([points, *caps])
    _, beyond = hull_and_beyond(together, max(20, len(together) // 2))
    free = beyond[~solid.contains(beyond)]
    return Piece(planes, points, np.concatenate(caps), free)


def possible_cuts(piece: Piece) -> list[Plane]:
    """Planes across the principal axes of a piece."""
    points = np.concatenate([piece.points, piece.caps])
    axes = np.linalg.eigh(np.cov(points.T))[1][:, ::-1]
    cuts = []
    for axis in axes.T:
        heights = piece.points @ axis
        low, high = heights.min(), heights.max()
        cuts += [Plane(axis.copy(), float(low + share * (high - low))) for share in _CUTS]
    return cuts


def _cap(solid: LinkSolid, points: Array, planes: tuple[Plane, ...], number: int) -> Array:
    """Points of the solid on one of the planes, between the others."""
    plane = planes[number]
    axes = plane_axes(plane.normal)
    flat = points @ axes.T
    low, high = flat.min(axis=0), flat.max(axis=0)
    step = float((high - low).max()) / _CAP_POINTS
    if step <= 0.0:
        return np.empty((0, 3))
    u, v = (np.arange(low[k] + 0.5 * step, high[k], step) for k in (0, 1))
    grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    on_plane = plane.offset * plane.normal + grid @ axes
    for other in planes[:number] + planes[number + 1 :]:
        on_plane = on_plane[other.holds(on_plane)]
    return on_plane[solid.contains(on_plane)]


def _clipped(triangles: Array, plane: Plane) -> Array:
    """What triangles (F, 3, 3) have in a half-space, as triangles."""
    heights = triangles @ plane.normal - plane.offset
    inside = heights <= 0.0
    count = inside.sum(axis=1)
    parts = [triangles[count == 3]]
    for kept in (1, 2):
        crossing = np.flatnonzero(count == kept)
        if len(crossing) == 0:
            continue
        # The corner that is alone on its side comes first.
        alone = inside[crossing] if kept == 1 else ~inside[crossing]
        turn = (np.argmax(alone, axis=1)[:, None] + np.arange(3)) % 3
        corners = np.take_along_axis(triangles[crossing], turn[:, :, None], axis=1)
        levels = np.take_along_axis(heights[crossing], turn, axis=1)
        shares = levels[:, :1] / (levels[:, :1] - levels[:, 1:])
        cuts = corners[:, :1] + shares[:, :, None] * (corners[:, 1:] - corners[:, :1])
        if kept == 1:
            parts.append(np.concatenate([corners[:, :1], cuts], axis=1))
        else:
            parts.append(np.stack([cuts[:, 0], corners[:, 1], corners[:, 2]], axis=1))
            parts.append(np.stack([cuts[:, 0], corners[:, 2], cuts[:, 1]], axis=1))
    return np.concatenate(parts)
