"""From a density to a solid: what of a field is inside of the object, with its volume and moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.cut_cells import CutEdges, find_cut_edges, measure_cut_cells
from morphit_ros.neural.solid.pieces import solid_nodes
from morphit_ros.neural.solid.thresholds import Threshold, check_densities, two_level_threshold

# Nodes along the longest side of the first grids, which only look for the object. The finest still sees a plate of
# a hundredth of the bounds.
_SEARCHES = (48, 144)
# Below this many nodes inside, the first grid may have seen only a part of a thin object.
_ENOUGH_NODES = 64
# The place of a crossing on its edge is found to this share of the edge.
_CROSSING_TOLERANCE = 1e-3
_MAX_CROSSING_STEPS = 12
_AXES = "xyz"


@dataclass(frozen=True)
class SolidConfig(Config):
    """How a field is cut into cells."""

    resolution: int = parameter(96, "Cells along the longest side of the object", minimum=8, maximum=400)
    thinnest: int = parameter(16, "Cells along its shortest side, unless that takes too many", minimum=1, maximum=100)
    max_nodes: int = parameter(4_000_000, "Most nodes of the grid", minimum=1000, maximum=100_000_000)
    fill: bool = parameter(True, "Fill hollows: of a learned field the inside was never seen")
    gap: float = parameter(
        0.0, "Widest gap in the hull that counts as closed, in shares of the longest side", minimum=0.0, maximum=0.2
    )  # fmt: skip


class VolumeMoments(NamedTuple):
    """Volume [m^3], its centre (3,) [m] and ∫ (x − centre)(x − centre)ᵀ (3, 3) [m^5]."""

    volume: float
    center: Array
    second_moment: Array


@dataclass(frozen=True)
class Solid:
    """The inside of an object on a grid, and the surface around it.

    Attributes:
        field: what it was cut from.
        threshold: density above which the field is inside.
        origin: (3,) lowest corner of the first cell, in the field's frame [m].
        spacing: edge of a cell [m].
        occupancy: (X, Y, Z) share of each cell that is inside, in [0, 1].
        surface: closed mesh around it, normals outwards.
        moments: of the polyhedron inside of the surface.
        coarse_moments: the same from cells twice as large, for an estimate of the error.
        filled_volume: of hollows that were filled [m^3].
        dropped_volume: of separate pieces that were left out [m^3].
    """

    field: DensityField
    threshold: Threshold
    origin: Array
    spacing: float
    occupancy: Array
    surface: TriangleMesh
    moments: VolumeMoments
    coarse_moments: VolumeMoments
    filled_volume: float
    dropped_volume: float

    @property
    def volume(self) -> float:
        """[m^3]."""
        return self.moments.volume

    @property
    def size(self) -> float:
        """Diagonal of the surface's box [m]."""
        return float(np.linalg.norm(self.surface.extents))

    @property
    def cell_centers(self) -> Array:
        """(X, Y, Z, 3) [m]."""
        return self.origin + self.spacing * (np.moveaxis(np.indices(self.occupancy.shape), 0, -1) + 0.5)

    def contains(self, points: Array) -> NDArray[np.bool_]:
        """(N,) whether points (N, 3) lie in cells that are at least half inside."""
        cells = np.floor((points - self.origin) / self.spacing).astype(np.int64)
        within = ((cells >= 0) & (cells < self.occupancy.shape)).all(axis=1)
        inside = np.zeros(len(points), np.bool_)
        inside[within] = self.occupancy[tuple(cells[within].T)] >= 0.5
        return inside


def extract_solid(
    field: DensityField, threshold: float | Threshold | None = None, config: SolidConfig | None = None
) -> Solid:
    """Where a field is above a threshold: the largest piece, with its hollows filled.

    The surface crosses the grid's edges where the field itself, not an interpolation of it, passes the threshold: edges
    softer or sharper than a cell are met alike.

    Args:
        field: what to cut; zero outside of its bounds.
        threshold: see `thresholds`; None halfway between empty and full (`two_level_threshold`).
        config: see `SolidConfig`.

    Raises:
        InvalidInputError: a field that is constant, nowhere above the threshold, not finite, or whose object
            touches the bounds; a threshold that is not positive.
    """
    config = config or SolidConfig()
    chosen = _as_threshold(threshold)
    lowest, highest, chosen, elsewhere = _search(field, chosen, config)
    extents = highest - lowest
    spacing = max(
        min(extents.max() / config.resolution, extents.min() / config.thinnest),
        float(np.prod(extents + 4.0 * extents.max() / config.resolution) / config.max_nodes) ** (1.0 / 3.0),
    )
    # An even number of cells, so that cells twice as large have the same box; outermost nodes are all outside.
    counts = 2 * np.ceil(0.5 * (extents / spacing + 2.0)).astype(np.int64)
    origin = 0.5 * (lowest + highest) - 0.5 * counts * spacing
    densities = _densities_on_grid(field, [origin[axis] + spacing * np.arange(counts[axis] + 1) for axis in range(3)])
    inside, filled, dropped = solid_nodes(densities > chosen.value, config.fill, config.gap)
    if not inside.any():
        raise _empty(densities.max(), chosen)
    _check_border(inside, densities, field, chosen, origin, spacing)
    fine, surface, occupancy = _cut(field, densities, inside, chosen.value, origin, spacing)
    coarse, _, _ = _cut(
        field, densities[::2, ::2, ::2], inside[::2, ::2, ::2], chosen.value, origin, 2.0 * spacing, coarse=True
    )
    cell = spacing**3
    # Pieces left out lie within the box of the object, or were seen only in the search.
    left_out = max(dropped * cell, elsewhere)
    return Solid(field, chosen, origin, spacing, occupancy, surface, fine, coarse, filled * cell, left_out)


def _as_threshold(threshold: float | Threshold | None) -> Threshold | None:
    if threshold is None or isinstance(threshold, Threshold):
        return threshold
    return Threshold(float(threshold))


def _search(
    field: DensityField, threshold: Threshold | None, config: SolidConfig
) -> tuple[Array, Array, Threshold, float]:
    """Box (3,), (3,) around the object, the threshold, and the volume of other pieces [m^3]."""
    bounds = np.asarray(field.bounds, dtype=np.float64)
    extents = bounds[1] - bounds[0]
    for resolution in _SEARCHES:
        counts = np.maximum(np.ceil(extents / extents.max() * resolution).astype(np.int64), 8)
        axes = [np.linspace(bounds[0, axis], bounds[1, axis], counts[axis] + 1) for axis in range(3)]
        densities = _densities_on_grid(field, axes)
        last = resolution == _SEARCHES[-1]
        if densities.max() == densities.min() and not last:
            continue
        chosen = threshold or two_level_threshold(densities)
        inside, _, dropped = solid_nodes(densities > chosen.value, config.fill, config.gap)
        if np.count_nonzero(inside) >= _ENOUGH_NODES or last:
            break
    check_densities(densities)
    if not inside.any():
        raise _empty(densities.max(), chosen)
    steps = extents / counts
    _check_border(inside, densities, field, chosen, bounds[0], steps)
    nodes = np.argwhere(inside)
    lowest = np.maximum(bounds[0] + (nodes.min(axis=0) - 1) * steps, bounds[0])
    highest = np.minimum(bounds[0] + (nodes.max(axis=0) + 1) * steps, bounds[1])
    return lowest, highest, chosen, float(dropped * np.prod(steps))


def _densities_on_grid(field: DensityField, axes: list[Array]) -> Array:
    """(X, Y, Z) densities at the nodes; zero out of the field's bounds.

    Raises:
        InvalidInputError: a density is not finite.
    """
    densities = np.empty([len(axis) for axis in axes])
    across = np.stack(np.meshgrid(axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.empty((len(across), 3))
    points[:, 1:] = across
    for layer, x in enumerate(axes[0]):
        points[:, 0] = x
        densities[layer] = field.density(points).reshape(densities.shape[1:])
    if not np.isfinite(densities).all():
        raise InvalidInputError(
            "field", "densities that are not finite", "finite densities within its bounds", "Learn the field anew."
        )
    return densities


def _check_border(
    inside: NDArray[np.bool_],
    densities: Array,
    field: DensityField,
    threshold: Threshold,
    origin: Array,
    steps: float | Array,
) -> None:
    """Refuse an object that goes on where the field ends."""
    for axis in range(3):
        for end in (0, -1):
            border = np.take(inside, end, axis=axis)
            if border.any():
                value = np.take(densities, end, axis=axis)[border].max()
                side = f"{'lower' if end == 0 else 'upper'} {_AXES[axis]}"
                raise InvalidInputError(
                    "field",
                    f"a density of {value:.4g} at its {side} bound ({field.bounds[end, axis]:.4g} m)",
                    f"at most the threshold, {threshold.value:.4g}, at the bounds",
                    "The object goes on where the field ends: learn it in larger bounds, without what it stands on, or "
                    "take a higher threshold.",
                )


def _empty(highest: float, threshold: Threshold) -> InvalidInputError:
    return InvalidInputError(
        "field",
        f"densities of at most {highest:.4g}",
        f"some above the threshold, {threshold.value:.4g}",
        "The field is empty there: take a lower threshold, or learn it from views that show the object.",
    )


def _cut(
    field: DensityField,
    densities: Array,
    inside: NDArray[np.bool_],
    threshold: float,
    origin: Array,
    spacing: float,
    coarse: bool = False,
) -> tuple[VolumeMoments, TriangleMesh, Array]:
    """Moments, surface and occupancy of nodes inside."""
    inside = np.ascontiguousarray(inside)
    edges = find_cut_edges(inside)
    crossings = _crossings(field, densities, edges, threshold, origin, spacing)
    middle = 0.5 * np.array(inside.shape)
    cut = measure_cut_cells(inside, edges, crossings, middle, with_faces=not coarse)
    if cut.volume <= 0.0:  # cells so large that no node is inside
        nothing = VolumeMoments(0.0, origin + spacing * middle, np.zeros((3, 3)))
        return nothing, _NO_SURFACE, cut.occupancy
    center = cut.first_moment / cut.volume
    moments = VolumeMoments(
        cut.volume * spacing**3,
        origin + spacing * (middle + center),
        (cut.second_moment - cut.volume * np.outer(center, center)) * spacing**5,
    )
    surface = _NO_SURFACE if coarse else TriangleMesh(origin + spacing * crossings, cut.faces)
    return moments, surface, cut.occupancy


_NO_SURFACE = TriangleMesh(np.zeros((1, 3)), np.zeros((1, 3), np.int64))


def _crossings(
    field: DensityField, densities: Array, edges: CutEdges, threshold: float, origin: Array, spacing: float
) -> Array:
    """(E, 3) where the field passes the threshold on each cut edge, in units of the grid."""
    start, end = edges.inside.astype(np.float64), edges.outside.astype(np.float64)
    direction = end - start
    low_value = densities[tuple(edges.inside.T)] - threshold
    high_value = densities[tuple(edges.outside.T)] - threshold
    low, high = np.zeros(len(start)), np.ones(len(start))
    place = np.full(len(start), 0.5)
    # Others end at a hollow that was filled, or at a piece that was left out: the surface passes midway.
    active = np.flatnonzero((low_value > 0.0) & (high_value <= 0.0))
    tolerance = _CROSSING_TOLERANCE * (low_value - high_value)
    for step in range(_MAX_CROSSING_STEPS):
        if not len(active):
            break
        a, b, fa, fb = low[active], high[active], low_value[active], high_value[active]
        # Regula falsi, with a bisection every third step for edges sharper than the grid.
        guess = 0.5 * (a + b) if step % 3 == 2 else a + (b - a) * np.clip(fa / (fa - fb), 0.02, 0.98)
        value = field.density(origin + spacing * (start[active] + guess[:, None] * direction[active])) - threshold
        inner = value > 0.0
        low[active[inner]], low_value[active[inner]] = guess[inner], value[inner]
        high[active[~inner]], high_value[active[~inner]] = guess[~inner], value[~inner]
        met = np.abs(value) <= tolerance[active]
        narrow = high[active] - low[active] < _CROSSING_TOLERANCE
        place[active] = np.where(met, guess, 0.5 * (low[active] + high[active]))
        active = active[~(met | narrow)]
    return start + np.clip(place, 1e-6, 1.0 - 1e-6)[:, None] * direction
