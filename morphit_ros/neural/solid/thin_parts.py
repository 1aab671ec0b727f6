"""What lies between the nodes of a grid: handles, rims and blades thinner than a cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.field import DensityField

# Random places in the box of a grid; of a solid that fills a hundredth of it, they see parts of a hundredth.
_PLACES = 60_000
LEAST_LOST = 0.005
"""Share of the volume in thin parts from which on smaller cells are worth their time."""
_MOST_LOST = 0.05
# Pieces that lie so near, in cells, may be joined to the object by something thinner; so may pieces of more than this
# share of its volume, wherever they are.
_NEAR, _MUCH_APART = 2, 0.2


class UnseenPlaces(NamedTuple):
    """Random places above the threshold that a grid does not see: no node of their cell is above.

    Attributes:
        lost: (N, 3) these places [m].
        total: number of places above the threshold.
    """

    lost: Array
    total: int


def unseen_places(
    field: DensityField,
    threshold: float,
    above: NDArray[np.bool_],
    origin: Array,
    steps: Array,
    first: Array,
    last: Array,
) -> UnseenPlaces:
    """What lies between the nodes of a part of a grid.

    Args:
        field, threshold: what was cut, and where.
        above: (X, Y, Z) nodes above the threshold, of all pieces.
        origin: (3,) first node [m].
        steps: (3,) distance of the nodes [m].
        first, last: (3,) nodes between which to look.
    """
    places = np.random.default_rng(0).uniform(first, last, size=(_PLACES, 3))
    full = places[field.density(origin + steps * places) > threshold]
    cells = np.minimum(full.astype(np.int64), np.array(above.shape) - 2)
    seen = np.zeros(len(cells), np.bool_)
    for corner in np.indices((2, 2, 2)).reshape(3, 8).T:
        seen |= above[tuple((cells + corner).T)]
    return UnseenPlaces(origin + steps * full[~seen], len(full))


def lost_share(
    field: DensityField,
    threshold: float,
    above: NDArray[np.bool_],
    origin: Array,
    spacing: float,
) -> float:
    """Share of the volume above the threshold that the grid does not see; arguments as of `unseen_places`."""
    last = np.array(above.shape) - 1
    unseen = unseen_places(field, threshold, above, origin, np.full(3, spacing), np.zeros(3), last)
    return len(unseen.lost) / unseen.total if unseen.total else 0.0


def may_be_joined(above: NDArray[np.bool_], inside: NDArray[np.bool_], apart: float) -> bool:
    """Whether separate pieces, of a share `apart` of the object's volume, may belong to it.

    An object comes apart on a grid where it is thin: then there are large pieces, or some next to it.
    """
    if not LEAST_LOST < apart <= _MUCH_APART:
        return apart > _MUCH_APART
    cube = np.ones((3, 3, 3), np.bool_)
    around = ndimage.binary_dilation(inside, cube, iterations=_NEAR) & ~inside
    labels, _ = ndimage.label(above & ~inside, structure=cube)
    touched = np.unique(labels[around & (labels > 0)])
    return bool(np.isin(labels, touched).sum() > LEAST_LOST * np.count_nonzero(inside)) if len(touched) else False


def check_thin_parts(
    lost: float, apart: float, spacing: float, resolution: int, refinements: int, max_nodes: int
) -> None:
    """Refuse a solid that lost too much, or that came apart.

    Raises:
        InvalidInputError: more than a twentieth of the volume is thinner than a cell, or the largest piece is less than
            half of what is above the threshold.
    """
    now = f"resolution (now {resolution}), refinements ({refinements}) and max_nodes ({max_nodes})"
    if lost > _MOST_LOST:
        raise InvalidInputError(
            "field", f"parts thinner than cells of {1e3 * spacing:.3g} mm, about {lost:.0%} of the volume",
            f"at most {_MOST_LOST:.0%}",
            f"Raise {now} of SolidConfig if the object has such parts. If it has none, they are noise of the field "
            "near the threshold: take another.",
        )  # fmt: skip
    if apart > 1.0:
        raise InvalidInputError(
            "field", f"separate pieces of which the largest is {1.0 / (1.0 + apart):.0%} of the volume",
            "one piece of at least half",
            f"If thin parts join them, cells of {1e3 * spacing:.3g} mm are too large: raise {now} of SolidConfig. Else "
            "take a lower threshold, or tighter bounds around one object.",
        )  # fmt: skip
