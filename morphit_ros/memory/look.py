"""A thing as it was seen: points of its surface, and what its cameras saw past."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.thinning import point_spacing
from morphit_ros.geometry.transforms import Array, plane_axes, transform_points, transform_vectors
from morphit_ros.jit import njit

# Cells along a side of what an eye saw.
_CELLS = 96
# Beside an outline by less than this, the table shows beside a point rather than behind it [m].
_OUTLINE = 0.008


@dataclass(frozen=True)
class Look:
    """Everything in one frame.

    Attributes:
        points: (N, 3) of the surface [m].
        normals: (N, 3) outward unit normals.
        eyes: (V, 3) places of cameras that had a free view of the thing [m].
        planes: (P, 4) unit normal and offset of supports: nothing of the thing is where n · x < offset.
        blockers: (B, 3) points of other things, behind which no eye saw [m].

    Raises:
        InvalidInputError: an array of another shape, or numbers that are not finite.
    """

    points: Array
    normals: Array
    eyes: Array = field(default_factory=lambda: np.empty((0, 3)))
    planes: Array = field(default_factory=lambda: np.empty((0, 4)))
    blockers: Array = field(default_factory=lambda: np.empty((0, 3)))

    def __post_init__(self) -> None:
        for name, width in (("points", 3), ("normals", 3), ("eyes", 3), ("planes", 4), ("blockers", 3)):
            values = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 2 or values.shape[1] != width or not np.isfinite(values).all():
                raise InvalidInputError(name, f"shape {values.shape}", f"finite numbers of shape (N, {width})")
            object.__setattr__(self, name, values)
        if len(self.normals) != len(self.points):
            raise InvalidInputError("normals", f"shape {self.normals.shape}", f"shape {self.points.shape}")

    @property
    def middle(self) -> Array:
        """(3,) of its box [m]."""
        return np.asarray(0.5 * (self.points.min(axis=0) + self.points.max(axis=0)))

    @property
    def free_eyes(self) -> Array:
        """(F, 3) those eyes before whose view of the thing nothing else stood."""
        free = []
        for eye in self.eyes:
            frame = _view(eye, self.middle)
            (low, high), far = _box(self.points, eye, frame)
            local = (self.blockers - eye) @ frame.T
            local = local[(local[:, 2] > 1e-3) & (local[:, 2] < far)]
            slopes = local[:, :2] / local[:, 2:]
            if not ((slopes > low) & (slopes < high)).all(axis=1).any():
                free.append(eye)
        return np.array(free).reshape(-1, 3)

    def transformed(self, transform: Array) -> Look:
        """The look in another frame, by ``T_target_source`` (4, 4)."""
        normals = transform_vectors(transform, self.planes[:, :3])
        offsets = self.planes[:, 3] + normals @ transform[:3, 3]
        return Look(
            transform_points(transform, self.points),
            transform_vectors(transform, self.normals),
            transform_points(transform, self.eyes),
            np.column_stack([normals, offsets]),
            transform_points(transform, self.blockers),
        )


class Sightlines(NamedTuple):
    """How far V eyes saw in each direction, and where the thing cannot be.

    Attributes:
        eyes: (V, 3) [m].
        frames: (V, 3, 3) rows: two directions across each view, and the one along it.
        corners: (V, 2) of the views' cells, as slopes.
        cells: (V,) their size, as a slope.
        depths: (V, _CELLS, _CELLS) distance along the view to the first surface at or beside a place, infinite where
            there is none [m].
        planes: (P, 4) as of `Look`.
    """

    eyes: Array
    frames: Array
    corners: Array
    cells: Array
    depths: Array
    planes: Array


def sightlines(look: Look) -> Sightlines:
    """What the eyes of a look saw of its thing."""
    from scipy.ndimage import minimum_filter

    count = len(look.eyes)
    frames, corners = np.empty((count, 3, 3)), np.empty((count, 2))
    cells, depths = np.empty(count), np.full((count, _CELLS, _CELLS), np.inf)
    spacing = point_spacing(look.points)
    for index, eye in enumerate(look.eyes):
        frames[index] = _view(eye, look.middle)
        (low, high), _ = _box(look.points, eye, frames[index])
        margin = 2.0 * _OUTLINE / float(np.linalg.norm(look.middle - eye))
        cells[index] = float((high - low).max() + 2.0 * margin) / _CELLS
        corners[index] = low - margin
        for points in (look.points, look.blockers):
            _draw(points, eye, frames[index], corners[index], cells[index], spacing, depths[index])
        beside = round(_OUTLINE / float(np.linalg.norm(look.middle - eye)) / cells[index])
        depths[index] = minimum_filter(depths[index], 2 * beside + 1, mode="nearest")
    return Sightlines(look.eyes, frames, corners, cells, depths, look.planes)


def _view(eye: Array, middle: Array) -> Array:
    """(3, 3) rows: two directions across a view, and the one along it."""
    along = (middle - eye) / np.linalg.norm(middle - eye)
    return np.array([*plane_axes(along), along])


def _box(points: Array, eye: Array, frame: Array) -> tuple[Array, float]:
    """Least and largest slopes (2, 2) of points in a view, and the largest distance along it [m]."""
    local = (points - eye) @ frame.T
    slopes = local[:, :2] / np.maximum(local[:, 2:], 1e-3)
    return np.array([slopes.min(axis=0), slopes.max(axis=0)]), float(local[:, 2].max())


@njit(cache=True, nogil=True)
def _draw(points, eye, frame, corner, cell, radius, depths):  # type: ignore[no-untyped-def]
    """The first surface in each direction; a point covers what is within a radius of it [m]."""
    side = depths.shape[0]
    for row in range(points.shape[0]):
        x, y, z = points[row, 0] - eye[0], points[row, 1] - eye[1], points[row, 2] - eye[2]
        ahead = frame[2, 0] * x + frame[2, 1] * y + frame[2, 2] * z
        if ahead < 1e-3:
            continue
        u = ((frame[0, 0] * x + frame[0, 1] * y + frame[0, 2] * z) / ahead - corner[0]) / cell
        v = ((frame[1, 0] * x + frame[1, 1] * y + frame[1, 2] * z) / ahead - corner[1]) / cell
        reach = radius / ahead / cell
        if u < -reach or v < -reach or u > side + reach or v > side + reach:
            continue
        for i in range(max(0, int(np.floor(u - reach))), min(side, int(np.floor(u + reach)) + 1)):
            for j in range(max(0, int(np.floor(v - reach))), min(side, int(np.floor(v + reach)) + 1)):
                depths[i, j] = min(depths[i, j], ahead)


@njit(cache=True, nogil=True)
def is_empty(x, y, z, sight, margin):  # type: ignore[no-untyped-def]
    """Whether an eye saw that nothing is at a place, or it is in a support; each by more than a margin [m]."""
    for plane in range(sight.planes.shape[0]):
        height = sight.planes[plane, 0] * x + sight.planes[plane, 1] * y + sight.planes[plane, 2] * z
        if height < sight.planes[plane, 3] - margin:
            return True
    side = sight.depths.shape[1]
    for k in range(sight.eyes.shape[0]):
        dx, dy, dz = x - sight.eyes[k, 0], y - sight.eyes[k, 1], z - sight.eyes[k, 2]
        frame = sight.frames[k]
        ahead = frame[2, 0] * dx + frame[2, 1] * dy + frame[2, 2] * dz
        if ahead < 1e-3:
            continue
        u = (frame[0, 0] * dx + frame[0, 1] * dy + frame[0, 2] * dz) / ahead
        v = (frame[1, 0] * dx + frame[1, 1] * dy + frame[1, 2] * dz) / ahead
        i = int(np.floor((u - sight.corners[k, 0]) / sight.cells[k]))
        j = int(np.floor((v - sight.corners[k, 1]) / sight.cells[k]))
        if not (0 <= i < side and 0 <= j < side) or ahead < sight.depths[k, i, j] - margin:
            return True
    return False
