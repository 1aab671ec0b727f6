"""Arguments of a job, written ``name:=value`` as in ROS launch files."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from morphit_ros.configuration import parse_text
from morphit_ros.errors import InvalidInputError


@dataclass(frozen=True)
class Argument:
    """One argument of a job; its type is that of its default.

    Attributes:
        name: as it is typed.
        default: a str, bool, int or float.
        description: one line, with the unit in brackets.
        choices: accepted values, empty for any; launch files show them.
        minimum, maximum: inclusive bounds of a number.
    """

    name: str
    default: str | bool | int | float
    description: str
    choices: tuple[str, ...] = ()
    minimum: float = -math.inf
    maximum: float = math.inf

    @property
    def default_text(self) -> str:
        """The default as it would be typed."""
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    @property
    def choices_text(self) -> tuple[str, ...]:
        """The accepted values as they would be typed; empty for any."""
        return ("true", "false") if isinstance(self.default, bool) else self.choices

    def parse(self, text: str) -> str | bool | int | float:
        """The value of a typed text.

        Raises:
            InvalidInputError: not of the argument's type, out of range, or none of its choices.
        """
        kind = type(self.default)
        if kind is bool:
            bound = "true or false"
        elif kind is str:
            bound = f"one of {', '.join(self.choices)}"
        else:
            bound = f"{'an integer' if kind is int else 'a number'} in [{self.minimum:g}, {self.maximum:g}]"
        try:
            value: Any = parse_text(text, self.default)
        except ValueError:
            raise InvalidInputError(self.name, repr(text), bound) from None
        if self.choices and value not in self.choices:
            raise InvalidInputError(self.name, repr(text), bound)
        if kind in (int, float) and not (math.isfinite(value) and self.minimum <= value <= self.maximum):
            raise InvalidInputError(self.name, text, bound)
        return cast("str | bool | int | float", value)


def parse_assignments(words: Iterable[str]) -> dict[str, str]:
    """Split ``name:=value`` words; the last one of a name counts.

    Raises:
        InvalidInputError: a word without ``:=`` or without a name.
    """
    assignments = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name:
            raise InvalidInputError("argument", repr(word), "name:=value")
        assignments[name] = value
    return assignments


def resolve_arguments(job: str, arguments: Sequence[Argument], given: Mapping[str, str]) -> dict[str, Any]:
    """Typed values of all arguments: what was given, else the defaults.

    Raises:
        InvalidInputError: an argument that the job does not have (with the nearest it has), or a bad value.
    """
    known = {argument.name: argument for argument in arguments}
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean '{near[0]}'?" if near else ""
            raise InvalidInputError(name, f"an unknown argument of job '{job}'", f"one of {', '.join(known)}", remedy)
    return {
        name: argument.parse(given[name]) if name in given else argument.default for name, argument in known.items()
    }
