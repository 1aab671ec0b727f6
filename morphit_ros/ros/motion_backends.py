"""The motion backend that a node is configured for."""

from __future__ import annotations

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.backends.roboplan import RoboPlanBackend, RoboPlanConfig
from morphit_ros.execution.motion import MotionBackend
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.packages import resolve_uri
from morphit_ros.ros.interfaces import SPHERE_DESCRIPTION


def make_motion_backend(
    name: str, sphere_description: str, robot: RobotConfiguration, config: RoboPlanConfig, seed: int
) -> MotionBackend:
    """Embedded planning on the spherised description, or MoveIt with its own parameters.

    Args:
        name: "embedded" or "moveit".
        sphere_description: text of the spherised URDF; not used by MoveIt.
        robot: arm and gripper.
        config: settings of the embedded backend.
        seed: of the embedded backend.

    Raises:
        InvalidInputError: no spherised description yet.
        MissingDependencyError: RoboPlan or moveit_py is not installed.
    """
    if name == "moveit":
        from morphit_ros.execution.backends.moveit import MoveItBackend

        return MoveItBackend(robot)
    if not sphere_description:
        raise InvalidInputError(
            SPHERE_DESCRIPTION.name, "nothing yet", "the robot's spherised description", "Start robot_spheres."
        )
    uri = robot.semantic_description
    srdf = resolve_uri(uri).read_text(encoding="utf-8") if uri else ""
    return RoboPlanBackend(sphere_description, srdf, robot, config, seed)
