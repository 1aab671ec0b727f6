"""How well each object is known: which cameras saw it, whether they agree, how densely it was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.scene import ObjectEvidence
from morphit_ros.perception.synchronizer import SIDES
from morphit_ros.perception.views.extrinsics_check import Fit, fit_views, shrinking_distances
from morphit_ros.perception.views.see_through import SeenTable
from morphit_ros.perception.views.view import CameraView, Surface

# Points of an object that are held against the other view, and from how many on the answer counts.
_SAMPLES, _LEAST_SAMPLES = 300, 30
# Distance of a match when two views of an object are compared [m].
_MATCH_DISTANCE = 0.01
# The densest tenth of an object says how well it was measured; its rim is always sparse.
_DENSE_PERCENTILE = 90.0
# More than this part of an object's points with the table seen behind them: it is not where the other view has it.
_MOST_CONTRADICTED = 0.25


@dataclass(frozen=True)
class _Part:
    """One object as one camera sees it."""

    points: Array
    normals: Array
    density: NDArray[np.int64]
    transparent: float
    contradicted: float


def gather_evidence(
    views: Sequence[CameraView],
    labels: Sequence[NDArray[np.int64]],
    count: int,
    config: PerceptionConfig,
    most_displaced: float | None = None,
) -> list[ObjectEvidence]:
    """Evidence for each of the objects.

    Args:
        views: of the cameras, in the scene's frame.
        labels: for each view, (M,) number of the object that a point belongs to, negative for none.
        count: number of objects.
        config: densities and bounds.
        most_displaced: with it, every object's displacement between the views is looked for, not only where they
            contradict each other, and one above this counts as moved [m].
    """
    seen = [_seen_table(view) for view in views]
    through = [
        [np.zeros(len(view.points), np.bool_) if table is None else table.behind(view.points) for table in seen]
        for view in views
    ]
    found = []
    for number in range(count):
        parts = []
        for own, view in enumerate(views):
            rows = np.flatnonzero(labels[own] == number)
            other = [float(behind[rows].mean()) if len(rows) else 0.0 for behind in through[own]]
            against = [other[index] for index in range(len(views)) if index != own]
            part = _Part(view.points[rows], view.normals[rows], view.density[rows], other[own], max(against, default=0))
            parts.append(part)
        found.append(_judged(views, parts, config, most_displaced))
    return found


def _judged(
    views: Sequence[CameraView], parts: Sequence[_Part], config: PerceptionConfig, most_displaced: float | None
) -> ObjectEvidence:
    counts = {view.side: len(part.points) for view, part in zip(views, parts, strict=True)}
    total = sum(counts.values())
    # A camera that sees the table behind its own points looks through the object, as the other one will.
    contradicted = max(
        (part.contradicted - part.transparent for part in parts if len(part.points) >= _LEAST_SAMPLES), default=0.0
    )
    bounds = config.registration
    moved = contradicted > _MOST_CONTRADICTED
    residual, overlap, displacement, compared = math.nan, 0.0, 0.0, False
    # The two that show most of it are held against each other.
    best = sorted(range(len(parts)), key=lambda index: -len(parts[index].points))[:2]
    pair = [parts[index] for index in sorted(best)]
    if len(pair) == 2 and min(len(part.points) for part in pair) >= _LEAST_SAMPLES:
        fit = _fit(pair, [_MATCH_DISTANCE], 0, config)
        residual, overlap = fit.residual, fit.overlap
        moved = moved or residual > bounds.max_residual
        if moved or most_displaced is not None:
            fit = _fit(pair, shrinking_distances(bounds.capture_distance), bounds.iterations, config)
            displacement = float(np.linalg.norm(fit.motion[:3, 3]))
            compared = fit.constrained == 3
            moved = moved or (most_displaced is not None and displacement > most_displaced)
        else:
            compared = overlap > 0.0
    return ObjectEvidence(
        left_points=counts.get("left", 0),
        right_points=counts.get("right", 0),
        residual=residual,
        overlap=overlap,
        coverage=_coverage(parts, config),
        transparency=sum(part.transparent * len(part.points) for part in parts) / max(total, 1),
        displacement=displacement,
        consistent=not moved,
        compared=compared,
        more_points=sum(count for side, count in counts.items() if side not in SIDES),
    )


def _fit(parts: Sequence[_Part], distances: list[float], iterations: int, config: PerceptionConfig) -> Fit:
    """The second view's part against the first one's."""
    left, right = parts
    rows = np.linspace(0, len(right.points) - 1, min(_SAMPLES, len(right.points))).astype(np.int64)
    target = Surface(left.points, left.normals), None
    return fit_views(
        right.points[rows],
        right.normals[rows],
        np.empty((0, 3)),
        target,
        distances,
        iterations,
        config.crop.voxel_size,
        turning=False,
    )


def _coverage(parts: Sequence[_Part], config: PerceptionConfig) -> float:
    """Density of the best seen part, relative to a voxel-filled plane; the better of the two views."""
    full = math.pi * (config.surface.radius / config.crop.voxel_size) ** 2
    dense = [float(np.percentile(part.density, _DENSE_PERCENTILE)) for part in parts if len(part.density)]
    return min(1.0, max(dense, default=0.0) / full)


def _seen_table(view: CameraView) -> SeenTable | None:
    return None if view.plane is None else SeenTable(view.plane, view.on_plane.points, view.eye)
