"""What is drawn of a perceived scene: the table as a thin slab, the boxes around its objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.display.display_list import Item, LinesItem, SolidsItem, box_edges
from morphit_ros.geometry.transforms import Array


def scene_items(table: tuple[Array, Array] | None, clouds: Sequence[Array], target: int | None) -> list[Item]:
    """Table and axis-aligned boxes; the target's is of another colour.

    Args:
        table: pose (4, 4) of its upper face, and sizes (2,) along x and y [m]; None without a table.
        clouds: (N, 3) points of each object [m].
        target: which object is to be grasped.
    """
    items: list[Item] = []
    if table is not None:
        pose, sides = table
        slab = np.array([[*sides, 0.002]])
        items.append(SolidsItem("table/table", (0.6, 0.55, 0.5), "box", np.zeros((1, 3)), slab, pose=pose, opacity=0.5))
    for index, points in enumerate(clouds):
        low, high = points.min(axis=0), points.max(axis=0)
        color = (1.0, 0.8, 0.1) if index == target else (0.7, 0.7, 0.7)
        items.append(
            LinesItem("objects/objects", color, box_edges(0.5 * (low + high), high - low), 0.002, number=index)
        )
    return items
