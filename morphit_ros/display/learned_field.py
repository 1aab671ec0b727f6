"""Pictures of recordings and learned fields: views next to what was learned, and slices of the density."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.display.picture import save_png
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.learning.result import Renderer
from morphit_ros.neural.views.posed_views import PosedViews
from morphit_ros.neural.views.recording import Recording

_MOST_VIEWS = 8
_SLICE_NODES = 240


def draw_views(recording: Recording, path: str | Path) -> None:
    """Colours, depths and masks of up to eight views (PNG)."""
    views = recording.images if recording.images is not None else recording.depths
    assert views is not None
    chosen = np.unique(np.linspace(0, len(views) - 1, _MOST_VIEWS).astype(np.int64))
    rows = []
    if recording.images is not None:
        rows.append(recording.images.rgb[chosen])
    if recording.depths is not None:
        rows.append(np.stack([_gray(recording.depths.depth[number]) for number in chosen]))
    if views.masks is not None:
        rows.append(np.repeat(views.masks[chosen, :, :, None].astype(np.float32), 3, axis=3))
    save_png(_bytes(np.concatenate([np.concatenate(list(row), axis=1) for row in rows])), path)


def draw_learned_field(recording: Recording, field: DensityField, render: Renderer | None, path: str | Path) -> None:
    """One view, the same view of what was learned (its shaded surface where it has no colours), three slices (PNG)."""
    from PIL import Image

    views = recording.images if recording.images is not None else recording.depths
    assert views is not None
    number = drawn_view(views)
    if recording.images is not None:
        seen = recording.images.rgb[number]
    else:
        assert recording.depths is not None
        seen = _gray(recording.depths.depth[number])
    height, width = seen.shape[:2]
    intrinsics, pose = views.intrinsics[number], views.T_world_camera[number]
    panels = [seen]
    if render is not None:
        panels.append(render(intrinsics, pose, width, height))
    panels.append(_shaded(field, intrinsics, pose, width, height))
    side = 3 * height
    enlarged = [_resized(Image, panel, side * width // height, side, Image.Resampling.NEAREST) for panel in panels]
    # A scalar needs no labels: white is dense, the axes are those of the field.
    slices = [_slice(field, axis) for axis in range(3)]
    scale = side / max(picture.shape[0] for picture in slices)
    for picture in slices:
        shape = round(scale * picture.shape[1]), round(scale * picture.shape[0])
        panel = _resized(Image, picture, *shape, Image.Resampling.BILINEAR)
        frame = np.full((side, panel.shape[1] + 12, 3), 0.25, dtype=np.float32)
        frame[side - panel.shape[0] :, 6:-6] = panel
        enlarged.append(frame)
    save_png(_bytes(np.concatenate(enlarged, axis=1)), path)


def drawn_view(views: PosedViews) -> int:
    """Which view is drawn next to the result; hold it out where it shall be a fair comparison."""
    return len(views) // 3


def _gray(depth: NDArray[np.float32]) -> NDArray[np.float32]:
    """Near is bright, nothing is black."""
    nearest, farthest = np.nanmin(depth), np.nanmax(depth)
    bright = 1.0 - 0.8 * (depth - nearest) / max(float(farthest - nearest), 1e-9)
    return np.repeat(np.nan_to_num(bright)[..., None], 3, axis=2).astype(np.float32)


def _slice(field: DensityField, axis: int) -> NDArray[np.float32]:
    """(H, W, 3) density in the plane through the middle across an axis; up is the later of the other axes."""
    low, high = field.bounds
    middle = 0.5 * (low + high)
    others = [other for other in range(3) if other != axis]
    extent = high - low
    counts = np.maximum((_SLICE_NODES * extent / extent.max()).astype(np.int64), 2)
    flat = np.stack([low, high])
    flat[:, axis] = middle[axis] + np.array([0.0, 1e-9])
    shape: Any = tuple(1 if index == axis else int(counts[index]) for index in range(3))
    values = field.density(grid_nodes(flat, shape)).reshape(shape).squeeze(axis)
    picture = values.T[::-1] / max(float(values.max()), 1e-12)
    assert picture.shape == (counts[others[1]], counts[others[0]])
    return np.repeat(picture[..., None], 3, axis=2).astype(np.float32)


def _shaded(field: DensityField, intrinsics: Array, pose: Array, width: int, height: int) -> NDArray[np.float32]:
    """(H, W, 3) the surface where the density is half of its largest, lit from the camera."""
    low, high = field.bounds
    v, u = np.mgrid[:height, :width].reshape(2, -1)
    local = np.stack(
        [(u - intrinsics[2]) / intrinsics[0], (v - intrinsics[3]) / intrinsics[1], np.ones(u.size)], axis=1
    )
    directions = local @ pose[:3, :3].T
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    middle = float(np.linalg.norm(0.5 * (low + high) - pose[:3, 3]))
    radius = 0.5 * float(np.linalg.norm(high - low))
    level = 0.5 * float(field.density(grid_nodes(field.bounds, (40, 40, 40))).max())
    step = radius / 100.0
    picture = np.ones((u.size, 3), dtype=np.float32)
    open_rays = np.arange(u.size)
    for distance in np.arange(middle - radius, middle + radius, step):
        points = pose[:3, 3] + distance * directions[open_rays]
        hit = field.density(points) > level
        normals = -field.gradient(points[hit])
        normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-12)[:, None]
        facing = np.clip(-np.einsum("ij,ij->i", normals, directions[open_rays[hit]]), 0.0, 1.0)
        picture[open_rays[hit]] = (0.15 + 0.7 * facing)[:, None]
        open_rays = open_rays[~hit]
    return picture.reshape(height, width, 3)


def _resized(image: Any, picture: NDArray[np.float32], width: int, height: int, method: Any) -> NDArray[np.float32]:
    return np.asarray(image.fromarray(_bytes(picture)).resize((width, height), method), dtype=np.float32) / 255.0


def _bytes(picture: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.rint(255.0 * np.clip(picture, 0.0, 1.0)).astype(np.uint8)
