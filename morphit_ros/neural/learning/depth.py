"""A density from depth pictures: space carving says what is free, a network makes it smooth.

With views from opposite sides the hull of the measurements is the object, but for what no camera sees. With views from
one side the hull is closed by the box around what was measured: a guess, and `inertial_properties` says how good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.learning.carved_grid import carve_grid
from morphit_ros.neural.learning.config import DepthLearningConfig
from morphit_ros.neural.learning.doubted_poses import PoseDoubt, doubt_poses
from morphit_ros.neural.learning.measured_offsets import offset_deviation
from morphit_ros.neural.learning.result import LearningResult, LearningStatus, Progress
from morphit_ros.neural.learning.walled_grid import WalledGrid, carve_walls
from morphit_ros.neural.solid.extraction import SolidConfig
from morphit_ros.neural.solid.search import find_object
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, MomentDeviation, pixel_size
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.views.agreement import AgreedViews, agreed_views
from morphit_ros.neural.views.carving import DepthHull
from morphit_ros.neural.views.consistency import check_depths, depth_bounds
from morphit_ros.neural.views.oriented_depths import depth_noise, oriented_surfaces, walled_share
from morphit_ros.neural.views.posed_views import PosedDepths

_LEAST_CONTRAST = 1e-3
# Views are averaged that differ by so many deviations of their disagreement: the most cautious of them carve too much.
_WITHIN = 3.0
# Share of the surface with another close behind it from which on an object has walls.
_WALLED = 0.1


class _Cancelled(Exception):
    """Ends the carving."""


def learn_from_depths(
    depths: PosedDepths, config: DepthLearningConfig | None = None, progress: Progress | None = None
) -> LearningResult:
    """Fit an occupancy to depth pictures.

    Args:
        depths: two or more pictures with poses.
        config: method, sizes, rates, seed; the same seed gives the same field.
        progress: called after every step, or part of a grid, with its loss, 0 for a grid; may cancel.

    Returns:
        An occupancy in [0, 1], a half at the surface: a `GridField`, `NetworkField` or `GridNetworkField`. Failures are
        a status.

    Raises:
        InvalidInputError: poses that contradict each other.
    """
    config = config or DepthLearningConfig()
    walled = config.method == "grid" and _walled(depths)
    agreed = agreed_views(depths, config.poses, not walled) if config.check_poses else AgreedViews(depths)
    depths = agreed.views
    if agreed.drift > 0.0:
        # Poses that were off put the other side close behind what has no walls.
        walled = config.method == "grid" and _walled(depths)
    bounds = depth_bounds(depths)
    if config.check_poses:
        try:
            check_depths(depths, bounds)
        except InvalidInputError as error:
            raise agreed.explained(error) from None
    doubt = doubt_poses(depths, bounds, config.poses)
    notes = agreed.notes if doubt is None else (*agreed.notes, doubt.note)
    hull = DepthHull(depths)
    spacing = float((bounds[1] - bounds[0]).max()) / (config.resolution - 1)

    def told(share: float) -> None:
        if config.method == "grid" and progress is not None and progress(share, 0.0) is False:
            raise _Cancelled

    try:
        noise = max(config.noise, _WITHIN * agreed.disagreement)
        # Views of refined poses are off by a part of a pixel: their mean lies beyond edges, the most cautious within.
        apart = walled or (config.method == "grid" and agreed.drift > 0.0)
        walls = _walls(depths, bounds, spacing, config, told) if apart else None
        grid = carve_grid(hull, bounds, spacing, noise, config.edge, config.smoothing, told) if walls is None else None
    except _Cancelled:
        return LearningResult(LearningStatus.CANCELLED, "Cancelled.", None, np.zeros(0))
    none = np.zeros(0)
    empty = "The field is empty: no place lies behind all measurements. Check masks, bounds and poses."
    if walls is not None:
        field, deviation = walls
        if field.distances.max(axis=3).min() >= 0.0:
            return LearningResult(LearningStatus.EMPTY, empty, None, none)
        notes = (*notes, "walls of two sides") if walled else notes
        message = "; ".join((f"carved from {len(depths)} views", *notes))
        half = Threshold(0.5)
        pixel = pixel_size(depths, field.bounds.mean(axis=0))
        sided = HullThreshold(
            half.value, *half.range, 1.0, None, pixel, agreed.disagreement, agreed.drift, agreed.scale,
            deviation if walled else None, *_unsure(field, half.value, depths, pixel, agreed, doubt),
        )  # fmt: skip
        return LearningResult(LearningStatus.CONVERGED, message, field, none, threshold=sided, notes=notes)
    assert grid is not None
    if grid.values.max() < 0.5:
        return LearningResult(LearningStatus.EMPTY, empty, None, none)
    if np.ptp(grid.values) < _LEAST_CONTRAST:
        message = "The field is constant: the measurements carve nothing away. Check masks and bounds."
        return LearningResult(LearningStatus.CONSTANT, message, None, none)
    if config.method == "grid":
        message = "; ".join((f"carved from {len(depths)} views", *notes))
        threshold = _threshold(grid, depths, agreed, doubt)
        return LearningResult(LearningStatus.CONVERGED, message, grid, none, threshold=threshold, notes=notes)
    from morphit_ros.neural.learning.occupancy_network import fit_occupancy

    result = fit_occupancy(grid, hull.surface_points, config, progress)
    if result.field is None:
        return result
    message = "; ".join((result.message, *notes))
    threshold = _threshold(result.field, depths, agreed, doubt)
    return replace(result, message=message, threshold=threshold, notes=notes)


def _walled(depths: PosedDepths) -> bool:
    """Whether much of the surface has another close behind it."""
    pixel = pixel_size(depths, np.concatenate(depths.surface_points()).mean(axis=0))
    return walled_share(depths, oriented_surfaces(depths, depth_noise(depths)), pixel) >= _WALLED


def _walls(
    depths: PosedDepths, bounds: Array, spacing: float, config: DepthLearningConfig, told: Callable[[float], None]
) -> WalledGrid:
    """What is carved side by side."""
    noise = max(depth_noise(depths), 0.5 * config.noise)
    pixel = pixel_size(depths, bounds.mean(axis=0))
    surfaces = oriented_surfaces(depths, noise)
    return carve_walls(depths, surfaces, bounds, spacing, noise, pixel, config.smoothing, told)


def _threshold(
    field: DensityField, depths: PosedDepths, agreed: AgreedViews[PosedDepths], doubt: PoseDoubt | None
) -> HullThreshold | None:
    """Halfway between empty and full, with what a pixel shows and how far the views disagree; None if there is none."""
    config = SolidConfig()
    try:
        found = find_object(field, None, config.fill, config.gap).threshold
    except InvalidInputError:
        # Whoever cuts it is told what is wrong with the field.
        return None
    pixel = pixel_size(depths, field.bounds.mean(axis=0))
    return HullThreshold(
        found.value, *found.range, found.agreement, None, pixel, agreed.disagreement, agreed.drift, agreed.scale, None,
        *_unsure(field, found.value, depths, pixel, agreed, doubt),
    )  # fmt: skip


def _unsure(
    field: DensityField,
    threshold: float,
    depths: PosedDepths,
    pixel: float,
    agreed: AgreedViews[PosedDepths],
    doubt: PoseDoubt | None,
) -> tuple[MomentDeviation | None, MomentDeviation | None]:
    """What poses may be off by that the views cannot tell; else, what the measured points say of the surface."""
    if doubt is not None:
        return doubt.moments, None
    # Where views agree, points lie beside the surface by the noise of depths, in a thin wall more without than within.
    if agreed.disagreement == 0.0 and agreed.drift == 0.0:
        return None, None
    return None, offset_deviation(field, threshold, np.concatenate(depths.surface_points()), pixel)
