"""The planning scene of a running MoveIt, kept up to date with the spheres of the robot."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from functools import partial
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from shape_msgs.msg import SolidPrimitive

from morphit_ros.errors import MissingDependencyError
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core.conversions import array_from_point, point_from_array
from morphit_ros.spheres.objects.attachment import RobotShape
from morphit_ros.spheres.objects.plates import COVER

# move_group's, relative: they follow the node's namespace.
SERVICE, QUESTION, MONITORED = "apply_planning_scene", "get_planning_scene", "monitored_planning_scene"
# Between two looks at whether there is something to send, and until move_group is asked again what it has [s].
_PERIOD, _REPEAT = 0.5, 5.0
# What a link gets that has no spheres any more: one where nothing is, see scene_from_model [m].
_NOWHERE = np.array([[0.0, 0.0, -1000.0]]), np.array([1e-3])
# MoveIt computes with the poses that it is given [m].
_SAME = 1e-6


class Body(NamedTuple):
    """One attached object of MoveIt's: a link's spheres, or something that the robot holds.

    Attributes:
        link: that carries it.
        centers, radii: (N, 3) and (N,) [m] in that link's frame.
        touched: links that it may touch.
    """

    link: str
    centers: Array
    radii: Array
    touched: frozenset[str]


def bodies_of(shape: RobotShape, padding: float = 0.0, touch_links: Collection[str] = ()) -> dict[str, Body]:
    """The robot's body as MoveIt gets it, by the names of its objects.

    What is held is an object of its own: as a part of the hand it would be allowed to touch whatever the hand may.

    Args:
        shape: spheres in the frames of the links, and what is attached to them.
        padding: added to every radius [m].
        touch_links: links that what is held may touch, besides the one that carries it. A cover that is worn may touch
            the links beside it.
    """
    bodies = {
        # In its link's touch links: the geometry of the link itself lies inside it.
        name: Body(name, spheres.centers, spheres.radii + padding, frozenset([name]))
        for name, spheres in shape.model.links.items()
    }
    for item in shape.attached.values():
        carrier, _ = shape.carrier(item.link)
        also = shape.beside(carrier) if item.name == COVER else touch_links
        # Its own name tells later that it is ours.
        touched = frozenset([item.name, item.link, carrier, *also])
        bodies[item.name] = Body(item.link, item.centers, item.radii + padding, touched)
    return bodies


def scene_from_bodies(bodies: Mapping[str, Body]) -> Any:
    """A diff of the planning scene (moveit_msgs/PlanningScene) that puts bodies in place of earlier ones.

    Each link gets an attached object of its own name. MoveIt looks pairs up by the names of the bodies, whatever they
    are: so the SRDF's pairs and the touch links of held objects hold for the spheres as they do for the link. The
    allowed collision matrix is left alone: a diff can only replace it as a whole.

    Nothing is ever detached: MoveIt puts a detached object into the world, and whoever removes an object from the world
    removes its name from the allowed collision matrix, and with it the SRDF's pairs of the link.

    Args:
        bodies: of `bodies_of`, and `without` what is no more.

    Raises:
        MissingDependencyError: moveit_msgs is not installed.
    """
    messages, _ = _moveit_messages()
    scene = messages.PlanningScene(is_diff=True)
    # Without this MoveIt would take the message for a whole state, and drop what the robot holds.
    scene.robot_state.is_diff = True
    for name, body in bodies.items():
        item = messages.AttachedCollisionObject(link_name=body.link, touch_links=sorted(body.touched))
        item.object.id, item.object.header.frame_id = name, body.link
        item.object.pose.orientation.w = 1.0
        item.object.operation = messages.CollisionObject.ADD
        for center, radius in zip(body.centers.tolist(), body.radii.tolist(), strict=True):
            pose = Pose(position=point_from_array(center))
            pose.orientation.w = 1.0
            item.object.primitives.append(SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[radius]))
            item.object.primitive_poses.append(pose)
        scene.robot_state.attached_collision_objects.append(item)
    return scene


def without(bodies: Mapping[str, Body], present: Mapping[str, str]) -> dict[str, Body]:
    """Bodies, and those that are present without being among them, as one sphere of 1 mm that is 1 km away.

    Args:
        bodies: that are to be there.
        present: name → link of those that are.
    """
    gone = {
        name: Body(link, *_NOWHERE, frozenset([name, link])) for name, link in present.items() if name not in bodies
    }
    return {**bodies, **gone}


def _spheres_of(item: Any) -> tuple[Array, Array]:
    """Centers (N, 3) and radii (N,) of an attached object as MoveIt tells it [m]; infinite radii of other solids."""
    solids = item.object.primitives
    radii = [solid.dimensions[0] if solid.type == SolidPrimitive.SPHERE else np.inf for solid in solids]
    # A single sphere's place becomes that of the object. Ours are not turned.
    centers = [array_from_point(pose.position) for pose in item.object.primitive_poses]
    return np.reshape(centers, (-1, 3)) + array_from_point(item.object.pose.position), np.array(radii)


def _differs(item: Any | None, body: Body) -> bool:
    if item is None or item.link_name != body.link or not body.touched <= {*item.touch_links}:
        return True
    centers, radii = _spheres_of(item)
    if radii.shape != body.radii.shape:
        return True
    # Written so that no number at all differs, too.
    return not (np.abs(radii - body.radii).max() <= _SAME and np.abs(centers - body.centers).max() <= _SAME)


class PlanningSceneUpdates:
    """Sends the spheres to move_group whenever they change, and again when move_group was started again.

    move_group is asked what it has before it is told, and again afterwards: it answers with success to a diff of which
    it took nothing. It is asked every few seconds, too: others may have detached the spheres, or sent a whole scene.

    Args:
        node: asks move_group's services.

    Raises:
        MissingDependencyError: moveit_msgs is not installed.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        messages, services = _moveit_messages()
        self._request = services.ApplyPlanningScene.Request
        group = MutuallyExclusiveCallbackGroup()
        self._apply = node.create_client(services.ApplyPlanningScene, SERVICE, callback_group=group)
        self._ask = node.create_client(services.GetPlanningScene, QUESTION, callback_group=group)
        attached = messages.PlanningSceneComponents.ROBOT_STATE_ATTACHED_OBJECTS
        components = messages.PlanningSceneComponents(components=attached)
        self._question = services.GetPlanningScene.Request(components=components)
        self._lock = threading.Lock()
        self._newest: tuple[str, Mapping[str, Body]] | None = None
        # Content hash and move_group of what it had last; of what was compared or sent last, and when to do that again.
        self._applied: tuple[str, frozenset[bytes]] | None = None
        self._begun: tuple[str, frozenset[bytes]] | None = None
        self._again = 0.0
        # A diff is on its way: what is asked meanwhile may be answered before it has arrived.
        self._sending = False
        node.create_timer(_PERIOD, self.update, callback_group=group)

    def show(self, content_hash: str, bodies: Mapping[str, Body]) -> None:
        """Have these bodies sent; from any thread."""
        with self._lock:
            self._newest = content_hash, bodies

    def update(self) -> None:
        """Send what move_group does not have, if it is there."""
        with self._lock:
            newest = self._newest
        if newest is None:
            return
        if not (self._apply.service_is_ready() and self._ask.service_is_ready()):
            self._applied = self._begun = None
            self._sending = False
            return
        content_hash, bodies = newest
        # A move_group that was killed and started again at once is told by its publishers.
        publishers = self._node.get_publishers_info_by_topic(MONITORED)
        version = content_hash, frozenset(bytes(info.endpoint_gid) for info in publishers)
        if monotonic() < self._again and (self._sending or version == self._begun):
            return
        self._begun, self._again, self._sending = version, monotonic() + _REPEAT, False
        self._compare(version, bodies, sent=False)

    def _compare(self, version: tuple[str, frozenset[bytes]], bodies: Mapping[str, Body], sent: bool) -> None:
        future = self._ask.call_async(self._question)
        future.add_done_callback(partial(self._compared, version, bodies, sent))

    def _compared(
        self, version: tuple[str, frozenset[bytes]], bodies: Mapping[str, Body], sent: bool, future: Future
    ) -> None:
        answer = future.result()
        if answer is None or version != self._begun:
            return
        attached = answer.scene.robot_state.attached_collision_objects
        # Ours are those that may touch themselves, also from an earlier robot_spheres.
        present = {item.object.id: item for item in attached if item.object.id in item.touch_links}
        wanted = without(bodies, {name: item.link_name for name, item in present.items()})
        wrong = sorted(name for name, body in wanted.items() if _differs(present.get(name), body))
        if sent:
            self._sending = False
        if not wrong:
            if version != self._applied:
                self._node.get_logger().info(f"{SERVICE}: move_group has the spheres of {len(bodies)} bodies")
            self._applied = version
        elif sent:
            self._node.get_logger().error(
                f"{SERVICE}: move_group did not take the spheres of {', '.join(wrong)}. Has it the description of this"
                " robot?",
                throttle_duration_sec=60.0,
            )
        else:
            self._sending = True
            request = self._request(scene=scene_from_bodies(wanted))
            self._apply.call_async(request).add_done_callback(lambda _: self._compare(version, bodies, sent=True))


def _moveit_messages() -> tuple[Any, Any]:
    try:
        import moveit_msgs.msg
        import moveit_msgs.srv
    except ImportError as error:
        raise MissingDependencyError(
            "moveit_msgs", "planning_scene: true", "Install ros-jazzy-moveit-msgs, or set planning_scene to false."
        ) from error
    return moveit_msgs.msg, moveit_msgs.srv
