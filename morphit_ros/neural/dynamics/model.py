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
        masses: (B,), inertias: (B, 3, 3) about the centres of mass, in the bodies' axes.
        reaches: (B,) largest distance of a point from the centre of mass.
        points: (P, 3), normals: (P, 3) and weights: (P,) of all bodies, sorted by leaf.
        leaf_first: (L + 1,), leaf_centers: (L, 3), leaf_radii: (L,).
        body_leaves: (B, 2) first leaf of each body and the one after its last.
        shapes: (S, 3) kind, first number and count of numbers in shape_data (D,).
        owners: (S,) the body that a shape is fixed to, −1 for one in the world.
        pairs: (Q, 2) body and shape.
        single: (Q,) 1 for the paper's single-point form, 2 for it with the hard indicator, 0 for forces by point.
        control_map: (M,) the component of the (6 B,) wrenches that each control drives.
        capacity: most contacts that can be active at once.
    """

    step: float
    gravity: Array
    masses: Array
    inertias: Array
    reaches: Array
    points: Array
    normals: Array
    weights: Array
    leaf_first: NDArray[np.int64]
    leaf_centers: Array
    leaf_radii: Array
    body_leaves: NDArray[np.int64]
    shapes: NDArray[np.int64]
    shape_data: Array
    owners: NDArray[np.int64]
    pairs: NDArray[np.int64]
    single: NDArray[np.int64]
    control_map: NDArray[np.int64]
    capacity: int
