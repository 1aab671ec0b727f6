"""A display list: what is to be drawn, by RViz (`ros.core.markers`), a browser (`layers`) or in a picture (`canvas`).

Lengths are in metres, in the item's own frame. Items without a point draw nothing, and take away what had their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
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
    """Segments (N, 2, 3) or one line through points (N, 3); `width` [m] or, where that is the unit, `pixels` wide."""

    points: Array
    width: float = 0.0
    pixels: float = 1.0

    @property
    def segments(self) -> Array:
        """(N, 2, 3)."""
        line = self.points
        return line if line.ndim == 3 else np.stack([line[:-1], line[1:]], axis=1)


@dataclass(frozen=True, eq=False)
class MeshItem(Item):
    """Triangles: vertices (V, 3), faces (F, 3), counter-clockwise seen from outside; flat or smoothly shaded.

    Only a browser shows sides other than the front, and only RViz and pictures faces of several colours.
    """

    vertices: Array
    faces: NDArray[np.int64]
    flat: bool = False
    side: Literal["front", "back", "double"] = "front"

    @property
    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices and faces."""
        return self.vertices, self.faces


@dataclass(frozen=True, eq=False)
class SpheresItem(Item):
    """Spheres: centres (N, 3); radii (N,), or one for all."""

    centers: Array
    radii: Array | float

    @property
    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices and faces of all spheres."""
        sizes = 2.0 * np.atleast_1d(self.radii)[:, None]
        return SolidsItem(self.name, self.color, "sphere", self.centers, sizes).surface


@dataclass(frozen=True, eq=False)
class SolidsItem(Item):
    """Boxes, cylinders along z or ellipsoids: centres (N, 3), full sizes (N, 3), rotations (N, 3, 3) where they differ.

    RViz draws those without rotations.
    """

    kind: Literal["box", "cylinder", "sphere"]
    centers: Array
    sizes: Array
    rotations: Array | None = None

    @property
    def surface(self) -> tuple[Array, NDArray[np.int64]]:
        """Vertices and faces of all solids."""
        unit = UNIT_MESHES[self.kind]
        vertices = unit.vertices * self.sizes[:, None]
        if self.rotations is not None:
            vertices = np.einsum("nij,nvj->nvi", self.rotations, vertices)
        faces = len(unit.vertices) * np.arange(len(self.centers))[:, None, None] + unit.faces
        return (self.centers[:, None] + vertices).reshape(-1, 3), faces.reshape(-1, 3)


DisplayList = Sequence[Item]

UNIT_MESHES = {"box": box_mesh((1.0, 1.0, 1.0)), "cylinder": cylinder_mesh(0.5, 1.0), "sphere": sphere_mesh(0.5, 32)}
# Corner i of a box has the signs of the bits of i.
_EDGES = np.array([[i, i | bit] for bit in (1, 2, 4) for i in range(8) if not i & bit])


def box_edges(center: Array, size: Array) -> Array:
    """The twelve edges (12, 2, 3) of a box."""
    return np.asarray(center + UNIT_MESHES["box"].vertices * size)[_EDGES]


def colors_of_parts(color: ArrayLike, count: int) -> Array:
    """Colours (count, 3) of an item's points or faces, whose parts have a colour (3,) or colours (N, 3)."""
    rows = np.atleast_2d(np.asarray(color, dtype=np.float64))
    return np.repeat(rows, count // max(len(rows), 1), axis=0)


def axes_item(name: str, pose: Array, lengths: Array, both_ways: bool = False) -> LinesItem:
    """The axes x, y and z of a frame (4, 4) in red, green and blue, so long (3,) [m]."""
    ends = np.diag(lengths)
    segments = np.stack([-ends if both_ways else np.zeros((3, 3)), ends], axis=1)
    return LinesItem(name, _AXIS_COLORS, segments, 0.003, 3.0, pose=pose)
