"""The hull of silhouettes as a body: what a solid learned from the same pictures is checked by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.fields.grid import grid_nodes
from morphit_ros.neural.solid.moments import VolumeMoments, point_moments
from morphit_ros.neural.solid.thresholds import Threshold
from morphit_ros.neural.views.carving import DepthHull, Silhouettes
from morphit_ros.neural.views.posed_views import PosedViews

# Cells along the longest side of the bounds unless others are asked for; those at the surface are divided in each
# direction.
_CELLS, _PARTS = 48, 3
# Half the diagonal of a cell.
_REACH = 0.5 * 3.0**0.5
# Sums over cells pass their bound by so much of it.
_ROUNDING = 1e-6


class MomentDeviation(NamedTuple):
    """How well a body's moments are known, one standard deviation.

    Attributes:
        volume: relative.
        center: [m].
        tensor: of the inertia at a given mass density, relative.
        tensor_per_volume: of the inertia of a known mass, relative.
    """

    volume: float
    center: float
    tensor: float
    tensor_per_volume: float


@dataclass(frozen=True)
class HullThreshold(Threshold):
    """The threshold of a field learned from pictures, with the hull of their silhouettes.

    The hull holds the object, hollows included; a solid that differs from it much was not learned well.

    Attributes:
        hull: volume and moments of the hull, None if unknown; a volume of zero where nothing lies in all silhouettes.
        pixel: what a pixel shows of the object, 0 if unknown [m].
        disagreement: by how far views place the surface differently, beyond the rounding to pixels [m].
        drift: by how far refined poses may have moved the object as a whole [m].
        scale: by what share of its size the focal length may have made the object too large or small.
        walls: of a field whose walls have two sides that were learned apart, how well; None of any other.
        poses: what poses may be off by that the views cannot tell, and what follows; None where they tell it.
        offsets: what changes if the surface is moved to what depths measured of it; None where that is not known.

    Raises:
        InvalidInputError: what `Threshold` refuses, deviations that are negative or not finite, moments of no body, or
            a pixel that is negative or not finite.
    """

    hull: VolumeMoments | None = None
    pixel: float = 0.0
    disagreement: float = 0.0
    drift: float = 0.0
    scale: float = 0.0
    walls: MomentDeviation | None = None
    poses: MomentDeviation | None = None
    offsets: MomentDeviation | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pixel", "disagreement", "drift", "scale"):
            if not 0.0 <= getattr(self, name) < np.inf:
                unit = "a share" if name == "scale" else "a size"
                raise InvalidInputError(f"{name} of the threshold", getattr(self, name), f"{unit} from 0 up")
        for name in ("walls", "poses", "offsets"):
            deviation = getattr(self, name)
            if deviation is not None and not all(0.0 <= number < np.inf for number in deviation):
                raise InvalidInputError(f"{name} of the threshold", tuple(deviation), "deviations from 0 up")
        if self.hull is not None:
            object.__setattr__(self, "hull", _checked_moments(self.hull))

    def at(self, other: Threshold) -> HullThreshold:
        """The same hull with the field cut as another threshold says: what silhouettes show holds however it is cut."""
        lowest, highest = other.range
        return replace(self, value=other.value, lowest=lowest, highest=highest, agreement=other.agreement)


def _checked_moments(hull: VolumeMoments) -> VolumeMoments:
    """Moments that a body can have: a volume, a centre, and a second moment that is symmetric and not negative."""
    volume, center, second = float(hull.volume), np.asarray(hull.center), np.asarray(hull.second_moment)
    if not 0.0 <= volume < np.inf:
        raise InvalidInputError("volume of the hull", volume, "a number from 0 up [m^3]")
    if center.shape != (3,) or not np.isfinite(center).all():
        raise InvalidInputError("centre of the hull", center.tolist(), "three finite coordinates [m]")
    if second.shape != (3, 3) or not np.isfinite(second).all():
        raise InvalidInputError("second moment of the hull", second.tolist(), "a finite matrix (3, 3) [m^5]")
    largest = float(np.abs(second).max())
    shares = second / largest if largest > 0.0 else second
    if np.abs(shares - shares.T).max() > _ROUNDING or np.linalg.eigvalsh(shares).min() < -_ROUNDING:
        raise InvalidInputError(
            "second moment of the hull", second.tolist(), "a symmetric matrix without negative moments"
        )
    return VolumeMoments(volume, center.astype(np.float64), second.astype(np.float64))


def check_hull(threshold: HullThreshold, bounds: Array) -> None:
    """Refuse a hull or a pixel that belong to no field with these bounds (2, 3) [m].

    Raises:
        InvalidInputError: a volume, centre or spread that has no room within the bounds, or a pixel larger than they.
    """
    remedy = "Give the threshold that was learned together with this field, in its frame."
    extents = bounds[1] - bounds[0]
    diagonal = float(np.linalg.norm(extents))
    for name in ("pixel", "disagreement", "drift"):
        if getattr(threshold, name) > diagonal:
            bound = f"at most {diagonal:.4g}, the field's diagonal [m]"
            raise InvalidInputError(f"{name} of the threshold", getattr(threshold, name), bound, remedy)
    if threshold.hull is None:
        return
    volume, center, second = threshold.hull
    slack = _ROUNDING * extents
    room = float(extents.prod())
    if volume > room * (1.0 + _ROUNDING):
        raise InvalidInputError("volume of the hull", volume, f"at most {room:.4g}, that of the field's bounds", remedy)
    if (center < bounds[0] - slack).any() or (center > bounds[1] + slack).any():
        raise InvalidInputError(
            "centre of the hull", center.tolist(), f"a place within the field's bounds {bounds.tolist()} [m]", remedy
        )
    # Nothing between two planes varies by more than half their distance, squared.
    most = volume * (0.5 * extents) ** 2 * (1.0 + _ROUNDING)
    if (np.diag(second) > most).any():
        bound = f"at most {most.tolist()} along the field's axes [m^5]"
        raise InvalidInputError("second moment of the hull", second.tolist(), bound, remedy)


def hull_moments(hull: Silhouettes | DepthHull, bounds: Array, cells: int = _CELLS) -> VolumeMoments:
    """Volume and moments of what all views allow, within bounds (2, 3) [m]; a volume of zero if that is nothing.

    There are so many cells along the longest side of the bounds. A cell counts by the share of it that a plane at the
    clearance of its centre leaves.
    """
    extents = bounds[1] - bounds[0]
    counts = np.maximum(np.ceil(extents / extents.max() * cells).astype(np.int64), 2)
    size = extents / counts
    half = np.stack([bounds[0] + 0.5 * size, bounds[1] - 0.5 * size])
    centers = grid_nodes(half, (int(counts[0]), int(counts[1]), int(counts[2])))
    clearance = hull.clearance(centers)
    reach = _REACH * float(size.max())
    full, border = centers[clearance <= -reach], centers[np.abs(clearance) < reach]
    parts = size / _PARTS
    steps = (np.indices((_PARTS,) * 3).reshape(3, -1).T - 0.5 * (_PARTS - 1)) * parts
    fine = (border[:, None] + steps).reshape(-1, 3)
    shares = np.clip(0.5 - hull.clearance(fine) / parts.max(), 0.0, 1.0)
    points = np.concatenate([full, fine])
    volumes = np.prod(size) * np.concatenate([np.ones(len(full)), shares / _PARTS**3])
    return point_moments(points, volumes, bounds.mean(axis=0))


def pixel_size(views: PosedViews, place: Array) -> float:
    """What a pixel shows at a place (3,), the median of the views [m]."""
    distances = np.linalg.norm(views.T_world_camera[:, :3, 3] - place, axis=1)
    return float(np.median(distances / views.intrinsics[:, :2].mean(axis=1)))
