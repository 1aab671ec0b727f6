"""Where several objects begin: standing apart, falling onto each other where there is no room; or all in a heap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import (
    Array,
    make_transform,
    matrix_from_quat_xyzw,
    matrix_from_rpy,
    transform_points,
)
from morphit_ros.simulation.objects import SimulatedObject

# Half sides of the rectangle that middles are drawn in [m].
_REACH = np.array([0.13, 0.2])
# Between the circles around two objects; how often a place is drawn; height over what is there of one without [m].
_GAP, _DRAWS, _DROP = 0.02, 300, 0.03
# Half sides of the rectangle over which the middles of a heap's objects are let fall [m].
_HEAP = np.array([0.10, 0.15])


def scatter(first: SimulatedObject, T_world_first: Array, others: Sequence[SimulatedObject], seed: int) -> list[Array]:
    """``T_world_object`` (4, 4) of each of the others, standing as they usually do, turned by any angle.

    Where no place apart from all before is found in 300 draws an object is let fall from above them.
    """
    rng = np.random.default_rng([seed, len(others)])
    middle, radius, top = _extent(first, T_world_first)
    circles, poses = [(middle, radius)], []
    for item in others:
        for _ in range(_DRAWS):
            turn = make_transform(matrix_from_rpy((0.0, 0.0, rng.uniform(-np.pi, np.pi))))
            own, radius, height = _extent(item, turn)
            at = middle + rng.uniform(-_REACH, _REACH)
            apart = all(np.linalg.norm(at - other) > radius + size + _GAP for other, size in circles)
            if apart:
                break
        lift = 0.0 if apart else top + _DROP
        poses.append(make_transform(translation=(*(at - own), lift)) @ turn)
        circles.append((at, radius))
        top = max(top, lift + height)
    return poses


def name_and_place(word: str) -> tuple[str, tuple[float, float, float] | None]:
    """Name of an object, and where it stands if that is said: NAME@X,Y,YAW [m, rad].

    Raises:
        InvalidInputError: a place that is none.
    """
    name, separator, text = word.partition("@")
    try:
        x, y, yaw = map(float, text.split(",")) if separator else (0.0, 0.0, 0.0)
    except ValueError:
        x = y = yaw = np.inf
    if not np.isfinite([x, y, yaw]).all():
        raise InvalidInputError("others", repr(word), "NAME, or NAME@X,Y,YAW with three numbers [m, rad]")
    return name, (x, y, yaw) if separator else None


def heap(middle: Array, items: Sequence[SimulatedObject], seed: int) -> list[Array]:
    """``T_world_object`` (4, 4) of objects that are let fall one after the other, turned any way: one above the other.

    Args:
        middle: (2,) of the heap on the table [m].
        items: the objects, the lowest first.
        seed: of places and turns.
    """
    rng = np.random.default_rng([seed, len(items)])
    poses, top = [], 0.0
    for item in items:
        # Four normal numbers are a turn that favours none.
        turn = make_transform(matrix_from_quat_xyzw(rng.normal(size=4)))
        points = transform_points(turn, item.mesh.vertices)
        low, high = points.min(axis=0), points.max(axis=0)
        at = middle + rng.uniform(-_HEAP, _HEAP)
        poses.append(make_transform(translation=(*(at - 0.5 * (low + high)[:2]), top + _DROP - low[2])) @ turn)
        top += _DROP + high[2] - low[2]
    return poses


def _extent(item: SimulatedObject, pose: Array) -> tuple[Array, float, float]:
    """Middle (2,) and radius of the circle around an object seen from above, and its height [m]."""
    points = item.mesh.vertices @ pose[:3, :3].T + pose[:3, 3]
    middle = 0.5 * (points[:, :2].min(axis=0) + points[:, :2].max(axis=0))
    return middle, float(np.linalg.norm(points[:, :2] - middle, axis=1).max()), float(points[:, 2].max())
