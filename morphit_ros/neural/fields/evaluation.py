"""What all fields share: checked query points, evaluation in parts, parameters that are finite and positive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

# Points evaluated at once: intermediate arrays stay in the cache, and millions of points fit into memory.
_PART = 1 << 14


def checked_points(points: ArrayLike) -> Array:
    """Query points as (N, 3) float64.

    Raises:
        InvalidInputError: another shape, or values that are not finite.
    """
    queries = np.ascontiguousarray(points, dtype=np.float64)
    if queries.ndim != 2 or queries.shape[1] != 3:
        raise InvalidInputError("points", f"shape {queries.shape}", "shape (N, 3)")
    if not np.isfinite(queries).all():
        raise InvalidInputError("points", "values that are not finite", "finite coordinates [m]")
    return queries


def checked_bounds(bounds: ArrayLike) -> Array:
    """Lowest and highest corner as (2, 3) float64.

    Raises:
        InvalidInputError: another shape, not finite, or a box without volume.
    """
    box = np.array(bounds, dtype=np.float64)
    if box.shape != (2, 3) or not np.isfinite(box).all() or not (box[1] > box[0]).all():
        raise InvalidInputError("bounds", box.tolist(), "two corners (2, 3), the first below the second on every axis")
    return box


def checked_positive(name: str, value: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
    """Positive finite numbers of a shape.

    Raises:
        InvalidInputError: anything else.
    """
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all() or not (array > 0.0).all():
        wanted = f"{int(np.prod(shape))} positive numbers" if shape else "a positive number"
        raise InvalidInputError(name, np.asarray(value).tolist(), wanted)
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
