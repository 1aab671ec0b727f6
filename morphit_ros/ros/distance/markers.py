"""Superovoids of links, shapes of objects and the latest closest points as RViz markers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from geometry_msgs.msg import Vector3
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.primitives import box_mesh, capsule_mesh, cylinder_mesh, sphere_mesh
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.ros.core.conversions import point_from_array, pose_from_matrix
from morphit_ros.ros.core.markers import PALETTE, color_message, marker_array
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.distances.primitives import Box, Capsule, ConvexMesh, Cylinder, HalfSpace, Sphere
from morphit_ros.superovoid.robots.robot_distance import StateDistances
from morphit_ros.superovoid.robots.world import CollisionWorld
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Side of the square that stands for a half-space's plane, and edge of a point's cube [m].
_PLANE, _DOT = 2.0, 0.004
_LINE = 0.003


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


def superovoid_markers(
    links: Mapping[str, Iterable[PlacedSuperovoid]], world: CollisionWorld, root: str, chord_error: float, alpha: float
) -> MarkerArray:
    """A triangle list for each link and each object, in the frame of the link that it moves with."""
    markers = []
    for number, (link, shapes) in enumerate(links.items()):
        bodies = [(item.shape, item.T_link_shape) for item in shapes]
        rgb = PALETTE[number % len(PALETTE)]
        markers.append(_triangles(link, "links", number, bodies, rgb, chord_error, alpha))
    for number, item in enumerate(world):
        frame = item.frame or item.attached_to or root
        bodies = [(placed.shape, item.T_frame_object @ placed.T_object_shape) for placed in item.shapes]
        rgb = (1.0, 0.8, 0.1) if item.attached_to else (0.7, 0.7, 0.7)
        markers.append(_triangles(frame, "objects", number, bodies, rgb, chord_error, alpha))
    return marker_array(markers)


def _triangles(
    frame: str,
    namespace: str,
    number: int,
    bodies: list[tuple[Shape, Array]],
    rgb: tuple[float, float, float],
    chord_error: float,
    alpha: float,
) -> Marker:
    corners = []
    for shape, T_frame_shape in bodies:
        mesh = shape_mesh(shape, chord_error)
        corners.append(transform_points(T_frame_shape, mesh.vertices)[mesh.faces.ravel()])
    return Marker(
        header=Header(frame_id=frame), ns=namespace, id=number, type=Marker.TRIANGLE_LIST, frame_locked=True,
        pose=pose_from_matrix(np.eye(4)), scale=Vector3(x=1.0, y=1.0, z=1.0), color=color_message(rgb, alpha),
        points=[point_from_array(corner) for corner in np.concatenate(corners)],
    )  # fmt: skip


def closest_point_markers(header: Header, distances: StateDistances) -> MarkerArray:
    """A line between the closest points of every pair that was reported: red in contact, the nearest one thicker."""
    markers = []
    for number, pair in enumerate(distances.distances):
        if pair.nearest_points is None:
            continue
        color = color_message((1.0, 0.1, 0.1) if pair.distance <= 0.0 else (0.1, 0.9, 0.3))
        markers.append(
            Marker(
                header=header, ns="closest_points", id=number, type=Marker.LINE_LIST,
                pose=pose_from_matrix(np.eye(4)), scale=Vector3(x=_LINE if number == 0 else 0.5 * _LINE), color=color,
                points=[point_from_array(point) for point in pair.nearest_points],
            )
        )  # fmt: skip
    return marker_array(markers)
