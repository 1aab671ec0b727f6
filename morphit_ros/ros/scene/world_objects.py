"""What a scene holds, as objects of the world that distances are measured to and motions keep clear of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import Pose

from morphit_interfaces.msg import DistanceShape, WorldObject, WorldObjectArray
from morphit_ros.execution.obstacles import loose_obstacle, table_obstacle
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.perception.scene import LOOSE, Scene, SceneStatus
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.ros.core.conversions import header, point_from_array, pose_from_matrix

TABLE, LOOSE_POINTS = "table", "loose_points"
_OBJECT = "object_"
_TYPES = {
    GeometryKind.BOX: DistanceShape.BOX,
    GeometryKind.CYLINDER: DistanceShape.CYLINDER,
    GeometryKind.SPHERE: DistanceShape.SPHERE,
    GeometryKind.CAPSULE: DistanceShape.CAPSULE,
}
# Scenes that tell what there is and what there is not; others failed before that.
TELLING = (SceneStatus.OK, SceneStatus.NO_OBJECT, SceneStatus.TARGET_NOT_FOUND, SceneStatus.OBJECT_MOVED)
# Around each point: so much belongs to its object, about the distance of neighbours [m].
_AROUND = 0.003
_CORNERS = _AROUND * np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def object_name(index: int) -> str:
    """Id of an object of the world that is the object of a scene."""
    return f"{_OBJECT}{index}"


def is_perceived(name: str) -> bool:
    """Whether an object of the world has a name that perception gives."""
    return name in (TABLE, LOOSE_POINTS) or (name.startswith(_OBJECT) and name.removeprefix(_OBJECT).isdigit())


def message_from_world(
    scene: Scene, T_base_scene: Array, base_link: str, stamp: float, fixtures: Sequence[Solid] = ()
) -> WorldObjectArray:
    """The table as a slab, each object as a convex hull, points of no object as balls, and what stands there anyway.

    Hulls reach down to the table: no camera sees what is below an object.

    Args:
        scene: outcome of `perceive`.
        T_base_scene: (4, 4), its frame in the base link's.
        base_link: of the robot.
        stamp: of the clouds [s].
        fixtures: primitives in the frame of the scene.
    """
    found = [_fixture(solid, T_base_scene) for solid in fixtures]
    if scene.table is not None:
        table = table_obstacle(T_base_scene @ scene.table.T_world_table, scene.table.size)
        middle = table.T_base_table.copy()
        middle[:3, 3] -= 0.5 * table.thickness * middle[:3, 2]
        size = [float(table.size[0]), float(table.size[1]), table.thickness]
        slab = DistanceShape(type=DistanceShape.BOX, dimensions=size, pose=Pose())
        found.append(WorldObject(id=TABLE, pose=pose_from_matrix(middle), shapes=[slab]))
    for index, cloud in enumerate(scene.objects):
        points = cloud.finite().points
        if not len(points):
            continue
        if scene.table is not None:
            foot = transform_points(invert_transform(scene.table.T_world_table), points)
            foot[:, 2] = 0.0
            points = np.concatenate([points, transform_points(scene.table.T_world_table, foot)])
        corners = _hull(transform_points(T_base_scene, points))
        hull = DistanceShape(
            type=DistanceShape.CONVEX_MESH, vertices=[point_from_array(corner) for corner in corners], pose=Pose()
        )
        found.append(WorldObject(id=object_name(index), pose=Pose(), shapes=[hull]))
    loose = scene.cloud.points[scene.labels == LOOSE]
    loose = loose[np.isfinite(loose).all(axis=1)]
    if len(loose):
        balls = loose_obstacle(LOOSE_POINTS, loose, T_base_scene)
        shapes = [
            DistanceShape(
                type=DistanceShape.SPHERE,
                dimensions=[radius],
                pose=pose_from_matrix(make_transform(translation=center)),
            )
            for center, radius in zip(balls.centers, balls.radii.tolist(), strict=True)
        ]
        found.append(WorldObject(id=LOOSE_POINTS, pose=Pose(), shapes=shapes))
    return WorldObjectArray(header=header(base_link, stamp), objects=found)


def _fixture(solid: Solid, T_base_scene: Array) -> WorldObject:
    # A message has the height of cylinders and capsules first, a solid the radius.
    size = solid.dimensions.tolist()
    shape = DistanceShape(
        type=_TYPES[solid.kind], dimensions=size if solid.kind is GeometryKind.BOX else size[::-1], pose=Pose()
    )
    return WorldObject(id=solid.name, pose=pose_from_matrix(T_base_scene @ solid.T_world_solid), shapes=[shape])


def _hull(points: Array) -> Array:
    """Corners (C, 3) of the convex hull of what is around points (N, 3), which may lie in a plane [m]."""
    from scipy.spatial import ConvexHull

    around = (points[:, None] + _CORNERS).reshape(-1, 3)
    return np.asarray(around[ConvexHull(around).vertices])
