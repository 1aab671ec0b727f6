"""What is drawn of a perceived scene: the table as a slab, the boxes around its objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.display.display_list import Item, LinesItem, SolidsItem, box_edges
from morphit_ros.geometry.transforms import Array, make_transform


def table_item(pose: Array, sides: Array, thickness: float = 0.02) -> Item:
    """A slab below the upper face z = 0 of the table's frame (4, 4), so long (2,) along x and y, and so thick [m]."""
    below = pose @ make_transform(translation=(0.0, 0.0, -thickness / 2.0))
    slab = np.array([[*sides, thickness]])
    return SolidsItem("table/slab", (0.69, 0.62, 0.53), "box", np.zeros((1, 3)), slab, pose=below)


def scene_items(table: tuple[Array, Array] | None, clouds: Sequence[Array], target: int | None) -> list[Item]:
    """Table and axis-aligned boxes; the target's is of another colour.

    Args:
        table: pose (4, 4) of its upper face, and sizes (2,) along x and y [m]; None without a table.
        clouds: (N, 3) points of each object [m].
        target: which object is to be grasped.
    """
    items: list[Item] = []
    if table is not None:
        items.append(table_item(*table))
    for index, points in enumerate(clouds):
        low, high = points.min(axis=0), points.max(axis=0)
        color = (1.0, 0.8, 0.1) if index == target else (0.7, 0.7, 0.7)
        items.append(
            LinesItem("objects/objects", color, box_edges(0.5 * (low + high), high - low), 0.002, number=index)
        )
    return items
