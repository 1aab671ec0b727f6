"""`morphit spheres`: sphere models of robots."""

from __future__ import annotations

from typing import Any

from morphit_ros.commands import spheres_compare, spheres_export, spheres_fit, spheres_view
from morphit_ros.commands.parser import add_group


def add_parser(commands: Any) -> None:
    parsers = add_group(commands, "spheres", "sphere models of robots", "Sphere models of robots.")
    for module in (spheres_fit, spheres_view, spheres_export, spheres_compare):
        module.add_parser(parsers)
