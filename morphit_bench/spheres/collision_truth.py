"""The truth of the collision experiment, by Coal: triangle meshes against exact solids and against each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_bench.spheres.collision_experiment import ObstacleShape, sphere_hits
from morphit_ros.errors import InvalidInputError, MissingDependencyError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array, invert_transform, transform_points
from morphit_ros.geometry.winding_number import InsideTest
from morphit_ros.robot.links import GeometryKind

# Twice the area of a triangle that has none, over the square of the mesh's size.
_NO_AREA = 1e-14


def mesh_hits(
    meshes: Mapping[str, Sequence[TriangleMesh]], poses: Mapping[str, Array], obstacles: Sequence[ObstacleShape]
) -> NDArray[np.bool_]:
    """Which links' meshes touch or contain which obstacles: (C, O, L), links in the order of `poses`.

    Coal compares triangles with solids; an obstacle that touches no triangle is in collision if it is wholly
    inside a mesh, which the winding number of its centre tells.

    Args:
        meshes: link → its surfaces in its frame; several mean their union.
        poses: link → ``T_world_link`` (C, 4, 4).
        obstacles: solids in the world.

    Raises:
        InvalidInputError: a link has no mesh.
        MissingDependencyError: Coal is not installed.
    """
    _check_meshes(meshes, poses)
    coal = _import_coal()
    # Nothing outside the ball around a link's corners can touch it.
    balls = {link: _bounding_ball(meshes[link]) for link in poses}
    near = sphere_hits(balls, poses, obstacles)
    solids = [_coal_solid(coal, obstacle) for obstacle in obstacles]
    frames = [_coal_pose(coal, obstacle.T_world_obstacle) for obstacle in obstacles]
    request, result = coal.CollisionRequest(), coal.CollisionResult()
    request.enable_contact = False
    hits = np.zeros_like(near)
    for column, (link, T_world_link) in enumerate(poses.items()):
        surfaces = [_coal_mesh(coal, mesh) for mesh in meshes[link]]
        inside = InsideTest(meshes[link])
        for c in np.flatnonzero(near[:, :, column].any(axis=1)):
            frame, T_link_world = _coal_pose(coal, T_world_link[c]), invert_transform(T_world_link[c])
            apart = []
            for o in np.flatnonzero(near[c, :, column]).tolist():
                for surface in surfaces:
                    result.clear()
                    if coal.collide(surface, frame, solids[o], frames[o], request, result):
                        hits[c, o, column] = True
                        break
                else:
                    apart.append(o)
            if apart:
                centers = np.array([obstacles[o].T_world_obstacle[:3, 3] for o in apart])
                hits[c, apart, column] = inside.contains(transform_points(T_link_world, centers))
    return hits


def mesh_self_hits(
    meshes: Mapping[str, Sequence[TriangleMesh]], poses: Mapping[str, Array], skipped: Collection[frozenset[str]]
) -> NDArray[np.bool_]:
    """At which configurations meshes of two links touch: (C,).

    Args:
        meshes, poses: as of `mesh_hits`.
        skipped: pairs of links that are not compared.

    Raises:
        InvalidInputError: a link has no mesh.
        MissingDependencyError: Coal is not installed.
    """
    _check_meshes(meshes, poses)
    coal = _import_coal()
    surfaces = {link: [_coal_mesh(coal, mesh) for mesh in meshes[link]] for link in poses}
    pairs = [pair for pair in combinations(poses, 2) if frozenset(pair) not in skipped]
    request, result = coal.CollisionRequest(), coal.CollisionResult()
    request.enable_contact = False
    hits = np.zeros(len(next(iter(poses.values()))), dtype=np.bool_)
    for c in range(len(hits)):
        frames = {link: _coal_pose(coal, T_world_link[c]) for link, T_world_link in poses.items()}
        for first, second in pairs:
            for a, b in product(surfaces[first], surfaces[second]):
                result.clear()
                if not hits[c] and coal.collide(a, frames[first], b, frames[second], request, result):
                    hits[c] = True
    return hits


def _check_meshes(meshes: Mapping[str, Sequence[TriangleMesh]], poses: Mapping[str, Array]) -> None:
    missing = [link for link in poses if not meshes.get(link)]
    if missing:
        raise InvalidInputError("meshes", f"none of {', '.join(missing)}", "a mesh of every link with poses")


def _import_coal() -> Any:
    try:
        import coal
    except ImportError as error:
        raise MissingDependencyError("coal", "the collision experiment", "pip install coal") from error
    return coal


def _bounding_ball(meshes: Sequence[TriangleMesh]) -> tuple[Array, Array]:
    """Centre (1, 3) and radius (1,) of a ball around all corners, a little larger against rounding."""
    corners = np.concatenate([mesh.vertices for mesh in meshes])
    center = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    radius = float(np.linalg.norm(corners - center, axis=1).max())
    return center[None], np.array([1.001 * radius])


def _coal_mesh(coal: Any, mesh: TriangleMesh) -> Any:
    # Coal takes a sphere as touching a triangle without area wherever it is; its neighbours have its sides.
    corners = mesh.vertices[mesh.faces]
    sides = corners[:, 1:] - corners[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    faces = mesh.faces[areas > _NO_AREA * np.square(np.ptp(mesh.vertices, axis=0).max())]
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(mesh.vertices))
    model.addVertices(mesh.vertices)
    model.addTriangles(faces)
    model.endModel()
    return model


def _coal_solid(coal: Any, obstacle: ObstacleShape) -> Any:
    size = obstacle.dimensions.tolist()
    match obstacle.kind:
        case GeometryKind.BOX:
            return coal.Box(*size)
        case GeometryKind.CYLINDER:
            return coal.Cylinder(*size)
        case _:
            return coal.Sphere(*size)


def _coal_pose(coal: Any, transform: Array) -> Any:
    return coal.Transform3s(transform[:3, :3], transform[:3, 3])
