"""Where a node takes the robot description from: a robot's name, a file, text, or the latched topic."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description


@dataclass(frozen=True)
class DescriptionConfig(Config):
    """At most one of the first three; none means the topic."""

    robot: str = parameter("", "Robot in config/robots whose description file is read")
    description_file: str = parameter("", "URDF or xacro: path, file:// or package:// (instead of robot)")
    robot_description: str = parameter("", "URDF text (instead of a file); all three empty: wait for the latched topic")
    package_paths: tuple[str, ...] = parameter((), "Folders that hold packages, searched first")

    def load(self) -> RobotDescription | None:
        """The description that the parameters name, None if they leave it to the topic.

        Raises:
            InvalidInputError: several are given, or what is given is no description.
            ResourceNotFoundError: robot, file or a mesh is missing.
        """
        sources = [self.robot, self.description_file, self.robot_description]
        if sum(bool(source) for source in sources) > 1:
            raise InvalidInputError(
                "robot, description_file, robot_description", "several given", "at most one of the three"
            )
        source = RobotConfiguration.load(self.robot).description if self.robot else "".join(sources)
        return self.read(source) if source else None

    def read(self, source: str) -> RobotDescription:
        """A description given as a file or as text.

        Raises:
            MorphitError: as of `load_robot_description`.
        """
        return load_robot_description(source, package_paths=self.package_paths)
