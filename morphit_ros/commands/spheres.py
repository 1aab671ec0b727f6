"""`morphit spheres`: sphere models of robots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands import spheres_compare, spheres_export, spheres_fit, spheres_view

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription

_SUBCOMMANDS = (spheres_fit, spheres_view, spheres_export, spheres_compare)
_DESCRIPTIONS, _URIS = (".urdf", ".xacro"), ("package://", "file://")


def add_parser(commands: Any) -> None:
    group = commands.add_parser("spheres", help="sphere models of robots", description="Sphere models of robots.")
    parsers = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _SUBCOMMANDS:
        module.add_parser(parsers)


def load_robot(name: str, package_paths: list[str]) -> tuple[RobotDescription, dict[str, float]]:
    """A robot of config/robots by name, a description file, or a mesh file as a robot of one link.

    Returns:
        The description and, of a robot of config/robots, its home: joint → position [rad or m].

    Raises:
        ResourceNotFoundError, InvalidInputError: no such robot or file, or an unusable one.
    """
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    suffix = Path(name).suffix.lower()
    if suffix in _DESCRIPTIONS:
        return load_robot_description(name, package_paths), {}
    if suffix or name.startswith(_URIS):
        return load_robot_description(_mesh_robot(name), package_paths), {}
    robot = RobotConfiguration.load(name)
    home = dict(zip(robot.arm_joints, map(float, robot.home), strict=True))
    return load_robot_description(robot.description, package_paths), home


def _mesh_robot(name: str) -> str:
    """The URDF of a robot whose only link is a mesh file."""
    from xml.sax.saxutils import quoteattr

    uri = name if name.startswith(_URIS) else Path(name).absolute().as_uri()
    link = quoteattr(Path(name).stem)
    geometry = f"<geometry><mesh filename={quoteattr(uri)}/></geometry>"
    return f"<robot name={link}><link name={link}><collision>{geometry}</collision></link></robot>"
