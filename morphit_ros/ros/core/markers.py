"""Display lists as RViz markers: few list markers rather than hundreds of single ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.display.display_list import (
    DisplayList,
    Item,
    LinesItem,
    MeshItem,
    PointsItem,
    SolidsItem,
    SpheresItem,
    colors_of_parts,
)
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.ros.core.conversions import pose_from_matrix

Drawn = Mapping[tuple[str, int], Marker]
_KINDS = {"box": Marker.CUBE, "cylinder": Marker.CYLINDER, "sphere": Marker.SPHERE}


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
    has_own = np.ndim(item.color) == 2 or np.ndim(item.opacity) == 1
    rows = _rgba(item, elements)
    marker.type, marker.scale, marker.color = kind, scale, ColorRGBA()
    _set_points(marker.points, transform_points(item.pose, points))
    _set_colors(marker.colors, rows if has_own else rows[:0])
    # Without effect where the parts have their own.
    _set_colors([marker.color], np.ones((1, 4)) if has_own else rows[:1])
    yield marker


def _listed(item: Item) -> tuple[int, Vector3, Array, int] | None:
    """Type, scale, points (N, 3) in the item's frame and number of colours of a list marker; None for solids."""
    if isinstance(item, PointsItem):
        return Marker.POINTS, Vector3(x=item.size, y=item.size), item.points, len(item.points)
    if isinstance(item, LinesItem):
        kind = Marker.LINE_LIST if item.points.ndim == 3 else Marker.LINE_STRIP
        points = item.points.reshape(-1, 3)
        return kind, Vector3(x=item.width), points, len(points)
    if isinstance(item, SpheresItem) and np.ndim(item.radii) == 0:
        size = 2.0 * float(item.radii)
        return Marker.SPHERE_LIST, Vector3(x=size, y=size, z=size), item.centers, len(item.centers)
    if isinstance(item, MeshItem):
        # One colour a triangle.
        corners = item.vertices[item.faces].reshape(-1, 3)
        return Marker.TRIANGLE_LIST, Vector3(x=1.0, y=1.0, z=1.0), corners, len(item.faces)
    return None


def _solids(item: Item, header: Header) -> Iterator[Marker]:
    """A marker for each solid and each sphere of its own size: no list can hold them."""
    assert isinstance(item, SpheresItem | SolidsItem)
    if isinstance(item, SpheresItem):
        kind, sizes = Marker.SPHERE, np.repeat(2.0 * np.asarray(item.radii)[:, None], 3, axis=1)
    else:
        kind, sizes = _KINDS[item.kind], item.sizes
    orientation, colors = pose_from_matrix(item.pose).orientation, [ColorRGBA() for _ in item.centers]
    _set_colors(colors, _rgba(item, len(colors)))
    rows = zip(transform_points(item.pose, item.centers).tolist(), sizes.tolist(), colors, strict=True)
    for index, ((x, y, z), size, color) in enumerate(rows):
        # Field by field: constructors with arguments take several times as long, and a robot has hundreds of spheres.
        marker = _marker(item, header, kind, item.number + index)
        marker.color, marker.pose.orientation = color, orientation
        position, scale = marker.pose.position, marker.scale
        position.x, position.y, position.z = x, y, z
        scale.x, scale.y, scale.z = size
        yield marker


def _marker(item: Item, header: Header, kind: int, number: int) -> Marker:
    own = Header(frame_id=item.frame) if item.frame else header
    return Marker(header=own, ns=item.namespace, id=number, type=kind, frame_locked=bool(item.frame))


def _rgba(item: Item, count: int) -> Array:
    """(count, 4) colours of points, faces or solids."""
    return np.column_stack([colors_of_parts(item.color, count), np.broadcast_to(item.opacity, count)])


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
