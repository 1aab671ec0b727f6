"""Robots by name: those of config/robots, and those of the package example-robot-data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from morphit_ros.resources import share_directory
from morphit_ros.robot.packages import package_folders

EXAMPLE_PACKAGE = "example-robot-data"


def known_robots() -> list[str]:
    """Names that `robot.sources.load_robot` knows: of config/robots, then of example-robot-data where installed."""
    own = configured_robots()
    return own + [name for name in example_robots() if name not in own]


def configured_robots() -> list[str]:
    """Names in config/robots."""
    return sorted(path.stem for path in (share_directory() / "config" / "robots").glob("*.yaml"))


def example_robots() -> dict[str, Path]:
    """Name → URDF of the installed example-robot-data, sorted by name; empty without it.

    A robot is named after its file. Files of one name in several folders have that of their folder before it, as in
    ``anymal_c_simple-anymal``.
    """
    places = (folder / "robots" for folder in package_folders(EXAMPLE_PACKAGE))
    root = next((place for place in places if place.is_dir()), None)
    files = sorted(root.rglob("*.urdf")) if root is not None else []
    often = Counter(file.stem for file in files)
    found = {}
    for file in files:
        folder = file.relative_to(root).parts[0].removesuffix("_description") if root is not None else ""
        found[file.stem if often[file.stem] == 1 else f"{folder}-{file.stem}"] = file
    return dict(sorted(found.items()))
