"""What is drawn of a cloth: itself, bare or textured, and what it lies on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.cloth.cloth import Cloth
from morphit_ros.cloth.terrain import COLORS, Texture, texture_colors, textures
from morphit_ros.display.display_list import PALETTE, Item, MeshItem
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

_CLOTH_COLOR, _SELECTED_COLOR = (0.78, 0.24, 0.22), (1.0, 0.75, 0.15)
# Triangles between nodes on a shape run below its surface; in pictures they hide what is nearer by so many pitches.
_NEARER = 0.5
# Chord error of drawn shapes, as a share of their size.
_CHORD = 4e-3
# The floor of a picture is larger than the cloth by this share of it.
_BORDER = 0.15


def cloth_item(cloth: Cloth, textured: bool = False) -> Item:
    """The cloth in one colour, or textured by the slope of its faces, which a browser doesn't show."""
    mesh = cloth.mesh()
    color = texture_colors(mesh) if textured else _CLOTH_COLOR
    nearer = _NEARER * cloth.config.pitch
    return MeshItem("cloth/cloth", color, mesh.vertices, mesh.faces, side="double", nearer=nearer)


def textured_items(cloth: Cloth) -> list[Item]:
    """The cloth as one item for each texture, as a browser shows them."""
    mesh = cloth.mesh()
    found = textures(mesh)
    return [
        MeshItem(
            f"cloth/{texture.name.lower()}", tuple(COLORS[texture]), mesh.vertices, mesh.faces[found == texture],
            side="double",
        )
        for texture in Texture
    ]  # fmt: skip


def shape_item(placed: PlacedSuperovoid, number: int, selected: bool = False) -> Item:
    """One of the shapes, at its pose."""
    mesh = placed.shape.mesh(_CHORD * placed.shape.size)
    color = _SELECTED_COLOR if selected else PALETTE[number % len(PALETTE)]
    return MeshItem(f"shapes/{number}", color, mesh.vertices, mesh.faces, pose=placed.T_link_shape)


def picture_items(cloth: Cloth, textured: bool, shapes: Sequence[PlacedSuperovoid]) -> list[Item]:
    """A cloth with its floor, for a picture: bare with its shapes, or textured without."""
    items = [cloth_item(cloth, textured)]
    if not textured:
        items += [shape_item(placed, number) for number, placed in enumerate(shapes)]
    if cloth.config.floor:
        low, high = cloth.mesh().bounds
        border = _BORDER * float((high - low)[:2].max())
        (left, below, _), (right, above, _) = low - border, high + border
        corners = np.array([[left, below, 0.0], [right, below, 0.0], [right, above, 0.0], [left, above, 0.0]])
        items.append(MeshItem("floor/floor", (0.72, 0.72, 0.7), corners, np.array([[0, 1, 2], [0, 2, 3]])))
    return items
