"""Files that describe a workcell once: values of a job's arguments, in groups with any headings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from morphit_ros.bringup.arguments import Argument
from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError
from morphit_ros.resources import resource

_FOLDER = "config/system"

WORKCELL = Argument(
    "workcell", "", f"values for all other arguments: name in {_FOLDER} or a YAML file; what is typed counts more"
)


def workcell_values(name: str, arguments: Sequence[Argument]) -> dict[str, str]:
    """Values of arguments, as they would be typed.

    Args:
        name: in config/system, or a YAML file; empty: none.
        arguments: that there are.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: it is none, or has a value twice, or one that is none of an argument.
    """
    if not name:
        return {}
    path = Path(name) if name.endswith((".yaml", ".yml")) else resource(f"{_FOLDER}/{name}.yaml")
    content = read_yaml_file(path)
    if not isinstance(content, Mapping):
        raise InvalidInputError(path.name, type(content).__name__, "names of arguments, with their values")
    known = {argument.name for argument in arguments} - {WORKCELL.name}
    found: dict[str, str] = {}
    for key, value in _entries(content):
        if key not in known or key in found or not isinstance(value, (str, bool, int, float)):
            what = "twice" if key in found else repr(value)
            bound = f"each once, a text, number or truth value of one of {', '.join(sorted(known))}"
            raise InvalidInputError(f"{path.name}: {key}", what, bound)
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _entries(content: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values, with those of groups."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield from ((str(name), item) for name, item in value.items())
        else:
            yield str(key), value
