"""The robot, its present state and its world behind the services of superovoid_distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from morphit_interfaces.msg import SphereModel
from morphit_interfaces.srv import RobotDistance as RobotDistanceSrv, UpdateWorld
from morphit_ros.configuration import parameter
from morphit_ros.display.drawings.distances import closest_point_items, superovoid_items
from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.body import RobotBody, RobotBodyConfig
from morphit_ros.ros.distance.messages import (
    message_from_model,
    message_from_state_distances,
    objects_from_messages,
    request_from_message,
    states_from_messages,
)
from morphit_ros.ros.distance.state import CurrentState
from morphit_ros.superovoid.distances.batch import min_distances
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Sphere
from morphit_ros.superovoid.robots.body_pairs import object_bodies
from morphit_ros.superovoid.robots.distance_request import DistanceType, RobotDistanceRequest
from morphit_ros.superovoid.robots.robot_distance import StateDistances
from morphit_ros.superovoid.robots.world import CollisionWorld, WorldObject

# Closest points are drawn no oftener [s].
_DRAWING_PERIOD = 0.1


@dataclass(frozen=True)
class DistanceServerConfig(RobotBodyConfig):
    """The robot's body, which of its states are used, and how they are shown."""

    state_timeout: float = parameter(
        0.5, "Age from which on joint states are not taken for the current state [s]", minimum=0.01, maximum=60.0
    )
    chord_error: float = parameter(0.001, "Chord error of the shapes as drawn [m]", minimum=1e-5, maximum=0.1)
    alpha: float = parameter(0.6, "Opacity of the shapes as drawn", minimum=0.0, maximum=1.0)


class DistanceServer:
    """Holds robot and world; computes, and draws what was computed.

    Args:
        node: owner of subscription, publishers and timer.
        config: which superovoids and SRDF.
        robot: name of the robot in config/robots, empty for a description from elsewhere.
        diagnostics: told which superovoids are used.
        package_paths: folders that hold packages, searched first for the SRDF.
    """

    def __init__(
        self,
        node: Node,
        config: DistanceServerConfig,
        robot: str,
        diagnostics: Diagnostics,
        package_paths: Sequence[str] = (),
    ) -> None:
        self._node, self._config, self._diagnostics = node, config, diagnostics
        self._body = RobotBody(config, robot, package_paths)
        self._state = CurrentState(node, config.state_timeout)
        self._world = CollisionWorld()
        # Objects that came before the robot: their frames cannot be checked yet.
        self._waiting: list[WorldObject] | None = None
        # What is to be drawn yet: the last distances, the objects.
        self._drawn: StateDistances | None = None
        self._undrawn_world = False
        # Those of the links stay: meshing them takes a second.
        self._link_markers: list[Marker] = []
        topics = (interfaces.SUPEROVOID_MODEL, interfaces.SUPEROVOID_MARKERS, interfaces.DISTANCE_MARKERS)
        self._out = {topic: topic.publish(node) for topic in topics}
        node.create_timer(_DRAWING_PERIOD, self._draw)
        # As below: compiled, or loaded, before anybody asks.
        min_distances([Sphere(1.0)], np.eye(4)[None], [Sphere(1.0)], np.eye(4)[None])

    @property
    def ready(self) -> bool:
        """Whether the robot is known."""
        return self._body.distance is not None

    @property
    def summary(self) -> str:
        """The robot and its world in one line."""
        model, robot = self._body.superovoids, self._body.distance
        assert model is not None and robot is not None
        allowed = "the SRDF's pairs" if robot.semantics else "adjacent links (no SRDF)"
        return (
            f"{model.count} superovoids on {len(model.links)} links of {model.robot_name}, "
            f"{len(self._world)} objects; allowed to touch: {allowed}"
        )

    def values(self) -> dict[str, object]:
        """Counts and the age of the joint states, for diagnostics."""
        if self._body.distance is None:
            return {}
        age = self._state.age(self._body.distance.model.joint_names)
        return {
            "objects": len(self._world),
            "age of the oldest joint position [s]": age,
            "current state": "stale" if abs(age) > self._config.state_timeout else "up to date",
        }

    def set_robot(self, description: RobotDescription) -> None:
        """Serve another robot. Objects whose frames it does not have are an error, too.

        Raises:
            MorphitError: no superovoids for it, no SRDF, or joints that are not supported.
        """
        body = self._body.described(description)
        robot, model = body.known, body.superovoids
        assert model is not None
        world = body.among(self._world if self._waiting is None else self._waiting)
        object_bodies(world, robot.model)
        # Kernels are compiled, or loaded, now and not at the first request.
        for kind in (DistanceType.GLOBAL, DistanceType.ALL):
            request = RobotDistanceRequest(kind, gradient=True, distance_threshold=0.1)
            robot.compute([dict.fromkeys(robot.model.joint_names, 0.0)], request, world)
        self._body, self._world, self._waiting = body, world, None
        self._diagnostics.computes_with(interfaces.SUPEROVOID_MODEL.name, model.content_hash)
        root = header(description.root_link, ros_time(self._node))
        self._out[interfaces.SUPEROVOID_MODEL].publish(message_from_model(model, root))
        self._link_markers = self._markers({name: link.shapes for name, link in model.links.items()}, CollisionWorld())
        self._draw_shapes()

    def set_world(self, objects: list[WorldObject]) -> None:
        """Replace all objects; before the robot is known they are kept until it is.

        Raises:
            InvalidInputError: an id twice, or a frame or link that the robot does not have.
        """
        if self._body.distance is None:
            CollisionWorld.of(objects)
            self._waiting = objects
            return
        self._take(self._body.among(objects))

    def set_held(self, message: SphereModel) -> None:
        """Take along what the robot carries by its newest sphere model, in place of what it carried before.

        Raises:
            InvalidInputError: as of `RobotBody.holding`; nothing was changed.
        """
        before = {item.name for item in self._body.held}
        body = self._body.holding(message)
        if body.held or before:
            if body.distance is not None:
                self._take(body.among(item for item in self._world if item.name not in before))
            self._body = body
        self._diagnostics.computes_with(interfaces.SPHERE_MODEL.name, message.content_hash)

    def update_world(self, message: UpdateWorld.Request, response: UpdateWorld.Response) -> str:
        """Clear, remove and add objects, and answer with the ids of all there are then; how many, in words.

        Raises:
            InvalidInputError: no robot yet, an id that is not there, no object, or as of `set_world`.
        """
        self._take(self._world.changed(message.clear, message.remove, objects_from_messages(message.objects)))
        response.ids = list(self._world.objects)
        return f"{len(response.ids)} objects"

    def _take(self, world: CollisionWorld) -> None:
        object_bodies(world, self._body.known.model)
        self._world, self._undrawn_world = world, True

    def robot_distance(self, message: RobotDistanceSrv.Request, response: RobotDistanceSrv.Response) -> str:
        """Compute a request into its response; what was done, in words.

        Raises:
            InvalidInputError: no robot yet, a current state that is missing or stale, or anything of the request.
        """
        robot = self._body.known
        request = request_from_message(message)
        world = CollisionWorld() if message.world == message.WORLD_REPLACE else self._world
        if message.world not in (message.WORLD_ADD, message.WORLD_REPLACE):
            raise InvalidInputError("world", message.world, "WORLD_ADD 0 or WORLD_REPLACE 1")
        if message.objects:
            world = world.changed(add=objects_from_messages(message.objects))
        states = states_from_messages(message.joint_states)
        if not states or message.complete_states:
            # Only what is not given has to be up to date.
            given = set.intersection(*(set(state) for state in states)) if states else set()
            current = self._state.positions(tuple(name for name in robot.model.joint_names if name not in given))
            states = [{**current, **state} for state in states] or [current]
        distances = robot.compute(states, request, world)
        self._drawn = distances[-1]
        response.header = header(robot.model.description.root_link, ros_time(self._node))
        response.joint_names = list(robot.model.joint_names) if request.gradient else []
        response.states = [message_from_state_distances(item) for item in distances]
        return f"{len(distances)} states"

    def _markers(self, links: Mapping[str, Sequence[PlacedSuperovoid]], world: CollisionWorld) -> list[Marker]:
        """Links and objects as they are drawn, without the marker that removes all earlier ones."""
        root, config = self._body.known.model.description.root_link, self._config
        items = superovoid_items(links, world, root, config.chord_error, config.alpha)
        return list(marker_array(items, header(root)).markers[1:])

    def _draw_shapes(self) -> None:
        self._undrawn_world = False
        markers = [Marker(action=Marker.DELETEALL), *self._link_markers, *self._markers({}, self._world)]
        self._out[interfaces.SUPEROVOID_MARKERS].publish(MarkerArray(markers=markers))

    def _draw(self) -> None:
        # Not in the callback of a request: its answer would wait for the drawing.
        robot = self._body.distance
        if robot is None:
            return
        # Perception sees the world anew each second: it is drawn for whoever looks.
        if self._undrawn_world and self._out[interfaces.SUPEROVOID_MARKERS].get_subscription_count():
            self._draw_shapes()
        if self._drawn is not None:
            drawn, self._drawn = self._drawn, None
            frame = header(robot.model.description.root_link)
            self._out[interfaces.DISTANCE_MARKERS].publish(marker_array(closest_point_items(drawn), frame))
