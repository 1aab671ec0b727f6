"""Robots and meshes as commands take them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_config, add_repeated
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription

_DESCRIPTIONS, _URIS = (".urdf", ".xacro"), ("package://", "file://")


@dataclass(frozen=True)
class GeometryConfig(Config):
    """Which elements of a link are its shape."""

    source: str = parameter(
        "collision", "Geometry of the links", choices=("collision", "visual", "collision_or_visual")
    )


def add_robot(parser: Any, source: bool = True) -> None:
    """Add ROBOT|MESH as ``robot``, ``--package-path`` and, if wanted, ``--source``."""
    parser.add_argument(
        "robot", metavar="ROBOT|MESH", help="name in config/robots (panda), a URDF or xacro file, or a mesh file"
    )
    if source:
        add_config(parser, GeometryConfig)
    add_package_path(parser)


def add_package_path(parser: Any) -> None:
    """Add ``--package-path``."""
    add_repeated(parser, "--package-path", "DIR", "folder that holds packages")


def add_links(parser: Any, help: str) -> None:
    """Add ``--links``: several after one option, and the option several times."""
    parser.add_argument("--links", nargs="+", action="extend", metavar="LINK", help=help)


def load_robot(name: str, options: argparse.Namespace) -> tuple[RobotDescription, dict[str, float]]:
    """A robot of config/robots by name, a description file, or a mesh file as a robot of one link.

    Args:
        name: as it was typed.
        options: with ``package_path``.

    Returns:
        The description and, of a robot of config/robots, its home: joint → position [rad or m].

    Raises:
        ResourceNotFoundError, InvalidInputError: no such robot or file, or an unusable one.
    """
    from morphit_ros.robot.configuration import RobotConfiguration
    from morphit_ros.robot.description import load_robot_description

    suffix = Path(name).suffix.lower()
    if suffix in _DESCRIPTIONS:
        return load_robot_description(name, options.package_path), {}
    if suffix or name.startswith(_URIS):
        return load_robot_description(_mesh_robot(name), options.package_path), {}
    robot = RobotConfiguration.load(name)
    home = dict(zip(robot.arm_joints, map(float, robot.home), strict=True))
    return load_robot_description(robot.description, options.package_path), home


def _mesh_robot(name: str) -> str:
    """The URDF of a robot whose only link is a mesh file."""
    from xml.sax.saxutils import quoteattr

    uri = name if name.startswith(_URIS) else Path(name).absolute().as_uri()
    link = quoteattr(Path(name).stem)
    geometry = f"<geometry><mesh filename={quoteattr(uri)}/></geometry>"
    return f"<robot name={link}><link name={link}><collision>{geometry}</collision></link></robot>"
