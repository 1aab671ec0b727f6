"""`morphit superovoid`: superovoid models of robots."""

from __future__ import annotations

from typing import Any

from morphit_ros.commands import superovoid_fit
from morphit_ros.commands.parser import add_group


def add_parser(commands: Any) -> None:
    superovoid_fit.add_parser(add_group(commands, "superovoid", "superovoid models of robots", "Superovoid models."))
