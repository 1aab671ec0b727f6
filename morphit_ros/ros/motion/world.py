"""Objects of the world, as messages give them, as what a motion must not touch and what it carries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import Array
from morphit_ros.motion.cloud import CloudObstacle
from morphit_ros.motion.model import Body
from morphit_ros.motion.refinement import Carried
from morphit_ros.motion.world import World
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.superovoid.distances.packing import Shape
from morphit_ros.superovoid.distances.primitives import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    Point,
    Sphere,
)
from morphit_ros.superovoid.robots.world import PlacedShape, WorldObject
from morphit_ros.superovoid.shapes.superovoid import Superovoid

# Spheres of an object from which on they are looked up like points of a cloud.
_MANY_SPHERES = 64
# A half-space is a box so large [m]; nothing else is so far away.
_ROOM = 20.0
# A point is a sphere of this radius [m].
_POINT = 1e-9
# Superovoids are meshes with this chord error, grown by it [m].
_CHORD = 0.001
# A carried shape is taken as the box around it, filled with spheres of so many along its longest side.
_CELLS = 5


class Surroundings(NamedTuple):
    """What a motion is planned among.

    Attributes:
        world: what stands, in the frame of the root link.
        carried: what moves with links.
    """

    world: World
    carried: tuple[Carried, ...]


def surroundings(
    objects: Iterable[WorldObject], T_root_frame: Callable[[str], Array], allowed: Collection[frozenset[str]] = ()
) -> Surroundings:
    """Objects as the planner knows them.

    Args:
        objects: of the world, and attached ones.
        T_root_frame: pose (4, 4) of a frame that does not move; raises an InvalidInputError for others.
        allowed: pairs of names that may touch.

    Raises:
        InvalidInputError: a frame that is not known.
    """
    solids: list[Solid] = []
    clouds: dict[str, tuple[Array, Array]] = {}
    carried = []
    for item in objects:
        if item.attached_to:
            carried.append(_carried(item))
            continue
        pose = T_root_frame(item.frame) @ item.T_frame_object
        spheres = [placed for placed in item.shapes if isinstance(placed.shape, Sphere)]
        if len(spheres) > _MANY_SPHERES:
            centers = np.array([placed.T_object_shape[:3, 3] for placed in spheres])
            clouds[item.name] = centers @ pose[:3, :3].T + pose[:3, 3], np.array([_radius(s.shape) for s in spheres])
        others = item.shapes if item.name not in clouds else [s for s in item.shapes if not isinstance(s.shape, Sphere)]
        solids += [solid_of(item.name, placed.shape, pose @ placed.T_object_shape) for placed in others]
    pairs, cloud = set(allowed), None
    if clouds:
        # They have one name together; a pair with any of them is a pair with all.
        name = ", ".join(clouds)
        points, radii = (np.concatenate(each) for each in zip(*clouds.values(), strict=True))
        cloud = CloudObstacle(name, points, radii)
        pairs |= {frozenset(name if word in clouds else word for word in pair) for pair in pairs}
    return Surroundings(World(solids, pairs, cloud), tuple(carried))


def solid_of(name: str, shape: Shape, pose: Array) -> Solid:
    """A shape as a solid that contains it: ``pose`` is ``T_world_shape`` (4, 4)."""
    match shape:
        case Box():
            return Solid(name, GeometryKind.BOX, pose, np.array(shape.sides))
        case Cylinder():
            return Solid(name, GeometryKind.CYLINDER, pose, np.array([shape.radius, shape.length]))
        case Capsule():
            return Solid(name, GeometryKind.CAPSULE, pose, np.array([shape.radius, shape.length]))
        case Sphere():
            return Solid(name, GeometryKind.SPHERE, pose, np.array([shape.radius]))
        case Point():
            return Solid(name, GeometryKind.SPHERE, pose, np.array([_POINT]))
        case HalfSpace():
            below = pose.copy()
            below[:3, 3] -= 0.5 * _ROOM * pose[:3, 2]
            return Solid(name, GeometryKind.BOX, below, np.array([2.0 * _ROOM, 2.0 * _ROOM, _ROOM]))
        case ConvexMesh():
            return Solid(name, GeometryKind.MESH, pose, np.zeros(1), _hull(shape.vertices))
        case Superovoid():
            return Solid(name, GeometryKind.MESH, pose, np.array([_CHORD]), shape.mesh(_CHORD))
    raise InvalidInputError(f"shape of '{name}'", type(shape).__name__, "a shape that DistanceShape names")


def _hull(vertices: Array) -> TriangleMesh:
    from scipy.spatial import ConvexHull

    hull = ConvexHull(vertices)
    faces = hull.simplices.astype(np.int64)
    corners = vertices[faces]
    outwards = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    turned = np.einsum("ij,ij->i", outwards, hull.equations[:, :3]) < 0.0
    faces[turned] = faces[turned][:, ::-1]
    return TriangleMesh(vertices, faces)


def _carried(item: WorldObject) -> Carried:
    """An attached object as spheres that contain it."""
    centers, radii = (np.concatenate(each) for each in zip(*_spheres(item), strict=True))
    return Carried(item.name, Body(item.attached_to, centers, radii), item.touch_links)


def _spheres(item: WorldObject) -> Iterator[tuple[Array, Array]]:
    if item.frame and item.frame != item.attached_to:
        bound = f"the link that carries it, {item.attached_to}, or none"
        raise InvalidInputError(f"frame of '{item.name}'", repr(item.frame), bound)
    for placed in item.shapes:
        centers, radii = _filling(placed)
        pose = item.T_frame_object @ placed.T_object_shape
        yield centers @ pose[:3, :3].T + pose[:3, 3], radii


def _filling(placed: PlacedShape) -> tuple[Array, Array]:
    """Spheres that contain a shape, in its own frame: itself, or those around cells of the box around it."""
    shape = placed.shape
    if isinstance(shape, Sphere | Point):
        return np.zeros((1, 3)), np.array([_radius(shape)])
    if isinstance(shape, Capsule):
        count = max(2, int(np.ceil(shape.length / shape.radius)) + 1)
        heights = np.linspace(-0.5, 0.5, count) * shape.length
        # Between two of them they have to reach as far as the capsule.
        radius = float(np.hypot(shape.radius, 0.5 * shape.length / (count - 1)))
        return np.stack([0.0 * heights, 0.0 * heights, heights], axis=1), np.full(count, radius)
    low, high = _box(shape)
    size = high - low
    counts = np.maximum(1, np.ceil(_CELLS * size / size.max())).astype(np.int64)
    steps = size / counts
    axes = [low[k] + steps[k] * (np.arange(counts[k]) + 0.5) for k in range(3)]
    centers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return centers, np.full(len(centers), 0.5 * float(np.linalg.norm(steps)) * (1.0 + 1e-12))


def _box(shape: Shape) -> tuple[Array, Array]:
    """Corners of the box around a shape, in its own frame."""
    if isinstance(shape, Box):
        half = 0.5 * np.array(shape.sides)
        return -half, half
    if isinstance(shape, Cylinder):
        half = np.array([shape.radius, shape.radius, 0.5 * shape.length])
        return -half, half
    solid = solid_of("shape", shape, np.eye(4))
    assert solid.mesh is not None
    low, high = solid.mesh.bounds
    return low - solid.dimensions[0], high + solid.dimensions[0]


def _radius(shape: Shape) -> float:
    return shape.radius if isinstance(shape, Sphere) else _POINT
