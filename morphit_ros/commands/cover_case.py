"""The case of a cover, as the actions of `morphit cover` take it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from morphit_ros.commands.parser import CommandParser

if TYPE_CHECKING:
    from morphit_ros.cover.cases import CoverCase


def add_case(parser: CommandParser, more: str = "") -> None:
    """Add CASE and where its start comes from; `more` names what CASE can be besides, for the help."""
    kinds = ["3x3, 4x8, 8x8, 20x20, thigh, strip, passage", "a YAML file", *([more] if more else [])]
    parser.add_argument("case", metavar="CASE", help=f"{', '.join(kinds[:-1])}, or {kinds[-1]}")
    start = parser.add_argument_group("start and motors (one of; without, they are made here)")
    start = start.add_mutually_exclusive_group()
    start.add_argument(
        "--start", metavar="FILE", help="JSON file with a cover and its motors, as 'morphit cover place' writes it"
    )
    start.add_argument("--published", action="store_true", help="the paper's, from the data in MORPHIT_DATA")
    start.add_argument("--data", metavar="DIR", help="the paper's, from this folder with data, which holds cover/")


def case_of(options: argparse.Namespace, overrides: dict[str, Any] | None = None) -> CoverCase:
    """The case that was asked for, with other parameters of its controller.

    Raises:
        ResourceNotFoundError, InvalidInputError: no such case or start, or a value that cannot be used.
    """
    from morphit_ros.cover.cases import load_case

    start = options.start
    if options.published or options.data is not None:
        from pathlib import Path

        from morphit_ros.resources import data_path

        start = data_path(f"cover/{Path(options.case).stem}.json", options.data)
    return load_case(options.case, start, overrides)
