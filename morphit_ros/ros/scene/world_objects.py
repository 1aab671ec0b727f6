"""What a scene holds, as objects of the world that distances are measured to and motions keep clear of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import Pose

from morphit_interfaces.msg import DistanceShape, WorldObject, WorldObjectArray
from morphit_ros.execution.obstacles import loose_obstacle, table_obstacle
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, transform_points
from morphit_ros.memory.tracks import Track
from morphit_ros.memory.whole_shape import WholeShape
from morphit_ros.perception.scene import LOOSE, Scene, SceneStatus
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.solids import Solid
from morphit_ros.ros.core.conversions import header, point_from_array, pose_from_matrix
from morphit_ros.ros.scene.messages import TablePatch, object_name, object_number
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid

TABLE, LOOSE_POINTS = "table", "loose_points"
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


def is_perceived(name: str) -> bool:
    """Whether an object of the world has a name that perception gives."""
    return name in (TABLE, LOOSE_POINTS) or object_number(name) is not None


def message_from_world(
    scene: Scene,
    tracks: Sequence[Track],
    T_base_scene: Array,
    base_link: str,
    stamp: float,
    fixtures: Sequence[Solid] = (),
    shapes: Mapping[int, WholeShape] | None = None,
) -> WorldObjectArray:
    """The table as a slab, each object as a convex hull, points of no object as balls, and what stands there anyway.

    Hulls reach down to the table: no camera sees what is below an object. The stamp of an object is that of the look
    that it was seen in last.

    Args:
        scene: outcome of `perceive`.
        tracks: its objects in their order, then those that it does not show; what is held is the robot's, and left out.
        T_base_scene: (4, 4), its frame in the base link's.
        base_link: of the robot.
        stamp: of the clouds [s].
        fixtures: primitives in the frame of the scene.
        shapes: by number, of objects that superovoids stand for instead of a hull.
    """
    shapes = shapes or {}
    loose = scene.cloud.points[scene.labels == LOOSE]
    clouds = {object_name(t.number): t.cloud for t in tracks if not t.held and t.number not in shapes}
    seen = {object_name(track.number): track.seen for track in tracks}
    found = [_fixture(solid, T_base_scene) for solid in fixtures]
    table = None if scene.table is None else TablePatch(scene.table.T_world_table, scene.table.size)
    found += [_whole(number, shape, T_base_scene) for number, shape in shapes.items()]
    found += seen_objects(table, clouds, loose, T_base_scene)
    for item in found:
        if item.id in seen:
            item.header = header("", seen[item.id])
    return WorldObjectArray(header=header(base_link, stamp), objects=found)


def describe_tracks(tracks: Sequence[Track], gone: Sequence[Track], stamp: float) -> dict[str, str]:
    """Which objects there are by name, which are not seen and why, and which were let go of: for diagnostics."""
    unseen = [
        f"{object_name(track.number)} ({track.unseen}, seen {stamp - track.seen:.1f} s ago)"
        for track in tracks
        if track.index is None
    ]
    return {
        "objects seen": " ".join(object_name(track.number) for track in tracks if track.index is not None),
        "objects unseen": ", ".join(unseen),
        "objects let go of": " ".join(object_name(track.number) for track in gone),
    }


def describe_shapes(shapes: Mapping[int, WholeShape], stamp: float) -> str:
    """What is measured of shapes, what is assumed, and how old that is, in words."""
    return "; ".join(
        f"{object_name(number)}: {len(shape.shapes)} superovoids, seen within {1e3 * shape.deviation:.1f} mm, "
        f"{100.0 * shape.assumed:.0f} % assumed, {shape.looks} looks, {stamp - shape.seen:.1f} s old"
        + (f", the rest {shape.known}" if shape.known else "")
        for number, shape in shapes.items()
    )


def seen_objects(
    table: TablePatch | None, clouds: Mapping[str, PointCloud], loose: Array, T_base_scene: Array
) -> list[WorldObject]:
    """Table, objects and loose points in the base link's frame, whoever keeps clear of them.

    Args:
        table: what they stand on, None without.
        clouds: id → points of an object; one without a finite point is left out.
        loose: (N, 3) points of no object [m].
        T_base_scene: (4, 4), the frame of all these in the base link's.
    """
    found = []
    if table is not None:
        slab = table_obstacle(T_base_scene @ table.T_world_table, table.size)
        middle = slab.T_base_table.copy()
        middle[:3, 3] -= 0.5 * slab.thickness * middle[:3, 2]
        size = [float(slab.size[0]), float(slab.size[1]), slab.thickness]
        shape = DistanceShape(type=DistanceShape.BOX, dimensions=size, pose=Pose())
        found.append(WorldObject(id=TABLE, pose=pose_from_matrix(middle), shapes=[shape]))
    for name, cloud in clouds.items():
        points = cloud.finite().points
        if not len(points):
            continue
        if table is not None:
            foot = transform_points(invert_transform(table.T_world_table), points)
            foot[:, 2] = 0.0
            points = np.concatenate([points, transform_points(table.T_world_table, foot)])
        # In the frame of the scene: the same hull wherever a base stands.
        corners = transform_points(T_base_scene, _hull(points))
        hull = DistanceShape(
            type=DistanceShape.CONVEX_MESH, vertices=[point_from_array(corner) for corner in corners], pose=Pose()
        )
        found.append(WorldObject(id=name, pose=Pose(), shapes=[hull]))
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
    return found


def _whole(number: int, shape: WholeShape, T_base_scene: Array) -> WorldObject:
    """An object as superovoids that hold what was seen of it as hulls do, and are as much larger than that."""
    return WorldObject(
        id=object_name(number),
        pose=pose_from_matrix(T_base_scene @ shape.T_world_object),
        shapes=[superovoid_message(placed) for placed in shape.grown(_AROUND)],
    )


def superovoid_message(placed: PlacedSuperovoid) -> DistanceShape:
    """A superovoid in the frame that it is placed in."""
    return DistanceShape(
        type=DistanceShape.SUPEROVOID,
        dimensions=placed.shape.parameters.tolist(),
        pose=pose_from_matrix(placed.T_link_shape),
    )


def solid_message(solid: Solid, pose: Pose) -> DistanceShape:
    """A solid that is no mesh, at a pose in the frame of what holds it."""
    # A message has the height of cylinders and capsules first, a solid the radius.
    size = solid.dimensions.tolist()
    dimensions = size if solid.kind is GeometryKind.BOX else size[::-1]
    return DistanceShape(type=_TYPES[solid.kind], dimensions=dimensions, pose=pose)


def _fixture(solid: Solid, T_base_scene: Array) -> WorldObject:
    pose = pose_from_matrix(T_base_scene @ solid.T_world_solid)
    return WorldObject(id=solid.name, pose=pose, shapes=[solid_message(solid, Pose())])


def _hull(points: Array) -> Array:
    """Corners (C, 3) of the convex hull of what is around points (N, 3), which may lie in a plane [m]."""
    from scipy.spatial import ConvexHull

    around = (points[:, None] + _CORNERS).reshape(-1, 3)
    return np.asarray(around[ConvexHull(around).vertices])
