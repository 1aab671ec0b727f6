"""SRDF for MoveIt: spheres of links, and pairs of links that need no collision check; and back.

Format: "Semantic Robot Description Format (SRDF)", ROS wiki, page srdf, and the class srdf::Model of srdfdom for
`link_sphere_approximation`. Reasons of `disable_collisions` are those of MoveIt's setup assistant.
"""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.urdf import parse_xml
from morphit_ros.robot.xml_edits import (
    ElementSpan,
    append_elements,
    apply_edits,
    find_elements,
    refuse_entities,
    replace_elements,
)
from morphit_ros.spheres.exports.records import Row, imported_model, numbers_in
from morphit_ros.spheres.exports.urdf import check_links, check_padding
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel
from morphit_ros.spheres.self_collision.matrix import SelfCollisionMatrix

_ROBOT = ("robot",)
_PAIR = ("robot", "disable_collisions")
_SPHERES = ("robot", "link_sphere_approximation")

# Reasons that a computation gives: spheres may tell otherwise. "User", "Default" and others are a person's choice.
_COMPUTED = ("Adjacent", "Always", "Never")


def srdf_from_model(
    model: SphereModel,
    description: RobotDescription,
    self_collision: SelfCollisionMatrix,
    padding: float = 0.0,
    existing: str | None = None,
) -> str:
    """An SRDF with a robot's spheres and the pairs of links that a planner need not check.

    Merging replaces the spheres of the model's links and the pairs of two such links whose reason is "Adjacent",
    "Always" or "Never". Everything else stays byte for byte: groups, states, end effectors, comments, pairs of
    other links, and pairs disabled for another reason ("User", "Default") or for none. Merging into its own result
    gives the same text.

    Args:
        model: the robot as spheres.
        description: the robot.
        self_collision: the pairs, with their reasons.
        padding: added to every radius [m].
        existing: an SRDF to merge into; None for a new one.

    Raises:
        InvalidInputError: an unknown link, a padding that makes a radius vanish, or an existing text that is not
            an SRDF of this robot.
    """
    check_padding(model, padding)
    check_links(model, description)
    if existing is None:
        existing = f'<?xml version="1.0" encoding="UTF-8"?>\n<robot name={quoteattr(description.name)}>\n</robot>\n'
    refuse_entities(existing, "semantic description")
    root = parse_xml(existing, "robot", "semantic description")
    if root.get("name", "") != description.name:
        remedy = "Give both documents the same name."
        raise InvalidInputError("semantic description: robot", repr(root.get("name")), repr(description.name), remedy)
    document = existing.strip().encode("utf-8")
    spans = find_elements(document, (_ROBOT, _PAIR, _SPHERES))
    # Pairs that a person has disabled stay and are not said twice.
    kept = {_links(span) for span in spans if span.path == _PAIR and not _is_ours(span, model)}
    pairs = [
        f"<disable_collisions link1={quoteattr(first)} link2={quoteattr(second)} reason={quoteattr(reason)}/>".encode()
        for (first, second), reason in self_collision.reasons.items()
        if frozenset((first, second)) not in kept
    ]
    parent = spans[0]
    edits = []
    appended: list[bytes] = []
    for path, elements in ((_SPHERES, _sphere_elements(model, padding)), (_PAIR, pairs)):
        ours = [span for span in spans if span.path == path and _is_ours(span, model)]
        edits += replace_elements(document, ours, elements)
        appended += [] if ours else elements
    if appended:
        edits.append(append_elements(document, parent, appended))
    return apply_edits(document, edits).decode("utf-8") + "\n"


def model_from_srdf(text: str, source: str = "semantic description") -> SphereModel:
    """The spheres of `link_sphere_approximation` elements.

    Carries neither d_avg and d_max (NaN) nor the variant nor the content hash (it is computed from the spheres).
    Spheres of radius 0 are left out: in an SRDF they say that a link has none.

    Raises:
        InvalidInputError: not an SRDF, no spheres in it, or a sphere whose numbers are not finite or whose radius
            is below 0.
    """
    refuse_entities(text, source)
    root = parse_xml(text, "robot", source)
    rows: list[Row] = []
    for element in root.findall("link_sphere_approximation"):
        link = element.get("link", "")
        for number, sphere in enumerate(element.findall("sphere"), 1):
            where = f"link '{link}': sphere {number}"
            center = numbers_in(sphere.get("center", ""), 3, f"{where}: center")
            radius = numbers_in(sphere.get("radius", ""), 1, f"{where}: radius")[0]
            if radius != 0.0:
                rows.append((link, center, radius, where))
    return imported_model(root.get("name", ""), rows, source)


def _links(span: ElementSpan) -> frozenset[str]:
    return frozenset((span.attributes.get("link1", ""), span.attributes.get("link2", "")))


def _is_ours(span: ElementSpan, model: SphereModel) -> bool:
    if span.path == _SPHERES:
        return span.attributes.get("link") in model.links
    return span.attributes.get("reason") in _COMPUTED and all(link in model.links for link in _links(span))


def _sphere_elements(model: SphereModel, padding: float) -> list[bytes]:
    return [_sphere_element(name, spheres, padding) for name, spheres in model.links.items()]


def _sphere_element(name: str, spheres: LinkSpheres, padding: float) -> bytes:
    rows = zip(spheres.centers.tolist(), (spheres.radii + padding).tolist(), strict=True)
    lines = "".join(f'\n  <sphere center="{x!r} {y!r} {z!r}" radius="{radius!r}"/>' for (x, y, z), radius in rows)
    return f"<link_sphere_approximation link={quoteattr(name)}>{lines}\n</link_sphere_approximation>".encode()
