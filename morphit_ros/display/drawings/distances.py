"""What is drawn of distances: superovoids of links, shapes of objects, and closest points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from morphit_ros.display.display_list import PALETTE, Item, LinesItem, MeshItem, Rgb
from morphit_ros.geometry.mesh import TriangleMesh, concatenate_meshes
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, Sphere
from morphit_ros.superovoid.robots.robot_distance import StateDistances
from morphit_ros.superovoid.robots.world import CollisionWorld
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Side of the square that stands for a half-space's plane, and edge of a point's cube [m].
_PLANE, _DOT = 2.0, 0.004
# Width of the nearest pair's line, in RViz [m] and in a browser.
_LINE, _PIXELS = 0.003, 4.0


def shape_mesh(shape: Shape, chord_error: float) -> TriangleMesh:
    """What is drawn of a shape: superovoids to a chord error [m], a half-space as a piece of its plane."""
    if isinstance(shape, Superovoid):
        return shape.mesh(chord_error)
    if isinstance(shape, Sphere):
        return sphere_mesh(shape.radius, 24)
    if isinstance(shape, Capsule):
        return capsule_mesh(shape.radius, shape.length, 24)
    if isinstance(shape, Cylinder):
        return cylinder_mesh(shape.radius, shape.length, 24)
    if isinstance(shape, Box):
        return box_mesh(shape.sides)
    if isinstance(shape, HalfSpace):
        corners = 0.5 * _PLANE * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
        return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))
    if isinstance(shape, ConvexMesh):
        from scipy.spatial import ConvexHull

        hull = ConvexHull(shape.vertices)
        faces = hull.simplices.astype(np.int64)
        a, b, c = (shape.vertices[faces[:, k]] for k in range(3))
        inwards = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
        faces[inwards] = faces[inwards][:, ::-1]
        return TriangleMesh(shape.vertices, faces)
    return box_mesh([_DOT] * 3)


def superovoid_items(
    links: Mapping[str, Iterable[PlacedSuperovoid]],
    world: CollisionWorld,
    root: str,
    chord_error: float,
    opacity: float,
) -> list[Item]:
    """The superovoids of each link and the shapes of each object, in the frame of the link that they move with."""
    items: list[Item] = []
    for number, (link, shapes) in enumerate(links.items()):
        fitted = [(item.shape, item.T_link_shape) for item in shapes]
        items.append(_body("links", number, link, fitted, PALETTE[number % len(PALETTE)], chord_error, opacity))
    for number, item in enumerate(world):
        frame = item.frame or item.attached_to or root
        placed = [(part.shape, item.T_frame_object @ part.T_object_shape) for part in item.shapes]
        color = (1.0, 0.8, 0.1) if item.attached_to else (0.7, 0.7, 0.7)
        items.append(_body("objects", number, frame, placed, color, chord_error, opacity))
    return items


def _body(
    name: str,
    number: int,
    frame: str,
    bodies: Sequence[tuple[Shape, Array]],
    color: Rgb,
    chord_error: float,
    opacity: float,
) -> MeshItem:
    meshes = [(T_frame_shape, shape_mesh(shape, chord_error)) for shape, T_frame_shape in bodies]
    joined = concatenate_meshes([TriangleMesh(transform_points(T, mesh.vertices), mesh.faces) for T, mesh in meshes])
    return MeshItem(f"shapes/{name}", color, joined.vertices, joined.faces, number=number, frame=frame, opacity=opacity)


def closest_point_items(distances: StateDistances) -> list[Item]:
    """A line between the closest points of every pair that was reported: red in contact, the nearest one thicker."""
    return [
        closest_points_item(pair.nearest_points, pair.distance, number)
        for number, pair in enumerate(distances.distances)
        if pair.nearest_points is not None
    ]


def closest_points_item(points: Array, distance: float, number: int = 0) -> LinesItem:
    """A line between two points (2, 3) [m]: red in contact, thinner after the first."""
    color = (1.0, 0.1, 0.1) if distance <= 0.0 else (0.1, 0.9, 0.3)
    share = 1.0 if number == 0 else 0.5
    return LinesItem("distances/closest_points", color, points[None], share * _LINE, share * _PIXELS, number=number)
