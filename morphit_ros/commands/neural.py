"""`morphit neural`: density fields of objects from pictures, and what follows from them."""

from __future__ import annotations

from typing import Any

from morphit_ros.commands import neural_identify, neural_push, neural_record, neural_train
from morphit_ros.commands.parser import add_group


def add_parser(commands: Any) -> None:
    parsers = add_group(
        commands,
        "neural",
        "record, learn, identify and push objects known only from cameras",
        "Density fields of objects from posed pictures: record in simulation, train, identify, push.",
    )
    for module in (neural_record, neural_train, neural_identify, neural_push):
        module.add_parser(parsers)
