"""What grasps are planned on: as a goal gives it, or the latest objects and their table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import PlanGrasp
from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import seconds_from_stamp
from morphit_ros.ros.scene.messages import target_of


@dataclass(frozen=True)
class PlanInputsConfig(Config):
    """Which objects are too old."""

    max_age: float = parameter(
        60.0, "Oldest objects that are planned on if the goal has none [s]", minimum=0.1, maximum=1e6
    )


class PlanInput(NamedTuple):
    """An object, what was seen with it, and what it stands on, as messages."""

    target: SegmentedObject
    scene: SegmentedObjectArray
    table: TablePlane


class PlanInputs:
    """Keeps the latest objects and table.

    Args:
        node: subscribes.
        group: of the subscriptions' callbacks.
        config: which objects are too old.
        changed: called after each of both.
    """

    def __init__(
        self, node: Node, group: CallbackGroup | None, config: PlanInputsConfig, changed: Callable[[], None]
    ) -> None:
        self._node, self._config, self._changed = node, config, changed
        self._objects: SegmentedObjectArray | None = None
        self._table: TablePlane | None = None
        interfaces.TABLE.subscribe(node, self._on_table, group)
        interfaces.OBJECTS.subscribe(node, self._on_objects, group)

    def _on_table(self, message: TablePlane) -> None:
        self._table = message
        self._changed()

    def _on_objects(self, message: SegmentedObjectArray) -> None:
        self._objects = message
        self._changed()

    def newest(self) -> PlanInput | None:
        """The newest objects once their own table is there too: they come in either order. None without a target."""
        if self._objects is None or self._table is None:
            return None
        target = target_of(self._objects)
        if target is None or self._table.header.stamp != self._objects.header.stamp:
            return None
        return PlanInput(target, self._objects, self._table)

    def of_goal(self, goal: PlanGrasp.Goal) -> PlanInput:
        """What a goal gives, and the latest of what it leaves out.

        Raises:
            InvalidInputError: nothing is known of it either, it is too old, or the scene is in another frame.
        """
        target = goal.object if goal.object.cloud.data else self._latest_target()
        table = self._requested_table(goal)
        return PlanInput(target, self._scene_of(target, goal.scene), table)

    def _latest_target(self) -> SegmentedObject:
        target = target_of(self._objects) if self._objects is not None else None
        if target is None:
            seen = "nothing yet" if self._objects is None else f"{len(self._objects.objects)} objects, no target"
            raise InvalidInputError(
                interfaces.OBJECTS.name, seen, "an object to grasp", "Send it in the goal, or start scene_perception."
            )
        age = ros_time(self._node) - seconds_from_stamp(target.header.stamp)
        if age > self._config.max_age:
            raise InvalidInputError(
                interfaces.OBJECTS.name, f"objects {age:.1f} s old", f"at most {self._config.max_age:g} s",
                "Segment again, send the object in the goal, or raise max_age.",
            )  # fmt: skip
        return target

    def _scene_of(self, target: SegmentedObject, given: SegmentedObjectArray) -> SegmentedObjectArray:
        """What was seen with an object: as given, else the latest if it is from the same time and frame."""
        if given.objects or given.obstacles.data or given.viewpoints:
            if given.header.frame_id != target.header.frame_id:
                bound = f"the object's frame {target.header.frame_id}"
                raise InvalidInputError("scene: frame", repr(given.header.frame_id), bound)
            return given
        known = self._objects
        return known if known is not None and known.header == target.header else SegmentedObjectArray()

    def _requested_table(self, goal: PlanGrasp.Goal) -> TablePlane:
        if not goal.use_table:
            return TablePlane()
        table = goal.table if goal.table.found else self._table
        if table is None or not table.found:
            raise InvalidInputError(
                "use_table", "no table is known", "one in the goal or on table",
                "Set use_table to false if there is none.",
            )  # fmt: skip
        return table
