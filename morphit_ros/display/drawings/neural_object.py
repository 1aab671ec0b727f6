"""What is drawn of an object known as a density field: surface, centre of mass, inertia ellipsoid, predicted motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.display.display_list import Item, LinesItem, PointsItem, Rgb, SolidsItem, SpheresItem
from morphit_ros.geometry.transforms import Array, make_transform, transform_points

_SURFACE_COLOR, _INERTIA_COLOR = (0.3, 0.6, 0.9), (1.0, 0.8, 0.1)
CENTER_COLOR, MOTION_COLOR = (1.0, 0.2, 0.1), (0.9, 0.3, 0.8)
_POINT, _LINE, _BALL = 0.002, 0.003, 0.005
# Of a predicted motion, so many poses are drawn as copies of so many of the surface's points.
_COPIES, _OUTLINE_POINTS = 6, 200


def half_axes(mass: float, moments: Array) -> Array:
    """(3,) half axes [m] of the uniform ellipsoid of a mass [kg] and principal moments (3,) [kg m^2]."""
    # J_i = m (a_j^2 + a_k^2) / 5.
    squares = 2.5 * (moments.sum() - 2.0 * moments) / mass
    half: Array = np.sqrt(np.maximum(squares, 0.0))
    return half


def ellipsoid_item(name: str, color: Rgb, half_axes: ArrayLike, pose: Array, opacity: float) -> Item:
    """An ellipsoid with half axes (3,) along those of a frame (4, 4) [m]."""
    sizes = 2.0 * np.asarray(half_axes, dtype=np.float64)[None]
    return SolidsItem(name, color, "sphere", np.zeros((1, 3)), sizes, pose=pose, opacity=opacity)


def object_items(
    surface: Array,
    T_frame_object: Array,
    center: Array,
    axes: Array,
    half_axes: Array,
    color: ArrayLike = _SURFACE_COLOR,
    point: float = _POINT,
    ball: float = _BALL,
) -> list[Item]:
    """An object where it is.

    Args:
        surface: (N, 3) points in the object's own frame [m].
        T_frame_object: (4, 4).
        center: (3,) of mass, in its own frame.
        axes: (3, 3) principal axes as columns.
        half_axes: (3,) of the ellipsoid of the same mass and inertia [m].
        color: (3,) or (N, 3) of the points.
        point, ball: size of a point, radius of the ball at the centre of mass [m].
    """
    middle = T_frame_object @ make_transform(translation=center)
    return [
        PointsItem("points/surface", color, surface, point, pose=T_frame_object, opacity=0.8),
        SpheresItem("center/center_of_mass", CENTER_COLOR, np.zeros((1, 3)), ball, pose=middle),
        ellipsoid_item("inertia/inertia", _INERTIA_COLOR, half_axes, middle @ make_transform(axes), 0.35),
    ]


def motion_items(surface: Array, center: Array, poses: Sequence[Array] | Array, point: float = _POINT) -> list[Item]:
    """The way of the centre of mass as a line, and some points of the surface at some of the poses, fading in."""
    way = np.array([transform_points(pose, center[None])[0] for pose in poses])
    outline = surface[:: max(1, len(surface) // _OUTLINE_POINTS)]
    chosen = np.unique(np.linspace(0, len(poses) - 1, _COPIES).round().astype(int))
    copies = np.concatenate([transform_points(poses[index], outline) for index in chosen])
    fading = np.repeat(np.linspace(0.2, 0.9, len(chosen)) if len(chosen) > 1 else [0.2], len(outline))
    return [
        LinesItem("path/motion", MOTION_COLOR, way, _LINE, 4.0),
        PointsItem("path/predicted", MOTION_COLOR, copies, point, opacity=fading),
    ]
