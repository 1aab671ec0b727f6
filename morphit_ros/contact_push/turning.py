"""How a bottle that lies is turned upright: about the lowest edge of its foot, by a hand that holds its cap.

The hand points down all the time and the cap turns between the fingers, so that it only goes along an arc. The bottle's
centre of mass is past the edge after 70° of 90; were it let go of there, it would fall upright, and rock.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.contact_push.objects import BOTTLE_CAP, BOTTLE_CENTER, BOTTLE_RADIUS
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy

# Shares of the time after which the foot is where it is to stand, and between which the bottle turns.
_SLID, _TURNING = 0.5, (0.05, 0.85)
# After that the hand goes down by so much [m]: the cap sticks to the fingers, and the last degrees may be left.
_PRESSED = 0.003
# A bottle lies within so much of level [rad], and of the height of its axis above the table [m].
_LEVEL, _LYING = 0.05, 0.005


def lying_pose(start: Array, heading: float, height: float) -> Array:
    """``T_world_object`` (4, 4) of a bottle that lies with its cap against a heading [rad].

    Args:
        start: (2,) of its centre of mass on the table [m].
        height: of its centre of mass when it stands [m].
    """
    return _pose(start + BOTTLE_CENTER * _ahead(heading), heading, height, -0.5 * np.pi)


def lying_place(T_world_object: Array) -> tuple[Array, float]:
    """Where a bottle's centre of mass lies on the table (2,) [m], and the heading that its cap is against [rad].

    Args:
        T_world_object: (4, 4) of its centre of mass, its axis z.

    Raises:
        InvalidInputError: it does not lie on the table.
    """
    tilt, height = float(np.arcsin(np.clip(T_world_object[2, 2], -1.0, 1.0))), float(T_world_object[2, 3])
    if not (abs(tilt) <= _LEVEL and abs(height - BOTTLE_RADIUS) <= _LYING):
        raise InvalidInputError(
            "object", f"a bottle {np.degrees(tilt):.0f}° from level, its middle {height:.3f} m high",
            f"one that lies on the table: within {np.degrees(_LEVEL):.0f}°, {BOTTLE_RADIUS:g} m high",
            "Lay it on its side.",
        )  # fmt: skip
    return T_world_object[:2, 3].copy(), float(np.arctan2(-T_world_object[1, 2], -T_world_object[0, 2]))


def unspun(T_world_object: Array, heading: float) -> Array:
    """The pose (4, 4) of a bottle, spun about its axis z as bottles of plans with a heading [rad] are."""
    axis = T_world_object[:3, 2]
    aside = np.array([-np.sin(heading), np.cos(heading), 0.0])
    aside -= aside @ axis * axis
    aside /= np.linalg.norm(aside)
    return make_transform(np.column_stack([np.cross(aside, axis), aside, axis]), T_world_object[:3, 3])


def turned_poses(
    start: Array, way: Array, height: float, above: float, shares: Array
) -> tuple[list[Array], list[Array]]:
    """Poses (4, 4) in the world of the gripper and of the bottle, at shares (N,) of the time.

    Where the way is not the one that turning in place brings (122 mm), the foot slides along the table meanwhile.

    Args:
        start, way: (2,) of the centre of mass on the table, which lies with its cap against the way [m].
        height: of the centre of mass when it stands [m].
        above: of the cap's middle from the gripper's frame [m].
    """
    heading = float(np.arctan2(way[1], way[0]))
    ahead = _ahead(heading)
    first, last = start + BOTTLE_CENTER * ahead, start + way - BOTTLE_RADIUS * ahead
    aside = np.array([ahead[1], -ahead[0], 0.0])
    down = np.array([0.0, 0.0, -1.0])
    hands, bottles = [], []
    begin, end = _TURNING
    parts = shares / _SLID, (shares - begin) / (end - begin), (shares - end) / (1.0 - end)
    for slid, turned, pressed in zip(*map(eased, parts), strict=True):
        bottle = _pose(first + slid * (last - first), heading, height, -0.5 * np.pi * (1.0 - turned))
        cap = bottle[:3, 3] + bottle[:3, 2] * (BOTTLE_CAP - BOTTLE_CENTER) - [0.0, 0.0, above + pressed * _PRESSED]
        hands.append(make_transform(np.column_stack([np.cross(aside, down), aside, down]), cap))
        bottles.append(bottle)
    return hands, bottles


def _ahead(heading: float) -> Array:
    return np.array([np.cos(heading), np.sin(heading)])


def _pose(edge: Array, heading: float, height: float, tilt: float) -> Array:
    """With the lowest edge of the foot at a place (2,), tilted from upright against the heading by -tilt [rad]."""
    turn = matrix_from_rpy((0.0, tilt, heading))
    above = np.array([*edge, height - BOTTLE_CENTER])
    return make_transform(turn, above + turn @ [BOTTLE_RADIUS, 0.0, BOTTLE_CENTER])


def eased(shares: Array) -> Array:
    """From 0 at 0 to 1 at 1, at rest at both."""
    s = np.clip(shares, 0.0, 1.0)
    smooth: Array = s * s * (3.0 - 2.0 * s)
    return smooth
