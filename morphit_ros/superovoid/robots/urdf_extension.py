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
from xml.etree.ElementTree import Element

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.urdf import parse_xml
from morphit_ros.robot.xml_edits import Edit, ElementSpan, apply_edits, find_elements, replace_elements
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.robots.model_file import NUMBERS, numbers_of_placed, placed_from_numbers
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids

_LINK, _OURS = ("robot", "link"), ("robot", "link", "superovoids")


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
    document = apply_edits(document, replace_elements(document, find_elements(document, (_OURS,)), []))
    spans = {span.attributes.get("name", ""): span for span in find_elements(document, (_LINK,))}
    edits = [_appended(document, spans[name], link) for name, link in model.links.items()]
    return apply_edits(document, edits).decode("utf-8") + "\n"


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


def _appended(document: bytes, span: ElementSpan, link: LinkSuperovoids) -> Edit:
    """The edit that puts superovoids at the end of the element of their link."""
    lines = ["", "    <superovoids>"]
    for placed in link.shapes:
        values = numbers_of_placed(placed)
        texts = [f'{key}="{" ".join(repr(float(value)) for value in values[key])}"' for key in NUMBERS]
        lines.append(f"      <superovoid {' '.join(texts)}/>")
    text = "\n".join([*lines, "    </superovoids>", "  "]).encode()
    if span.close < 0:
        return Edit(document.rindex(b"/>", span.start, span.end), span.end, b">" + text + b"</link>")
    return Edit(len(document[: span.close].rstrip()), span.close, text)


def _placed(element: Element, where: str) -> PlacedSuperovoid:
    values = {}
    for key, (count, default) in NUMBERS.items():
        text = element.get(key, " ".join(map(str, default)) or None)
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
        return placed_from_numbers(values)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error.name}", error.value, error.bound, error.remedy) from error
