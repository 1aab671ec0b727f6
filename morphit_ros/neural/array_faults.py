"""What is wrong with an array that was given, for the refusal of it."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array


def array_fault(array: Array, shape: tuple[int | None, ...]) -> str:
    """Another shape, or the first number that is not finite and its place; empty if there is nothing.

    Args:
        array: what was given.
        shape: what is wanted; None for any number of rows.
    """
    if array.ndim != len(shape) or any(
        wanted not in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    ):
        return f"shape {array.shape}"
    bad = np.argwhere(~np.isfinite(array))
    if len(bad) == 0:
        return ""
    place = tuple(bad[0].tolist())
    return f"{array[place]} at {list(place)}"
