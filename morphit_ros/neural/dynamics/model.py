"""The world as arrays: what the compiled kernels read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array


class Model(NamedTuple):
    """B bodies, S shapes, Q pairs of a body with points and a shape. Indices are int64, all else float64.

    Attributes:
        step: [s].
        gravity: (3,) [m/s²].
        parameters: (Q, 13) of the pairs, as `ContactParameters.scaled` orders them.
        masses: (B,), inertias: (B, 3, 3) about the centres of mass, in the bodies' axes.
        scales: (B,) of mass, by which weights are multiplied; masses and inertias have theirs in them.
        reaches: (B,) largest distance of a point from the centre of mass.
        points: (P, 4) position and weight of the points of all bodies, sorted by leaf.
        leaves: (L, 4) centre and radius; leaf_first: (L + 1,) the first point of each.
        body_leaves: (B, 2) first leaf of each body and the one after its last.
        shapes: (S, 4) kind, first number and count of numbers in shape_data (D,), and the body that it is fixed to, −1
            for one in the world.
        pairs: (Q, 3) body, shape and form: 1 for the paper's single point, 2 for it with the hard indicator, 0 for
            forces by point.
        control_map: (M,) the component of the (6 B,) wrenches that each control drives.
        capacity: most contacts that can be active at once.
    """

    step: float
    gravity: Array
    parameters: Array
    masses: Array
    inertias: Array
    scales: Array
    reaches: Array
    points: Array
    leaves: Array
    leaf_first: NDArray[np.int64]
    body_leaves: NDArray[np.int64]
    shapes: NDArray[np.int64]
    shape_data: Array
    pairs: NDArray[np.int64]
    control_map: NDArray[np.int64]
    capacity: int


# Columns of shapes and pairs.
KIND, FIRST, COUNT, OWNER = range(4)
BODY, SHAPE, FORM = range(3)
