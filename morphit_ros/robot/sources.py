"""Robots as people name them: a file like those of config/robots, a description, or a mesh as a robot of one link."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.units import check_metres, unit_length
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.robot.example_robots import example_robots
from morphit_ros.robot.packages import resolve_uri

_DESCRIPTIONS, _URIS = (".urdf", ".xacro", ".yaml", ".yml"), ("package://", "file://")


def load_robot(
    name: str, package_paths: Sequence[str | Path] = (), unit: str | None = None
) -> tuple[RobotDescription, dict[str, float]]:
    """A robot of config/robots or example-robot-data by name, a description file, or a mesh as a robot of one link.

    Args:
        name: "panda", "talos_full_v2", a robot's YAML file, the path or URI of a URDF, xacro or mesh file, or the text
            of a URDF.
        package_paths: folders that hold packages.
        unit: of a mesh file, see `geometry.units.in_metres`.

    Returns:
        The description and, of a robot of config/robots or a YAML file, its home: joint → position [rad or m].

    Raises:
        ResourceNotFoundError, InvalidInputError: no such robot or file, or an unusable one; a mesh of more than 2 m in
            no unit, or a unit for what is no mesh file.
    """
    if name.lstrip().startswith("<"):
        return load_robot_description(name, package_paths), {}
    suffix = Path(name).suffix.lower()
    # Names may have dots.
    if suffix and suffix not in _DESCRIPTIONS and not Path(name).exists():
        file = example_robots().get(name)
        if file is not None:
            return load_robot_description(str(file), package_paths), {}
    if suffix not in _DESCRIPTIONS and (suffix or name.startswith(_URIS)):
        return load_robot_description(_mesh_robot(name, package_paths, unit), package_paths), {}
    if unit is not None:
        raise InvalidInputError("unit", repr(unit), f"none with the robot '{name}'", "It is of mesh files.")
    if suffix and suffix not in (".yaml", ".yml"):
        return load_robot_description(name, package_paths), {}
    try:
        robot = RobotConfiguration.load(name)
    except ResourceNotFoundError:
        file = example_robots().get(name)
        if file is None:
            raise
        return load_robot_description(str(file), package_paths), {}
    home = dict(zip(robot.arm_joints, map(float, robot.home), strict=True))
    return load_robot_description(robot.description, package_paths), home


def _mesh_robot(name: str, package_paths: Sequence[str | Path], unit: str | None) -> str:
    """The URDF of a robot whose only link is a mesh file."""
    from xml.sax.saxutils import quoteattr

    uri = name if name.startswith(_URIS) else Path(name).absolute().as_uri()
    scale = ""
    if unit is None:
        check_metres(name, float(load_mesh(resolve_uri(uri, package_paths)).extents.max()))
    elif unit_length(unit) != 1.0:
        scale = f' scale="{" ".join(3 * [repr(unit_length(unit))])}"'
    link = quoteattr(Path(name).stem)
    geometry = f"<geometry><mesh filename={quoteattr(uri)}{scale}/></geometry>"
    return f"<robot name={link}><link name={link}><collision>{geometry}</collision></link></robot>"
