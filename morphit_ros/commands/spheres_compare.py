"""`morphit spheres compare`: compare methods over numbers of spheres.

Fit the links of a robot, or a mesh, by several methods with several numbers of spheres, and measure quality and
processor time. Prints the means over all links; --output adds every link and plots. Ctrl-C ends it early and keeps
what was measured. Needs morphit_bench, which is installed apart.
"""

from __future__ import annotations

import argparse
from typing import Any

from morphit_ros.bench import bench_module
from morphit_ros.commands.parser import CommandParser


def add_options(parser: CommandParser) -> None:
    _comparison().add_options(parser)


def run(options: argparse.Namespace) -> int:
    status: int = _comparison().run(options)
    return status


def _comparison() -> Any:
    return bench_module("spheres.compare", "morphit spheres compare")
