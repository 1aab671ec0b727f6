"""Links and joints of a robot as data, and the surfaces of links' geometry."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array


class GeometryKind(enum.Enum):
    """Shape of a geometry element."""

    MESH = "mesh"
    BOX = "box"
    CYLINDER = "cylinder"
    SPHERE = "sphere"
    CAPSULE = "capsule"


@dataclass(frozen=True)
class LinkGeometry:
    """One collision or visual element of a link.

    Attributes:
        kind: shape.
        T_link_geometry: (4, 4), the element's origin.
        dimensions: box: full size (3,); cylinder and capsule: radius and length of the cylinder (2,); sphere:
            radius (1,); mesh: scale along its axes (3,), negative where mirrored. [m], scale without unit.
        path: mesh file; None for a primitive, and for a visual mesh that is not on this machine.
        name: of the element, often empty.
        uri: of the mesh file, as the description writes it; empty for a primitive.
    """

    kind: GeometryKind
    T_link_geometry: Array
    dimensions: Array
    path: Path | None = None
    name: str = ""
    uri: str = ""


@dataclass(frozen=True)
class Link:
    """A rigid body with its geometry; either list may be empty."""

    name: str
    collisions: tuple[LinkGeometry, ...] = ()
    visuals: tuple[LinkGeometry, ...] = ()


@dataclass(frozen=True)
class JointMimic:
    """position = multiplier · position of `joint` + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint between two links.

    Attributes:
        name, parent, child: of the joint and of its links.
        kind: revolute, continuous, prismatic, fixed, floating or planar.
        T_parent_child: (4, 4) at position zero.
        axis: (3,) unit vector in the child's frame.
        lower, upper: position limits [rad or m], infinite for a continuous joint.
        velocity_limit, effort_limit: [rad/s or m/s], [N m or N], infinite where not given.
        mimic: the joint that this one follows, or None.
    """

    name: str
    kind: str
    parent: str
    child: str
    T_parent_child: Array
    axis: Array
    lower: float
    upper: float
    velocity_limit: float
    effort_limit: float
    mimic: JointMimic | None = None


def element_mesh(geometry: LinkGeometry, enclosing: bool = False) -> TriangleMesh:
    """The surface of a geometry element in its own frame (before its origin); primitives are triangulated.

    Args:
        geometry: the element.
        enclosing: whether the triangles lie outside a round primitive instead of inside it.

    Raises:
        ResourceNotFoundError: the mesh file is missing.
        InvalidInputError: the mesh file is unreadable, or a dimension is zero.
    """
    size = geometry.dimensions
    match geometry.kind:
        case GeometryKind.MESH:
            if geometry.path is None:
                found = f"the mesh '{geometry.uri}', which was not found"
                raise InvalidInputError("geometry", found, "a mesh file on this machine", "Give its package_paths.")
            return load_mesh(geometry.path).scaled(size)
        case GeometryKind.BOX:
            return box_mesh(size)
        case GeometryKind.CYLINDER:
            return cylinder_mesh(float(size[0]), float(size[1]), enclosing=enclosing)
        case GeometryKind.CAPSULE:
            return capsule_mesh(float(size[0]), float(size[1]), enclosing=enclosing)
        case GeometryKind.SPHERE:
            return sphere_mesh(float(size[0]), enclosing=enclosing)


def collision_mesh(geometry: LinkGeometry) -> TriangleMesh:
    """The surface of a geometry element in the frame of its link.

    Raises:
        ResourceNotFoundError, InvalidInputError: as of `element_mesh`.
    """
    return element_mesh(geometry).transformed(geometry.T_link_geometry)
