"""The hull of silhouettes as a body: what a solid learned from the same pictures is checked by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.views.carving import Silhouettes

# Cells along the longest side of the bounds; those at the surface are divided in each direction.
_CELLS, _PARTS = 48, 3
# Half the diagonal of a cell.
_REACH = 0.5 * 3.0**0.5


@dataclass(frozen=True)
class HullThreshold(Threshold):
    """The threshold of a field learned from pictures, with the hull of their silhouettes.

    The hull holds the object, hollows included; a solid that differs from it much was not learned well.

    Attributes:
        hull: volume and moments of the hull, None if unknown.
        pixel: what a pixel shows of the object [m].
    """

    hull: VolumeMoments | None = None
    pixel: float = 0.0


def hull_moments(silhouettes: Silhouettes, bounds: Array) -> VolumeMoments:
    """Volume and moments of what lies in all silhouettes, within bounds (2, 3) [m]; a volume of zero if nothing does.

    A cell counts by the share of it that a plane at the clearance of its centre leaves.
    """
    extents = bounds[1] - bounds[0]
    counts = np.maximum(np.ceil(extents / extents.max() * _CELLS).astype(np.int64), 2)
    size = extents / counts
    half = np.stack([bounds[0] + 0.5 * size, bounds[1] - 0.5 * size])
    centers = grid_nodes(half, (int(counts[0]), int(counts[1]), int(counts[2])))
    clearance = silhouettes.clearance(centers)
    reach = _REACH * float(size.max())
    full, border = centers[clearance <= -reach], centers[np.abs(clearance) < reach]
    parts = size / _PARTS
    steps = (np.indices((_PARTS,) * 3).reshape(3, -1).T - 0.5 * (_PARTS - 1)) * parts
    fine = (border[:, None] + steps).reshape(-1, 3)
    shares = np.clip(0.5 - silhouettes.clearance(fine) / parts.max(), 0.0, 1.0)
    points = np.concatenate([full, fine])
    volumes = np.prod(size) * np.concatenate([np.ones(len(full)), shares / _PARTS**3])
    volume = float(volumes.sum())
    if volume <= 0.0:
        return VolumeMoments(0.0, bounds.mean(axis=0), np.zeros((3, 3)))
    center = volumes @ points / volume
    offsets = points - center
    return VolumeMoments(volume, center, (offsets * volumes[:, None]).T @ offsets)


def pixel_size(silhouettes: Silhouettes, place: Array) -> float:
    """What a pixel shows at a place (3,), the median of the views [m]."""
    views = silhouettes.views
    distances = np.linalg.norm(views.T_world_camera[:, :3, 3] - place, axis=1)
    return float(np.median(distances / views.intrinsics[:, :2].mean(axis=1)))
