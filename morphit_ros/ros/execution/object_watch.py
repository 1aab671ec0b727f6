"""Has the object moved since grasps were planned on it: perception's latest objects against the planned one."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from std_msgs.msg import Header

from morphit_interfaces.msg import SegmentedObjectArray
from morphit_ros.errors import MorphitError
from morphit_ros.execution.displacement import object_displacement
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.scene.messages import cloud_of


class ObjectWatch:
    """Keeps the newest objects; says how far one of them moved.

    Args:
        node: owner of the subscription.
        group: of the subscription's callback.
        max_age: older objects say nothing [s].
    """

    def __init__(self, node: Node, group: CallbackGroup, max_age: float) -> None:
        self._node, self._max_age = node, max_age
        self._newest: SegmentedObjectArray | None = None
        interfaces.OBJECTS.subscribe(node, self._on_objects, group)

    def _on_objects(self, message: SegmentedObjectArray) -> None:
        self._newest = message

    def displacement_of(self, planned: PointCloud, header: Header) -> Callable[[], float | None]:
        """A function that says how far an object has moved since it was seen [m].

        The function gives None if nothing was seen since, or in another frame, or not lately.

        Args:
            planned: the object's finite points.
            header: frame and time that they are of.
        """
        return lambda: self._displacement(planned, header)

    def _displacement(self, planned: PointCloud, header: Header) -> float | None:
        newest = self._newest
        if newest is None or newest.header.frame_id != header.frame_id:
            return None
        seen = seconds_from_stamp(newest.header.stamp)
        if seen <= seconds_from_stamp(header.stamp) or ros_time(self._node) - seen > self._max_age:
            return None
        distances = []
        for item in newest.objects:
            try:
                distances.append(object_displacement(planned.points, cloud_of(item).finite().points))
            except MorphitError:
                continue  # an empty object is none
        return min(distances, default=None)
