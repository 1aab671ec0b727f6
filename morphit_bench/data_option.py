"""``--data`` of the benchmarks: the same folder in all of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from morphit_ros.errors import ResourceNotFoundError
from morphit_ros.resources import data_directory, data_path


def add_data(parser: Any, part: str, optional: bool = False) -> None:
    """Add ``--data``: the folder that holds cover/, grasp/, neural/, planning/, robots/ and ycb/, as a Path.

    Args:
        parser: of a benchmark.
        part: what the benchmark reads of it; a folder without that is refused with status 2.
        optional: without ``--data`` it is None, rather than ``$MORPHIT_DATA`` or ``../shared/data``.
    """

    def folder(text: str) -> Path:
        try:
            data_path(part, text)
        except ResourceNotFoundError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return Path(text)

    without = "" if optional else " (default: MORPHIT_DATA, else ../shared/data)"
    parser.add_argument(
        "--data",
        type=folder,
        default=None if optional else data_directory(),
        metavar="DIR",
        help=f"folder with published data, of which {part} is read{without}",
    )
