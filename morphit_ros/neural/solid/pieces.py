"""Which nodes of a grid belong to the object: its largest piece, without hollows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

# Nodes that the subdivision into tetrahedra joins: steps whose parts have all the same sign.
_JOINED = np.array(
    [
        [[abs(a + b + c) == abs(a) + abs(b) + abs(c) for c in (-1, 0, 1)] for b in (-1, 0, 1)]
        for a in (-1, 0, 1)
    ]
)  # fmt: skip


def solid_nodes(above: NDArray[np.bool_], fill: bool, gap: float) -> tuple[NDArray[np.bool_], int, int]:
    """Nodes (X, Y, Z) of the largest piece with its hollows, and the numbers of nodes filled and dropped.

    Args:
        above: (X, Y, Z) where the density passes the threshold.
        fill: whether hollows count as inside.
        gap: widest gap in the hull that counts as closed, in shares of the longest side of the grid.
    """
    labels, count = ndimage.label(above, structure=_JOINED)
    if count == 0:
        return above, 0, 0
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    piece = labels == int(sizes.argmax())
    dropped = int(sizes.sum() - sizes.max())
    if not fill:
        return piece, 0, dropped
    solid = _filled(piece)
    if gap > 0.0:
        reach = max(1, round(0.5 * gap * max(above.shape)))
        solid |= _hollows_behind_gaps(solid, reach)
    return solid, int(np.count_nonzero(solid) - np.count_nonzero(piece)), dropped


def _filled(piece: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The piece and all nodes that no way through empty ones joins to the border."""
    padded = np.pad(~piece, 1, constant_values=True)
    labels, _ = ndimage.label(padded, structure=_JOINED)
    return (labels != labels[0, 0, 0])[1:-1, 1:-1, 1:-1]


def _hollows_behind_gaps(piece: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    """Empty nodes that are enclosed once gaps of twice `reach` nodes are closed; concave corners stay as they are."""
    padded = np.pad(piece, reach + 1)
    thick = ndimage.distance_transform_edt(~padded) <= reach
    hollows = _filled(thick) & ~thick
    if not hollows.any():
        return np.zeros_like(piece)
    grown = (ndimage.distance_transform_edt(~hollows) <= reach + 1) & ~padded
    inner = slice(reach + 1, -(reach + 1))
    return grown[inner, inner, inner]
