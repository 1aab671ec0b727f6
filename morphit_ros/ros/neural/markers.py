"""A neural object as RViz markers: surface, centre of mass, inertia ellipsoid, predicted motion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Pose, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.neural.solid.inertia import InertialProperties
from morphit_ros.ros.core.conversions import (
    matrix_from_pose,
    point_from_array,
    pose_from_matrix,
    vector_from_array,
)
from morphit_ros.ros.core.markers import color_message, marker_array

_POINT, _LINE = 0.002, 0.003
# Of a predicted motion, so many poses are drawn as copies of the surface's outline.
_COPIES = 6
_OUTLINE_POINTS = 200


def inertia_ellipsoid(inertia: InertialProperties) -> tuple[Array, Array]:
    """Pose (4, 4) in the object's own frame and axes (3,) [m] of the uniform ellipsoid of the same mass and inertia."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = inertia.principal_axes, inertia.center_of_mass
    return pose, 2.0 * half_axes(inertia.mass, inertia.principal_moments)


def half_axes(mass: float, moments: Array) -> Array:
    """(3,) half axes [m] of the uniform ellipsoid of a mass [kg] and principal moments (3,) [kg m^2]."""
    # J_i = m (a_j^2 + a_k^2) / 5.
    squares = 2.5 * (moments.sum() - 2.0 * moments) / mass
    half: Array = np.sqrt(np.maximum(squares, 0.0))
    return half


def object_markers(
    header: Header, T_frame_object: Array, surface: Array, inertia: InertialProperties, motion: Sequence[Pose] = ()
) -> MarkerArray:
    """One marker a kind; an object without a frame cannot be drawn and clears the old ones.

    Args:
        header: frame and stamp.
        T_frame_object: (4, 4).
        surface: (N, 3) points in the object's own frame [m].
        inertia: of the object, its centre in its own frame.
        motion: predicted poses of its own frame, in the same frame.
    """
    if not header.frame_id:
        return marker_array([])
    pose, axes = inertia_ellipsoid(inertia)
    center = transform_points(T_frame_object, inertia.center_of_mass[None])[0]
    markers = [
        _points(header, "surface", transform_points(T_frame_object, surface), color_message((0.3, 0.6, 0.9), 0.8)),
        Marker(
            header=header, ns="center_of_mass", type=Marker.SPHERE_LIST, scale=Vector3(x=0.01, y=0.01, z=0.01),
            points=[point_from_array(center)], color=color_message((1.0, 0.2, 0.1)),
        ),
        Marker(
            header=header, ns="inertia", type=Marker.SPHERE, pose=pose_from_matrix(T_frame_object @ pose),
            scale=vector_from_array(axes), color=color_message((1.0, 0.8, 0.1), 0.35),
        ),
    ]  # fmt: skip
    if motion:
        markers += _motion_markers(header, surface, inertia.center_of_mass, motion)
    return marker_array(markers)


def _motion_markers(header: Header, surface: Array, center: Array, motion: Sequence[Pose]) -> list[Marker]:
    """The way of the centre of mass as a line, and the surface at some of the poses, fading in."""
    poses = [matrix_from_pose(pose) for pose in motion]
    way = [point_from_array(transform_points(pose, center[None])[0]) for pose in poses]
    line = Marker(
        header=header, ns="motion", type=Marker.LINE_STRIP, scale=Vector3(x=_LINE), points=way,
        color=color_message((0.9, 0.3, 0.8)),
    )  # fmt: skip
    outline = surface[:: max(1, len(surface) // _OUTLINE_POINTS)]
    chosen = np.unique(np.linspace(0, len(poses) - 1, _COPIES).round().astype(int))
    copies = np.concatenate([transform_points(poses[index], outline) for index in chosen])
    marker = _points(header, "predicted", copies, color_message((0.9, 0.3, 0.8), 0.5))
    marker.colors = [
        ColorRGBA(r=0.9, g=0.3, b=0.8, a=float(0.2 + 0.7 * rank / max(1, len(chosen) - 1)))
        for rank in range(len(chosen))
        for _ in range(len(outline))
    ]
    return [line, marker]


def _points(header: Header, name: str, points: Array, color: ColorRGBA) -> Marker:
    return Marker(
        header=header, ns=name, type=Marker.POINTS, scale=Vector3(x=_POINT, y=_POINT),
        points=[point_from_array(point) for point in points], color=color,
    )  # fmt: skip
