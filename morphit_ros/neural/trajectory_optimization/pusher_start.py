"""Where a sphere begins to push an object, so that it slides rather than tips."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.neural.dynamics.state import BodyState

# Points in this lowest share of the object's height are its foot.
_FOOT = 0.03
# The sphere pushes no higher than this share of the height at which a slow push would tip the object: it also strikes.
_TIPPING_MARGIN = 0.25


def place_pusher(
    start: BodyState, points: Array, way: Array, radius: float, friction: float, gap: float = 0.5
) -> Array:
    """(3,) centre of a sphere behind an object on the plane z = 0, seen along its way [m].

    At half of the object's height, but no higher than where friction holds its foot without its tipping over the foot's
    edge: pushed at a height h it tips when friction · h is more than the foot reaches ahead of the centre.

    Args:
        start: of the object; its position is that of the centre of mass.
        points: (N, 3) of the object, about its centre of mass, in axes of the world [m].
        way: (2,) of the object on the plane [m].
        radius: of the sphere [m].
        friction: of object and plane.
        gap: between sphere and object, in radii.
    """
    direction = way / max(float(np.hypot(*way)), 1e-12)
    back = float((points[:, :2] @ -direction).max())
    lowest, tall = float(points[:, 2].min()), float(np.ptp(points[:, 2]))
    foot = points[points[:, 2] < lowest + _FOOT * tall]
    ahead = max(float((foot[:, :2] @ direction).max()), 0.0)
    highest = _TIPPING_MARGIN * ahead / friction if friction > 0.0 else np.inf
    height = max(radius, min(lowest + start.position[2] + 0.5 * tall, highest))
    flat = start.position[:2] - direction * (back + (1.0 + gap) * radius)
    return np.array([*flat, height])
