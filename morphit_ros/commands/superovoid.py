"""`morphit superovoid`: superovoid models of robots."""

from __future__ import annotations

from typing import Any

from morphit_ros.commands import superovoid_fit


def add_parser(commands: Any) -> None:
    group = commands.add_parser(
        "superovoid", help="superovoid models of robots", description="Superovoid models of robots."
    )
    parsers = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    superovoid_fit.add_parser(parsers)
