"""Thresholds in files: plain numbers under names, checked one by one when they are read."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.archive import shown
from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.solid.moments import VolumeMoments
from morphit_ros.neural.solid.silhouette_hull import HullThreshold, MomentDeviation, check_hull
from morphit_ros.neural.solid.thresholds import Threshold

_NUMBERS = ("value", "lowest", "highest", "agreement")
_OF_HULL = ("hull", "pixel")
# Only written where there is any.
_OF_POSES = ("disagreement", "drift", "scale")
_DEVIATIONS = ("walls", "poses", "offsets")
_MOMENTS = ("volume", "center", "second_moment")
_LARGEST = sys.float_info.max


def describe_threshold(threshold: Threshold, bounds: Array) -> dict[str, Any]:
    """What JSON says of a threshold, without loss.

    Args:
        threshold: a `Threshold` or a `HullThreshold`.
        bounds: (2, 3) of its field [m].

    Raises:
        InvalidInputError: another class, or the hull of another field (`check_hull`).
    """
    if type(threshold) not in (Threshold, HullThreshold):
        raise InvalidInputError("threshold", type(threshold).__name__, "a number, a Threshold or a HullThreshold")
    lowest, highest = threshold.range
    numbers = (threshold.value, lowest, highest, threshold.agreement)
    description: dict[str, Any] = {name: float(number) for name, number in zip(_NUMBERS, numbers, strict=True)}
    if isinstance(threshold, HullThreshold):
        check_hull(threshold, bounds)
        hull = threshold.hull
        moments = None if hull is None else (hull.volume, hull.center.tolist(), hull.second_moment.tolist())
        description["hull"] = None if moments is None else dict(zip(_MOMENTS, moments, strict=True))
        description["pixel"] = float(threshold.pixel)
        description |= {name: float(getattr(threshold, name)) for name in _OF_POSES if getattr(threshold, name)}
        for name in _DEVIATIONS:
            if (deviation := getattr(threshold, name)) is not None:
                description[name] = {part: float(number) for part, number in deviation._asdict().items()}
    return description


def build_threshold(description: Any, bounds: Array) -> Threshold:
    """The inverse of `describe_threshold`.

    Raises:
        InvalidInputError: names that are missing or unknown, what is no number, or numbers that make no threshold of a
            field with these bounds.
    """
    of_hull = isinstance(description, Mapping) and any(name in description for name in _OF_HULL)
    of_poses = tuple(name for name in _OF_POSES if of_hull and name in description)
    deviating = tuple(name for name in _DEVIATIONS if of_hull and name in description)
    names = _NUMBERS + (_OF_HULL if of_hull else ()) + of_poses + deviating
    entries = _entries("threshold", description, names)
    numbers = {name: _number(f"threshold: {name}", entries[name]) for name in _NUMBERS}
    if not of_hull:
        return Threshold(**numbers)
    hull = None
    if entries["hull"] is not None:
        moments = _entries("threshold: hull", entries["hull"], _MOMENTS)
        hull = VolumeMoments(
            _number("threshold: hull: volume", moments["volume"]),
            _numbers("threshold: hull: center", moments["center"], (3,)),
            _numbers("threshold: hull: second_moment", moments["second_moment"], (3, 3)),
        )
    sizes = {name: _number(f"threshold: {name}", entries[name]) for name in of_poses}
    deviations: dict[str, MomentDeviation] = {}
    for name in deviating:
        found = _entries(f"threshold: {name}", entries[name], MomentDeviation._fields)
        deviations[name] = MomentDeviation(
            **{part: _number(f"threshold: {name}: {part}", found[part]) for part in found}
        )
    pixel = _number("threshold: pixel", entries["pixel"])
    parts: dict[str, Any] = numbers | sizes | deviations
    threshold = HullThreshold(**parts, hull=hull, pixel=pixel)
    check_hull(threshold, bounds)
    return threshold


def _entries(name: str, description: Any, wanted: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping with these names and no others."""
    if not isinstance(description, Mapping) or set(description) != set(wanted):
        found = sorted(description) if isinstance(description, Mapping) else description
        raise InvalidInputError(name, shown(repr(found)), f"the names {', '.join(wanted)}", "Write the file again.")
    return description


def _number(name: str, value: Any) -> float:
    """A finite number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise InvalidInputError(name, shown(repr(value)), "a finite number", "Write the file again.")
    return float(value)


def _numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Lists of finite numbers of a shape."""
    if not isinstance(values, list) or len(values) != shape[0]:
        raise InvalidInputError(name, shown(repr(values)), f"a list of shape {shape}", "Write the file again.")
    if len(shape) == 1:
        return np.array([_number(name, value) for value in values])
    return np.stack([_numbers(name, value, shape[1:]) for value in values])
