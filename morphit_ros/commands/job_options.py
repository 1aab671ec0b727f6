"""Arguments of a job on the command line: as options, ``--robot panda``, and as in launch files, ``robot:=panda``."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from morphit_ros.bringup.arguments import Argument, parse_assignments
from morphit_ros.bringup.job import Job
from morphit_ros.commands.options import add_typed
from morphit_ros.commands.parser import CommandParser
from morphit_ros.errors import InvalidInputError

_PREFIX = "argument_"


def take_assignments(parser: CommandParser, words: list[str]) -> list[str]:
    """Take ``name:=value`` words out, which may stand anywhere, and spell options with dashes.

    They become ``assignments`` of the namespace. This is a `prepare` of `CommandParser`.
    """
    assigned = [word for word in words if ":=" in word and not word.startswith("-")]
    parser.set_defaults(assignments=assigned)
    left = []
    for word in words:
        if word not in assigned:
            name, equals, value = word.partition("=")
            left.append(name.replace("_", "-") + equals + value if word.startswith("--") else word)
    return left


def add_job_options(parser: Any, job: Job, without: Collection[str] = ()) -> None:
    """Add the arguments of a job as options, but those named in `without`."""
    group = parser.add_argument_group(f"arguments of the job {job.name}, also as name:=value")
    for argument in job.arguments:
        if argument.name not in without:
            _add(group, argument)


def _add(group: Any, argument: Argument) -> None:
    name, dest = f"--{argument.name.replace('_', '-')}", _PREFIX + argument.name
    default = "yes" if argument.default is True else argument.default_text
    shown = "" if argument.default in ("", False) else f" (default: {default})"
    text = (argument.description + shown).replace("%", "%%")
    metavar = "|".join(argument.choices) or {int: "N", float: "X"}.get(type(argument.default), "TEXT")
    add_typed(group, name, argument.default, metavar, dest=dest, help=text)


def given_arguments(options: argparse.Namespace) -> dict[str, str]:
    """The arguments that were given in either form, as they would be typed after ``:=``.

    Raises:
        InvalidInputError: a word of another form, or an argument given in both forms with two values.
    """
    given = parse_assignments([*options.assignments, *options.arguments])
    for dest, value in vars(options).items():
        if dest.startswith(_PREFIX) and value is not None:
            name = dest.removeprefix(_PREFIX)
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if given.get(name, text) != text:
                option = f"--{name.replace('_', '-')}"
                raise InvalidInputError(option, f"{text}, and {name}:={given[name]}", "one of them")
            given[name] = text
    return given
