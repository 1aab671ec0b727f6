"""The robot description of a sketch: URDF with its superovoids, and meshes for those who cannot read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.transforms import Array, invert_transform, rpy_from_matrix
from morphit_ros.sketch.clearance import bone_mass
from morphit_ros.sketch.model import Bone, Sketch
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.robots.urdf_extension import urdf_with_superovoids

# Of a link between two axes of one joint: no engine takes a moving body without mass [kg, kg m²].
_BETWEEN_MASS, _BETWEEN_INERTIA = 1e-6, 1e-9
_VELOCITY, _EFFORT = 3.0, 10.0
# Share of a superovoid's size that its mesh may be off.
_CHORD = 5e-3
_KINDS = {"fixed": "fixed", "slide": "prismatic"}


@dataclass(frozen=True)
class SketchDescription:
    """A sketch as others read it.

    Attributes:
        urdf: with a `superovoids` element in each link that has any, and meshes as visual and collision geometry.
        meshes: link → the surface of its superovoids, in the link's frame.
        superovoids: the same shapes by link.
    """

    urdf: str
    meshes: dict[str, TriangleMesh]
    superovoids: RobotSuperovoids


def sketch_superovoids(sketch: Sketch) -> RobotSuperovoids:
    """The superovoids of a sketch by link.

    Raises:
        InvalidInputError: there are none.
    """
    links = {name: LinkSuperovoids(name, bone.shapes) for name, bone in sketch.bones.items() if bone.shapes}
    if not links:
        raise InvalidInputError("sketch", "no hitbox", "at least one", "Draw an ellipse in the hitbox mode.")
    return RobotSuperovoids(sketch.name, links)


def describe_sketch(sketch: Sketch, mesh_uri: str) -> SketchDescription:
    """The description of a sketch that has a skeleton of its own.

    A joint of several axes becomes as many joints, with links of nearly no mass between them. Masses are those of the
    superovoids, each counted whole.

    Args:
        sketch: with at least one bone and one superovoid.
        mesh_uri: of the folder of the meshes, such as ``package://hand/meshes``.

    Raises:
        InvalidInputError: no bone or no superovoid.
    """
    if not sketch.bones:
        raise InvalidInputError("sketch", "no bone", "at least one", "Draw a stroke in the skeleton mode.")
    superovoids = sketch_superovoids(sketch)
    meshes = {
        name: concatenate_meshes([
            placed.shape.mesh(_CHORD * placed.shape.size).transformed(placed.T_link_shape) for placed in bone.shapes
        ])
        for name, bone in sketch.bones.items()
        if bone.shapes
    }  # fmt: skip
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(sketch.name)}>"]
    # MuJoCo knows no packages: it takes names of files without their folders.
    lines.append('  <mujoco><compiler meshdir="../meshes" strippath="true" discardvisual="false"/></mujoco>')
    # RViz draws what has no material red, as if it collided.
    lines.append('  <material name="hitbox"><color rgba="0.75 0.75 0.78 1.0"/></material>')
    for bone in sketch.bones.values():
        lines += _link(bone, sketch.density, f"{mesh_uri}/{bone.name}.stl")
        if bone.parent:
            lines += _joints(bone, sketch[bone.parent])
    lines.append("</robot>")
    return SketchDescription(urdf_with_superovoids("\n".join(lines), superovoids), meshes, superovoids)


def sketch_groups(sketch: Sketch) -> str:
    """An SRDF with what planners take as groups: all joints, by the robot's name, and where the skeleton branches each
    chain up to where it ends, by its last bone, such as a finger.

    Of a chain with no joint that moves, or with the robot's name, there is none.
    """
    moving = {name: [joint for joint in bone.joint.names if bone.joint.count] for name, bone in sketch.bones.items()}
    children = Counter(bone.parent for bone in sketch.bones.values())
    groups = {sketch.name: [joint for name, bone in sketch.bones.items() if bone.parent for joint in moving[name]]}
    for tip in sketch.bones:
        chain: list[str] = []
        link = tip
        while not children[tip] and sketch[link].parent and children[link] < 2:
            chain[:0] = moving[link]
            link = sketch[link].parent
        groups.setdefault(tip, chain)
    lines = [f"<robot name={quoteattr(sketch.name)}>"]
    for name, joints in groups.items():
        if joints and (name == sketch.name or joints != groups[sketch.name]):
            named = "".join(f"<joint name={quoteattr(joint)}/>" for joint in joints)
            lines.append(f"  <group name={quoteattr(name)}>{named}</group>")
    return "\n".join([*lines, "</robot>"])


def _link(bone: Bone, density: float, mesh: str) -> Iterator[str]:
    if not bone.shapes:
        # A link without mass that moves is refused by engines, the root's is not asked for.
        inertial = _inertial(_BETWEEN_MASS, np.zeros(3), _BETWEEN_INERTIA * np.eye(3)) if bone.parent else []
        yield from (f"  <link name={quoteattr(bone.name)}>", *inertial, "  </link>")
        return
    yield f"  <link name={quoteattr(bone.name)}>"
    yield from _inertial(*bone_mass(bone.shapes, density))
    geometry = f"<geometry><mesh filename={quoteattr(mesh)}/></geometry>"
    yield f'    <visual>{geometry}<material name="hitbox"/></visual>'
    yield f"    <collision>{geometry}</collision>"
    yield "  </link>"


def _joints(bone: Bone, parent: Bone) -> Iterator[str]:
    joint, T = bone.joint, invert_transform(parent.T_world_bone) @ bone.T_world_bone
    kind = _KINDS.get(joint.kind, "revolute")
    last = max(joint.count, 1) - 1
    carrier = parent.name
    for row, name in enumerate(joint.names):
        child = bone.name if row == last else f"{bone.name}_axis_{row + 1}"
        if row < last:
            yield f"  <link name={quoteattr(child)}>"
            yield from _inertial(_BETWEEN_MASS, np.zeros(3), _BETWEEN_INERTIA * np.eye(3))
            yield "  </link>"
        yield f"  <joint name={quoteattr(name)} type={quoteattr(kind)}>"
        yield f"    <parent link={quoteattr(carrier)}/><child link={quoteattr(child)}/>"
        if row == 0:
            yield f'    <origin xyz="{_numbers(T[:3, 3])}" rpy="{_numbers(rpy_from_matrix(T[:3, :3]))}"/>'
        if joint.count:
            lower, upper = (repr(float(value)) for value in joint.limits[row])
            yield f'    <axis xyz="{_numbers(joint.axes[row])}"/>'
            yield f'    <limit lower="{lower}" upper="{upper}" velocity="{_VELOCITY}" effort="{_EFFORT}"/>'
        yield "  </joint>"
        carrier = child


def _inertial(mass: float, center: Array, inertia: Array) -> list[str]:
    terms = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    values = " ".join(f'{name}="{float(inertia[i, j])!r}"' for name, i, j in terms)
    return [
        "    <inertial>",
        f'      <origin xyz="{_numbers(center)}"/>',
        f'      <mass value="{float(mass)!r}"/><inertia {values}/>',
        "    </inertial>",
    ]


def _numbers(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)
