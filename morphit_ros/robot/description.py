"""A robot description as data: links with their geometry, joints, and the URDF they were read from."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.packages import resolve_uri

# Of a URDF, hundreds of times the size of a humanoid's: a mesh or an image given by mistake is refused unread.
MAX_DOCUMENT_BYTES = 1 << 26


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


@dataclass(frozen=True)
class RobotDescription:
    """A robot as a tree of links.

    Attributes:
        name: of the robot.
        root_link: the link that has no parent.
        links, joints: by name, in the order of the document.
        xml: the URDF text (after xacro).
        directory: folder of the document; None if it came as text.
        package_paths: where its packages are looked for first.
    """

    name: str
    root_link: str
    links: Mapping[str, Link]
    joints: Mapping[str, Joint]
    xml: str
    directory: Path | None = None
    package_paths: tuple[Path, ...] = ()

    def parent_joint(self, link: str) -> Joint | None:
        """The joint that carries a link, None for the root."""
        return next((joint for joint in self.joints.values() if joint.child == link), None)

    def adjacent_links(self) -> list[tuple[str, str]]:
        """Pairs (parent, child) of links that a joint connects."""
        return [(joint.parent, joint.child) for joint in self.joints.values()]


def load_robot_description(
    source: str | Path,
    package_paths: Sequence[str | Path] = (),
    xacro_arguments: Mapping[str, str] | None = None,
) -> RobotDescription:
    """Read a robot description and find the files that it names.

    Args:
        source: path or URI (package://, file://) of a URDF or xacro file, or the XML text itself.
        package_paths: folders that hold packages; looked at before the ament index and the environment.
        xacro_arguments: arguments of a xacro file.

    Raises:
        ResourceNotFoundError: the file or a collision mesh is missing; names link, package and places.
        InvalidInputError: XML that cannot be parsed (with its line), or a tree that is not one: duplicate names,
            a joint whose link does not exist, a cycle, no or several roots.
        MissingDependencyError: a xacro file, and the package xacro is not installed.
    """
    from morphit_ros.robot.urdf import parse_urdf

    paths = tuple(Path(path) for path in package_paths)
    text = str(source).removeprefix("\ufeff")
    if text.lstrip().startswith("<") or "\n" in text:
        return parse_urdf(text, None, paths)
    path = resolve_uri(text, paths)
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise InvalidInputError(
            path.name, f"{path.stat().st_size >> 20} MiB", f"at most {MAX_DOCUMENT_BYTES >> 20} MiB"
        )
    try:
        document = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInputError(str(path), f"unreadable ({error})", "a file that can be read") from error
    if path.suffix == ".xacro":
        document = _expand_xacro(path, xacro_arguments or {})
    return parse_urdf(document, path.parent, paths, path.name)


def _expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    try:
        import xacro
    except ImportError as error:
        raise MissingDependencyError("xacro", f"the xacro file {path.name}", "pip install xacro") from error
    try:
        return str(xacro.process_file(str(path), mappings=dict(arguments)).toxml())
    # xacro raises whatever its expressions raise; all of it means a file that cannot be expanded.
    except Exception as error:
        raise InvalidInputError(path.name, f"a xacro error: {error}", "a xacro file that expands") from error


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
