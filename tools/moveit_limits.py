"""Writes config/moveit/<robot>/pilz_cartesian_limits.yaml from the limits of the robot's joints.

``python tools/moveit_limits.py`` writes them for the robots that come along; a test fails if they are out of date.
"""

from __future__ import annotations

from morphit_ros.resources import atomic_write, share_directory
from morphit_ros.robot.cartesian_limits import CartesianLimits, cartesian_limits
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import load_robot_description


def page(limits: CartesianLimits) -> str:
    """The text of a file."""
    [(section, values)] = limits.as_parameters().items()
    head = (
        "# What straight lines (LIN) are scaled from: what the joints allow at home in every direction.",
        "# Made by tools/moveit_limits.py from the description's velocities and the robot's accelerations.",
    )
    return "\n".join([*head, f"{section}:", *(f"  {name}: {value}" for name, value in values.items())]) + "\n"


def main() -> None:
    for folder in sorted(path for path in (share_directory() / "config/moveit").iterdir() if path.is_dir()):
        robot = RobotConfiguration.load(folder.name)
        limits = cartesian_limits(robot, load_robot_description(robot.description))
        with atomic_write(folder / "pilz_cartesian_limits.yaml") as stream:
            stream.write(page(limits))


if __name__ == "__main__":
    main()
