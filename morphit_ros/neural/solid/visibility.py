"""How much of a solid its cameras saw, and what the rest could hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import sample_surface_evenly
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.jit import njit
from morphit_ros.neural.solid.moments import VolumeMoments

if TYPE_CHECKING:
    from morphit_ros.neural.solid.extraction import Solid

_SURFACE_SAMPLES = 4000
# Cells along the longest side of the box in which hidden space is looked for.
_HIDDEN_CELLS = 48
# How far an object may go on behind what was seen, in shares of the longest side of what was found: a ball seen from
# one side only goes on for as much as its width. The bounds of the field say nothing of it: those of learned ones are
# tight around what was measured.
_HIDDEN_REACH = 1.0
# A surface that leans more than this from the camera gives it next to no pixels: cosine of 80 degrees.
_GRAZING = 0.17
# Two opposed cameras saw 59 to 87 % of six objects, two neighbours 34 to 48 % (benchmarks/neural_inertia.py).
ONE_SIDED = 0.55
"""Share of the surface that was seen below which a view is one-sided."""
# Less than this share of the solid left is none.
_LEAST_PART = 0.02
# What rests on its support is seen down to this many cells.
_RESTING_CELLS = 2.0


@dataclass(frozen=True)
class Visibility:
    """What cameras saw of a solid.

    Attributes:
        seen_share: of the surface's area, in [0, 1].
        with_hidden: moments of the solid together with all the space nearby that no camera saw to be empty.
        points, normals, seen: (N, 3), (N, 3) and (N,): samples of the surface, and whether a camera saw them.
        without_unseen: moments of that part of the solid that lies nearer to surface that was seen than to other: of
            what was learned behind the rest only the hull is known.
    """

    seen_share: float
    with_hidden: VolumeMoments
    without_unseen: VolumeMoments
    points: Array
    normals: Array
    seen: NDArray[np.bool_]

    @property
    def one_sided(self) -> bool:
        """Whether so little of the surface was seen as two cameras on one side see."""
        return self.seen_share < ONE_SIDED


def judge_visibility(solid: Solid, eyes: ArrayLike, support: SupportPlane | None = None) -> Visibility:
    """What cameras at (V, 3) positions in the solid's frame saw of it.

    Surface counts as seen where it faces a camera that nothing of the solid hides. Space counts as hidden where the
    solid lies between it and every camera.

    Args:
        solid: what was learned.
        eyes: (V, 3) positions of the cameras in the solid's frame [m].
        support: what the object stood on, in the solid's frame (`T_world_table` maps it there): nothing reaches below
            it, and what touches it is known to end there.

    Raises:
        InvalidInputError: no eye, of another shape, not finite, or inside of the solid.
    """
    positions = np.ascontiguousarray(eyes, dtype=np.float64)
    if positions.ndim != 2 or positions.shape[1:] != (3,) or len(positions) == 0 or not np.isfinite(positions).all():
        raise InvalidInputError("eyes", f"shape {np.shape(eyes)}", "finite positions (V, 3), at least one")
    if solid.contains(positions).any():
        raise InvalidInputError(
            "eyes", "a camera inside of the solid", "cameras around it", "Are eyes and field in the same frame?"
        )
    points, normals = sample_surface_evenly(solid.surface, _SURFACE_SAMPLES, np.random.default_rng(0))
    seen = np.zeros(len(points), np.bool_)
    starts = points + 1.5 * solid.spacing * normals
    for eye in positions:
        away = eye - points
        facing = (normals * away).sum(axis=1) > _GRAZING * np.linalg.norm(away, axis=1)
        places = np.flatnonzero(facing & ~seen)
        seen[places] |= ~_blocked(starts[places], eye, solid.occupancy, solid.origin, solid.spacing)
    if support is not None:
        heights = transform_points(invert_transform(support.T_world_table), points)[:, 2]
        seen |= heights < _RESTING_CELLS * solid.spacing
    own = _moments_of_part(solid, points, seen)
    return Visibility(float(seen.mean()), _moments_with_hidden(solid, positions, support), own, points, normals, seen)


def _moments_of_part(solid: Solid, points: Array, seen: NDArray[np.bool_]) -> VolumeMoments:
    """Moments of the solid less what lies nearer to surface points (N, 3) that were not seen."""
    if seen.all() or not seen.any():
        return solid.moments
    cells, step = box_cells(*solid.surface.bounds)
    cells = cells[solid.contains(cells)]
    unsure = cells[~seen[cKDTree(points).query(cells)[1]]]
    return combined_moments(solid.moments, unsure, -(step**3))


def box_cells(lowest: Array, highest: Array) -> tuple[Array, float]:
    """Centres (N, 3) of cells over a box, and their side."""
    step = float((highest - lowest).max()) / _HIDDEN_CELLS
    counts = np.maximum(np.ceil((highest - lowest) / step).astype(np.int64), 1)
    return (lowest + step * (np.moveaxis(np.indices(counts.tolist()), 0, -1) + 0.5)).reshape(-1, 3), step


def _moments_with_hidden(solid: Solid, eyes: Array, support: SupportPlane | None) -> VolumeMoments:
    lowest, highest = solid.surface.bounds
    reach = _HIDDEN_REACH * float((highest - lowest).max())
    cells, step = box_cells(lowest - reach, highest + reach)
    hidden = ~solid.contains(cells)
    if support is not None:
        hidden &= transform_points(invert_transform(support.T_world_table), cells)[:, 2] > 0.0
    for eye in eyes:
        places = np.flatnonzero(hidden)
        hidden[places] = _blocked(cells[places], eye, solid.occupancy, solid.origin, solid.spacing)
    return combined_moments(solid.moments, cells[hidden], step**3)


def combined_moments(own: VolumeMoments, cells: Array, cell: float) -> VolumeMoments:
    """Moments with cells (N, 3) of a volume added, or taken off where that is negative."""
    volume = own.volume + cell * len(cells)
    if volume < _LEAST_PART * own.volume:
        return VolumeMoments(0.0, own.center, np.zeros((3, 3)))
    center = (own.volume * own.center + cell * cells.sum(axis=0)) / volume
    offset, spread = own.center - center, cells - center
    second = own.second_moment + own.volume * np.outer(offset, offset) + cell * spread.T @ spread
    return VolumeMoments(volume, center, second)


@njit(cache=True, nogil=True, error_model="numpy")
def _blocked(starts, eye, occupancy, origin, spacing):  # type: ignore[no-untyped-def]
    """(N,) whether the solid lies between points (N, 3) and the eye (3,)."""
    blocked = np.zeros(len(starts), np.bool_)
    nx, ny, nz = occupancy.shape
    for row in range(len(starts)):
        dx, dy, dz = eye[0] - starts[row, 0], eye[1] - starts[row, 1], eye[2] - starts[row, 2]
        length = np.sqrt(dx * dx + dy * dy + dz * dz)
        steps = int(np.ceil(length / (0.5 * spacing)))
        for step in range(steps):
            t = step / steps
            x = (starts[row, 0] + t * dx - origin[0]) / spacing
            y = (starts[row, 1] + t * dy - origin[1]) / spacing
            z = (starts[row, 2] + t * dz - origin[2]) / spacing
            if 0.0 <= x < nx and 0.0 <= y < ny and 0.0 <= z < nz:
                if occupancy[int(x), int(y), int(z)] >= 0.5:
                    blocked[row] = True
                    break
            elif (
                (x < 0.0 and dx <= 0.0) or (x >= nx and dx >= 0.0)
                or (y < 0.0 and dy <= 0.0) or (y >= ny and dy >= 0.0)
                or (z < 0.0 and dz <= 0.0) or (z >= nz and dz >= 0.0)
            ):  # fmt: skip
                break
    return blocked
