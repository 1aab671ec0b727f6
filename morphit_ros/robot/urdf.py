"""URDF text to links and joints, read with urdf_parser_py (ROS package urdfdom_py).

Ours, on top of it:
- it gets only what is used here. Of tags that it does not know (superovoids, ros2_control) it complains on stderr, and
  it refuses a document for an incomplete transmission, material or inertia, and for a version other than 1.0;
- defaults of what it demands and descriptions leave out, such as velocity and effort of a limit;
- <capsule>, which it does not know: it reads a cylinder of the same numbers;
- what it takes and no robot has: nan, inf, 1e300, scales of zero, negative dimensions, a parent without name;
- errors that name the link or joint, what was found and what is expected; the line where text is no XML;
- one tree: duplicate names, unknown links, cycles and several roots, found in linear time;
- where the files of meshes are. Mirrored scales stay negative; `TriangleMesh.scaled` turns the faces.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.budgets import LARGEST_COORDINATE
from morphit_ros.dependencies import needed_for
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.links import GeometryKind, Joint, JointMimic, Link, LinkGeometry
from morphit_ros.robot.packages import resolve_uri

JOINT_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_LIMITED = ("revolute", "prismatic")

# Shape → the attributes that are its dimensions.
_DIMENSIONS = {
    "mesh": ("scale",),
    "box": ("size",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "sphere": ("radius",),
}
# What is read of an element: its attributes with their defaults (None: it must be there), and its elements.
_READ: dict[str, tuple[dict[str, str | None], tuple[str, ...]]] = {
    "robot": ({"name": ""}, ("link", "joint")),
    "link": ({"name": None}, ("visual", "collision")),
    "visual": ({}, ("origin", "geometry")),
    "collision": ({}, ("origin", "geometry")),
    "geometry": ({}, tuple(_DIMENSIONS)),
    "mesh": ({"filename": None, "scale": "1 1 1"}, ()),
    "box": ({"size": None}, ()),
    "cylinder": ({"radius": None, "length": None}, ()),
    "capsule": ({"radius": None, "length": None}, ()),
    "sphere": ({"radius": None}, ()),
    "joint": ({"name": None, "type": None}, ("origin", "axis", "parent", "child", "limit", "mimic")),
    "origin": ({"xyz": "0 0 0", "rpy": "0 0 0"}, ()),
    "axis": ({"xyz": "1 0 0"}, ()),
    "parent": ({"link": None}, ()),
    "child": ({"link": None}, ()),
    "limit": ({"lower": "0", "upper": "0", "velocity": "inf", "effort": "inf"}, ()),
    "mimic": ({"joint": None, "multiplier": "1", "offset": "0"}, ()),
}
# Of other elements the first one counts.
_REPEATED = ("link", "joint", "visual", "collision")
# Attribute → how many finite numbers it holds. Other numbers may be infinite.
_COUNTS = {"xyz": 3, "rpy": 3, "size": 3, "scale": 3, "radius": 1, "length": 1}
_NUMBERS = ("lower", "upper", "velocity", "effort", "multiplier", "offset")


def parse_xml(text: str, expected_root: str, source: str) -> ElementTree.Element:
    """The root element of an XML document.

    Raises:
        InvalidInputError: not XML (with line and column), entity declarations, or another root element.
    """
    # A few of these stand for gigabytes of text, and no robot description needs them.
    if "<!ENTITY" in text:
        raise InvalidInputError(source, "an entity declaration", "XML without a document type")
    try:
        # White space before the XML declaration would stop the parser, and the encoding declared is not that of a str.
        root = ElementTree.fromstring(text.strip().encode("utf-8"), ElementTree.XMLParser(encoding="utf-8"))
    except ElementTree.ParseError as error:
        line, column = error.position
        raise InvalidInputError(
            source, f"XML that cannot be parsed at line {line}, column {column} ({error.msg})", "well-formed XML"
        ) from error
    # Characters that UTF-8 does not have (lone surrogates).
    except ValueError as error:
        raise InvalidInputError(source, f"XML that cannot be parsed ({error})", "well-formed XML") from error
    if root.tag != expected_root:
        raise InvalidInputError(source, f"root element <{root.tag}>", f"<{expected_root}>")
    return root


def read_urdf(
    text: str, directory: Path | None, package_paths: tuple[Path, ...], source: str
) -> tuple[str, str, dict[str, Link], dict[str, Joint]]:
    """The robot's name, its root link, and its links and joints by name, in the document's order.

    Args:
        text: the URDF.
        directory: the folder that relative paths refer to.
        package_paths: where packages are looked for first.
        source: what errors call the document.

    Raises:
        ResourceNotFoundError: a collision mesh is missing.
        InvalidInputError: see `load_robot_description`.
    """
    with needed_for("reading URDF"):
        from urdf_parser_py.urdf import URDF

    root = parse_xml(text, "robot", source)
    robot = URDF.from_xml_string(ElementTree.tostring(_reduced(root, source), encoding="unicode"))
    links: dict[str, Link] = {}
    for element, parsed in zip(root.findall("link"), robot.links, strict=True):
        name = parsed.name
        if name in links:
            raise InvalidInputError(source, f"two links called '{name}'", "unique link names")
        collisions, visuals = (
            tuple(
                _geometry(holder, shape, name, directory, package_paths)
                for holder, shape in zip(element.findall(tag), shapes, strict=True)
            )
            for tag, shapes in (("collision", parsed.collisions), ("visual", parsed.visuals))
        )
        links[name] = Link(name, collisions, visuals)
    joints: dict[str, Joint] = {}
    for joint in map(_joint, robot.joints):
        if joint.name in joints:
            raise InvalidInputError(source, f"two joints called '{joint.name}'", "unique joint names")
        joints[joint.name] = joint
    return robot.name, _check_tree(links, joints, source), links, joints


def _reduced(element: ElementTree.Element, where: str) -> ElementTree.Element:
    """What is read of an element, complete, and with numbers that are numbers."""
    attributes, elements = _READ[element.tag]
    reduced = ElementTree.Element("cylinder" if element.tag == "capsule" else element.tag)
    for attribute, default in attributes.items():
        reduced.set(attribute, _checked(element.get(attribute, default), element.tag, attribute, where))
    if element.tag == "joint":
        _check_joint(element, where)
    for child in element:
        if child.tag in elements and (child.tag in _REPEATED or reduced.find(child.tag) is None):
            named = child.tag in ("link", "joint")
            inner = f"{child.tag} '{_shortened(child.get('name', ''))}'" if named else f"{where}: {child.tag}"
            reduced.append(_reduced(child, inner))
    if element.tag in ("visual", "collision"):
        shapes = [shape.tag for shape in element.iterfind("geometry[1]/*")]
        if len(shapes) != 1:
            raise InvalidInputError(where, f"{len(shapes)} shapes in <geometry>", "exactly one shape")
        if shapes[0] not in _DIMENSIONS:
            raise InvalidInputError(where, f"<{_shortened(shapes[0])}>", f"one of {', '.join(_DIMENSIONS)}")
    return reduced


def _checked(text: str | None, tag: str, attribute: str, where: str) -> str:
    """The text of an attribute."""
    if attribute in _COUNTS and text is not None:
        count = _COUNTS[attribute]
        values = _numbers(text)
        if len(values) != count or not all(abs(value) <= LARGEST_COORDINATE for value in values):
            bound = f"{count} finite numbers up to {LARGEST_COORDINATE:g}"
            raise InvalidInputError(f"{where}: {attribute}", repr(_shortened(text)), bound)
    elif attribute in _NUMBERS and text is not None:
        values = _numbers(text)
        if len(values) != 1 or math.isnan(values[0]):
            raise InvalidInputError(f"{where}: {attribute}", repr(_shortened(text)), "a number")
    elif text is None or (text == "" and _READ[tag][0][attribute] is None):
        raise InvalidInputError(where, f"no attribute '{attribute}'", f"<{tag} {attribute}=…>")
    return text


def _numbers(text: str) -> list[float]:
    """The numbers in a text, none if something else is in it."""
    try:
        return [float(word) for word in text.split()]
    except ValueError:
        return []


def _check_joint(element: ElementTree.Element, where: str) -> None:
    """Refuse a joint without kind or links; positions of its limit are dropped where it has none."""
    kind = element.get("type", "")
    if kind not in JOINT_KINDS:
        raise InvalidInputError(f"{where}: type", repr(_shortened(kind)), f"one of {', '.join(JOINT_KINDS)}")
    for role in ("parent", "child"):
        if element.find(role) is None:
            raise InvalidInputError(where, f"no <{role}>", "a parent and a child link")
    limit = element.find("limit")
    if kind not in _LIMITED and limit is not None:
        for attribute in ("lower", "upper"):
            limit.attrib.pop(attribute, None)
    elif kind in _LIMITED and limit is None:
        raise InvalidInputError(where, f"a {kind} joint without <limit>", "a <limit> with lower and upper")


def _check_tree(links: Mapping[str, Link], joints: Mapping[str, Joint], source: str) -> str:
    """The root link, after checking that links and joints make up one tree."""
    if not links:
        raise InvalidInputError(source, "no links", "at least one link")
    parent_of: dict[str, Joint] = {}
    for joint in joints.values():
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links:
                raise InvalidInputError(
                    f"joint '{joint.name}'", f"{role} link '{name}', which does not exist", "a link of the document"
                )
        if joint.child in parent_of:
            both = f"'{parent_of[joint.child].name}' and '{joint.name}'"
            raise InvalidInputError(f"link '{joint.child}'", f"two parent joints {both}", "one parent joint a link")
        parent_of[joint.child] = joint
    settled: set[str] = set()
    for name in links:
        # From the link upwards to one that is known to hang on a root; a dictionary keeps the order of the way.
        way: dict[str, None] = {}
        link = name
        while link not in settled:
            if link in way:
                cycle = [*list(way)[list(way).index(link) :], link]
                shown = " → ".join(cycle if len(cycle) <= 10 else [*cycle[:5], "…", *cycle[-4:]])
                raise InvalidInputError(source, f"a cycle of links: {shown}", "a tree of links")
            way[link] = None
            if link not in parent_of:
                break
            link = parent_of[link].parent
        settled.update(way)
    roots = [name for name in links if name not in parent_of]
    if len(roots) != 1:
        shown = ", ".join(roots[:5]) + (", …" if len(roots) > 5 else "")
        raise InvalidInputError(source, f"{len(roots)} links without parent ({shown})", "exactly one root link")
    return roots[0]


def _joint(parsed: Any) -> Joint:
    """A joint as `urdf_parser_py.urdf.Joint` holds it."""
    where, kind, limit = f"joint '{parsed.name}'", parsed.type, parsed.limit
    axis = np.array([1.0, 0.0, 0.0] if parsed.axis is None else parsed.axis)
    length = float(np.linalg.norm(axis))
    if kind not in ("fixed", "floating") and length < 1e-9:
        raise InvalidInputError(f"{where}: axis", axis.tolist(), "a vector that is not zero")
    lower, upper = (limit.lower, limit.upper) if kind in _LIMITED else (-math.inf, math.inf)
    if lower > upper:
        raise InvalidInputError(f"{where}: limit", [lower, upper], "lower <= upper")
    mimic = None
    if parsed.mimic is not None:
        mimic = JointMimic(parsed.mimic.joint, parsed.mimic.multiplier, parsed.mimic.offset)
        if not (math.isfinite(mimic.multiplier) and math.isfinite(mimic.offset)):
            found = [mimic.multiplier, mimic.offset]
            raise InvalidInputError(f"{where}: mimic", found, "a finite multiplier and offset")
    return Joint(
        name=parsed.name,
        kind=kind,
        parent=parsed.parent,
        child=parsed.child,
        T_parent_child=_origin(parsed.origin),
        axis=axis / length if length > 0.0 else axis,
        lower=lower,
        upper=upper,
        velocity_limit=math.inf if limit is None else limit.velocity,
        effort_limit=math.inf if limit is None else limit.effort,
        mimic=mimic,
    )


def _geometry(
    element: ElementTree.Element, parsed: Any, link: str, directory: Path | None, package_paths: tuple[Path, ...]
) -> LinkGeometry:
    """An element as `urdf_parser_py.urdf` holds it; its kind and name are the document's."""
    where, shape = f"link '{link}': {element.tag}", parsed.geometry
    kind = GeometryKind(element.find("geometry")[0].tag)  # type: ignore[index]
    dimensions: Array = np.hstack([getattr(shape, attribute) for attribute in _DIMENSIONS[kind.value]])
    path, uri = None, ""
    if kind is not GeometryKind.MESH:
        if (dimensions < 0.0).any():
            raise InvalidInputError(f"{where}: {kind.value}", dimensions.tolist(), "dimensions that are not negative")
    elif (dimensions == 0.0).any():
        raise InvalidInputError(f"{where}: scale", dimensions.tolist(), "factors other than zero")
    else:
        uri = shape.filename
        try:
            path = resolve_uri(uri, package_paths, directory)
        except ResourceNotFoundError as error:
            # Pictures are not needed for planning: only a missing collision mesh stops the work.
            if element.tag == "collision":
                remedy = f"Link '{link}' has it as collision geometry. {error.remedy}"
                raise ResourceNotFoundError(uri, error.searched, remedy) from error
    return LinkGeometry(kind, _origin(parsed.origin), dimensions, path, element.get("name", ""), uri)


def _origin(pose: Any) -> Array:
    return np.eye(4) if pose is None else make_transform(matrix_from_rpy(pose.rpy), pose.xyz)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"
