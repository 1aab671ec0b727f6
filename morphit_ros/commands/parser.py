"""Parsers of commands that get their options when they are first used."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
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


def add_command(commands: Any, module: ModuleType) -> None:
    """Add the command of a module to those of a parser.

    Args:
        commands: what `add_subparsers` of a `CommandParser` returned.
        module: its docstring begins with "`morphit name`: summary."; then comes a paragraph that describes the command,
            and, if need be, one that ends its help. It has the functions `add_options`, `run` (from the options, the
            exit status) and perhaps `prepare`; see `CommandParser`.
    """
    first, description, *rest = inspect.cleandoc(module.__doc__ or "").split("\n\n")
    words, _, summary = first.partition("`: ")
    parser = commands.add_parser(
        [word for word in words.split() if word.islower()][-1],
        help=summary.rstrip("."),
        description=description,
        epilog=rest[0] if rest else None,
        add_options=module.add_options,
        prepare=getattr(module, "prepare", None),
    )
    parser.set_defaults(run=module.run)


def add_group(commands: Any, name: str, summary: str, description: str, modules: Iterable[ModuleType]) -> None:
    """Add a command that has commands of its own, those of modules."""
    parser = commands.add_parser(name, help=summary, description=description)
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in modules:
        add_command(actions, module)
