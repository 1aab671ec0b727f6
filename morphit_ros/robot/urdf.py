"""URDF text to `RobotDescription`, with checks that name link, joint and line."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.mesh import LARGEST_COORDINATE
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.robot.description import (
    GeometryKind,
    Joint,
    JointMimic,
    Link,
    LinkGeometry,
    RobotDescription,
)
from morphit_ros.robot.packages import resolve_uri

JOINT_KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")

_PRIMITIVES = {
    "box": (GeometryKind.BOX, (("size", 3),)),
    "cylinder": (GeometryKind.CYLINDER, (("radius", 1), ("length", 1))),
    "capsule": (GeometryKind.CAPSULE, (("radius", 1), ("length", 1))),
    "sphere": (GeometryKind.SPHERE, (("radius", 1),)),
}


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


def parse_urdf(
    text: str, directory: Path | None, package_paths: tuple[Path, ...], source: str = "robot description"
) -> RobotDescription:
    """Read URDF text; `directory` is the folder that relative paths refer to.

    Raises:
        ResourceNotFoundError: a collision mesh is missing.
        InvalidInputError: see `load_robot_description`.
    """
    root = parse_xml(text, "robot", source)
    links: dict[str, Link] = {}
    for element in root.findall("link"):
        name = _required(element, "name", f"{source}: link")
        if name in links:
            raise InvalidInputError(source, f"two links called '{name}'", "unique link names")
        links[name] = Link(
            name,
            tuple(_geometries(element, "collision", name, directory, package_paths)),
            tuple(_geometries(element, "visual", name, directory, package_paths)),
        )
    joints: dict[str, Joint] = {}
    for element in root.findall("joint"):
        joint = _joint(element, source)
        if joint.name in joints:
            raise InvalidInputError(source, f"two joints called '{joint.name}'", "unique joint names")
        joints[joint.name] = joint
    base = _check_tree(links, joints, source)
    return RobotDescription(root.get("name", ""), base, links, joints, text, directory, package_paths)


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


def _joint(element: ElementTree.Element, source: str) -> Joint:
    name = _required(element, "name", f"{source}: joint")
    where = f"joint '{name}'"
    kind = _required(element, "type", where)
    if kind not in JOINT_KINDS:
        raise InvalidInputError(f"{where}: type", repr(kind), f"one of {', '.join(JOINT_KINDS)}")
    ends = []
    for role in ("parent", "child"):
        end = element.find(role)
        if end is None:
            raise InvalidInputError(where, f"no <{role}>", "a parent and a child link")
        ends.append(_required(end, "link", f"{where}: {role}"))
    axis_element = element.find("axis")
    axis = np.array([1.0, 0.0, 0.0]) if axis_element is None else _numbers(axis_element, "xyz", 3, where, "1 0 0")
    length = float(np.linalg.norm(axis))
    if kind not in ("fixed", "floating") and length < 1e-9:
        raise InvalidInputError(f"{where}: axis", axis.tolist(), "a vector that is not zero")
    limit = element.find("limit")
    lower, upper, velocity, effort = -math.inf, math.inf, math.inf, math.inf
    if limit is not None:
        velocity = _number(limit, "velocity", where, math.inf)
        effort = _number(limit, "effort", where, math.inf)
        if kind in ("revolute", "prismatic"):
            lower, upper = _number(limit, "lower", where, 0.0), _number(limit, "upper", where, 0.0)
            if lower > upper:
                raise InvalidInputError(f"{where}: limit", [lower, upper], "lower <= upper")
    elif kind in ("revolute", "prismatic"):
        raise InvalidInputError(where, f"a {kind} joint without <limit>", "a <limit> with lower and upper")
    return Joint(
        name,
        kind,
        ends[0],
        ends[1],
        _origin(element, where),
        axis / length if length > 0.0 else axis,
        lower,
        upper,
        velocity,
        effort,
        _mimic(element.find("mimic"), where),
    )


def _mimic(element: ElementTree.Element | None, where: str) -> JointMimic | None:
    if element is None:
        return None
    multiplier, offset = _number(element, "multiplier", where, 1.0), _number(element, "offset", where, 0.0)
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        raise InvalidInputError(f"{where}: mimic", [multiplier, offset], "a finite multiplier and offset")
    return JointMimic(_required(element, "joint", f"{where}: mimic"), multiplier, offset)


def _geometries(
    link: ElementTree.Element, tag: str, link_name: str, directory: Path | None, package_paths: tuple[Path, ...]
) -> Iterable[LinkGeometry]:
    where = f"link '{link_name}': {tag}"
    for element in link.findall(tag):
        holder = element.find("geometry")
        shapes = list(holder) if holder is not None else []
        if len(shapes) != 1:
            raise InvalidInputError(where, f"{len(shapes)} shapes in <geometry>", "exactly one shape")
        shape = shapes[0]
        origin, name = _origin(element, where), element.get("name", "")
        if shape.tag == "mesh":
            scale = _numbers(shape, "scale", 3, where, "1 1 1")
            if (scale == 0.0).any():
                raise InvalidInputError(f"{where}: scale", scale.tolist(), "factors other than zero")
            uri = _required(shape, "filename", where)
            path: Path | None = None
            try:
                path = resolve_uri(uri, package_paths, directory)
            except ResourceNotFoundError as error:
                # Pictures are not needed for planning: only a missing collision mesh stops the work.
                if tag == "collision":
                    remedy = f"Link '{link_name}' has it as collision geometry. {error.remedy}"
                    raise ResourceNotFoundError(uri, error.searched, remedy) from error
            yield LinkGeometry(GeometryKind.MESH, origin, scale, path, name, uri)
        elif shape.tag in _PRIMITIVES:
            kind, attributes = _PRIMITIVES[shape.tag]
            numbers = [_numbers(shape, attribute, count, where) for attribute, count in attributes]
            yield LinkGeometry(kind, origin, _positive(np.concatenate(numbers), f"{where}: {shape.tag}"), None, name)
        else:
            known = ", ".join(["mesh", *_PRIMITIVES])
            raise InvalidInputError(where, f"<{shape.tag}>", f"one of {known}")


def _origin(element: ElementTree.Element, where: str) -> Array:
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    rpy = _numbers(origin, "rpy", 3, f"{where}: origin", "0 0 0")
    return make_transform(matrix_from_rpy(rpy), _numbers(origin, "xyz", 3, f"{where}: origin", "0 0 0"))


def _required(element: ElementTree.Element, attribute: str, where: str) -> str:
    value = element.get(attribute)
    if not value:
        raise InvalidInputError(where, f"no attribute '{attribute}'", f"<{element.tag} {attribute}=…>")
    return value


def _numbers(element: ElementTree.Element, attribute: str, count: int, where: str, default: str | None = None) -> Array:
    text = element.get(attribute, default)
    if text is None:
        raise InvalidInputError(where, f"no attribute '{attribute}'", f"<{element.tag} {attribute}=…>")
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError:
        values = np.empty(0)
    if values.shape != (count,) or not (np.abs(values) <= LARGEST_COORDINATE).all():
        bound = f"{count} finite numbers up to {LARGEST_COORDINATE:g}"
        raise InvalidInputError(f"{where}: {attribute}", repr(_shortened(text)), bound)
    return values


def _number(element: ElementTree.Element, attribute: str, where: str, default: float) -> float:
    if element.get(attribute) is None:
        return default
    text = element.get(attribute, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise InvalidInputError(f"{where}: {attribute}", repr(_shortened(text)), "a number")
    return value


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"


def _positive(values: Array, where: str) -> Array:
    if (values < 0.0).any():
        raise InvalidInputError(where, values.tolist(), "dimensions that are not negative")
    return values
