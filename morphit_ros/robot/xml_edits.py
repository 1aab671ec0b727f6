"""Elements of an XML text replaced in place: every other byte stays as it was."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from morphit_ros.errors import InvalidInputError

Path = tuple[str, ...]


@dataclass
class ElementSpan:
    """Where an element lies in the bytes of its document.

    Attributes:
        path: tags from the root to the element.
        attributes: of the element.
        owner: attribute `name` of the element around it.
        start, end: bytes [start, end) of the element with its tags.
        close: where its end tag begins; -1 for an element without one, `<link/>`.
    """

    path: Path
    attributes: Mapping[str, str]
    owner: str
    start: int
    close: int = -1
    end: int = -1


@dataclass(frozen=True)
class Edit:
    """Bytes [start, end) become `text`."""

    start: int
    end: int
    text: bytes


def refuse_entities(text: str, source: str) -> None:
    """Refuse XML that declares entities: nothing here needs them, and nested ones grow without bound.

    Raises:
        InvalidInputError: the text declares an entity. Other mistakes are left to the parser that reads it.
    """

    def declared(name: str, *_: object) -> NoReturn:
        raise InvalidInputError(source, f"the entity '{name}' declared", "XML without declared entities")

    parser = expat.ParserCreate("utf-8")
    parser.EntityDeclHandler = declared
    try:
        parser.Parse(text.strip().encode("utf-8", errors="replace"), True)
    except expat.ExpatError:
        return


def find_elements(document: bytes, paths: Collection[Path]) -> list[ElementSpan]:
    """All elements of a well-formed UTF-8 document that lie at one of the paths, in its order."""
    # Python hands over text as UTF-8 whatever encoding its declaration still names.
    parser = expat.ParserCreate("utf-8")
    finder = _Finder(parser, frozenset(paths), document)
    parser.StartElementHandler = finder.start
    parser.EndElementHandler = finder.end
    parser.DefaultHandlerExpand = finder.settle
    parser.Parse(document, True)
    finder.settle()
    return finder.found


def apply_edits(document: bytes, edits: Iterable[Edit]) -> bytes:
    """The document after edits that don't overlap."""
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += [document[position : edit.start], edit.text]
        position = edit.end
    pieces.append(document[position:])
    return b"".join(pieces)


def replace_elements(document: bytes, old: Iterable[ElementSpan], new: list[bytes]) -> list[Edit]:
    """Edits that put elements, one a line, where the first of some others was, and remove those.

    A second run over the result changes nothing.
    """
    edits = []
    for number, span in enumerate(old):
        if number == 0 and new:
            edits.append(Edit(span.start, span.end, _lines(new, _indent_before(document, span.start))))
        else:
            # Elements that go take the blank before them along.
            edits.append(Edit(len(document[: span.start].rstrip()), span.end, b""))
    return edits


def append_elements(document: bytes, parent: ElementSpan, new: list[bytes]) -> Edit:
    """The edit that puts elements, one a line, at the end of another element."""
    outer = _indent_before(document, parent.start)
    inner = _indent_inside(document, parent) or outer + b"  "
    lines = b"\n" + inner + _lines(new, inner) + b"\n" + outer
    if parent.close < 0:
        tag = parent.path[-1].encode()
        return Edit(document.rindex(b"/>", parent.start, parent.end), parent.end, b">" + lines + b"</" + tag + b">")
    return Edit(len(document[: parent.close].rstrip()), parent.close, lines)


def _lines(elements: list[bytes], indent: bytes) -> bytes:
    """Elements one after the other, every line but the first indented."""
    return b"\n".join(elements).replace(b"\n", b"\n" + indent)


def _indent_before(document: bytes, position: int) -> bytes:
    """The blank between the start of a line and a position on it, empty if there is anything else."""
    line = document.rfind(b"\n", 0, position) + 1
    return document[line:position] if not document[line:position].strip() else b""


def _indent_inside(document: bytes, parent: ElementSpan) -> bytes:
    """Indent of the first element or comment on its own line inside another."""
    position = parent.start
    while (position := document.find(b"\n", position + 1, parent.close)) >= 0:
        line = document[position + 1 : parent.close]
        if line.lstrip(b" \t").startswith(b"<"):
            return line[: len(line) - len(line.lstrip(b" \t"))]
    return b""


@dataclass
class _Finder:
    """Follows the parser through the document."""

    parser: Any
    paths: frozenset[Path]
    document: bytes
    path: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    found: list[ElementSpan] = field(default_factory=list)
    opened: list[ElementSpan | None] = field(default_factory=list)
    closed: ElementSpan | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.settle()
        self.path.append(tag)
        span = None
        if tuple(self.path) in self.paths:
            owner = self.names[-1] if self.names else ""
            span = ElementSpan(tuple(self.path), attributes, owner, self.parser.CurrentByteIndex)
            self.found.append(span)
        self.opened.append(span)
        self.names.append(attributes.get("name", ""))

    def end(self, _tag: str) -> None:
        self.settle()
        self.path.pop()
        self.names.pop()
        # The end of an element is known only where the next token begins.
        self.closed = self.opened.pop()
        position = self.parser.CurrentByteIndex
        if self.closed is not None and self.document[position : position + 2] == b"</":
            self.closed.close = position

    def settle(self, *_: object) -> None:
        if self.closed is not None:
            position = self.parser.CurrentByteIndex
            # After the last token the parser stays where the root's end tag began.
            if position <= max(self.closed.start, self.closed.close):
                position = self.document.index(b">", max(self.closed.start, self.closed.close)) + 1
            self.closed.end = position
            self.closed = None
