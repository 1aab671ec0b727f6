"""The robot, its present state and its world behind the services of superovoid_distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from morphit_interfaces.msg import SphereModel
from morphit_interfaces.srv import RobotDistance as RobotDistanceSrv, UpdateWorld
from morphit_ros.configuration import Config, parameter
from morphit_ros.display.drawings.distances import closest_point_items, superovoid_items
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import SemanticDescription, load_semantic_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.clocks import ros_time
from morphit_ros.ros.core.conversions import header
from morphit_ros.ros.core.diagnostics import Diagnostics
from morphit_ros.ros.core.markers import marker_array
from morphit_ros.ros.distance.messages import (
    held_objects,
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
from morphit_ros.superovoid.robots.model_file import load_model
from morphit_ros.superovoid.robots.robot_distance import RobotDistance, StateDistances
from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids
from morphit_ros.superovoid.robots.world import CollisionWorld, WorldObject

# Closest points are drawn no oftener [s].
_DRAWING_PERIOD = 0.1


@dataclass(frozen=True)
class SuperovoidModelConfig(Config):
    """Which superovoids and which SRDF belong to the robot."""

    model: str = parameter(
        "", "Superovoids: name in config/superovoids, or a YAML file; empty: by the name of `robot`, else of the URDF"
    )
    semantics: str = parameter(
        "", "SRDF: path, package:// or text; empty: that of `robot` if it is given, else adjacent links are allowed"
    )

    def superovoids(self, robot: str, description: RobotDescription) -> RobotSuperovoids:
        """The robot's superovoids, checked against its description.

        Raises:
            ResourceNotFoundError: there is no file of that name.
            InvalidInputError: a file that is none, or superovoids of links that the robot does not have.
        """
        name = self.model or (Path(robot).stem if robot else description.name)
        try:
            model = load_model(name)
        except ResourceNotFoundError as error:
            remedy = f"{error.remedy} Fit it with 'morphit superovoid fit', and name the file in the parameter model."
            raise ResourceNotFoundError(error.resource, error.searched, remedy.strip()) from None
        model.check_links(description)
        return model

    def semantic_description(
        self, robot: str, description: RobotDescription, package_paths: Sequence[str]
    ) -> SemanticDescription | None:
        """The SRDF; None if there is none.

        Raises:
            ResourceNotFoundError, InvalidInputError: as of `load_semantic_description`.
        """
        source = self.semantics or (RobotConfiguration.load(robot).semantic_description if robot else "")
        return load_semantic_description(source, package_paths) if source else None


@dataclass(frozen=True)
class DistanceServerConfig(SuperovoidModelConfig):
    """The robot's superovoids, which of its states are used, and how they are shown."""

    state_timeout: float = parameter(
        0.5, "Age from which on joint states are not taken for the current state [s]", minimum=0.01, maximum=60.0
    )
    touch_links: tuple[str, ...] = parameter((), "Links that may touch what the robot carries by its sphere model")
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
        self._node, self._config, self._robot_name, self._package_paths = node, config, robot, package_paths
        self._diagnostics = diagnostics
        self._state = CurrentState(node, config.state_timeout)
        self._model: RobotSuperovoids | None = None
        self._robot: RobotDistance | None = None
        self._world = CollisionWorld()
        # Objects that came before the robot: their frames cannot be checked yet.
        self._waiting: list[WorldObject] | None = None
        self._held: list[WorldObject] = []
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
        return self._robot is not None

    @property
    def summary(self) -> str:
        """The robot and its world in one line."""
        assert self._model is not None and self._robot is not None
        allowed = "the SRDF's pairs" if self._robot.semantics else "adjacent links (no SRDF)"
        return (
            f"{self._model.count} superovoids on {len(self._model.links)} links of {self._model.robot_name}, "
            f"{len(self._world)} objects; allowed to touch: {allowed}"
        )

    def values(self) -> dict[str, object]:
        """Counts and the age of the joint states, for diagnostics."""
        if self._robot is None:
            return {}
        age = self._state.age(self._robot.model.joint_names)
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
        model = self._config.superovoids(self._robot_name, description)
        semantics = self._config.semantic_description(self._robot_name, description, self._package_paths)
        robot = RobotDistance(model.links, KinematicModel(description), semantics)
        world = self._with_held(self._world if self._waiting is None else self._waiting)
        object_bodies(world, robot.model)
        # Kernels are compiled, or loaded, now and not at the first request.
        for kind in (DistanceType.GLOBAL, DistanceType.ALL):
            request = RobotDistanceRequest(kind, gradient=True, distance_threshold=0.1)
            robot.compute([dict.fromkeys(robot.model.joint_names, 0.0)], request, world)
        self._model, self._robot, self._world, self._waiting = model, robot, world, None
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
        if self._robot is None:
            CollisionWorld.of(objects)
            self._waiting = objects
            return
        self._take(self._with_held(objects), self._robot)

    def set_held(self, message: SphereModel) -> None:
        """Take along what the robot carries by its newest sphere model, in place of what it carried before.

        Raises:
            InvalidInputError: as of `held_objects`, or a link that the robot does not have; nothing was changed.
        """
        before, held = self._held, held_objects(message, self._config.touch_links)
        if held or before:
            gone = {item.name for item in before}
            self._held = held
            try:
                if self._robot is not None:
                    self._take(self._with_held([item for item in self._world if item.name not in gone]), self._robot)
            except InvalidInputError:
                self._held = before
                raise
        self._diagnostics.computes_with(interfaces.SPHERE_MODEL.name, message.content_hash)

    def _with_held(self, objects: Iterable[WorldObject]) -> CollisionWorld:
        held = {item.name for item in self._held}
        return CollisionWorld.of([*(item for item in objects if item.name not in held), *self._held])

    def update_world(self, message: UpdateWorld.Request, response: UpdateWorld.Response) -> str:
        """Clear, remove and add objects, and answer with the ids of all there are then; how many, in words.

        Raises:
            InvalidInputError: no robot yet, an id that is not there, no object, or as of `set_world`.
        """
        changed = self._world.changed(message.clear, message.remove, objects_from_messages(message.objects))
        self._take(changed, self._known_robot())
        response.ids = list(self._world.objects)
        return f"{len(response.ids)} objects"

    def _take(self, world: CollisionWorld, robot: RobotDistance) -> None:
        object_bodies(world, robot.model)
        self._world, self._undrawn_world = world, True

    def _known_robot(self) -> RobotDistance:
        if self._robot is None:
            remedy = "Publish it latched, or give one of the parameters robot, description_file, robot_description."
            raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "nothing yet", "the robot's URDF", remedy)
        return self._robot

    def robot_distance(self, message: RobotDistanceSrv.Request, response: RobotDistanceSrv.Response) -> str:
        """Compute a request into its response; what was done, in words.

        Raises:
            InvalidInputError: no robot yet, a current state that is missing or stale, or anything of the request.
        """
        robot = self._known_robot()
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
        assert self._robot is not None
        root, config = self._robot.model.description.root_link, self._config
        items = superovoid_items(links, world, root, config.chord_error, config.alpha)
        return list(marker_array(items, header(root)).markers[1:])

    def _draw_shapes(self) -> None:
        self._undrawn_world = False
        markers = [Marker(action=Marker.DELETEALL), *self._link_markers, *self._markers({}, self._world)]
        self._out[interfaces.SUPEROVOID_MARKERS].publish(MarkerArray(markers=markers))

    def _draw(self) -> None:
        # Not in the callback of a request: its answer would wait for the drawing.
        if self._robot is None:
            return
        # Perception sees the world anew each second: it is drawn for whoever looks.
        if self._undrawn_world and self._out[interfaces.SUPEROVOID_MARKERS].get_subscription_count():
            self._draw_shapes()
        if self._drawn is not None:
            drawn, self._drawn = self._drawn, None
            frame = header(self._robot.model.description.root_link)
            self._out[interfaces.DISTANCE_MARKERS].publish(marker_array(closest_point_items(drawn), frame))
