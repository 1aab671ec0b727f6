"""The shape of a link: the union of its geometry elements, in a frame in which equal shapes are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.links import GeometryKind, Link, LinkGeometry, element_mesh
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.exposed_surface import sample_exposed_surface, shape_bounds

SOURCES = ("collision", "visual", "collision_or_visual")

# Digits kept of the elements' poses [m] and of their rotations, so that rounding does not tell equal shapes apart.
_POSE_DIGITS = 9
# How far in front of its face a point is tested for the other elements, relative to the diagonal of the shape.
_IN_FRONT = 1e-6
# Points on each element that its exposed share is taken from.
_AREA_POINTS = 1000


@dataclass(frozen=True)
class LinkShape:
    """The union of the geometry elements of one link, in the frame of the first of them.

    Attributes:
        meshes: one a geometry element.
        kinds: of the elements.
        ball_centers, ball_radii: (S, 3) and (S,) [m], the elements that are spheres.
        T_link_shape: (4, 4).
        link_ball_centers: (S, 3), the centres in the link's frame, to the bit as the description has them.
    """

    meshes: tuple[TriangleMesh, ...]
    kinds: tuple[GeometryKind, ...]
    ball_centers: Array
    ball_radii: Array
    T_link_shape: Array
    link_ball_centers: Array

    def default_count(self, config: SphereFitConfig) -> int:
        """`count` for each mesh, min(count, primitive_count) for a box, cylinder or capsule, 1 for a sphere."""
        counts = {GeometryKind.MESH: config.count, GeometryKind.SPHERE: 1}
        primitive = min(config.count, config.primitive_count)
        return sum(counts.get(kind, primitive) for kind in self.kinds)

    def locked_count(self, count: int) -> int:
        """How many of `count` spheres are elements that stay as they are: all that are spheres, or none."""
        balls = len(self.ball_radii)
        others = len(self.kinds) > balls
        return balls if count >= balls + others else 0

    @cached_property
    def content_hash(self) -> str:
        """Identifies the shape wherever it is in its link."""
        digest = hashlib.sha256(",".join(kind.value for kind in self.kinds).encode())
        for mesh in self.meshes:
            digest.update(np.array([len(mesh.vertices), len(mesh.faces)]).tobytes())
            digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
            digest.update(np.ascontiguousarray(mesh.faces).tobytes())
        digest.update(self.ball_centers.tobytes())
        digest.update(self.ball_radii.tobytes())
        return digest.hexdigest()

    @cached_property
    def exposed_area(self) -> float:
        """Surface area of the union [m²]: what one element buries in another, or presses against it, is not surface."""
        areas = [mesh.area for mesh in self.meshes]
        if len(areas) == 1:
            return areas[0]
        rng = np.random.default_rng(0)
        step = _IN_FRONT * float(np.linalg.norm(np.diff(shape_bounds(self.meshes), axis=0)))
        exposed = 0.0
        for index, mesh in enumerate(self.meshes):
            if areas[index] > 0.0:
                points, normals = sample_exposed_surface(mesh, _AREA_POINTS, rng)
                others = InsideTest(self.meshes[:index] + self.meshes[index + 1 :])
                exposed += areas[index] * float(np.mean(~others.contains(points + step * normals)))
        # Sheets can bury each other and leave nothing exposed.
        return exposed if exposed > 0.0 else sum(areas)


def link_elements(link: Link, source: str) -> tuple[LinkGeometry, ...]:
    """The geometry elements that make up the shape of a link.

    Args:
        link: a link of a description.
        source: one of `SOURCES`; collision_or_visual takes the visual elements of a link without collision ones.

    Raises:
        InvalidInputError: an unknown source.
    """
    choices: dict[str, Callable[[], tuple[LinkGeometry, ...]]] = {
        "collision": lambda: link.collisions,
        "visual": lambda: link.visuals,
        "collision_or_visual": lambda: link.collisions or link.visuals,
    }
    if source not in choices:
        raise InvalidInputError("source", repr(source), f"one of {', '.join(SOURCES)}")
    return choices[source]()


def load_link_shape(elements: tuple[LinkGeometry, ...], enclosing: bool = False) -> LinkShape:
    """Load the meshes of a link's elements, at least one.

    Args:
        elements: of the link.
        enclosing: whether meshes of round primitives enclose them, as a guaranteed cover needs.

    Raises:
        ResourceNotFoundError: a mesh file is missing.
        InvalidInputError: a mesh file is unreadable, or a dimension is zero.
    """
    T_link_shape = elements[0].T_link_geometry
    T_shape_link = invert_transform(T_link_shape)
    meshes, centers = [], []
    for element in elements:
        # Adding zero turns -0 into 0, which has other bits.
        T_shape_geometry = np.round(T_shape_link @ element.T_link_geometry, _POSE_DIGITS) + 0.0
        if element.kind is GeometryKind.SPHERE:
            # However it is turned, it is the same.
            T_shape_geometry[:3, :3] = np.eye(3)
        mesh = element_mesh(element, enclosing)
        meshes.append(mesh if element is elements[0] else mesh.transformed(T_shape_geometry))
        if element.kind is GeometryKind.SPHERE:
            centers.append(T_shape_geometry[:3, 3])
    balls = [element for element in elements if element.kind is GeometryKind.SPHERE]
    return LinkShape(
        meshes=tuple(meshes),
        kinds=tuple(element.kind for element in elements),
        ball_centers=np.array(centers).reshape(-1, 3),
        ball_radii=np.array([element.dimensions[0] for element in balls]),
        T_link_shape=T_link_shape,
        link_ball_centers=np.array([element.T_link_geometry[:3, 3] for element in balls]).reshape(-1, 3),
    )
