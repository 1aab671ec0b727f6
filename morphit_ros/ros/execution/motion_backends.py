"""The motion backend that a node is configured for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from morphit_ros.configuration import Config, nested
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.execution.backends.moveit import MoveItBackend, MoveItConfig
from morphit_ros.execution.backends.roboplan import RoboPlanBackend, RoboPlanConfig
from morphit_ros.execution.motion import MotionBackend
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.ros.core.interfaces import SPHERE_DESCRIPTION


@dataclass(frozen=True)
class MotionConfig(Config):
    """Settings of the motion backends."""

    embedded: RoboPlanConfig = nested(RoboPlanConfig)
    moveit: MoveItConfig = nested(MoveItConfig)


def embedded_backend(
    sphere_description: str, robot: RobotConfiguration, config: RoboPlanConfig, seed: int
) -> MotionBackend:
    """RoboPlan on the spherised description.

    Raises:
        InvalidInputError: no spherised description yet, or one that does not fit the robot.
        ResourceNotFoundError: the robot's SRDF is missing.
        MissingDependencyError: RoboPlan is not installed.
    """
    if not sphere_description:
        raise InvalidInputError(
            SPHERE_DESCRIPTION.name, "nothing yet", "the robot's spherised description", "Start robot_spheres."
        )
    uri = robot.semantic_description
    srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
    return RoboPlanBackend(sphere_description, srdf, robot, config, seed)


def moveit_backend(parameter_file: str, robot: RobotConfiguration, config: MoveItConfig) -> MotionBackend:
    """MoveIt with all its parameters from one merged file.

    Raises:
        InvalidInputError: no file was given, or it is not a mapping.
        ResourceNotFoundError: the file is missing.
        MissingDependencyError: moveit_py is not installed.
        MotionBackendError: MoveIt did not start.
    """
    return MoveItBackend(robot, _moveit_parameters(parameter_file), config)


def _moveit_parameters(parameter_file: str) -> dict[str, Any]:
    remedy = "docs/moveit.md says how to make it from a MoveIt configuration package."
    if not parameter_file:
        raise InvalidInputError("moveit_parameters", "none", "a YAML file with MoveIt's merged parameters", remedy)
    path = Path(parameter_file)
    if not path.is_file():
        raise ResourceNotFoundError(parameter_file, [str(path.parent)], remedy)
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise InvalidInputError(path.name, type(content).__name__, "a mapping of MoveIt's parameters", remedy)
    return content
