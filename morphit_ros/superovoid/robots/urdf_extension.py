"""Superovoids inside a URDF, in an element of their own that other readers ignore.

    <link name="panda_link0">
      …
      <superovoids>
        <superovoid semi_axes="a1 a2 a3" squareness="e1 e2" tapering="Tx Ty" xyz="x y z" quat_xyzw="x y z w"/>
      </superovoids>
    </link>

Format of the rest: "XML Robot Description Format (URDF)", ROS wiki, page urdf/XML/link, whose readers skip elements
that they don't know. Collision and visual geometry stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.etree.ElementTree import Element
from xml.parsers import expat

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.robot.urdf import parse_xml
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.shapes.superovoid import Superovoid

_COUNTS = {"semi_axes": 3, "squareness": 2, "tapering": 2, "xyz": 3, "quat_xyzw": 4}
_REQUIRED = ("semi_axes",)


def urdf_with_superovoids(urdf: str, model: RobotSuperovoids) -> str:
    """A URDF with the model's superovoids in it; those that it had before are gone, every other byte is as it was.

    Numbers are written so that they read back exactly.

    Raises:
        InvalidInputError: not a URDF, or the model has a link that it lacks.
    """
    root = parse_xml(urdf, "robot", "robot description")
    names = [link.get("name", "") for link in root.findall("link")]
    unknown = [name for name in model.links if name not in names]
    if unknown:
        raise InvalidInputError(
            "model", f"superovoids of {', '.join(unknown)}", f"links of the URDF: {', '.join(names)}"
        )
    document = urdf.strip().encode("utf-8")
    for start, end in reversed(_Scan(document).old):
        begin = len(document[:start].rstrip())
        document = document[:begin] + document[end:]
    for name, start, close, end in reversed(_Scan(document).links):
        if name not in model.links:
            continue
        text = _element(model.links[name]).encode()
        if close < 0:
            opening = document.rindex(b"/>", start, end)
            document = document[:opening] + b">" + text + b"\n  </link>" + document[end:]
        else:
            begin = len(document[:close].rstrip())
            document = document[:begin] + text + b"\n  " + document[close:]
    return document.decode("utf-8") + "\n"


def superovoids_from_urdf(urdf: str, source: str = "robot description") -> RobotSuperovoids:
    """The superovoids that a URDF holds; links without are not in the model. Errors of fits are not kept there.

    Raises:
        InvalidInputError: not a URDF, none in it, or a superovoid whose numbers are not what they must be; names the
            link, the attribute, the value and the bound.
    """
    root = parse_xml(urdf, "robot", source)
    links: dict[str, LinkSuperovoids] = {}
    for link in root.findall("link"):
        name = link.get("name", "")
        shapes = tuple(
            _placed(element, f"{source}: link '{name}': superovoid {number}")
            for number, element in enumerate(link.findall("superovoids/superovoid"), 1)
        )
        if shapes:
            links[name] = LinkSuperovoids(name, shapes)
    if not links:
        raise InvalidInputError(
            source, "no superovoids", "a URDF with superovoids", "Write them: morphit superovoid fit."
        )
    return RobotSuperovoids(root.get("name", ""), links)


def _element(link: LinkSuperovoids) -> str:
    lines = ["", "    <superovoids>"]
    for placed in link.shapes:
        values: Mapping[str, object] = {
            "semi_axes": placed.shape.semi_axes,
            "squareness": placed.shape.squareness,
            "tapering": placed.shape.tapering,
            "xyz": placed.T_link_shape[:3, 3].tolist(),
            "quat_xyzw": quat_xyzw_from_matrix(placed.T_link_shape[:3, :3]).tolist(),
        }
        texts = [f'{key}="{" ".join(repr(float(value)) for value in values[key])}"' for key in _COUNTS]  # type: ignore[attr-defined]
        lines.append(f"      <superovoid {' '.join(texts)}/>")
    return "\n".join([*lines, "    </superovoids>"])


def _placed(element: Element, where: str) -> PlacedSuperovoid:
    defaults = {"squareness": "1 1", "tapering": "0 0", "xyz": "0 0 0", "quat_xyzw": "0 0 0 1"}
    values = {}
    for key, count in _COUNTS.items():
        text = element.get(key, defaults.get(key))
        if text is None:
            raise InvalidInputError(f"{where}: {key}", "nothing", f"{count} numbers")
        try:
            numbers = [float(word) for word in text.split()]
        except ValueError:
            numbers = []
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            raise InvalidInputError(f"{where}: {key}", repr(text[:80]), f"{count} finite numbers")
        values[key] = numbers
    try:
        shape = Superovoid.from_parameters([*values["semi_axes"], *values["squareness"], *values["tapering"]])
        return PlacedSuperovoid(shape, make_transform(matrix_from_quat_xyzw(values["quat_xyzw"]), values["xyz"]))
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error.name}", error.value, error.bound, error.remedy) from error


class _Scan:
    """Where the links of a URDF, and superovoids that they hold, lie in its bytes.

    Attributes:
        links: (name, start, start of the end tag or −1 for <link/>, end).
        old: (start, end) of every <superovoids>.
    """

    def __init__(self, document: bytes) -> None:
        self.links: list[tuple[str, int, int, int]] = []
        self.old: list[tuple[int, int]] = []
        self._document = document
        self._open: list[tuple[str, str, int]] = []
        self._parser = expat.ParserCreate("utf-8")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.Parse(document, True)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append((tag, attributes.get("name", ""), self._parser.CurrentByteIndex))

    def _end(self, tag: str) -> None:
        _, name, start = self._open.pop()
        close = self._parser.CurrentByteIndex
        path = (*(outer for outer, _, _ in self._open), tag)
        # Of an element without end tag expat gives the place of its only one, or what follows it.
        single = not self._document.startswith(b"</", close)
        if path in (("robot", "link"), ("robot", "link", "superovoids")):
            end = self._document.index(b">", start if single else close) + 1
            if path[-1] == "link":
                self.links.append((name, start, -1 if single else close, end))
            else:
                self.old.append((start, end))
