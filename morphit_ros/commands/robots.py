"""Robots and meshes as commands take them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.options import add_config, add_repeated
from morphit_ros.configuration import Config, parameter

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription

# As in morphit_ros.geometry.units, which takes long to import.
_UNITS = ("m", "mm", "cm", "inch")


@dataclass(frozen=True)
class GeometryConfig(Config):
    """Which elements of a link are its shape."""

    source: str = parameter(
        "collision", "Geometry of the links", choices=("collision", "visual", "collision_or_visual")
    )


def add_robot(parser: Any, source: bool = True) -> None:
    """Add ROBOT|MESH as ``robot``, ``--unit``, ``--package-path`` and, if wanted, ``--source``."""
    parser.add_argument(
        "robot",
        metavar="ROBOT|MESH",
        help="name (panda; morphit spheres library lists all), a robot's YAML file, a URDF or xacro file, or a mesh",
    )
    add_unit(parser)
    if source:
        add_config(parser, GeometryConfig)
    add_package_path(parser)


def add_package_path(parser: Any) -> None:
    """Add ``--package-path``."""
    add_repeated(parser, "--package-path", "DIR", "folder that holds packages")


def add_links(parser: Any, help: str) -> None:
    """Add ``--links``: several after one option, and the option several times."""
    parser.add_argument("--links", nargs="+", action="extend", metavar="LINK", help=help)


def add_unit(parser: Any, *names: str, **settings: Any) -> None:
    """Add ``--unit``; None where it is not typed, for `geometry.units.in_metres`.

    Args:
        names, settings: other names of the option, and other arguments of `add_argument`.
    """
    parser.add_argument(
        "--unit",
        *names,
        choices=_UNITS,
        help="unit of a mesh or cloud file's coordinates (default: m, and more than 2 m is refused as doubtful)",
        **settings,
    )


def load_robot(name: str, options: argparse.Namespace) -> tuple[RobotDescription, dict[str, float]]:
    """What ROBOT means on a command line, see `robot.sources.load_robot`.

    Args:
        name: as it was typed.
        options: with ``package_path``, and perhaps ``unit``.
    """
    from morphit_ros.robot import sources

    return sources.load_robot(name, options.package_path, vars(options).get("unit"))
