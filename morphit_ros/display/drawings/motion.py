"""A planned motion: its way coloured by clearance, and the trees of the search."""

from __future__ import annotations

import numpy as np

from morphit_ros.display.display_list import DisplayList, LinesItem
from morphit_ros.geometry.transforms import Array

# From touching to as far as it is drawn [m].
_FAR = 0.1
_NEAR_COLOR, _FAR_COLOR = np.array([0.9, 0.2, 0.1]), np.array([0.1, 0.7, 0.3])
_START_COLOR, _GOAL_COLOR = (0.35, 0.55, 0.9), (0.9, 0.6, 0.25)


def motion_items(way: tuple[Array, Array], trees: tuple[Array, Array]) -> DisplayList:
    """What is drawn of a plan, in the frame of the robot's root link.

    Args:
        way: points (N, 3) and clearances there (N,) [m].
        trees: ends of branches from the start and from the goals (B, 3), two by two [m].
    """
    points, clearance = way
    share = np.clip(clearance / _FAR, 0.0, 1.0)[:, None]
    colors = (1.0 - share) * _NEAR_COLOR + share * _FAR_COLOR
    segments = np.stack([points[:-1], points[1:]], axis=1) if len(points) > 1 else np.zeros((0, 2, 3))
    return [
        LinesItem("motion/way", colors[1:] if len(segments) else _FAR_COLOR, segments, 0.006, 4.0),
        LinesItem("motion/start_tree", _START_COLOR, trees[0].reshape(-1, 2, 3), 0.001, 1.0, opacity=0.6),
        LinesItem("motion/goal_tree", _GOAL_COLOR, trees[1].reshape(-1, 2, 3), 0.001, 1.0, opacity=0.6),
    ]
