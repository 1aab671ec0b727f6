"""The unit of the mesh and cloud files that commands read: ``--unit``."""

from __future__ import annotations

import argparse

# As in morphit_ros.geometry.units, which takes long to import.
_UNITS = ("m", "mm", "cm", "inch")


def add_unit_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--unit``; None where it is not typed, for `geometry.units.in_metres`."""
    parser.add_argument(
        "--unit",
        choices=_UNITS,
        help="unit of a mesh or cloud file's coordinates (default: m, and more than 2 m is refused as doubtful)",
    )
