"""Items of a display list as nodes of viser's scene."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from morphit_ros.display.display_list import UNIT_MESHES, Item, LinesItem, MeshItem, PointsItem, SolidsItem, SpheresItem
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
    if isinstance(item, LinesItem):
        segments = item.segments
        return "line_segments", {
            "points": segments.astype(np.float32),
            "colors": _bytes(np.asarray(item.color)[..., None, :], segments.shape),
            "thickness": item.pixels, "thickness_units": "screen",
        }  # fmt: skip
    if isinstance(item, SolidsItem) and item.rotations is not None:
        from scipy.spatial.transform import Rotation

        quaternions = Rotation.from_matrix(item.rotations).as_quat()[:, [3, 0, 1, 2]]
        return "batched_meshes_simple", {**_batch(item, item.kind, 1.0, item.sizes, quaternions), "flat_shading": True}
    if isinstance(item, SpheresItem) and np.ndim(item.radii):
        quaternions = np.tile([1.0, 0.0, 0.0, 0.0], (len(item.centers), 1))
        known = _batch(item, "sphere", 2.0, np.broadcast_to(item.radii, len(item.centers)), quaternions)
        return "batched_meshes_simple", {**known, "opacity": opacity, "cast_shadow": False}
    assert isinstance(item, MeshItem | SpheresItem | SolidsItem)
    vertices, faces = item.surface
    if isinstance(item, MeshItem):
        flat, side, casts = item.flat, item.side, False
    elif isinstance(item, SpheresItem):
        # With an opacity, if only of one, it is drawn in the order of what is translucent, and seen inside that.
        flat, side, casts, opacity = False, "front", False, float(item.opacity)
    else:
        # Shadows of what stands in a scene; those of what is drawn into it would hide more than they tell.
        flat, side, casts = item.kind == "box", "front", opacity is None
    return "mesh_simple", {
        "vertices": vertices.astype(np.float32), "faces": faces.astype(np.uint32), "color": _bytes(item.color, (3,)),
        "flat_shading": flat, "side": side, "opacity": opacity, "cast_shadow": casts,
    }  # fmt: skip


def _batch(item: SpheresItem | SolidsItem, kind: str, size: float, scales: Array, quaternions: Array) -> dict[str, Any]:
    mesh = UNIT_MESHES[kind]
    return {
        "vertices": (size * mesh.vertices).astype(np.float32), "faces": mesh.faces.astype(np.uint32),
        "batched_wxyzs": quaternions.astype(np.float32), "batched_positions": item.centers.astype(np.float32),
        "batched_scales": scales.astype(np.float32), "batched_colors": _bytes(item.color, item.centers.shape),
    }  # fmt: skip


def _bytes(color: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Colours from 0 to 1, broadcast, as bytes."""
    return np.broadcast_to(np.rint(255.0 * np.asarray(color)).astype(np.uint8), shape).copy()
