"""Publishes a perceived scene: fused cloud, table, objects, target and markers."""

from __future__ import annotations

from rclpy.node import Node

from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_ros.display.drawings.perceived_scene import scene_items
from morphit_ros.perception import Scene
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, message_from_cloud
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.scene.messages import TablePatch, message_from_scene, message_from_table


class ScenePublisher:
    """Latched topics of a scene.

    Args:
        node: owner of the publishers.
    """

    def __init__(self, node: Node) -> None:
        topics = (
            interfaces.SCENE, interfaces.TABLE, interfaces.OBJECTS, interfaces.OBJECT_CLOUD, interfaces.SCENE_MARKERS,
        )  # fmt: skip
        self._out = {topic: node.create_publisher(topic.type, topic.name, topic.quality.profile()) for topic in topics}

    def publish(self, scene: Scene, frame: str, stamp: float) -> tuple[SegmentedObjectArray, TablePlane]:
        """Publish everything, the table before the objects that stand on it; returns both.

        Args:
            scene: outcome of `perceive`.
            frame: frame that its geometry is in.
            stamp: of the clouds [s].
        """
        stamped = header(frame, stamp)
        table = None if scene.table is None else TablePatch(scene.table.T_world_table, scene.table.size)
        objects = message_from_scene(scene, stamped)
        plane = message_from_table(table, 0.0 if scene.table is None else scene.table.residual, stamped)
        self._out[interfaces.SCENE].publish(message_from_cloud(scene.cloud, frame, stamp))
        self._out[interfaces.TABLE].publish(plane)
        self._out[interfaces.OBJECTS].publish(objects)
        if scene.target_cloud is not None:
            self._out[interfaces.OBJECT_CLOUD].publish(message_from_cloud(scene.target_cloud, frame, stamp))
        items = scene_items(table, [cloud.points for cloud in scene.objects], scene.target)
        self._out[interfaces.SCENE_MARKERS].publish(marker_array(items, stamped))
        return objects, plane
