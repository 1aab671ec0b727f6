"""`morphit neural`: density fields of objects from pictures, and what follows from them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from morphit_ros.commands import neural_record, neural_train

# Each adds its own parser; those that a build leaves out are not offered.
_OPTIONAL = ("neural_identify", "neural_push")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "neural",
        help="record, learn and identify objects known only from cameras",
        description="Density fields of objects from posed pictures: record in simulation, train.",
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    neural_record.add_parser(subcommands)
    neural_train.add_parser(subcommands)
    for name in _OPTIONAL:
        module = f"morphit_ros.commands.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).add_parser(subcommands)
