"""Whole shapes of the objects of a scene, worked out in a thread beside perception."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from shape_msgs.msg import Mesh

from morphit_interfaces.msg import ObjectShape, ObjectShapeArray
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.support_plane import SupportPlane
from morphit_ros.geometry.transforms import Array, make_transform, plane_axes
from morphit_ros.memory.look import Look
from morphit_ros.memory.tracks import Track
from morphit_ros.memory.whole_shape import KnownSurface, WholeShape, WholeShapes
from morphit_ros.perception.scene import Scene
from morphit_ros.ros.core.conversions import header, message_from_mesh, pose_from_matrix
from morphit_ros.ros.scene.messages import object_name
from morphit_ros.ros.scene.world_objects import superovoid_message

# Fewer points show no shape.
_LEAST_POINTS = 100
# The support is known as a plane; it is taken to be so large [m].
_SUPPORT = np.array([1.0, 1.0])


class SceneShapes:
    """Takes in looks, as many as it has time for, and says which shapes agree with the present one.

    Args:
        known: what is known of an object's surface besides, from points (N, 3) of it in the world [m].
    """

    def __init__(self, known: Callable[[Array], KnownSurface | None] = lambda _: None) -> None:
        self._known = known
        self._shapes = WholeShapes(complete)
        self._worker = ThreadPoolExecutor(1, "shapes")
        self._work: Future[None] | None = None

    def see(self, scene: Scene, tracks: Sequence[Track], stamp: float) -> str:
        """Take in a look unless the last one is still worked on; what went wrong with that, empty if nothing did.

        Args:
            scene: with objects.
            tracks: these in their order, then others.
            stamp: of the look [s].
        """
        if self._work is not None and not self._work.done():
            return ""
        error = None if self._work is None else self._work.exception()
        looks = {track.number: look_at(scene, track.index) for track in tracks if track.index is not None}
        self._shapes.keep([track.number for track in tracks])
        seen = {number: look for number, look in looks.items() if look is not None}
        self._work = self._worker.submit(self._take_in, seen, stamp)
        return "" if error is None else f"shapes of objects: {type(error).__name__}: {error}"

    def _take_in(self, looks: Mapping[int, Look], stamp: float) -> None:
        for number, look in looks.items():
            self._shapes.see(number, look, stamp, self._known(look.points))

    def of(self, tracks: Sequence[Track]) -> dict[int, WholeShape]:
        """Shapes by number of those objects that were seen last where, and as large as, their shape has them."""
        shapes = {track.number: self._shapes.at(track.number) for track in tracks if not track.held}
        return {
            track.number: shape
            for track in tracks
            if (shape := shapes.get(track.number)) is not None and shape.holds(track.cloud.finite().points)
        }


class ShapeMessages:
    """Messages of shapes; that of a mesh is made once, of thousands of objects of Python."""

    def __init__(self) -> None:
        self._meshes: dict[int, tuple[TriangleMesh, Mesh]] = {}

    def message(self, shapes: Mapping[int, WholeShape], frame: str) -> ObjectShapeArray:
        """Shapes by number, whose poses are in a frame."""
        made = self._meshes
        self._meshes = {
            number: made[number]
            if number in made and made[number][0] is shape.mesh
            else (shape.mesh, message_from_mesh(shape.mesh))
            for number, shape in shapes.items()
        }
        return ObjectShapeArray(
            objects=[
                ObjectShape(
                    header=header(frame, shape.seen), id=object_name(number),
                    pose=pose_from_matrix(shape.T_world_object), shapes=[superovoid_message(s) for s in shape.shapes],
                    mesh=self._meshes[number][1], deviation=shape.deviation, outside=shape.outside,
                    assumed=shape.assumed, looks=shape.looks, known=shape.known,
                )
                for number, shape in shapes.items()
            ]
        )  # fmt: skip


def look_at(scene: Scene, index: int) -> Look | None:
    """An object of a scene in the world, None if it was not seen well enough."""
    cloud = scene.objects[index].finite()
    if cloud.normals is None or len(cloud) < _LEAST_POINTS or not scene.evidence[index].consistent:
        return None
    planes = np.empty((0, 4))
    if scene.table is not None:
        up = scene.table.T_world_table[:3, 2]
        planes = np.array([[*up, up @ scene.table.T_world_table[:3, 3]]])
    eyes = np.array(scene.viewpoints).reshape(-1, 3)
    return Look(cloud.points, cloud.normals, eyes, planes, scene.obstacle_points(index))


def complete(look: Look) -> Array:
    """Hidden sides of the object of a look as the planner of grasps completes them, points (V, 3) [m]."""
    from morphit_ros.grasping.completion import AutoCompletion

    table = None
    if len(look.planes):
        up, offset = look.planes[-1, :3], look.planes[-1, 3]
        table = SupportPlane(make_transform(np.column_stack([*plane_axes(up), up]), offset * up), _SUPPORT)
    completion = AutoCompletion(look.eyes if len(look.eyes) else None, look.blockers if len(look.blockers) else None)
    return np.asarray(completion(look.points, look.normals, table).points)
