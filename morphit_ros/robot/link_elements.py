"""The geometry elements of a link, and their surfaces in a frame in which links of equal shape are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.robot.links import GeometryKind, Link, LinkGeometry, element_mesh

SOURCES = ("collision", "visual", "collision_or_visual")
# Digits kept of the elements' poses [m] and of their rotations, so that rounding does not tell equal shapes apart.
_POSE_DIGITS = 9


def link_elements(link: Link, source: str) -> tuple[LinkGeometry, ...]:
    """The geometry elements that make up the shape of a link.

    Args:
        link: a link of a description.
        source: one of `SOURCES`; collision_or_visual takes the visual elements of a link without collision ones.

    Raises:
        InvalidInputError: an unknown source.
    """
    if source not in SOURCES:
        raise InvalidInputError("source", repr(source), f"one of {', '.join(SOURCES)}")
    if source == "visual":
        return link.visuals
    return link.collisions or (link.visuals if source == "collision_or_visual" else ())


def poses_in_first(elements: Sequence[LinkGeometry]) -> list[Array]:
    """``T_first_element`` (4, 4) of each of a link's elements, rounded; the poses of spheres without rotation."""
    T_first_link = invert_transform(elements[0].T_link_geometry)
    # Adding zero turns -0 into 0, which has other bits.
    poses = [np.round(T_first_link @ element.T_link_geometry, _POSE_DIGITS) + 0.0 for element in elements]
    for element, pose in zip(elements, poses, strict=True):
        if element.kind is GeometryKind.SPHERE:
            # However it is turned, it is the same.
            pose[:3, :3] = np.eye(3)
    return poses


def meshes_in_first(elements: Sequence[LinkGeometry], enclosing: bool = False) -> tuple[TriangleMesh, ...]:
    """The surfaces of a link's elements in the frame of the first, one an element.

    Args:
        elements: of the link, at least one.
        enclosing: whether meshes of round primitives enclose them, as a guaranteed cover needs.

    Raises:
        ResourceNotFoundError: a mesh file is missing.
        InvalidInputError: a mesh file is unreadable, or a dimension is zero.
    """
    first, *others = (element_mesh(element, enclosing) for element in elements)
    moved = zip(others, poses_in_first(elements)[1:], strict=True)
    return first, *(mesh.transformed(pose) for mesh, pose in moved)


def mesh_digest(start: str, meshes: Iterable[TriangleMesh]) -> hashlib._Hash:
    """A hash of a text and of meshes, to be gone on with."""
    digest = hashlib.sha256(start.encode())
    for mesh in meshes:
        digest.update(np.array([len(mesh.vertices), len(mesh.faces)]).tobytes())
        digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
        digest.update(np.ascontiguousarray(mesh.faces).tobytes())
    return digest
