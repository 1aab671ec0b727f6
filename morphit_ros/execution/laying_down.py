"""Putting down what has turned in the hand: the end that hangs touches first, and the rest follows about it."""

from __future__ import annotations

import numpy as np

from morphit_ros.execution.held import HeldGrasp
from morphit_ros.geometry.transforms import Array, transform_points

# What is let go of higher than this over where it lay falls [m].
_FALLS = 0.03
# The hand follows the arc in straight parts of at most this angle [rad].
_PART = np.radians(20.0)
# No way, and no angle [m], [rad].
_NOTHING = 1e-6


def touching(held: HeldGrasp, place: Array) -> Array:
    """Where the hand is on its way to a place when what it holds touches what it is put on.

    What has turned in the hand reaches further down than it did. The point that touches first is then where it will be
    when all of the object lies as it lay.

    Args:
        held: what is held.
        place: (4, 4) ``T_base_gripper``, at which the object lies as it lay where it was grasped.

    Returns:
        (4, 4) ``T_base_gripper``; the place itself where nothing has turned.
    """
    if not held.turn or not len(held.points):
        return place
    pivot, hangs, _ = _pivot(held, place)
    there = place.copy()
    there[:3, 3] += pivot - hangs
    return there


def laying_down(held: HeldGrasp, T_base_gripper: Array, place: Array) -> list[Array]:
    """Poses of the hand (4, 4) on the way from where the object touches to the place.

    Along an arc about the point that touches, so that the object turns back in the hand and slides little.

    Args:
        held: what is held.
        T_base_gripper: (4, 4), where the hand is.
        place: as of `touching`.
    """
    pivot, _, _ = _pivot(held, place)
    first, last = T_base_gripper[:3, 3] - pivot, place[:3, 3] - pivot
    lengths = np.linalg.norm([first, last], axis=1)
    if lengths.min() < _NOTHING:
        return [place]
    directions = np.array([first / lengths[0], last / lengths[1]])
    angle = float(np.arccos(np.clip(directions[0] @ directions[1], -1.0, 1.0)))
    if angle < _NOTHING:
        return [place]
    poses = []
    for share in np.linspace(0.0, 1.0, 1 + int(np.ceil(angle / _PART)))[1:]:
        way = np.sin([(1.0 - share) * angle, share * angle]) / np.sin(angle) @ directions
        pose = place.copy()
        pose[:3, 3] = pivot + way * np.interp(share, [0.0, 1.0], lengths)
        poses.append(pose)
    return poses


def falls(held: HeldGrasp, place: Array) -> bool:
    """Whether an object is let go of in the air, over a bin, say, where it then lies as it likes.

    Args:
        held, place: as of `touching`.
    """
    lay = transform_points(held.T_base_gripper, held.points) @ held.around.up
    return bool(_pivot(held, place)[2] - lay.min() > _FALLS)


def _pivot(held: HeldGrasp, place: Array) -> tuple[Array, Array, float]:
    """Where the point that touches first lies in the end, where it hangs with the hand at the place, and the ground.

    (3,) each, and a height.
    """
    up = held.around.up
    lies, hangs = (transform_points(place, part) for part in (held.points, held.hanging))
    ground, lowest = float((lies @ up).min()), int((hangs @ up).argmin())
    # Of the point that touches clouds show the upper side only.
    return lies[lowest] + (ground - float(lies[lowest] @ up)) * up, hangs[lowest], ground
