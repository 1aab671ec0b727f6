"""The shape of a link: the union of its geometry elements, in a frame in which equal shapes are equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.link_elements import mesh_digest, meshes_in_first, poses_in_first
from morphit_ros.robot.links import GeometryKind, LinkGeometry
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.exposed_surface import sample_exposed_surface, shape_bounds

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
        digest = mesh_digest(",".join(kind.value for kind in self.kinds), self.meshes)
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


def load_link_shape(elements: tuple[LinkGeometry, ...], enclosing: bool = False) -> LinkShape:
    """Load the meshes of a link's elements, at least one.

    Args:
        elements: of the link.
        enclosing: whether meshes of round primitives enclose them, as a guaranteed cover needs.

    Raises:
        ResourceNotFoundError: a mesh file is missing.
        InvalidInputError: a mesh file is unreadable, or a dimension is zero.
    """
    poses = zip(elements, poses_in_first(elements), strict=True)
    centers = [pose[:3, 3] for element, pose in poses if element.kind is GeometryKind.SPHERE]
    balls = [element for element in elements if element.kind is GeometryKind.SPHERE]
    return LinkShape(
        meshes=meshes_in_first(elements, enclosing),
        kinds=tuple(element.kind for element in elements),
        ball_centers=np.array(centers).reshape(-1, 3),
        ball_radii=np.array([element.dimensions[0] for element in balls]),
        T_link_shape=elements[0].T_link_geometry,
        link_ball_centers=np.array([element.T_link_geometry[:3, 3] for element in balls]).reshape(-1, 3),
    )
