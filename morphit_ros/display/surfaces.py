"""Triangles of the solid items of a display list."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.display.display_list import (
    BoxesItem,
    CopiesItem,
    CylinderItem,
    EllipsoidItem,
    Item,
    MeshItem,
    SpheresItem,
)
from morphit_ros.geometry.primitives import box_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array

BALL = sphere_mesh(1.0, 32)
_CUBE = box_mesh((1.0, 1.0, 1.0))


def surface_of(item: Item) -> tuple[Array, NDArray[np.int64]]:
    """Vertices (V, 3) [m] in the item's frame and faces (F, 3); of copies, spheres and boxes one after the other."""
    if isinstance(item, MeshItem):
        return item.vertices, item.faces
    if isinstance(item, CylinderItem):
        cylinder = cylinder_mesh(item.radius, item.length)
        return cylinder.vertices, cylinder.faces
    if isinstance(item, EllipsoidItem):
        return BALL.vertices * item.half_axes, BALL.faces
    if isinstance(item, BoxesItem):
        return _joined(item.centers[:, None] + _CUBE.vertices * item.sizes[:, None], _CUBE.faces)
    if isinstance(item, SpheresItem):
        radii = np.broadcast_to(item.radii, len(item.centers))[:, None, None]
        return _joined(item.centers[:, None] + BALL.vertices * radii, BALL.faces)
    assert isinstance(item, CopiesItem)
    return _joined(item.positions[:, None] + np.einsum("nij,vj->nvi", item.rotations, item.vertices), item.faces)


def element_colors(color: ArrayLike, elements: int) -> Array:
    """(E, 3) for points or faces of parts with colours (N, 3): each for those of its part. (3,) is left as it is."""
    rows = np.asarray(color, dtype=np.float64)
    return np.repeat(rows, elements // len(rows), axis=0) if rows.ndim == 2 else rows


def _joined(vertices: Array, faces: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """One mesh of many (N, V, 3) with the same faces."""
    count, size = vertices.shape[:2]
    return vertices.reshape(-1, 3), (size * np.arange(count)[:, None, None] + faces).reshape(-1, 3)
