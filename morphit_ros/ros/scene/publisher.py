"""Publishes a perceived scene: fused cloud, table, objects, target and markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rclpy.node import Node

from morphit_interfaces.msg import SegmentedObjectArray, TablePlane
from morphit_ros.display.drawings.perceived_scene import scene_items
from morphit_ros.geometry.transforms import invert_transform
from morphit_ros.memory.tracks import Track
from morphit_ros.memory.whole_shape import WholeShape
from morphit_ros.perception import Scene
from morphit_ros.robot.solids import Solid
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.conversions import header, message_from_cloud
from morphit_ros.ros.core.frames import BaseFrame
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.scene.messages import TablePatch, message_from_scene, message_from_table
from morphit_ros.ros.scene.whole_shapes import ShapeMessages
from morphit_ros.ros.scene.world_objects import message_from_world


class ScenePublisher:
    """Latched topics of a scene.

    Args:
        node: owner of the publishers.
        base: where the robot stands: objects of the world are in the frame of its base link.
        base_link: its name.
        fixtures: what stands there anyway, in the world frame.
        whole_shapes: whether shapes of objects are published, too.
    """

    def __init__(
        self, node: Node, base: BaseFrame, base_link: str, fixtures: Sequence[Solid] = (), whole_shapes: bool = False
    ) -> None:
        self._base, self._base_link, self._fixtures = base, base_link, fixtures
        topics = (
            interfaces.SCENE, interfaces.TABLE, interfaces.OBJECTS, interfaces.OBJECT_CLOUD, interfaces.SCENE_MARKERS,
            interfaces.WORLD_OBJECTS,
        )  # fmt: skip
        self._out = {topic: topic.publish(node) for topic in topics}
        self._shapes = interfaces.OBJECT_SHAPES.publish(node) if whole_shapes else None
        self._shape_messages = ShapeMessages()

    def publish(
        self,
        scene: Scene,
        frame: str,
        stamp: float,
        tracks: Sequence[Track] | None,
        numbers: Sequence[int],
        shapes: Mapping[int, WholeShape] | None = None,
    ) -> tuple[SegmentedObjectArray, TablePlane]:
        """Publish everything, the table before the objects that stand on it; returns both.

        Args:
            scene: outcome of `perceive`.
            frame: frame that its geometry is in.
            stamp: of the clouds [s].
            tracks: its objects and those that it does not show, with their numbers; None where that frame is not the
                world, in which the robot's base is known, or where the scene tells nothing of what is away.
            numbers: of its objects.
            shapes: as of `message_from_world`.

        Raises:
            UnknownTransformError: the base is asked for and not known.
        """
        stamped = header(frame, stamp)
        table = None if scene.table is None else TablePatch(scene.table.T_world_table, scene.table.size)
        objects = message_from_scene(scene, stamped, numbers)
        plane = message_from_table(table, 0.0 if scene.table is None else scene.table.residual, stamped)
        self._out[interfaces.SCENE].publish(message_from_cloud(scene.cloud, frame, stamp))
        self._out[interfaces.TABLE].publish(plane)
        self._out[interfaces.OBJECTS].publish(objects)
        if tracks is not None:
            T_base_world = invert_transform(self._base.T_world_base(self._base_link, stamp))
            world = message_from_world(scene, tracks, T_base_world, self._base_link, stamp, self._fixtures, shapes)
            self._out[interfaces.WORLD_OBJECTS].publish(world)
            if self._shapes is not None:
                self._shapes.publish(self._shape_messages.message(shapes or {}, frame))
        if scene.target_cloud is not None:
            self._out[interfaces.OBJECT_CLOUD].publish(message_from_cloud(scene.target_cloud, frame, stamp))
        items = scene_items(table, [cloud.points for cloud in scene.objects], scene.target)
        self._out[interfaces.SCENE_MARKERS].publish(marker_array(items, stamped))
        return objects, plane
