"""Perceived scenes as messages: what speaks for and against an object, and what belongs to none, goes with them."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from geometry_msgs.msg import PointStamped

from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray
from morphit_interfaces.srv import Segment
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import make_transform
from morphit_ros.perception.scene import LOOSE, ON_TABLE, ObjectEvidence, Scene, SceneStatus
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.scene.messages import (
    cloud_of,
    message_from_object,
    message_from_objects,
    message_from_scene,
    object_name,
    object_number,
    other_things,
    viewpoints_of,
    wanted_number,
)
from morphit_ros.ros.scene.object_doubts import object_doubts

SEEN = ObjectEvidence(900, 700, residual=0.0011, overlap=0.6, coverage=0.9, transparency=0.1, compared=True)
ONE_VIEW = ObjectEvidence(0, 700, coverage=0.4, transparency=0.35)


def cloud(*points):
    return PointCloud(np.array(points, dtype=float).reshape(-1, 3), frame="world")


def scene():
    """Two objects of two and one points, two loose points and two of the table."""
    points = np.arange(21, dtype=float).reshape(7, 3) / 16.0
    labels = np.array([0, 0, 1, LOOSE, LOOSE, ON_TABLE, ON_TABLE])
    return Scene(
        SceneStatus.OK, "", [cloud(*points[:2]), cloud(points[2])], [], [SEEN, ONE_VIEW], 0, None,
        PointCloud(points, frame="world"), labels, make_transform(translation=[1.0, 2.0, 3.0]), None,
    )  # fmt: skip


def test_evidence_loose_points_and_cameras_go_with_the_objects():
    seen = scene()
    message = message_from_scene(seen, header("world", 12.5))
    first, second = message.objects
    assert (first.left_points, first.right_points, first.consistent) == (900, 700, True)
    assert (first.residual, first.coverage, first.transparency) == (0.0011, 0.9, 0.1)
    assert first.confidence == pytest.approx(0.9 * 0.9)
    assert math.isnan(second.residual)
    assert second.confidence == pytest.approx(0.5 * 0.4 * 0.65)
    np.testing.assert_array_equal(viewpoints_of(message), [[1.0, 2.0, 3.0]])
    assert message.obstacles.header == message.header
    # Everything that is no part of the target and not on the table.
    others = other_things(message, first.id)
    assert list(others.objects) == [1]
    np.testing.assert_array_equal(np.sort(others.points, axis=0), np.sort(seen.obstacle_points(), axis=0))
    np.testing.assert_array_equal(others.loose.points, seen.cloud.points[3:5])
    np.testing.assert_array_equal(cloud_of(first).points, seen.cloud.points[:2])


def test_objects_have_the_numbers_that_they_keep():
    message = message_from_scene(scene(), header("world"), [12, 5])
    assert [item.id for item in message.objects] == [12, 5]
    assert list(other_things(message, 12).objects) == [5]
    assert object_name(12) == "object_12" and object_number("object_12") == 12
    assert [object_number(name) for name in ("", "world", "object_", "object_x", "object_-1", "table")] == [None] * 6
    point = PointStamped(header=header("object_12"))
    for rule, number in ((Segment.Request.RULE_NEAREST, 12), (Segment.Request.RULE_LARGEST, None)):
        assert wanted_number(Segment.Request(rule=rule, point=point)) == number


def test_a_scene_of_one_object_has_nothing_else_and_knows_no_cameras():
    message = SegmentedObjectArray(header=header("world"), objects=[message_from_object(cloud(), 0, header("world"))])
    assert other_things(message, 0).points.shape == (0, 3)
    assert viewpoints_of(message) is None
    # Points that are not finite are nobody's obstacle.
    message.objects.append(message_from_object(cloud([np.nan] * 3), 1, header("world")))
    assert not other_things(message, 0).objects


def test_points_that_nearly_touch_the_target_are_rather_its_own():
    body = [0.5, 0.0, 0.05]
    loose = np.array([[0.507, 0.0, 0.05], [0.513, 0.0, 0.05], [np.nan, 0.0, 0.05]])
    objects = [cloud(body), cloud([0.513, 0.0, 0.052])]
    message = message_from_objects(objects, 0, header("world"), obstacles=loose)
    own = cloud_of(message.objects[0])
    np.testing.assert_allclose(other_things(message, 0, own).loose.points, loose[1:2], atol=1e-6)
    # Without its cloud nothing is known to be the target's.
    assert len(other_things(message, 0).loose) == 2


def test_obstacles_of_another_frame_are_refused():
    message = message_from_scene(scene(), header("world"))
    message.obstacles.header.frame_id = "map"
    with pytest.raises(InvalidInputError, match="map"):
        other_things(message, 0)


def test_an_object_is_doubted_for_what_speaks_against_it():
    def doubts(evidence=None):
        return object_doubts(message_from_object(cloud([0.0, 0.0, 0.0]), 3, header("world"), evidence))

    # Nothing is known of an object that somebody else sent.
    assert doubts() == object_doubts(SegmentedObject()) == ""
    assert doubts(SEEN) == ""
    text = doubts(ONE_VIEW)
    assert text.startswith("object_3 has a confidence of 0.13")
    for words in ("only the right camera", "35 %", "40 %"):
        assert words in text
    # A further camera saw its other side.
    assert "only" not in doubts(ObjectEvidence(0, 700, coverage=0.4, transparency=0.35, more_points=300))
    moved = doubts(ObjectEvidence(900, 700, displacement=0.02, consistent=False))
    assert "confidence of 0.00" in moved
    assert "moved" in moved
    assert "only" not in moved
