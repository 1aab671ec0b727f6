"""Display lists as RViz markers: kinds, frames, colours, lists in place of single markers, and what is taken away."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from std_msgs.msg import Header
from visualization_msgs.msg import Marker

from morphit_ros.display.display_list import LinesItem, MeshItem, PointsItem, SolidsItem, SpheresItem
from morphit_ros.geometry.transforms import make_transform, matrix_from_rpy
from morphit_ros.ros.core.markers import MarkerDrawing, marker_array

HEADER = Header(frame_id="world")
POINTS = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
POSE = make_transform(matrix_from_rpy((0.0, 0.0, np.pi / 2)), (0.0, 0.0, 1.0))
RED, BLUE = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)


def positions(points):
    return [(point.x, point.y, point.z) for point in points]


def rgba(color):
    return color.r, color.g, color.b, color.a


def test_all_that_was_there_is_cleared_first_and_items_of_nothing_make_no_marker():
    (clear,) = marker_array([PointsItem("a/points", RED, POINTS[:0], 0.1)], HEADER).markers
    assert clear.action == Marker.DELETEALL


def test_lists_carry_the_pose_in_their_points():
    items = [
        PointsItem("a/points", RED, POINTS, 0.1, pose=POSE, opacity=0.5),
        LinesItem("a/segments", RED, POINTS[None], 0.2, pose=POSE),
        LinesItem("a/line", RED, POINTS, 0.2, pose=POSE),
        SpheresItem("a/balls", RED, POINTS, 0.25, pose=POSE),
    ]
    _, *markers = marker_array(items, HEADER).markers
    assert [m.type for m in markers] == [Marker.POINTS, Marker.LINE_LIST, Marker.LINE_STRIP, Marker.SPHERE_LIST]
    assert [m.ns for m in markers] == ["points", "segments", "line", "balls"]
    assert [m.scale.x for m in markers] == [0.1, 0.2, 0.2, 0.5]
    for marker in markers:
        np.testing.assert_allclose(positions(marker.points), [(-2.0, 1.0, 4.0), (-5.0, 4.0, 7.0)])
        assert marker.header.frame_id == "world"
        assert not marker.frame_locked
        assert not marker.colors
    assert rgba(markers[0].color) == (1.0, 0.0, 0.0, 0.5)


def test_solids_and_spheres_of_their_own_sizes_are_a_marker_each():
    sizes = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    items = [
        SolidsItem("a/boxes", [RED, BLUE], "box", POINTS, sizes, pose=POSE, number=7),
        SpheresItem("a/spheres", RED, POINTS, np.array([0.1, 0.2]), frame="hand"),
    ]
    _, first, second, third, fourth = marker_array(items, HEADER).markers
    assert [(m.type, m.id) for m in (first, second)] == [(Marker.CUBE, 7), (Marker.CUBE, 8)]
    assert (second.pose.position.x, second.pose.position.y, second.pose.position.z) == pytest.approx((-5.0, 4.0, 7.0))
    assert (second.scale.x, second.scale.y, second.scale.z) == (0.4, 0.5, 0.6)
    assert second.pose.orientation.z == pytest.approx(np.sqrt(0.5))
    assert [(m.type, m.id, m.scale.x) for m in (third, fourth)] == [(Marker.SPHERE, 0, 0.2), (Marker.SPHERE, 1, 0.4)]
    # What has a frame of its own moves with it.
    assert (third.header.frame_id, third.frame_locked) == ("hand", True)
    assert (first.header.frame_id, first.frame_locked) == ("world", False)
    assert rgba(first.color) == (1.0, 0.0, 0.0, 1.0)
    assert rgba(second.color) == (0.0, 0.0, 1.0, 1.0)


def test_parts_with_colours_of_their_own():
    faces = np.array([[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0]])
    items = [
        MeshItem("a/mesh", [RED, BLUE], np.eye(3), faces),
        LinesItem("a/segments", [RED], POINTS[None]),
        PointsItem("a/points", BLUE, POINTS, 0.1, opacity=np.array([0.25, 0.75])),
    ]
    _, mesh, segments, points = marker_array(items, HEADER).markers
    # One a triangle.
    assert [rgba(color)[0] for color in mesh.colors] == [1.0, 1.0, 0.0, 0.0]
    assert len(mesh.points) == 12
    assert [rgba(color) for color in segments.colors] == [(1.0, 0.0, 0.0, 1.0)] * 2
    assert [rgba(color) for color in points.colors] == [(0.0, 0.0, 1.0, 0.25), (0.0, 0.0, 1.0, 0.75)]


def test_a_drawing_changes_its_lists_in_place_and_deletes_what_is_gone():
    drawing = MarkerDrawing(HEADER)
    (first,) = drawing.update([PointsItem("a/points", [RED, BLUE], POINTS, 0.1)]).markers
    points = list(first.points)
    (again,) = drawing.update([PointsItem("a/points", [BLUE], POINTS[1:], 0.1)]).markers
    assert again is first
    assert again.points[0] is points[0]
    assert positions(again.points) == [(4.0, 5.0, 6.0)]
    assert [rgba(color) for color in again.colors] == [(0.0, 0.0, 1.0, 1.0)]
    # Of one colour now.
    (plain,) = drawing.update([PointsItem("a/points", RED, POINTS, 0.1)]).markers
    assert not plain.colors
    (gone,) = drawing.update([]).markers
    assert (gone.action, gone.ns, gone.id) == (Marker.DELETE, "points", 0)
    assert not drawing.update([]).markers
