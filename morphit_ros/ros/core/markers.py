"""Display lists as RViz markers: few list markers rather than hundreds of single ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.display.display_list import (
    BoxesItem,
    CopiesItem,
    CylinderItem,
    DisplayList,
    EllipsoidItem,
    Item,
    LinesItem,
    MeshItem,
    PathItem,
    PointsItem,
    SpheresItem,
)
from morphit_ros.display.surfaces import element_colors, surface_of
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.ros.core.conversions import pose_from_matrix

Drawn = Mapping[tuple[str, int], Marker]


def marker_array(items: DisplayList, header: Header) -> MarkerArray:
    """A display list in place of all earlier markers of its topic.

    Args:
        items: those with a frame of their own move with it.
        header: of the others.
    """
    markers = (marker for item in items for marker in _markers(item, header, {}))
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL), *markers])


class MarkerDrawing:
    """Draws display lists again and again: points and colours of list markers are changed in place.

    Args:
        header: of items without a frame of their own.
    """

    def __init__(self, header: Header) -> None:
        self._header = header
        self._drawn: Drawn = {}

    def update(self, items: DisplayList) -> MarkerArray:
        """A display list; what it no longer has is deleted. The next call changes the markers of this one."""
        markers = (marker for item in items for marker in _markers(item, self._header, self._drawn))
        before, self._drawn = self._drawn, {(marker.ns, marker.id): marker for marker in markers}
        gone = [Marker(ns=key[0], id=key[1], action=Marker.DELETE) for key in before if key not in self._drawn]
        return MarkerArray(markers=[*self._drawn.values(), *gone])


def _markers(item: Item, header: Header, drawn: Drawn) -> Iterator[Marker]:
    """The markers of an item; a list marker that was drawn before is used again."""
    listed = _listed(item)
    if listed is None:
        yield from _solids(item, header)
        return
    kind, scale, points, elements = listed
    if not len(points):
        return
    marker = drawn.get((item.namespace, item.number)) or _marker(item, header, kind, item.number)
    marker.color, marker.scale = _color(item), scale
    _set_points(marker.points, transform_points(item.pose, points))
    if np.ndim(item.color) == 2 or np.ndim(item.opacity):
        rows = np.broadcast_to(element_colors(item.color, elements), (elements, 3))
        _set_colors(marker.colors, np.column_stack([rows, np.broadcast_to(item.opacity, elements)]))
    yield marker


def _listed(item: Item) -> tuple[int, Vector3, Array, int] | None:
    """Type, scale, points (N, 3) in the item's frame and number of colours of a list marker; None for solids."""
    if isinstance(item, PointsItem):
        return Marker.POINTS, Vector3(x=item.size, y=item.size), item.points, len(item.points)
    if isinstance(item, LinesItem):
        return Marker.LINE_LIST, Vector3(x=item.width), item.segments.reshape(-1, 3), 2 * len(item.segments)
    if isinstance(item, PathItem):
        return Marker.LINE_STRIP, Vector3(x=item.width), item.points, len(item.points)
    if isinstance(item, SpheresItem) and np.ndim(item.radii) == 0:
        size = 2.0 * float(item.radii)
        return Marker.SPHERE_LIST, Vector3(x=size, y=size, z=size), item.centers, len(item.centers)
    if isinstance(item, MeshItem | CopiesItem):
        vertices, faces = surface_of(item)
        # One colour a triangle.
        return Marker.TRIANGLE_LIST, Vector3(x=1.0, y=1.0, z=1.0), vertices[faces].reshape(-1, 3), len(faces)
    return None


def _solids(item: Item, header: Header) -> Iterator[Marker]:
    """A marker for each box, sphere of its own size, ellipsoid or cylinder: no list can hold them."""
    origin = np.zeros((1, 3))
    if isinstance(item, BoxesItem):
        kind, centers, sizes = Marker.CUBE, item.centers, item.sizes
    elif isinstance(item, SpheresItem):
        kind, centers, sizes = Marker.SPHERE, item.centers, np.repeat(2.0 * np.asarray(item.radii)[:, None], 3, axis=1)
    elif isinstance(item, EllipsoidItem):
        kind, centers, sizes = Marker.SPHERE, origin, 2.0 * item.half_axes[None]
    else:
        assert isinstance(item, CylinderItem)
        diameter = 2.0 * item.radius
        kind, centers, sizes = Marker.CYLINDER, origin, np.array([[diameter, diameter, item.length]])
    pose, color = pose_from_matrix(item.pose), _color(item)
    rows = zip(transform_points(item.pose, centers).tolist(), sizes.tolist(), strict=True)
    for index, ((x, y, z), size) in enumerate(rows):
        # Field by field: constructors with arguments take several times as long, and a robot has hundreds of spheres.
        marker = _marker(item, header, kind, item.number + index)
        marker.color = color
        position, scale = marker.pose.position, marker.scale
        position.x, position.y, position.z = x, y, z
        marker.pose.orientation = pose.orientation
        scale.x, scale.y, scale.z = size
        yield marker


def _marker(item: Item, header: Header, kind: int, number: int) -> Marker:
    own = Header(frame_id=item.frame) if item.frame else header
    return Marker(header=own, ns=item.namespace, id=number, type=kind, frame_locked=bool(item.frame))


def _color(item: Item) -> ColorRGBA:
    """The colour of the whole item; white and opaque where its parts have their own."""
    red, green, blue = np.asarray(item.color, dtype=float).tolist() if np.ndim(item.color) == 1 else (1.0, 1.0, 1.0)
    return ColorRGBA(r=red, g=green, b=blue, a=1.0 if np.ndim(item.opacity) else float(item.opacity))


def _set_points(points: list[Point], values: Array) -> None:
    del points[len(values) :]
    points.extend(Point() for _ in range(len(values) - len(points)))
    for point, (x, y, z) in zip(points, values.tolist(), strict=True):
        point.x, point.y, point.z = x, y, z


def _set_colors(colors: list[ColorRGBA], values: Array) -> None:
    del colors[len(values) :]
    colors.extend(ColorRGBA() for _ in range(len(values) - len(colors)))
    for color, (red, green, blue, alpha) in zip(colors, values.tolist(), strict=True):
        color.r, color.g, color.b, color.a = red, green, blue, alpha
