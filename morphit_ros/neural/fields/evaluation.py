"""What all fields share: checked query points, evaluation in parts, parameters that are finite and positive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Points evaluated at once: intermediate arrays stay in the cache, and millions of points fit into memory.
_PART = 1 << 14
# Numbers up to here, and lengths down to its inverse, can be squared, multiplied and divided without leaving float64.
LARGEST = 1e12
# A millionth of a millimetre still tells points apart at the greatest distance [m].
_FARTHEST, _SMALLEST_SIDE = 1e6, 1e-9


def checked_points(points: ArrayLike) -> Array:
    """Query points as (N, 3) float64.

    Raises:
        InvalidInputError: another shape, or values that are not finite, or too large to compute with.
    """
    queries = np.ascontiguousarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3:
        raise InvalidInputError("points", f"shape {queries.shape}", "shape (N, 3)")
    if not within_range(queries):
        raise InvalidInputError("points", "values that are not finite", f"coordinates of at most {LARGEST:g} m")
    return queries


def checked_bounds(bounds: ArrayLike) -> Array:
    """Lowest and highest corner as (2, 3) float64.

    Raises:
        InvalidInputError: another shape, not finite, a box without volume, or one that is too far away to tell its
            corners apart.
    """
    box = np.array(bounds, dtype=np.float64)
    if box.shape != (2, 3) or not within_range(box, _FARTHEST) or not (box[1] - box[0] >= _SMALLEST_SIDE).all():
        raise InvalidInputError(
            "bounds", box.tolist() if box.size <= 6 else f"shape {box.shape}",
            f"two corners (2, 3) within {_FARTHEST:g} m, the first below the second on every axis",
        )  # fmt: skip
    return box


def within_range(values: Array, largest: float = LARGEST) -> bool:
    """Whether all values are finite and small enough to compute with."""
    # A comparison with NaN is false.
    return bool((np.abs(values) <= largest).all())


def checked_positive(name: str, value: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
    """Positive numbers of a shape, neither too large nor too small to compute with.

    Raises:
        InvalidInputError: anything else.
    """
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape or not within_range(array) or not (array >= 1.0 / LARGEST).all():
        wanted = f"{int(np.prod(shape))} positive numbers" if shape else "a positive number"
        raise InvalidInputError(name, np.asarray(value).tolist(), f"{wanted} in [{1.0 / LARGEST:g}, {LARGEST:g}]")
    return array


def inside_box(points: Array, bounds: Array) -> Array:
    """(N,) whether points (N, 3) lie in a box (2, 3), its faces included."""
    return ((points >= bounds[0]) & (points <= bounds[1])).all(axis=1)


def in_parts(function: Callable[[Array], Array], points: Array, columns: int = 0) -> Array:
    """A function of points (N, 3) evaluated on parts of them: (N,), or (N, columns)."""
    result = np.zeros((len(points), columns) if columns else len(points))
    for start in range(0, len(points), _PART):
        result[start : start + _PART] = function(points[start : start + _PART])
    return result
