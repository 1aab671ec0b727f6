"""Frames that do not move, for tf2: RViz shows in `world` only what is connected to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.bringup.job import NodeDescription, is_installed
from morphit_ros.robot.configuration import RobotConfiguration

WORLD = "world"
# Of a morphing cover that moves with a link.
WORN_COVER = "cover"
_PACKAGE, _PROGRAM = "tf2_ros", "static_transform_publisher"
# Where the simulation puts the cameras unless a parameter file says otherwise: as in its own configuration.
SIMULATED_CAMERAS: Mapping[str, Any] = {
    "left_camera_position": (0.88, 0.32, 0.45),
    "right_camera_position": (0.88, -0.32, 0.45),
    "camera_target": (0.5, 0.0, 0.05),
}
# And further ones, where a job has them: on the other side of the table, left and right of the robot.
FURTHER_CAMERAS: Mapping[str, tuple[float, ...]] = {"third": (0.2, 0.5, 0.5), "fourth": (0.25, -0.45, 0.55)}


def can_publish_static_frames() -> bool:
    """Whether tf2_ros is installed."""
    return is_installed(_PACKAGE, _PROGRAM)


def base_publishers(robot: RobotConfiguration, T_world_base: Any) -> list[NodeDescription]:
    """Connects the robot's description to the world: one node, or none if its root already is the world.

    Args:
        robot: names the base link and the description.
        T_world_base: (4, 4), pose of the base link.
    """
    from morphit_ros.geometry.transforms import invert_transform
    from morphit_ros.robot.description import load_robot_description

    description = load_robot_description(robot.description)
    if description.root_link == WORLD:
        return []
    # A frame has one parent: if the base link has one in the description, its root is what is placed.
    T_world_root, joint = T_world_base, description.parent_joint(robot.base_link)
    while joint is not None:
        T_world_root = T_world_root @ invert_transform(joint.T_parent_child)
        joint = description.parent_joint(joint.parent)
    return [_publisher("world_to_base", description.root_link, T_world_root)]


def cover_publisher(link: str, T_link_cover: Any) -> NodeDescription:
    """Connects a cover to the link that wears it."""
    return _publisher("link_to_cover", WORN_COVER, T_link_cover, link)


def simulated_publishers(robot: RobotConfiguration, changed: Mapping[str, Any]) -> list[NodeDescription]:
    """Base and cameras as workcell_sim has them.

    Args:
        robot: the simulated one.
        changed: parameters of workcell_sim that differ from its defaults.
    """
    from morphit_ros.geometry.transforms import look_at, make_transform, matrix_from_rpy

    cell = {**SIMULATED_CAMERAS, **changed}
    position, yaw = robot.base_position, robot.base_yaw
    if changed.get("base_position"):
        position, yaw = changed["base_position"], changed.get("base_yaw", 0.0)
    base = make_transform(matrix_from_rpy((0.0, 0.0, yaw)), position)
    cameras = [
        _publisher(
            f"world_to_{side}_camera",
            f"{side}_camera_optical_frame",
            look_at(cell[f"{side}_camera_position"], cell["camera_target"]),
        )
        for side in ("left", "right", *(name for name in FURTHER_CAMERAS if f"{name}_camera_position" in cell))
    ]
    return [*base_publishers(robot, base), *cameras]


def _publisher(name: str, frame: str, T_parent_frame: Any, parent: str = WORLD) -> NodeDescription:
    from morphit_ros.geometry.transforms import quat_xyzw_from_matrix

    numbers = [*T_parent_frame[:3, 3].tolist(), *quat_xyzw_from_matrix(T_parent_frame[:3, :3]).tolist()]
    words: list[str] = []
    for option, number in zip(("x", "y", "z", "qx", "qy", "qz", "qw"), numbers, strict=True):
        words += [f"--{option}", f"{number:.9f}"]
    return NodeDescription(
        _PROGRAM,
        package=_PACKAGE,
        name=name,
        arguments=(*words, "--frame-id", parent, "--child-frame-id", frame),
    )
