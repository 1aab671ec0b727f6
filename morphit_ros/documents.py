"""YAML files of people and programs, read without trust: plain data, of bounded size once everything is written out.

A kilobyte of YAML can stand for more nodes than there are atoms: aliases and merge keys of aliases double with each
line. So a document is first followed event by event, which takes no memory, and built only if it is small.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from morphit_ros.budgets import MOST_NUMBER_CHARACTERS, MOST_YAML_BYTES, MOST_YAML_DEPTH, MOST_YAML_NODES
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

_KIND = "a YAML file of keys and values"
# A message shows so much of what a parser says.
_SHOWN = 300
_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9a-fA-Fx]*")


def read_text(path: str | Path, most: int, remedy: str = "") -> str:
    """The text of a file in UTF-8.

    Args:
        path: of the file.
        most: bytes that it may have.
        remedy: where there is no such file.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: it is too large, cannot be read or is no UTF-8.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise ResourceNotFoundError(str(path), [str(file.parent)], remedy)
        with file.open("rb") as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            size = f"{file.stat().st_size / 2**20:.3g} MiB"
            raise InvalidInputError(file.name, size, f"at most {most / 2**20:.3g} MiB")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(file.name, f"no text ({error})", "text in UTF-8") from None
    except ResourceNotFoundError:
        raise
    # A name may hold zero bytes, or be longer than any file system allows.
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        reason = f"unreadable ({error})"[:_SHOWN]
        raise InvalidInputError(file.name[:_SHOWN], reason, "a file that can be read") from None


def read_yaml_file(path: str | Path, remedy: str = "") -> Any:
    """What a YAML file holds; `remedy` is for where there is none.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: as of `read_text` and `parse_yaml`.
    """
    return parse_yaml(read_text(path, MOST_YAML_BYTES, remedy), Path(path).name)


def parse_yaml(text: str, source: str) -> Any:
    """What a YAML text holds: mappings, lists, texts, numbers, dates; `source` names it in errors.

    Raises:
        InvalidInputError: no YAML, nested too deeply, or too large once its aliases are written out.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_size(yaml.parse(text, Loader=loader), source)
        return yaml.load(text, Loader=loader)
    except InvalidInputError:
        raise
    # The constructors of tagged values raise whatever the value makes them stumble over.
    except Exception as error:
        detail = " ".join(str(error).split())[:_SHOWN]
        raise InvalidInputError(source, f"no YAML ({detail})", _KIND) from error


def _check_size(events: Any, source: str) -> None:
    """Refuse what is too deep or too large; an alias counts as much as what it stands for."""
    import yaml

    sizes: dict[str, int] = {}
    # Of the collections that are open: their anchors, and how many nodes there were before.
    open_collections: list[tuple[str | None, int]] = []
    count = 0
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_collections.pop()
            if anchor is not None:
                sizes[anchor] = count - before
            continue
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1
            if event.anchor not in sizes:
                raise InvalidInputError(source, f"an alias at line {line} of itself or of nothing", _KIND)
            count += sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
            typed = event.implicit[0] or event.tag is not None
            if typed and len(event.value) > MOST_NUMBER_CHARACTERS and _NUMBER.fullmatch(event.value):
                found = f"a number of {len(event.value)} characters at line {event.start_mark.line + 1}"
                raise InvalidInputError(source, found, f"at most {MOST_NUMBER_CHARACTERS}")
        elif isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, count))
            count += 1
            if event.anchor is not None:
                sizes.pop(event.anchor, None)
            if len(open_collections) > MOST_YAML_DEPTH:
                raise InvalidInputError(source, f"more than {MOST_YAML_DEPTH} nested collections", "a flatter document")
        if count > MOST_YAML_NODES:
            found = f"more than {MOST_YAML_NODES} values once its aliases are written out"
            raise InvalidInputError(source, found, f"at most {MOST_YAML_NODES}")
