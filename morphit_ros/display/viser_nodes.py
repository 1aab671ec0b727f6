"""Items of a display list as nodes of viser's scene."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.display.display_list import (
    BoxesItem,
    CopiesItem,
    CylinderItem,
    Item,
    LinesItem,
    MeshItem,
    PathItem,
    PointsItem,
    SpheresItem,
)
from morphit_ros.display.surfaces import BALL, surface_of
from morphit_ros.geometry.transforms import Array


def viser_node(item: Item) -> tuple[str, dict[str, Any]]:
    """Kind of node (`scene.add_KIND`) and its properties; the item's pose is not among them."""
    opacity = None if np.ndim(item.opacity) or item.opacity == 1.0 else float(item.opacity)
    if isinstance(item, PointsItem):
        # Half precision, viser's default, would move points by half a millimetre at one metre.
        return "point_cloud", {
            "points": item.points.astype(np.float32), "colors": _bytes(item.color, item.points.shape),
            "point_size": item.size, "point_shape": "circle", "precision": "float32",
        }  # fmt: skip
    if isinstance(item, LinesItem | PathItem):
        segments = item.segments
        return "line_segments", {
            "points": segments.astype(np.float32),
            "colors": _bytes(np.asarray(item.color)[..., None, :], segments.shape),
            "thickness": item.pixels, "thickness_units": "screen",
        }  # fmt: skip
    if isinstance(item, CopiesItem):
        from scipy.spatial.transform import Rotation

        quaternions = Rotation.from_matrix(item.rotations).as_quat()[:, [3, 0, 1, 2]]
        known = _batch(item.vertices, item.faces, item.positions, quaternions, item.color)
        return "batched_meshes_simple", {**known, "flat_shading": True}
    if isinstance(item, SpheresItem):
        quaternions = np.tile([1.0, 0.0, 0.0, 0.0], (len(item.centers), 1))
        scales = np.broadcast_to(item.radii, len(item.centers)).astype(np.float32)
        known = _batch(BALL.vertices, BALL.faces, item.centers, quaternions, item.color)
        return "batched_meshes_simple", {**known, "batched_scales": scales, "opacity": opacity, "cast_shadow": False}
    vertices, faces = surface_of(item)
    mesh = item if isinstance(item, MeshItem) else None
    # Shadows of what stands in a scene; those of what is drawn into it would hide more than they tell.
    casts = opacity is None and isinstance(item, BoxesItem | CylinderItem)
    return "mesh_simple", {
        "vertices": vertices.astype(np.float32), "faces": faces.astype(np.uint32), "color": _bytes(item.color, (3,)),
        "flat_shading": mesh.flat if mesh else isinstance(item, BoxesItem), "side": mesh.side if mesh else "front",
        "opacity": opacity, "cast_shadow": casts,
    }  # fmt: skip


def _batch(vertices: Array, faces: Array, positions: Array, quaternions: Array, color: ArrayLike) -> dict[str, Any]:
    return {
        "vertices": vertices.astype(np.float32), "faces": faces.astype(np.uint32),
        "batched_wxyzs": quaternions.astype(np.float32), "batched_positions": positions.astype(np.float32),
        "batched_colors": _bytes(color, positions.shape),
    }  # fmt: skip


def _bytes(color: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Colours from 0 to 1, broadcast, as bytes."""
    return np.broadcast_to(np.rint(255.0 * np.asarray(color)).astype(np.uint8), shape).copy()
