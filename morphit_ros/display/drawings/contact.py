"""A push: the object, its way, and the forces of contact at one time."""

from __future__ import annotations

import numpy as np

from morphit_ros.display.display_list import DisplayList, LinesItem, MeshItem
from morphit_ros.geometry.transforms import Array

_OBJECT_COLOR, _WAY_COLOR, _FORCE_COLOR = (0.85, 0.75, 0.45), (0.35, 0.55, 0.9), (0.9, 0.2, 0.1)


def contact_items(surface: Array, way: Array, forces: Array) -> DisplayList:
    """What is drawn of a push.

    Args:
        surface: (T, 3, 3) corners of the object's triangles [m].
        way: (N, 3) of the object's middle [m].
        forces: (K, 2, 3) from where bodies touch, along the force, as long as is drawn [m].
    """
    corners = surface.reshape(-1, 3)
    return [
        MeshItem("contact/object", _OBJECT_COLOR, corners, np.arange(len(corners)).reshape(-1, 3), flat=True),
        LinesItem("contact/way", _WAY_COLOR, way, 0.004, 3.0),
        LinesItem("contact/forces", _FORCE_COLOR, forces, 0.004, 4.0),
    ]
