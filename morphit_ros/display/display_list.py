"""A display list: what is to be drawn, by RViz (`ros.core.markers`), a browser (`layers`) or in a picture (`canvas`).

Lengths are in metres, in the item's own frame. Items without a point draw nothing, and take away what had their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.transforms import Array

Rgb = tuple[float, float, float]
# Colours of links in turn.
PALETTE: tuple[Rgb, ...] = (
    (0.12, 0.47, 0.71),
    (1.0, 0.5, 0.05),
    (0.17, 0.63, 0.17),
    (0.58, 0.4, 0.74),
    (0.55, 0.34, 0.29),
    (0.89, 0.47, 0.76),
)
_AXIS_COLORS = np.array([[0.92, 0.31, 0.27], [0.35, 0.78, 0.35], [0.35, 0.51, 0.94]])


@dataclass(frozen=True, eq=False)
class Item:
    """What all items have.

    Attributes:
        name: "layer/name". A browser shows and hides layers; the name is RViz' namespace.
        color: (3,) from 0 to 1, or (N, 3): one for each of the item's points, segments, faces, spheres or boxes.
        number: tells items of one name apart for RViz; of several boxes or spheres, the first one's.
        frame: that the item moves with; empty: the frame of the whole list.
        pose: (4, 4) of the item in that frame.
        opacity: from 0 to 1; (N,) where each point has its own.
        nearer: by how much it counts as nearer than it is where a picture decides what hides what [m].
    """

    name: str
    color: ArrayLike
    number: int = field(default=0, kw_only=True)
    frame: str = field(default="", kw_only=True)
    pose: Array = field(default_factory=lambda: np.eye(4), kw_only=True)
    opacity: float | Array = field(default=1.0, kw_only=True)
    nearer: float = field(default=0.0, kw_only=True)

    @property
    def namespace(self) -> str:
        """The name without its layer."""
        return self.name.partition("/")[2]


@dataclass(frozen=True, eq=False)
class PointsItem(Item):
    """Points (N, 3), so large; normals (N, 3) shade them in a picture."""

    points: Array
    size: float
    normals: Array | None = None


@dataclass(frozen=True, eq=False)
class LinesItem(Item):
    """Segments (N, 2, 3), `width` wide where lines have a width in metres and `pixels` where they have it in pixels."""

    segments: Array
    width: float = 0.0
    pixels: float = 1.0


@dataclass(frozen=True, eq=False)
class PathItem(Item):
    """A line through points (N, 3), with widths as of `LinesItem`."""

    points: Array
    width: float = 0.0
    pixels: float = 1.0

    @property
    def segments(self) -> Array:
        """(N - 1, 2, 3)."""
        return np.stack([self.points[:-1], self.points[1:]], axis=1)


@dataclass(frozen=True, eq=False)
class MeshItem(Item):
    """Triangles: vertices (V, 3), faces (F, 3), counter-clockwise seen from outside; flat or smoothly shaded."""

    vertices: Array
    faces: NDArray[np.int64]
    flat: bool = False
    side: Literal["front", "back", "double"] = "front"


@dataclass(frozen=True, eq=False)
class CopiesItem(Item):
    """A mesh of vertices (V, 3) and faces (F, 3), flat shaded, at N positions (N, 3) and rotations (N, 3, 3)."""

    vertices: Array
    faces: NDArray[np.int64]
    positions: Array
    rotations: Array


@dataclass(frozen=True, eq=False)
class SpheresItem(Item):
    """Spheres: centres (N, 3); radii (N,), or one for all."""

    centers: Array
    radii: Array | float


@dataclass(frozen=True, eq=False)
class EllipsoidItem(Item):
    """An ellipsoid about the origin with half axes (3,) along x, y and z."""

    half_axes: Array


@dataclass(frozen=True, eq=False)
class CylinderItem(Item):
    """A cylinder about the origin along z."""

    radius: float
    length: float


@dataclass(frozen=True, eq=False)
class BoxesItem(Item):
    """Boxes along the axes: centres and full sizes (N, 3)."""

    centers: Array
    sizes: Array


DisplayList = Sequence[Item]

# Corner i has the signs of the bits of i: bit 2 is x, bit 1 is y, bit 0 is z.
_SIGNS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
_EDGES = np.array([[i, i | bit] for bit in (1, 2, 4) for i in range(8) if not i & bit])


def box_corners(center: Array, size: Array) -> Array:
    """The corners (8, 3) of a box, in the order of `box_mesh`."""
    return np.asarray(center + _SIGNS * size)


def box_edges(center: Array, size: Array) -> Array:
    """The twelve edges (12, 2, 3) of a box."""
    return box_corners(center, size)[_EDGES]


def axes_item(name: str, pose: Array, lengths: Array, both_ways: bool = False) -> LinesItem:
    """The axes x, y and z of a frame (4, 4) in red, green and blue, so long (3,) [m]."""
    ends = np.diag(lengths)
    segments = np.stack([-ends if both_ways else np.zeros((3, 3)), ends], axis=1)
    return LinesItem(name, _AXIS_COLORS, segments, 0.003, 3.0, pose=pose)
