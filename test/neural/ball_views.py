"""Pictures of a ball that is coloured by direction, drawn by formula."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import look_at
from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages, pixel_rays

BALL_CENTER = np.array([0.1, -0.05, 0.2])
BALL_RADIUS = 0.05
_SIZE, _FOCAL, _DISTANCE = 40, 110.0, 0.3
INTRINSICS = np.array([_FOCAL, _FOCAL, 0.5 * (_SIZE - 1), 0.5 * (_SIZE - 1)])


def ring(count: int, part: float = 1.0) -> np.ndarray:
    """(V, 4, 4) cameras around the ball, alternately from above and below; on a part of the circle."""
    angles = 2.0 * np.pi * part * np.arange(count) / count
    heights = 0.12 * (-1.0) ** np.arange(count) * (count > 2)
    eyes = BALL_CENTER + _DISTANCE * np.stack([np.cos(angles), np.sin(angles), heights], axis=1)
    return np.stack([look_at(eye, BALL_CENTER) for eye in eyes])


def _draw(poses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Colours, depths, masks."""
    v, u = np.mgrid[:_SIZE, :_SIZE].reshape(2, -1)
    local = pixel_rays(INTRINSICS, np.stack([u, v], axis=1))
    colors, depths = [], []
    for pose in poses:
        rays = local @ pose[:3, :3].T
        offset = pose[:3, 3] - BALL_CENTER
        a, b, c = (rays**2).sum(axis=1), rays @ offset, offset @ offset - BALL_RADIUS**2
        with np.errstate(invalid="ignore"):
            depth = (-b - np.sqrt(b * b - a * c)) / a
        normals = (offset + depth[:, None] * rays) / BALL_RADIUS
        colors.append(np.nan_to_num(0.5 + 0.4 * normals, nan=0.9).reshape(_SIZE, _SIZE, 3))
        depths.append(depth.reshape(_SIZE, _SIZE))
    return np.stack(colors), np.stack(depths), ~np.isnan(np.stack(depths))


def ball_images(count: int, masked: bool = True, part: float = 1.0) -> PosedImages:
    poses = ring(count, part)
    colors, _, masks = _draw(poses)
    bounds = None if masked else np.stack([BALL_CENTER - 0.07, BALL_CENTER + 0.07])
    return PosedImages(colors, INTRINSICS, poses, masks if masked else None, bounds)


def ball_depths(count: int, part: float = 1.0) -> PosedDepths:
    poses = ring(count, part)
    _, depths, masks = _draw(poses)
    return PosedDepths(depths, INTRINSICS, poses, masks)
