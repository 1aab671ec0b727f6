"""URDF: collision elements replaced by spheres inside their links, the rest byte for byte as it was; and back.

Format: "XML Robot Description Format (URDF)", ROS wiki, pages urdf/XML/link and urdf/XML/robot.
"""

from __future__ import annotations

import math

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.urdf import parse_xml
from morphit_ros.robot.xml_edits import (
    Edit,
    append_elements,
    apply_edits,
    find_elements,
    refuse_entities,
    replace_elements,
)
from morphit_ros.spheres.exports.records import imported_model, numbers_in
from morphit_ros.spheres.robot_model import LinkSpheres, SphereModel

_LINK = ("robot", "link")
_COLLISION = ("robot", "link", "collision")


def spherized_urdf(description: RobotDescription, model: SphereModel, padding: float = 0.0) -> str:
    """The URDF of a robot whose collision geometry is its spheres.

    Numbers are written so that they read back exactly. Applied to its own result it gives the same text.

    Args:
        description: the robot.
        model: its spheres; links that the model lacks keep their collision elements, links without collision
            geometry get the spheres at their end.
        padding: added to every radius [m]. Balanced spheres leave parts of the surface up to d_max uncovered;
            a padding of d_max covers them at the price of a fatter robot.

    Raises:
        InvalidInputError: the model has a link that the description lacks, or the padding makes a radius vanish.
    """
    check_padding(model, padding)
    check_links(model, description)
    document = description.xml.strip().encode("utf-8")
    links, collisions = {}, {name: [] for name in model.links}  # type: ignore[var-annotated]
    for span in find_elements(document, (_LINK, _COLLISION)):
        if span.path == _LINK:
            links[span.attributes.get("name", "")] = span
        elif span.owner in collisions:
            collisions[span.owner].append(span)
    edits: list[Edit] = []
    for name, spheres in model.links.items():
        elements = _collision_elements(spheres, padding)
        if collisions[name]:
            edits += replace_elements(document, collisions[name], elements)
        else:
            edits.append(append_elements(document, links[name], elements))
    return apply_edits(document, edits).decode("utf-8") + "\n"


def model_from_urdf(text: str, source: str = "robot description") -> SphereModel:
    """The spheres of a URDF whose collision geometry is spheres, such as `spherized_urdf` and foam write it.

    Links without collision spheres are not in the model. No mesh is read. Carries neither d_avg and d_max (NaN)
    nor the variant nor the content hash (it is computed from the spheres).

    Raises:
        InvalidInputError: not a URDF, no spheres in it, a link with spheres and other shapes, or a sphere whose
            numbers are not finite or whose radius is not above 0.
    """
    refuse_entities(text, source)
    root = parse_xml(text, "robot", source)
    rows = []
    for link in root.findall("link"):
        name = link.get("name", "")
        shapes = [shape for holder in link.findall("collision/geometry") for shape in holder]
        kinds = {shape.tag for shape in shapes}
        if "sphere" not in kinds:
            continue
        if kinds != {"sphere"}:
            others = ", ".join(sorted(kinds - {"sphere"}))
            raise InvalidInputError(f"link '{name}'", f"spheres and other shapes ({others})", "spheres only")
        for number, collision in enumerate(link.findall("collision"), 1):
            where = f"link '{name}': sphere {number}"
            origin, sphere = collision.find("origin"), collision.find("geometry/sphere")
            if sphere is None:
                raise InvalidInputError(where, "a collision element without shape", "one sphere an element")
            center = (0.0, 0.0, 0.0) if origin is None else numbers_in(origin.get("xyz", "0 0 0"), 3, where)
            rows.append((name, center, numbers_in(sphere.get("radius", ""), 1, where)[0], where))
    return imported_model(root.get("name", ""), rows, source)


def check_padding(model: SphereModel, padding: float) -> None:
    """Raise InvalidInputError if the padding is not finite or makes a radius vanish."""
    if not math.isfinite(padding):
        raise InvalidInputError("padding", padding, "a finite number [m]")
    for name, spheres in model.links.items():
        if not (spheres.radii + padding > 0.0).all():
            raise InvalidInputError("padding", padding, f"more than {-spheres.radii.min():g} m (link '{name}')")


def check_links(model: SphereModel, description: RobotDescription) -> None:
    """Raise InvalidInputError if the model has a link that the robot lacks."""
    unknown = [name for name in model.links if name not in description.links]
    if unknown:
        shown = ", ".join(f"'{name}'" for name in unknown[:5]) + (", …" if len(unknown) > 5 else "")
        raise InvalidInputError("model", f"spheres of {shown}", f"links of '{description.name}'")


def _collision_elements(spheres: LinkSpheres, padding: float) -> list[bytes]:
    return [
        f'<collision><origin xyz="{x!r} {y!r} {z!r}" rpy="0 0 0"/>'
        f'<geometry><sphere radius="{radius!r}"/></geometry></collision>'.encode()
        for (x, y, z), radius in zip(spheres.centers.tolist(), (spheres.radii + padding).tolist(), strict=True)
    ]
