"""What cannot be an object of its own, since it would topple: the bowl of a glass on its stem.

Cameras miss what is thin, and a crease between two convex bodies says that they may be two. Where the upper one floats
above the table and would balance on a neck, both are one: in a heap things lie on broader places, or on several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array

Rows = NDArray[np.int64]

# What reaches down to this stands on the table [m].
_STANDS = 0.007
# What is below a part's middle carries it if it reaches up to so far below the part: cameras look down, and miss what
# lies in the shadow of a bowl; it may reach so far up beside the lowest points that are seen [m].
_GAP, _OVERLAP = 0.03, 0.01
# The neck is looked for so far below and above where they meet [m]; it is one where it is narrower than this share of
# the upper part's width, and neither it nor what is below it is farther from below its middle than this share.
_SLICE, _NECK, _BESIDE = 0.015, 0.35, 0.25
# Directions in the plane of the table that widths are measured along.
_ANGLES = np.linspace(0.0, np.pi, 8, endpoint=False)
_ALONG = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])


def join_balanced(points: Array, parts: Sequence[Rows]) -> list[list[int]]:
    """Which parts are one, so that none balances on a neck.

    Args:
        points: (N, 3) in the frame of the table, z up from it [m].
        parts: rows of each.

    Returns:
        Indices of the parts that are one, for each that is left, in the order of their first ones.
    """
    groups = [[index] for index in range(len(parts))]
    rows = list(parts)
    while (pair := _balanced([points[own] for own in rows])) is not None:
        first, second = sorted(pair)
        groups[first] += groups.pop(second)
        rows[first] = np.concatenate([rows[first], rows.pop(second)])
    return groups


def _balanced(parts: Sequence[Array]) -> tuple[int, int] | None:
    """A part that would topple, and what it stands on; None where there is none."""
    for index, own in enumerate(parts):
        bottom = float(own[:, 2].min())
        if bottom <= _STANDS:
            continue
        width, middle = _width(own), _middle(own)
        # Points of the others below it, whose they are, and how far they are from its middle.
        others = np.concatenate([parts[k] for k in range(len(parts)) if k != index] or [np.empty((0, 3))])
        owner = np.repeat(np.arange(len(parts)), [0 if k == index else len(part) for k, part in enumerate(parts)])
        aside = np.linalg.norm(others[:, :2] - middle, axis=1)
        low = others[:, 2] <= bottom + _OVERLAP
        under = low & (aside <= _BESIDE * width)
        top = float(others[under, 2].max(initial=-np.inf))
        if top < bottom - _GAP:
            continue
        below = low & (aside <= 0.5 * width) & (others[:, 2] >= top - _SLICE)
        above = own[own[:, 2] <= bottom + _SLICE]
        foot = int(np.bincount(owner[below & under]).argmax())
        for neck in (others[below], above):
            off = max(float(np.linalg.norm(_middle(points) - middle)) for points in (neck, parts[foot]))
            if _width(neck) < _NECK * width and off <= _BESIDE * width:
                return index, foot
    return None


def _width(points: Array) -> float:
    """Greatest of points (N, 3) along the table [m]."""
    return float(np.ptp(points[:, :2] @ _ALONG, axis=0).max())


def _middle(points: Array) -> Array:
    return np.asarray(0.5 * (points[:, :2].min(axis=0) + points[:, :2].max(axis=0)))
