"""The spherised URDF: collision elements replaced by spheres inside their links, the rest byte for byte as it was."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel


def spherized_urdf(description: RobotDescription, model: SphereModel, padding: float = 0.0) -> str:
    """The URDF of a robot whose collision geometry is its spheres.

    Args:
        description: the robot.
        model: its spheres; links that the model lacks keep their collision elements.
        padding: added to every radius [m]. Balanced spheres leave parts of the surface up to d_max uncovered;
            a padding of d_max covers them at the price of a fatter robot.

    Raises:
        InvalidInputError: the model has a link that the description lacks or that has no collision geometry, or
            the padding makes a radius vanish.
    """
    if not math.isfinite(padding):
        raise InvalidInputError("padding", padding, "a finite number [m]")
    for name, spheres in model.links.items():
        if name not in description.links or not description.links[name].collisions:
            raise InvalidInputError("model", f"link '{name}'", f"links of '{description.name}' with collision geometry")
        if not (spheres.radii + padding > 0.0).all():
            raise InvalidInputError("padding", padding, f"more than {-spheres.radii.min():g} m (link '{name}')")
    document = description.xml.strip().encode("utf-8")
    pieces, position, written = [], 0, set()
    for span in _collision_spans(document):
        if span.link not in model.links:
            continue
        start = span.start
        if span.link in written:
            # Further elements go with the blank before them.
            start = len(document[:start].rstrip())
            pieces.append(document[position:start])
        else:
            line = document.rfind(b"\n", 0, start) + 1
            indent = document[line:start] if not document[line:start].strip() else b""
            pieces += [document[position:start], _collision_elements(model.links[span.link], padding, indent)]
            written.add(span.link)
        position = span.end
    pieces.append(document[position:])
    return b"".join(pieces).decode("utf-8") + "\n"


def _collision_elements(spheres: LinkSpheres, padding: float, indent: bytes) -> bytes:
    elements = [
        f'<collision><origin xyz="{x:.9g} {y:.9g} {z:.9g}" rpy="0 0 0"/>'
        f'<geometry><sphere radius="{radius + padding:.9g}"/></geometry></collision>'
        for (x, y, z), radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True)
    ]
    return (b"\n" + indent).join(element.encode() for element in elements)


@dataclass
class _Span:
    """Bytes [start, end) of one <collision> element."""

    link: str
    start: int
    end: int = -1


@dataclass
class _SpanFinder:
    """Follows the parser through robot/link/collision."""

    parser: Any
    path: list[str] = field(default_factory=list)
    link: str = ""
    spans: list[_Span] = field(default_factory=list)
    closing: bool = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.settle()
        self.path.append(tag)
        if self.path == ["robot", "link"]:
            self.link = attributes.get("name", "")
        elif self.path == ["robot", "link", "collision"]:
            self.spans.append(_Span(self.link, self.parser.CurrentByteIndex))

    def end(self, _tag: str) -> None:
        self.settle()
        # The end of an element is known only where the next token begins.
        self.closing = self.path == ["robot", "link", "collision"]
        self.path.pop()

    def settle(self, *_: object) -> None:
        if self.closing:
            self.spans[-1].end = self.parser.CurrentByteIndex
            self.closing = False


def _collision_spans(document: bytes) -> list[_Span]:
    # Python hands over text as UTF-8 whatever encoding its declaration still names.
    parser = expat.ParserCreate("utf-8")
    finder = _SpanFinder(parser)
    parser.StartElementHandler = finder.start
    parser.EndElementHandler = finder.end
    parser.DefaultHandlerExpand = finder.settle
    parser.Parse(document, True)
    return finder.spans
