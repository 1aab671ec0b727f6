"""A push: the object's way, and the forces of contact at one time."""

from __future__ import annotations

from morphit_ros.display.display_list import DisplayList, LinesItem
from morphit_ros.geometry.transforms import Array

_WAY_COLOR, _FORCE_COLOR = (0.35, 0.55, 0.9), (0.9, 0.2, 0.1)


def contact_items(way: Array, forces: Array) -> DisplayList:
    """What is drawn of a push.

    Args:
        way: (N, 3) of the object's middle [m].
        forces: (K, 2, 3) from where bodies touch, along the force, as long as is drawn [m].
    """
    return [
        LinesItem("contact/way", _WAY_COLOR, way, 0.004, 3.0),
        LinesItem("contact/forces", _FORCE_COLOR, forces, 0.004, 4.0),
    ]
