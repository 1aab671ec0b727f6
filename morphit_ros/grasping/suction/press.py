"""Whether an object that stands on a table stays where it is while a cup is pressed onto it.

The weight and the bellows' push meet the table in one point. The object neither tips while that is within the hull of
what it stands on, nor slides while the push along the table is less than friction holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.scene import ObjectScene

# Points this much above the lowest one are what an object stands on [m].
_FOOT = 0.008
# Shares of the push that are tried.
_SHARES = (1.0, 0.75, 0.5, 0.25)


def steadiness(
    centers: Array, pushes: Array, weight: float, friction: float, scene: ObjectScene, table: SupportPlaneLike
) -> Array:
    """The largest share of each push (S,) under which the object stays, in quarters; 0 where it is less.

    Args:
        centers: (S, 3) where the cup is pressed on [m].
        pushes: (S, 3) of the bellows on the object [N].
        weight: of the object [N].
        friction: between object and table.
        scene: the object.
        table: what it stands on.
    """
    up, origin = table.T_world_table[:3, 2], table.T_world_table[:3, 3]
    across = np.linalg.svd(up[None])[2][1:]
    heights, shadow = (scene.points - origin) @ up, (scene.points - origin) @ across.T
    middle = (scene.center_of_mass - origin) @ across.T
    foot = shadow[heights <= heights.min() + _FOOT]
    # What stands has its centre of mass over its foot: else that was not seen, and its shadow has to do.
    if not _inside(foot, middle[None])[0]:
        foot = shadow
    levers, places = ((centers - origin) @ up - heights.min())[:, None], (centers - origin) @ across.T
    found = np.zeros(len(centers))
    for share in sorted(_SHARES):
        down, along = -share * pushes @ up, share * pushes @ across.T
        pressed = weight + down
        points = (weight * middle + down[:, None] * places + levers * along) / np.maximum(pressed, 1e-9)[:, None]
        stays = (pressed > 0.0) & (np.linalg.norm(along, axis=1) <= friction * pressed) & _inside(foot, points)
        found[stays] = share
    return found


def _inside(outline: Array, points: Array) -> NDArray[np.bool_]:
    """Which of points (N, 2) are in the convex hull of an outline (M, 2); none where that is no area."""
    try:
        sides = ConvexHull(outline).equations
    except (QhullError, ValueError):
        return np.zeros(len(points), dtype=np.bool_)
    return np.asarray((points @ sides[:, :2].T + sides[:, 2] <= 0.0).all(axis=1))
