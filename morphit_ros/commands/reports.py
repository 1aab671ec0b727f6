"""Results of commands for machines: ``--json FILE``; and what people are told meanwhile."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - for standard output")


def say(text: str) -> None:
    """Tell on standard error what is under way."""
    print(f"morphit: {text}", file=sys.stderr, flush=True)


def write_json(content: Any, file: str) -> None:
    """Write to a file, or to standard output for ``-``. A file appears complete or not at all."""
    from morphit_ros.resources import atomic_write

    text = json.dumps(content, indent=2, allow_nan=False)
    if file == "-":
        sys.stdout.write(text + "\n")
        return
    with atomic_write(file) as stream:
        stream.write(text + "\n")
