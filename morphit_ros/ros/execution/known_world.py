"""What of `world_objects` motions keep clear of besides what a goal says itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_interfaces.msg import WorldObjectArray
from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.solids import Solid
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.scene.world_objects import is_perceived

if TYPE_CHECKING:
    from morphit_ros.superovoid.robots.world import WorldObject


class KnownWorld:
    """The newest objects of the world; the last good ones where a message is refused.

    What perception publishes there is left out: a goal brings the table and the objects of its scene, of which it says
    which one is to be grasped. So are attached objects.

    Attributes:
        problem: why the newest message was refused, empty if it was not.

    Args:
        node: that subscribes.
        group: of the callback.
    """

    def __init__(self, node: Node, group: CallbackGroup) -> None:
        self.problem = ""
        self._objects: tuple[WorldObject, ...] = ()
        interfaces.WORLD_OBJECTS.subscribe(node, self._on_world, group)

    def _on_world(self, message: WorldObjectArray) -> None:
        others = [item for item in message.objects if not (item.attached_to or is_perceived(item.id))]
        if not others:
            self._objects, self.problem = (), ""
            return
        # They bring the distances of superovoids along: a third of a second, for which nobody waits without need.
        from morphit_ros.ros.distance.messages import objects_from_messages
        from morphit_ros.superovoid.robots.world import CollisionWorld

        try:
            objects = objects_from_messages(others, message.header.frame_id)
            CollisionWorld.of(objects)
        except MorphitError as error:
            self.problem = f"{interfaces.WORLD_OBJECTS.name} refused, the last objects are kept: {error}"
            return
        self._objects, self.problem = tuple(objects), ""

    def solids(self, T_base: Callable[[str, str], Array]) -> tuple[Solid, ...]:
        """In the base frame.

        Args:
            T_base: ``T_base_frame`` (4, 4) of what is named first in a frame that is named second.

        Raises:
            InvalidInputError: as of `T_base`.
        """
        if not self._objects:
            return ()
        from morphit_ros.ros.motion.world import solid_of

        found = []
        for item in self._objects:
            pose = T_base(f"object '{item.name}' of the world", item.frame) @ item.T_frame_object
            found += [solid_of(item.name, placed.shape, pose @ placed.T_object_shape) for placed in item.shapes]
        return tuple(found)
