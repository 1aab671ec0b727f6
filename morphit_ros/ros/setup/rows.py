"""Findings about a running system as rows of a table."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

# A bad row fails the check; a note is for people.
OK, NOTE, BAD = "ok", "note", "BAD"


@dataclass(frozen=True)
class Row:
    """One finding.

    Attributes:
        state: ok, note or BAD.
        area: nodes, topics, services, parameters, frames, clocks, robot, joints, controllers or driver.
        subject: name of what it is about.
        found: what is there.
        remedy: what to do, empty where nothing is.
    """

    state: str
    area: str
    subject: str
    found: str
    remedy: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def passed(rows: Sequence[Row]) -> bool:
    """Whether nothing is bad."""
    return all(row.state != BAD for row in rows)


def table(rows: Sequence[Row], width: int = 0) -> str:
    """The rows as text, bad ones with their remedy below.

    Args:
        rows: in the order of the table.
        width: of the text; 0: the terminal's.
    """
    columns = width or max(80, shutil.get_terminal_size((120, 24)).columns)
    area = max((len(row.area) for row in rows), default=0)
    subject = min(44, max((len(row.subject) for row in rows), default=0))
    indent = 6 + area + 2 + subject + 2
    lines = []
    for row in rows:
        head = f"{row.state:<4}  {row.area:<{area}}  {row.subject:<{subject}}  "
        # A long name has a line of its own.
        body = _wrapped(row.found, columns - indent)
        if len(row.subject) > subject:
            lines += [head.rstrip(), *(" " * indent + line for line in body)]
        else:
            lines += [head + body[0], *(" " * indent + line for line in body[1:])]
        if row.remedy:
            remedy = _wrapped(f"→ {row.remedy}", columns - indent)
            lines += [" " * indent + line for line in remedy]
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 30), break_long_words=False) or [""]


def shown_seconds(value: float) -> str:
    """A time in a unit that suits it."""
    if abs(value) >= 10000.0:
        return f"{value:.0f} s"
    return f"{value:.1f} s" if abs(value) >= 1.0 else f"{1e3 * value:.0f} ms"
