"""Masks without stray pixels, and with their thin parts: stems and blades of two pixels, which a median takes away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.neural.views.posed_views import Mask

# Pixels that differ from most of their neighbours: more of them in all than any outline has.
_STRAY = 0.015
# Straight lines of so many pixels, in so many directions, of which so many must be the object's: with one of twenty
# pixels wrong, none of a million of the background is on such a line, and 93 % of a line a pixel wide are.
_LINE, _DIRECTIONS, _OF_LINE = 9, 16, 7
# Clusters of fewer pixels are made of stray ones, and so are such holes [px].
_LEAST_CLUSTER = 6


def clean_masks(masks: Mask) -> tuple[Mask, float]:
    """Masks (V, H, W) without stray pixels, and the share of pixels that were changed; unchanged if few are stray.

    A pixel is stray that differs from most of the nine around it, itself included, unless it is the object's and lies
    on a line of others. Outlines have such pixels, too: masks are changed only if there are more of them than outlines
    have. An object in several pieces stays so: a stem that is lost in one picture does not take the foot with it.
    """
    from scipy.ndimage import median_filter

    smooth = np.stack([median_filter(mask.view(np.uint8), 3) for mask in masks]).astype(np.bool_)
    if (smooth != masks).mean() <= _STRAY:
        return masks, 0.0
    result = np.stack([_without_clusters(s | _on_lines(m)) for s, m in zip(smooth, masks, strict=True)])
    # A silhouette that consists of clusters is the best that is known.
    result[~result.any(axis=(1, 2))] = masks[~result.any(axis=(1, 2))]
    return result, float((result != masks).mean())


def _on_lines(mask: Mask) -> Mask:
    """Pixels (H, W) of a mask that lie amid a straight line of it."""
    height, width = mask.shape
    reach = _LINE // 2
    padded = np.pad(mask, reach).astype(np.int8)
    steps = np.arange(-reach, reach + 1)
    most: NDArray[np.int8] = np.zeros(mask.shape, dtype=np.int8)
    for angle in np.pi / _DIRECTIONS * np.arange(_DIRECTIONS):
        direction = np.array([np.sin(angle), np.cos(angle)])
        offsets = reach + np.rint(np.outer(steps, direction / np.abs(direction).max())).astype(np.int64)
        line = sum(padded[row : row + height, column : column + width] for row, column in offsets)
        most = np.maximum(most, line)
    found: Mask = mask & (most >= _OF_LINE)
    return found


def _without_clusters(mask: Mask) -> Mask:
    """A mask (H, W) without clusters of stray pixels beside the object, or within."""
    from scipy.ndimage import label

    pieces, count = label(mask, np.ones((3, 3)))
    sizes = np.bincount(pieces.ravel(), minlength=count + 1)
    mask = mask & (sizes[pieces] >= _LEAST_CLUSTER)
    holes, count = label(~mask)
    sizes = np.bincount(holes.ravel(), minlength=count + 1)
    filled: Mask = mask | (sizes[holes] < _LEAST_CLUSTER)
    return filled
