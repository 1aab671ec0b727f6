"""From a density to a solid: what of a field is inside of the object, with its volume and moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.configuration import Config, parameter
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.meshed import Meshed
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.fields.sided import SidedField
from morphit_ros.neural.solid.cutting import cut_nodes
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.pieces import solid_nodes
from morphit_ros.neural.solid.search import cut_off_field, densities_on_grid, empty_field, find_object
from morphit_ros.neural.solid.sided_moments import COARSE_PARTS, PARTS, sided_moments
from morphit_ros.neural.solid.thin_parts import LEAST_LOST, check_thin_parts, lost_share, may_be_joined
from morphit_ros.neural.solid.thresholds import Threshold, as_threshold

# A box that cuts the object is widened on that side by this share of its longest side, so often at most.
_WIDENING, _MOST_BOXES = 0.5, 12
# A box that was widened is tightened if the object's is smaller by this factor along a side.
_LOOSE = 0.7


@dataclass(frozen=True)
class SolidConfig(Config):
    """How a field is cut into cells."""

    resolution: int = parameter(96, "Least cells along the longest side of the object", minimum=8, maximum=400)
    thinnest: int = parameter(16, "Cells along its shortest side, unless that takes too many", minimum=1, maximum=100)
    max_nodes: int = parameter(4_000_000, "Most nodes of the grid", minimum=1000, maximum=100_000_000)
    refinements: int = parameter(2, "How often cells are halved where parts are thinner", minimum=0, maximum=4)
    fill: bool = parameter(True, "Fill hollows: of a learned field the inside was never seen")
    gap: float = parameter(
        0.0, "Widest gap in the hull that counts as closed, in shares of the longest side", minimum=0.0, maximum=0.2
    )  # fmt: skip


@dataclass(frozen=True)
class Solid(Meshed):
    """The inside of an object on a grid, and the surface around it.

    Attributes:
        field: what it was cut from.
        threshold: density above which the field is inside.
        origin: (3,) lowest corner of the first cell, in the field's frame [m].
        spacing: edge of a cell [m].
        occupancy: (X, Y, Z) share of each cell that is inside, in [0, 1].
        surface: closed mesh around it, normals outwards.
        moments: of the polyhedron inside of the surface; of a `SidedField`, whose walls may be thinner than a cell, of
            the field there.
        coarse_moments: the same from cells twice as large, for an estimate of the error.
        filled_volume: of hollows that were filled [m^3].
        dropped_volume: of separate pieces that were left out [m^3].
        lost_volume: about that of parts thinner than a cell, between the nodes of the grid [m^3].
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
    lost_volume: float = 0.0

    def triangle_mesh(self) -> TriangleMesh:
        """The surface."""
        return self.surface

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
    softer or sharper than a cell are met alike. Where random places show parts that lie between the nodes, the cells
    are halved.

    Args:
        field: what to cut; zero outside of its bounds.
        threshold: see `thresholds`; None halfway between empty and full (`two_level_threshold`).
        config: see `SolidConfig`.

    Raises:
        InvalidInputError: a field that is constant, nowhere above the threshold, not finite, whose object touches the
            bounds, or with much of it thinner than the smallest cells; a threshold that is not positive.
    """
    config = config or SolidConfig()
    found = find_object(field, as_threshold(threshold), config.fill, config.gap)
    nodes = _sample(field, found.threshold, found.lowest, found.highest, config)
    for number in range(config.refinements + 1):
        above = nodes.densities > found.threshold.value
        inside, filled = nodes.inside, nodes.filled
        lost = lost_share(field, found.threshold.value, above | inside, nodes.origin, nodes.spacing)
        cell = nodes.spacing**3
        dropped = nodes.dropped * cell + found.elsewhere(nodes.lowest, nodes.highest)
        apart = dropped / (np.count_nonzero(inside) * cell)
        finest = _least_spacing(nodes.highest - nodes.lowest, 0.5 * nodes.spacing, config)
        if number == config.refinements or finest > _LOOSE * nodes.spacing:
            break
        if lost <= LEAST_LOST and not may_be_joined(above, inside, apart):
            break
        nodes = _sample(field, found.threshold, nodes.lowest, nodes.highest, config, finest)
    check_thin_parts(lost, apart, nodes.spacing, config.resolution, config.refinements, config.max_nodes)
    value, origin, spacing = found.threshold.value, nodes.origin, nodes.spacing
    fine, surface, occupancy = cut_nodes(field, nodes.densities, inside, value, origin, spacing)
    if isinstance(field, SidedField):
        fine, coarse = (sided_moments(field, occupancy, origin, spacing, parts) for parts in (PARTS, COARSE_PARTS))
    else:
        coarse, _, _ = cut_nodes(
            field, nodes.densities[::2, ::2, ::2], inside[::2, ::2, ::2], value, origin, 2.0 * spacing, coarse=True
        )
    # Sides count what lies between the nodes.
    missed = 0.0 if isinstance(field, SidedField) else lost * fine.volume
    return Solid(
        field, found.threshold, origin, spacing, occupancy, surface, fine, coarse, filled * cell, dropped, missed
    )


def moments_at(field: DensityField, threshold: float, config: SolidConfig) -> VolumeMoments:
    """Moments alone of the solid at a threshold, whatever the grid does not see of it.

    Raises:
        InvalidInputError: as `extract_solid`, but for thin parts.
    """
    found = find_object(field, Threshold(threshold), config.fill, config.gap)
    nodes = _sample(field, found.threshold, found.lowest, found.highest, config)
    return cut_nodes(field, nodes.densities, nodes.inside, threshold, nodes.origin, nodes.spacing, coarse=True)[0]


class _Nodes(NamedTuple):
    """A grid over a box that holds the whole object; outermost nodes are all outside."""

    lowest: Array
    highest: Array
    origin: Array
    spacing: float
    densities: Array
    inside: NDArray[np.bool_]
    filled: int
    dropped: int


def _sample(
    field: DensityField,
    threshold: Threshold,
    lowest: Array,
    highest: Array,
    config: SolidConfig,
    spacing: float | None = None,
) -> _Nodes:
    """The grid over a box, which is widened where the object goes on beyond it.

    Thin parts may not be seen, or not be joined to the rest, on the coarse grid that the box was found with.
    """
    bounds = np.asarray(field.bounds, dtype=np.float64)
    widened = False
    for _ in range(_MOST_BOXES):
        nodes = _sample_box(field, threshold, lowest, highest, config, spacing)
        places = np.argwhere(nodes.inside)
        first, last = places.min(axis=0), places.max(axis=0)
        _check_bounds(field, threshold, nodes, places)
        cut = np.stack([first == 0, last == np.array(nodes.inside.shape) - 1])
        tight = nodes.origin + nodes.spacing * np.stack([first - 1, last + 1])
        loose = widened and bool((np.ptp(tight, axis=0) < _LOOSE * (highest - lowest)).any())
        if not cut.any() and not loose:
            break
        reach = _WIDENING * float((highest - lowest).max())
        widened = bool(cut.any())
        # What joins its parts may be thinner than the larger cells of a larger box.
        spacing = nodes.spacing if widened else spacing
        lowest, highest = np.clip(np.where(cut, tight + np.array([[-reach], [reach]]), tight), bounds[0], bounds[1])
    return nodes


def _sample_box(
    field: DensityField,
    threshold: Threshold,
    lowest: Array,
    highest: Array,
    config: SolidConfig,
    spacing: float | None,
) -> _Nodes:
    extents = highest - lowest
    wanted = min(extents.max() / config.resolution, extents.min() / config.thinnest)
    step = _least_spacing(extents, wanted if spacing is None else spacing, config)
    # An even number of cells, so that cells twice as large have the same box.
    counts = 2 * np.ceil(0.5 * (extents / step + 2.0)).astype(np.int64)
    origin = 0.5 * (lowest + highest) - 0.5 * counts * step
    densities = densities_on_grid(field, [origin[axis] + step * np.arange(counts[axis] + 1) for axis in range(3)])
    inside, filled, dropped = solid_nodes(densities > threshold.value, config.fill, config.gap)
    if not inside.any():
        raise empty_field(densities.max(), threshold)
    return _Nodes(lowest, highest, origin, step, densities, inside, filled, dropped)


def _least_spacing(extents: Array, wanted: float, config: SolidConfig) -> float:
    """A spacing [m] for a box of these extents (3,): the wanted one if the number of nodes allows it."""
    least = float(np.prod(extents + 4.0 * extents.max() / config.resolution) / config.max_nodes) ** (1.0 / 3.0)
    return max(wanted, least)


def _check_bounds(field: DensityField, threshold: Threshold, nodes: _Nodes, places: NDArray[np.int64]) -> None:
    """Refuse an object whose density is above the threshold at the bounds of the field."""
    bounds = np.asarray(field.bounds, dtype=np.float64)
    points = nodes.origin + nodes.spacing * places
    for axis in range(3):
        for end in (0, -1):
            near = points[np.abs(points[:, axis] - bounds[end, axis]) < nodes.spacing].copy()
            near[:, axis] = bounds[end, axis]
            values = field.density(near)
            if (values > threshold.value).any():
                raise cut_off_field(field, axis, end, float(values.max()), threshold)
