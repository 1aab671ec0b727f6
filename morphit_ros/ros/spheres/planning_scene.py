"""The planning scene of a running MoveIt, kept up to date with the spheres of the robot."""

from __future__ import annotations

import threading
from collections.abc import Collection
from functools import partial
from time import monotonic
from typing import Any

from geometry_msgs.msg import Pose
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from shape_msgs.msg import SolidPrimitive

from morphit_ros.errors import MissingDependencyError
from morphit_ros.ros.core.conversions import point_from_array
from morphit_ros.spheres import SphereModel

# move_group's, relative: they follow the node's namespace.
SERVICE, MONITORED = "apply_planning_scene", "monitored_planning_scene"
# Between two looks at whether there is something to send, and until an unanswered or refused diff is sent again [s].
_PERIOD, _REPEAT = 0.5, 5.0


def scene_from_model(model: SphereModel, padding: float = 0.0, gone: Collection[str] = ()) -> Any:
    """A diff of the planning scene (moveit_msgs/PlanningScene) that puts the spheres in place of earlier ones.

    Each link gets an attached object of its own name. MoveIt looks pairs up by the names of the bodies, whatever they
    are: so the SRDF's pairs and the touch links of held objects hold for the spheres as they do for the link. The
    allowed collision matrix is left alone: a diff can only replace it as a whole.

    Args:
        model: spheres in the frames of the links.
        padding: added to every radius [m].
        gone: links whose objects are to go.

    Raises:
        MissingDependencyError: moveit_msgs is not installed.
    """
    messages, _ = _moveit_messages()
    scene = messages.PlanningScene(is_diff=True)
    # Without this MoveIt would take the message for a whole state, and drop what the robot holds.
    scene.robot_state.is_diff = True
    for name, spheres in model.links.items():
        # In its link's touch links: the geometry of the link itself lies inside it.
        item = messages.AttachedCollisionObject(link_name=name, touch_links=[name])
        item.object.id, item.object.header.frame_id = name, name
        item.object.pose.orientation.w = 1.0
        item.object.operation = messages.CollisionObject.ADD
        for center, radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True):
            pose = Pose(position=point_from_array(center))
            pose.orientation.w = 1.0
            item.object.primitives.append(SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[radius + padding]))
            item.object.primitive_poses.append(pose)
        scene.robot_state.attached_collision_objects.append(item)
    for name in gone:
        # MoveIt puts a detached object into the world, and works off the world last.
        removed = messages.CollisionObject(id=name, operation=messages.CollisionObject.REMOVE)
        detached = messages.AttachedCollisionObject(link_name=name, object=removed)
        scene.robot_state.attached_collision_objects.append(detached)
        scene.world.collision_objects.append(removed)
    return scene


class PlanningSceneUpdates:
    """Sends the spheres to move_group whenever they change, and again when move_group was started again.

    Args:
        node: asks move_group's service.
        padding: added to every radius [m].

    Raises:
        MissingDependencyError: moveit_msgs is not installed.
    """

    def __init__(self, node: Node, padding: float) -> None:
        self._node, self._padding = node, padding
        _, services = _moveit_messages()
        self._request = services.ApplyPlanningScene.Request
        group = MutuallyExclusiveCallbackGroup()
        self._client = node.create_client(services.ApplyPlanningScene, SERVICE, callback_group=group)
        self._lock = threading.Lock()
        self._newest: tuple[str, SphereModel] | None = None
        # Content hash and move_group of what was applied, and of what was sent last with the time to send it again.
        self._applied: tuple[str, frozenset[bytes]] | None = None
        self._sent: tuple[str, frozenset[bytes]] | None = None
        self._again = 0.0
        # Links that move_group may have objects of.
        self._links: set[str] = set()
        node.create_timer(_PERIOD, self.update, callback_group=group)

    def show(self, content_hash: str, model: SphereModel) -> None:
        """Have these spheres sent; from any thread."""
        with self._lock:
            self._newest = content_hash, model

    def update(self) -> None:
        """Send what move_group does not have, if it is there."""
        with self._lock:
            newest = self._newest
        if newest is None:
            return
        if not self._client.service_is_ready():
            self._applied = self._sent = None
            self._links.clear()
            return
        content_hash, model = newest
        # A move_group that was killed and started again at once is told by its publishers.
        publishers = self._node.get_publishers_info_by_topic(MONITORED)
        version = content_hash, frozenset(bytes(info.endpoint_gid) for info in publishers)
        if self._sent is not None and self._sent[1] != version[1]:
            # It has no objects yet.
            self._links.clear()
        if version == self._applied or (version == self._sent and monotonic() < self._again):
            return
        self._sent, self._again = version, monotonic() + _REPEAT
        gone = sorted(self._links.difference(model.links))
        self._links.update(model.links)
        request = self._request(scene=scene_from_model(model, self._padding, gone))
        future = self._client.call_async(request)
        future.add_done_callback(partial(self._answered, version, set(model.links)))

    def _answered(self, version: tuple[str, frozenset[bytes]], links: set[str], future: Future) -> None:
        answer = future.result()
        if answer is None or not answer.success:
            self._node.get_logger().error(
                f"{SERVICE}: move_group refused the spheres. Has it the description of this robot?",
                throttle_duration_sec=60.0,
            )
        elif version == self._sent:
            self._applied, self._links = version, links
            self._node.get_logger().info(f"{SERVICE}: move_group has the spheres of {len(links)} links")


def _moveit_messages() -> tuple[Any, Any]:
    try:
        import moveit_msgs.msg
        import moveit_msgs.srv
    except ImportError as error:
        raise MissingDependencyError(
            "moveit_msgs", "planning_scene: true", "Install ros-jazzy-moveit-msgs, or set planning_scene to false."
        ) from error
    return moveit_msgs.msg, moveit_msgs.srv
