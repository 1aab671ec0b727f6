"""The body of the moment: a robot's superovoids and what it holds, one for everybody who measures its distances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from morphit_interfaces.msg import SphereModel
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.semantics import SemanticDescription, load_semantic_description
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.distance.messages import held_objects
from morphit_ros.spheres.objects.plates import COVER
from morphit_ros.superovoid.robots.body_pairs import object_bodies
from morphit_ros.superovoid.robots.distance_request import RobotDistanceRequest
from morphit_ros.superovoid.robots.model_file import load_model
from morphit_ros.superovoid.robots.robot_distance import BodyDistance, RobotDistance
from morphit_ros.superovoid.robots.robot_model import RobotSuperovoids
from morphit_ros.superovoid.robots.world import CollisionWorld, WorldObject


@dataclass(frozen=True)
class RobotBodyConfig(Config):
    """Which superovoids and which SRDF belong to the robot, and what may touch what it holds."""

    model: str = parameter(
        "", "Superovoids: name in config/superovoids, or a YAML file; empty: by the name of `robot`, else of the URDF"
    )
    semantics: str = parameter(
        "", "SRDF: path, package:// or text; empty: that of `robot` if it is given, else adjacent links are allowed"
    )
    touch_links: tuple[str, ...] = parameter(
        (), "Links that may touch what the robot holds by its sphere model; empty: those of `robot` if it is given"
    )
    held: bool = parameter(True, "What the robot holds by its sphere model counts as a part of it")


@dataclass(frozen=True, eq=False)
class RobotBody:
    """A robot as it is now. It never changes: each change makes another one.

    Attributes:
        config: of the parameters.
        robot: name in config/robots, empty for a description from elsewhere.
        package_paths: folders that hold packages, searched first for the SRDF.
        description: the robot; None before the first.
        superovoids: its shapes; None before the first description, or where only what it carries is asked for.
        distance: its certified distances; None where it has no superovoids.
        held: what it carries by its newest sphere model, as attached objects.
    """

    config: RobotBodyConfig
    robot: str = ""
    package_paths: Sequence[str] = ()
    description: RobotDescription | None = None
    superovoids: RobotSuperovoids | None = None
    distance: RobotDistance | None = None
    held: tuple[WorldObject, ...] = ()

    @property
    def known(self) -> RobotDistance:
        """Its certified distances.

        Raises:
            InvalidInputError: no description has come.
        """
        if self.distance is None:
            remedy = "Publish it latched, or give one of the parameters robot, description_file, robot_description."
            raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "nothing yet", "the robot's URDF", remedy)
        return self.distance

    def described(self, description: RobotDescription) -> RobotBody:
        """The body of a robot, with what is held.

        Raises:
            ResourceNotFoundError: no superovoids for it, or no SRDF.
            InvalidInputError: a file that is none, superovoids of links or held things on links that the robot does
                not have, or joints that are not supported.
        """
        name = self.config.model or (Path(self.robot).stem if self.robot else description.name)
        try:
            superovoids = load_model(name)
        except ResourceNotFoundError as error:
            remedy = f"{error.remedy} Fit it with 'morphit superovoid fit', and name the file in the parameter model."
            raise ResourceNotFoundError(error.resource, error.searched, remedy.strip()) from None
        superovoids.check_links(description)
        distance = RobotDistance(superovoids.links, KinematicModel(description), self._semantics())
        body = replace(self, description=description, superovoids=superovoids, distance=distance)
        return body.carrying(self.held)

    def holding(self, message: SphereModel) -> RobotBody:
        """The body with what its newest sphere model carries in place of what it carried before.

        Raises:
            InvalidInputError: as of `held_objects`, or a link that the robot does not have.
        """
        if not self.config.held:
            return self
        touched = self.config.touch_links
        if not touched and self.robot:
            touched = RobotConfiguration.load(self.robot).touch_links
        return self.carrying(held_objects(message, touched))

    def carrying(self, held: Iterable[WorldObject]) -> RobotBody:
        """The body with these objects; a cover that is worn may touch the links beside the one that wears it.

        Raises:
            InvalidInputError: an object on a link that the robot does not have.
        """
        if self.description is None:
            return replace(self, held=tuple(held))
        links = [name for name, link in self.description.links.items() if link.collisions]
        pairs = self.description.neighbours(links)
        held = tuple(
            replace(item, touch_links=frozenset().union(*(pair for pair in pairs if item.attached_to in pair)))
            if item.name == COVER
            else item
            for item in held
        )
        if self.distance is not None:
            object_bodies(CollisionWorld.of(held), self.distance.model)
        return replace(self, held=held)

    def among(self, objects: Iterable[WorldObject]) -> CollisionWorld:
        """Objects around it together with what it holds, which is no longer where it was seen.

        Raises:
            InvalidInputError: a name twice.
        """
        return CollisionWorld.of(objects).changed(add=self.held)

    def clearance(
        self,
        states: Sequence[Mapping[str, float]],
        world: CollisionWorld,
        group: str = "",
        allowed: Sequence[tuple[str, str]] = (),
    ) -> list[BodyDistance | None]:
        """The nearest pair of the robot, or what it holds, and the world at each state; None where there is no pair.

        Args:
            states: joint name → position [rad or m].
            world: as of `among`.
            group: SRDF group of the links that count, since what does not move touches the table for ever; empty: all.
            allowed: names of pairs that may touch.

        Raises:
            InvalidInputError: as of `known` and `RobotDistance.compute`.
        """
        request = RobotDistanceRequest(group=group, allowed_pairs=tuple(allowed), self_distance=False)
        return [item.minimum_distance for item in self.known.compute(states, request, world)]

    def _semantics(self) -> SemanticDescription | None:
        source = self.config.semantics
        if not source and self.robot:
            source = RobotConfiguration.load(self.robot).semantic_description
        return load_semantic_description(source, self.package_paths) if source else None
