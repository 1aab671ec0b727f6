"""One robot, in the form that a task needs: spheres, superovoids, the shape of a link, its clearance."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import share_directory
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.robot.links import collision_mesh
from morphit_ros.robot.sources import load_robot

if TYPE_CHECKING:
    from morphit_ros.robot.semantics import SemanticDescription
    from morphit_ros.shape import Shape
    from morphit_ros.spheres import SphereModel
    from morphit_ros.superovoid import LinkFitConfig, RobotSuperovoids
    from morphit_ros.superovoid.robots.robot_distance import BodyDistance, RobotDistance
    from morphit_ros.superovoid.robots.world import CollisionWorld

Progress = Callable[[str, int, int], None]


class Robot:
    """A robot by its name in config/robots, or by its description.

    Args:
        source: "panda", the path or URI of a URDF or xacro file, the text of a URDF, a `RobotDescription`, or a mesh
            file as a robot of one link.
        package_paths: folders that hold packages.
        unit: of a mesh file, see `Shape`.

    Attributes:
        description: links, joints, and the URDF.
        kinematics: poses of the links.
        home: joint → position [rad or m]; zero where the robot has no file of its own.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such robot, or an unusable one.
    """

    def __init__(
        self,
        source: str | Path | RobotDescription,
        package_paths: Sequence[str | Path] = (),
        unit: str | None = None,
    ) -> None:
        home: dict[str, float] = {}
        given: Any = source
        if isinstance(given, RobotDescription):
            self.description = given
        elif isinstance(given, (str, os.PathLike)):
            self.description, home = load_robot(str(given), package_paths, unit)
        else:
            found = f"an object of type {type(source).__qualname__}"
            raise InvalidInputError("source", found, "a robot's name, the path of a URDF, or a RobotDescription")
        self.kinematics = KinematicModel(self.description)
        self.home = dict.fromkeys(self.kinematics.joint_names, 0.0) | home
        # Only robots of config/robots have a home, and files under their name.
        self._name = str(source) if home else ""
        self._package_paths = package_paths

    @property
    def links(self) -> tuple[str, ...]:
        """The links that have collision geometry."""
        return tuple(name for name, link in self.description.links.items() if link.collisions)

    def link(self, name: str) -> Shape:
        """The collision geometry of a link, in the link's frame.

        Raises:
            InvalidInputError: no such link, or one without geometry.
        """
        from morphit_ros.shape import Shape

        if name not in self.links:
            raise InvalidInputError("link", repr(name), f"one of {', '.join(self.links)}")
        # A description's scale settles the unit.
        return Shape([collision_mesh(element) for element in self.description.links[name].collisions], unit="m")

    def spheres(
        self,
        total: int | None = None,
        count: int = 20,
        variant: str = "balanced",
        *,
        cover: bool = False,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> SphereModel:
        """Spheres of all links; each link has its `d_avg` and `d_max`, measured, and with `cover` its proven margin.

        Fits are kept in the cache folder.

        Args:
            total: of spheres, shared out to where they help most; None for `count` a mesh.
            count, variant, cover, seed: see `Shape.spheres`.
            progress: called with (link, links done, links in all).
        """
        from morphit_ros.spheres import SphereFitConfig, distribute_spheres, fit_robot_spheres

        config = SphereFitConfig(count=count, variant=variant, cover=cover)
        counts = None
        if total is not None:
            counts = distribute_spheres(self.description, total, config, seed, progress=progress)
        return fit_robot_spheres(self.description, config, seed=seed, progress=progress, counts=counts)

    def superovoids(
        self, config: LinkFitConfig | None = None, seed: int = 0, progress: Progress | None = None
    ) -> RobotSuperovoids:
        """Superovoids of all links; each link has the errors of its fit.

        Args:
            config: settings of a fit; None for the model in config/superovoids, if there is one of this robot.
            seed: of the fit.
            progress: called with (link, links done, links in all).
        """
        from morphit_ros.superovoid import fit_robot_superovoids, load_model

        if config is None and self._name and (share_directory() / f"config/superovoids/{self._name}.yaml").is_file():
            return load_model(self._name)
        return fit_robot_superovoids(self.description, config, seed=seed, progress=progress)

    def clearance(
        self, joints: Mapping[str, float] | ArrayLike | None = None, world: CollisionWorld | None = None
    ) -> BodyDistance:
        """The two links, or link and object, that are nearest to each other: distance, points, normal, proven bound.

        It is the distance of the `superovoids`, certified where `status` says so; `superovoids().links[name].errors`
        tell how far they are from the link. Links that touch by their making are left out.

        Args:
            joints: positions by name, the others at home, or all of them in the order of `kinematics.joint_names` [rad
                or m]; None for home.
            world: objects around the robot, in its root frame.

        Raises:
            InvalidInputError: an unknown joint, a position that is not finite, or no two bodies to compare.
        """
        from morphit_ros.superovoid.robots.world import CollisionWorld

        (state,) = self._distances.compute([self._positions(joints)], world=world or CollisionWorld())
        if state.minimum_distance is None:
            raise InvalidInputError("links", "no two that are checked", "links or objects that may meet")
        return state.minimum_distance

    @cached_property
    def _distances(self) -> RobotDistance:
        from morphit_ros.superovoid.robots.robot_distance import RobotDistance

        return RobotDistance(self.superovoids().links, self.kinematics, self._semantics())

    def _semantics(self) -> SemanticDescription | None:
        from morphit_ros.robot.semantics import load_semantic_description

        source = RobotConfiguration.load(self._name).semantic_description if self._name else ""
        return load_semantic_description(source, self._package_paths) if source else None

    def _positions(self, joints: Any) -> dict[str, float]:
        names = self.kinematics.joint_names
        if joints is None:
            return self.home
        if not isinstance(joints, Mapping):
            values = np.asarray(joints, dtype=np.float64)
            if values.shape != (len(names),):
                raise InvalidInputError("joints", f"shape {values.shape}", f"({len(names)},): {', '.join(names)}")
            joints = dict(zip(names, values.tolist(), strict=True))
        unknown = [name for name in joints if name not in names]
        if unknown:
            raise InvalidInputError("joints", ", ".join(map(repr, unknown)), f"some of {', '.join(names)}")
        return {**self.home, **joints}
