"""`morphit spheres compare`: fit by all methods, and measure.

Sphere fits of this package beside those of earlier papers (VSSA, AMAA, a packing), by the same measures: a table and
plots. Needs morphit_bench, which is installed apart.
"""

from __future__ import annotations

from typing import Any

from morphit_ros.bench import bench_module
from morphit_ros.commands.parser import add_command


def add_parser(parsers: Any) -> None:
    add_command(
        parsers,
        "compare",
        __doc__,
        lambda parser: _comparison().add_options(parser),
        lambda options: _comparison().run(options),
    )


def _comparison() -> Any:
    return bench_module("spheres.compare", "morphit spheres compare")
