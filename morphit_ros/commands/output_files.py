"""Files that commands write: refused before the work if they cannot be written, and each tried after it."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from morphit_ros.commands.reports import say
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.resources import check_writable

PICTURES = (".png",)


def add_output(
    parser: Any, option: str, help: str, metavar: str = "FILE", suffixes: Sequence[str] = (), **more: Any
) -> None:
    """Add an option for a file to write, or for a folder (metavar DIR); `check_outputs` knows it.

    Args:
        parser: or a group of one.
        option: as it is typed.
        help, metavar: for the help.
        suffixes: that its name may end in, any if empty.
        more: further arguments of `add_argument`.
    """
    dest = parser.add_argument(option, metavar=metavar, help=help, **more).dest
    known = parser.get_default("output_options") or ()
    parser.set_defaults(output_options=(*known, (option, dest, metavar == "DIR", tuple(suffixes))))


def add_json(parser: Any) -> None:
    """Add ``--json``."""
    add_output(parser, "--json", "write the result as JSON; - for standard output")


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse files that could not be written after the work.

    Raises:
        InvalidInputError: names the option and the remedy.
    """
    for option, dest, folder, suffixes in getattr(options, "output_options", ()):
        given = getattr(options, dest)
        for file in given if isinstance(given, list) else [given]:
            if file is not None and file != "-":
                check_output(option, file, folder, suffixes)


def check_output(option: str, file: str, folder: bool = False, suffixes: Sequence[str] = ()) -> None:
    """Refuse a file or a folder that cannot be written; missing folders will be made.

    Raises:
        InvalidInputError: a suffix of nothing that can be written; a folder where a file should be, or the other way
            round; or a folder around it that is a file or cannot be written.
    """
    path = Path(file)
    if suffixes and path.suffix.lower() not in suffixes:
        raise InvalidInputError(option, repr(file), f"a name that ends in {' or '.join(suffixes)}")
    check_writable(option, file, folder)


def plain(source: object, *names: str) -> dict[str, Any]:
    """Attributes of an object for JSON: arrays and NumPy's numbers as Python's own."""
    values = {name: getattr(source, name) for name in names}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}


def finite_or_none(value: float) -> float | None:
    """A number for JSON, which has neither infinity nor NaN."""
    return value if math.isfinite(value) else None


class ResultFiles:
    """Writes the files of a result. One that fails does not keep the others from being written.

    Leaving its context raises an InvalidInputError if a file could not be written; what was meant for it is then kept
    in a temporary folder, which the error names.
    """

    def __init__(self) -> None:
        self._errors: list[InvalidInputError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._errors and error is None:
            *others, last = self._errors
            for other in others:
                say(str(other))
            raise last

    def write(self, option: str, file: str | Path, write: Callable[[Path], object]) -> None:
        """Have a file written.

        Args:
            option: that it was asked for with.
            file: its name.
            write: writes a file of the name that it gets.
        """
        try:
            write(Path(file))
        except MorphitError:
            raise
        except OSError as error:
            remedy = "It could not be kept anywhere else either."
            with contextlib.suppress(OSError):
                kept = Path(tempfile.mkdtemp(prefix="morphit_")) / Path(file).name
                write(kept)
                remedy = f"What was meant for it is kept as {kept}."
            reason = error.strerror or error
            self._errors.append(
                InvalidInputError(option, repr(str(file)), f"a file that can be written ({reason})", remedy)
            )

    def text(self, option: str, file: str | Path, text: str) -> None:
        """Write a text; to standard output for ``-``. A file appears complete or not at all."""
        if file == "-":
            sys.stdout.write(text)
            return
        from morphit_ros.resources import atomic_write

        def write(path: Path) -> None:
            with atomic_write(path) as stream:
                stream.write(text)

        self.write(option, file, write)

    def json(self, content: Any, file: str | Path | None, option: str = "--json") -> None:
        """Write what a machine can read; nothing without a file."""
        if file:
            self.text(option, file, json.dumps(content, indent=2, allow_nan=False) + "\n")
