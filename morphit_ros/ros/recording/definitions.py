"""Message types by name, their definitions as ros2msg text, and how two definitions differ."""

from __future__ import annotations

import importlib
import re
from typing import Any

_RULE = "=" * 80
_BASIC = {"octet": "byte", "boolean": "bool", "float": "float32", "double": "float64"}
_SEQUENCE = re.compile(r"sequence<(.+?)(?:, *(\d+))?>$")
_ARRAY = re.compile(r"(.+)\[(\d*)\]$")
_TEXT = re.compile(r"(w?string)<(\d+)>$")
# Of a field in a message file: its type, its name, and what is no part of the interface.
_LINE = re.compile(r"(\S+)\s+([A-Za-z]\w*)\b(?!\s*=)")


def type_name(kind: type) -> str:
    """Of a message class, as ``sensor_msgs/msg/JointState``."""
    package, folder = kind.__module__.split(".")[:2]
    return f"{package}/{folder}/{kind.__name__}"


def message_type(name: str) -> Any:
    """The class of a type by its name; None where this installation has none that works."""
    parts = name.split("/")
    if len(parts) != 3 or not all(part.isidentifier() for part in parts):
        return None
    try:
        kind = getattr(importlib.import_module(".".join(parts[:2])), parts[2])
        # Loads the type support, which fails where the package is half there.
        kind()
        return kind
    except Exception:  # noqa: BLE001 - whatever a foreign package raises, the type is of no use
        return None


def definition_of(kind: Any) -> str:
    """The definition of a message class and of all types within it, as ros2msg text."""
    texts: dict[str, str] = {}

    def visit(name: str, found: Any) -> None:
        texts[name] = ""
        lines = []
        for field, written in found.get_fields_and_field_types().items():
            shown, nested = _written(written)
            lines.append(f"{shown} {field}")
            if nested and nested not in texts:
                package, _, short = nested.partition("/")
                visit(nested, getattr(importlib.import_module(f"{package}.msg"), short))
        texts[name] = "\n".join(lines) + "\n"

    root = type_name(kind)
    visit(root, kind)
    first = texts.pop(root)
    return first + "".join(f"{_RULE}\nMSG: {name}\n{text}" for name, text in texts.items())


def _written(kind: str) -> tuple[str, str]:
    """A field's type as ros2msg, and the message type in it; empty for none."""
    if match := _SEQUENCE.match(kind):
        inner, nested = _written(match[1])
        return f"{inner}[{f'<={match[2]}' if match[2] else ''}]", nested
    if match := _ARRAY.match(kind):
        inner, nested = _written(match[1])
        return f"{inner}[{match[2]}]", nested
    if match := _TEXT.match(kind):
        return f"{match[1]}<={match[2]}", ""
    return _BASIC.get(kind, kind), kind if "/" in kind else ""


def difference(recorded: str, here: str) -> str:
    """What a recorded definition has other than one of here, in words; empty if messages are the same bytes.

    Comments, constants, defaults and the order of types do not count.
    """
    old, new = _fields(recorded), _fields(here)
    for name in new:
        if name not in old:
            return f"{name} is not in the recording"
        for before, now in zip(old[name], new[name], strict=False):
            if before != now:
                where = f"{name} has " if name else ""
                return f"{where}'{' '.join(before)}' in the recording, '{' '.join(now)}' here"
        if len(old[name]) != len(new[name]):
            more, where = (old, "in the recording") if len(old[name]) > len(new[name]) else (new, "here")
            kind, field = more[name][min(len(old[name]), len(new[name]))]
            return f"{name + ' has ' if name else ''}'{kind} {field}' {where} only"
    return ""


def _fields(definition: str) -> dict[str, list[tuple[str, str]]]:
    """Type → its fields as (type, name); the type itself has no name."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in re.split(r"^=+\n", definition, flags=re.MULTILINE):
        head, newline, body = part.partition("\n")
        named = head.startswith("MSG: ")
        name = head.removeprefix("MSG: ").strip() if named else ""
        fields = []
        for line in (body if named else head + newline + body).splitlines():
            if match := _LINE.match(line.partition("#")[0].strip()):
                kind = match[1]
                fields.append((_plain(kind), match[2]))
        found[_plain(name)] = fields
    return found


def _plain(kind: str) -> str:
    """A type as both ways of writing it have in common: without folder and package of messages."""
    base, bracket, rest = kind.partition("[")
    return {"char": "uint8"}.get(base.rpartition("/")[2], base.rpartition("/")[2]) + bracket + rest
