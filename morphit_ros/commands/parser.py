"""Parsers of commands that get their options when they are first used."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Prepare: TypeAlias = "Callable[[CommandParser, list[str]], list[str]]"


class CommandParser(argparse.ArgumentParser):
    """A parser that is completed when it is first used: what options are made from may take long to import.

    Args:
        add_options: adds the options.
        prepare: sees the words before they are parsed, may add options for them, and returns those that are left.
    """

    def __init__(
        self,
        *args: Any,
        add_options: Callable[[CommandParser], None] | None = None,
        prepare: Prepare | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._pending = add_options
        self._prepare = prepare

    def complete(self) -> CommandParser:
        """Add the options, unless that was done."""
        pending, self._pending = self._pending, None
        if pending:
            pending(self)
        return self

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        self.complete()
        if self._prepare and args is not None:
            args = self._prepare(self, list(args))
        return super().parse_known_args(args, namespace)

    def format_help(self) -> str:
        self.complete()
        return super().format_help()

    def format_usage(self) -> str:
        self.complete()
        return super().format_usage()


def add_command(
    commands: Any,
    name: str,
    doc: str | None,
    add_options: Callable[[CommandParser], None],
    run: Callable[[argparse.Namespace], int],
    prepare: Prepare | None = None,
) -> None:
    """Add a command to those of a parser.

    Args:
        commands: what `add_subparsers` of a `CommandParser` returned.
        name: as it is typed.
        doc: a docstring whose first line is "`morphit NAME`: summary.", then a paragraph that describes the command,
            then, if need be, one that ends its help.
        add_options, prepare: see `CommandParser`.
        run: from the options, the exit status.
    """
    first, description, *rest = inspect.cleandoc(doc or "").split("\n\n")
    parser = commands.add_parser(
        name,
        help=first.partition("`: ")[2].rstrip("."),
        description=description,
        epilog=rest[0] if rest else None,
        add_options=add_options,
        prepare=prepare,
    )
    parser.set_defaults(run=run)


def add_group(commands: Any, name: str, summary: str, description: str) -> Any:
    """Add a command that has commands of its own; returns what these are added to."""
    parser = commands.add_parser(name, help=summary, description=description)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
