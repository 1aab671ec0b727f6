"""Where in a field the object is: a box that the grid of its solid starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField
from morphit_ros.neural.solid.pieces import solid_nodes
from morphit_ros.neural.solid.thin_parts import unseen_places
from morphit_ros.neural.solid.thresholds import Threshold, check_densities, two_level_threshold

# Nodes along the longest side of the grids that look for the object. The finest still sees a plate of a hundredth of
# the bounds.
_SEARCHES = (48, 144)
# Below this many nodes inside, the first grid may have seen only a part of a thin object.
_ENOUGH_NODES = 64
# If other pieces have more than this share of the largest one's nodes, the object may have come apart where it is thin.
_MOST_ELSEWHERE = 0.02
# Nodes this share of the bounds apart may be joined by something thinner than the grid sees.
_REACH = 0.03
_AXES = "xyz"


@dataclass(frozen=True)
class SearchedBox:
    """Where the object is.

    Attributes:
        lowest, highest: (3,) corners of a box around the largest piece, and around what may be joined to it [m].
        threshold: above which the field is inside.
        others: (N, 3) nodes of other pieces [m].
        cell: volume that one of them stands for [m^3].
    """

    lowest: Array
    highest: Array
    threshold: Threshold
    others: Array
    cell: float

    def elsewhere(self, lowest: Array, highest: Array) -> float:
        """Volume of other pieces out of a box [m^3]."""
        return self.cell * int(((self.others < lowest) | (self.others > highest)).any(axis=1).sum())


def find_object(field: DensityField, threshold: Threshold | None, fill: bool, gap: float) -> SearchedBox:
    """The box of the object, seen on a coarse grid over the bounds; thin parts may go on out of it.

    Args:
        field: what to look in.
        threshold: None for one halfway between empty and full.
        fill, gap: see `solid_nodes`.

    Raises:
        InvalidInputError: a field that is constant, nowhere above the threshold, not finite, or whose object touches
            the bounds.
    """
    bounds = np.asarray(field.bounds, dtype=np.float64)
    extents = bounds[1] - bounds[0]
    for resolution in _SEARCHES:
        counts = np.maximum(np.ceil(extents / extents.max() * resolution).astype(np.int64), 8)
        axes = [np.linspace(bounds[0, axis], bounds[1, axis], counts[axis] + 1) for axis in range(3)]
        densities = densities_on_grid(field, axes)
        last = resolution == _SEARCHES[-1]
        if densities.max() == densities.min() and not last:
            continue
        chosen = threshold or two_level_threshold(densities)
        above = densities > chosen.value
        inside, _, dropped = solid_nodes(above, fill, gap)
        count = np.count_nonzero(inside)
        if count >= _ENOUGH_NODES and dropped <= _MOST_ELSEWHERE * count:
            break
    check_densities(densities)
    if not inside.any():
        raise empty_field(densities.max(), chosen)
    for axis in range(3):
        for end in (0, -1):
            border = np.take(inside, end, axis=axis)
            if border.any():
                raise cut_off_field(field, axis, end, np.take(densities, end, axis=axis)[border].max(), chosen)
    steps = extents / counts
    joined = _with_neighbours(above, inside, max(1, round(0.5 * _REACH * resolution)))
    nodes = np.argwhere(joined)
    lowest = np.maximum(bounds[0] + (nodes.min(axis=0) - 1) * steps, bounds[0])
    highest = np.minimum(bounds[0] + (nodes.max(axis=0) + 1) * steps, bounds[1])
    unseen = unseen_places(field, chosen.value, above | inside, bounds[0], steps, np.zeros(3), counts)
    if len(unseen.lost) > _MOST_ELSEWHERE * unseen.total:
        lowest = np.maximum(np.minimum(lowest, unseen.lost.min(axis=0) - steps), bounds[0])
        highest = np.minimum(np.maximum(highest, unseen.lost.max(axis=0) + steps), bounds[1])
    others = bounds[0] + steps * np.argwhere(above & ~inside)
    return SearchedBox(lowest, highest, chosen, others, float(np.prod(steps)))


def _with_neighbours(above: NDArray[np.bool_], inside: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """The object and the pieces within twice a reach in nodes: a part thinner than the grid may join them."""
    cube = np.ones((3, 3, 3), np.bool_)
    labels, _ = ndimage.label(ndimage.binary_dilation(above | inside, cube, iterations=reach), structure=cube)
    near: NDArray[np.bool_] = (above | inside) & (labels == labels[tuple(np.argwhere(inside)[0])])
    return near


def densities_on_grid(field: DensityField, axes: list[Array]) -> Array:
    """(X, Y, Z) densities at the nodes of a grid with these coordinates.

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


def cut_off_field(field: DensityField, axis: int, end: int, value: float, threshold: Threshold) -> InvalidInputError:
    """An object that goes on where the field ends: at the lower (0) or upper (-1) bound of an axis."""
    side = f"{'lower' if end == 0 else 'upper'} {_AXES[axis]}"
    return InvalidInputError(
        "field",
        f"a density of {value:.4g} at its {side} bound ({field.bounds[end, axis]:.4g} m)",
        f"at most the threshold, {threshold.value:.4g}, at the bounds",
        "The object goes on where the field ends: learn it in larger bounds, without what it stands on, or take a "
        "higher threshold.",
    )


def empty_field(highest: float, threshold: Threshold) -> InvalidInputError:
    """Nothing above the threshold."""
    return InvalidInputError(
        "field",
        f"densities of at most {highest:.4g}",
        f"some above the threshold, {threshold.value:.4g}",
        "The field is empty there: take a lower threshold, or learn it from views that show the object.",
    )
