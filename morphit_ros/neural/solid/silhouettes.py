"""The threshold of a density field by what its silhouettes look like in posed views."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.grid_rays import lowest_along_rays
from morphit_ros.neural.solid.thresholds import LEAST_AGREEMENT, Threshold, check_densities
from morphit_ros.neural.views.posed_views import PosedViews

# Cells along the longest side of the bounds, and rays.
_CELLS = 80
_MOST_RAYS = 400_000


def silhouette_threshold(field: DensityField, views: PosedViews) -> Threshold:
    """The threshold whose silhouettes match the masks of posed views best, by intersection over union.

    A pixel belongs to a silhouette where the highest density along its ray passes the threshold. The value is the
    middle (in the logarithm) of the thresholds that match nearly as well as the best; the range is of those that match
    one percent worse.

    Args:
        field: in the frame of the views' poses (`T_world_camera`).
        views: with masks.

    Raises:
        InvalidInputError: views without masks, a constant or empty field, or silhouettes that match at no threshold.
    """
    if views.masks is None:
        raise InvalidInputError("views", "no masks", "views with masks", "Segment the object, or choose by likelihood.")
    bounds = np.asarray(field.bounds, dtype=np.float64)
    extents = bounds[1] - bounds[0]
    counts = np.maximum(np.ceil(extents / extents.max() * _CELLS).astype(np.int64), 4)
    nodes = bounds[0] + extents * (np.moveaxis(np.indices(counts + 1), 0, -1).reshape(-1, 3) / counts)
    densities = field.density(nodes).reshape(counts + 1)
    check_densities(densities)
    count, height, width = views.masks.shape
    stride = max(1, int(np.sqrt(count * height * width / _MOST_RAYS)))
    rows, columns = (axis.ravel() for axis in np.mgrid[0:height:stride, 0:width:stride])
    highest, masked = [], []
    for number in range(count):
        fx, fy, cx, cy = views.intrinsics[number]
        rays = np.stack([(columns - cx) / fx, (rows - cy) / fy, np.ones(len(rows))], axis=1)
        pose = views.T_world_camera[number]
        lowest, _ = lowest_along_rays(-densities, bounds, pose[:3, 3].copy(), rays @ pose[:3, :3].T)
        # Beside the grid there is nothing.
        highest.append(np.maximum(np.nan_to_num(-lowest), 0.0))
        masked.append(views.masks[number, rows, columns])
    return _best_overlap(np.concatenate(highest), np.concatenate(masked))


def _best_overlap(highest: Array, masked: NDArray[np.bool_]) -> Threshold:
    """The threshold of the rays' highest densities that best predicts which rays are masked."""
    order = np.argsort(highest)
    values, inside = highest[order], masked[order]
    # A threshold at a value leaves the rays after it in the silhouette.
    common = inside.sum() - np.cumsum(inside)
    overlap = common / np.maximum(inside.sum() + np.cumsum((~inside)[::-1])[::-1] - ~inside, 1)
    candidates = np.flatnonzero((values > 0.0) & (np.diff(values, append=np.inf) > 0.0))
    if len(candidates) == 0:
        raise _no_silhouette(0.0)
    best = candidates[np.argmax(overlap[candidates])]
    if overlap[best] < LEAST_AGREEMENT:
        raise _no_silhouette(float(overlap[best]))
    top = float(values[min(best + 1, len(values) - 1)])
    low, high = _interval(values, overlap, candidates, best, 0.002)
    lowest, highest_one = _interval(values, overlap, candidates, best, 0.01)
    value = float(np.sqrt(low * max(high, min(top, high * 1.0001))))
    return Threshold(value, min(lowest, value), max(highest_one, value), float(overlap[best]))


def _interval(
    values: Array, overlap: Array, candidates: NDArray[np.int64], best: np.intp, loss: float
) -> tuple[float, float]:
    """Lowest and highest threshold around the best that match nearly as well."""
    good = overlap[candidates] >= overlap[best] - loss
    place = int(np.searchsorted(candidates, best))
    before, after = np.flatnonzero(~good[:place]), np.flatnonzero(~good[place:])
    first = before[-1] + 1 if len(before) else 0
    last = place + after[0] - 1 if len(after) else len(candidates) - 1
    return float(values[candidates[first]]), float(values[candidates[last]])


def _no_silhouette(overlap: float) -> InvalidInputError:
    return InvalidInputError(
        "masks",
        f"an intersection over union of at most {overlap:.2f} with the field's silhouettes",
        f"at least {LEAST_AGREEMENT}",
        "Are the poses those of the field's frame, and the masks of this object?",
    )
