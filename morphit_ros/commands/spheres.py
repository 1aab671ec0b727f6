"""`morphit spheres`: sphere models of robots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from morphit_ros.commands import spheres_compare, spheres_export, spheres_fit, spheres_view

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription

_SUBCOMMANDS = (spheres_fit, spheres_view, spheres_export, spheres_compare)


def add_parser(commands: Any) -> None:
    group = commands.add_parser("spheres", help="sphere models of robots", description="Sphere models of robots.")
    parsers = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _SUBCOMMANDS:
        module.add_parser(parsers)


def load_robot(
    name: str, package_paths: list[str], unit: str | None = None
) -> tuple[RobotDescription, dict[str, float]]:
    """What ROBOT means on a command line, see `robot.sources.load_robot`."""
    from morphit_ros.robot import sources

    return sources.load_robot(name, package_paths, unit)
