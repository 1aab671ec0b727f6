"""Perceived scenes to messages and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import PointStamped
from std_msgs.msg import Header

from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_interfaces.srv import Segment
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.perception.configuration import PerceptionConfig
from morphit_ros.perception.scene import LOOSE, ObjectEvidence, Scene
from morphit_ros.ros.core.conversions import (
    array_from_point,
    cloud_from_message,
    matrix_from_pose,
    message_from_cloud,
    point_rows,
    seconds_from_stamp,
)
from morphit_ros.ros.core.fields import write_fields

_OBJECT = "object_"
# Points of no object that are nearer than this to one are rather that object's [m].
_OWN_DISTANCE = 0.01


class TablePatch(NamedTuple):
    """A bounded support: ``T_world_table`` (4, 4) with z = 0 the upper face, and `size` (2,) [m]."""

    T_world_table: Array
    size: Array


def object_name(number: int) -> str:
    """Name of an object that perception has given a number; goals have it in place of a frame."""
    return f"{_OBJECT}{number}"


def object_number(name: str) -> int | None:
    """Number of an object by its name, None if that is not a name of one."""
    digits = name.removeprefix(_OBJECT)
    return int(digits) if name.startswith(_OBJECT) and digits.isdecimal() else None


def named_point(number: int) -> PointStamped:
    """An object by its name, where a goal has a point."""
    return PointStamped(header=Header(frame_id=object_name(number)))


def message_from_object(
    cloud: PointCloud, number: int, header: Header, evidence: ObjectEvidence | None = None
) -> SegmentedObject:
    """An object with its number; without evidence nothing is said about how well it is known."""
    points = cloud.points if len(cloud) else np.zeros((1, 3))
    return write_fields(
        SegmentedObject(), evidence, header=header, id=number, centroid=points.mean(axis=0),
        cloud=message_from_cloud(cloud, header.frame_id, seconds_from_stamp(header.stamp)), size=np.ptp(points, axis=0),
    )  # fmt: skip


def message_from_objects(
    clouds: Sequence[PointCloud],
    target: int | None,
    header: Header,
    evidence: Sequence[ObjectEvidence] = (),
    obstacles: Array | None = None,
    viewpoints: Sequence[Array] = (),
    numbers: Sequence[int] = (),
) -> SegmentedObjectArray:
    """Objects of a scene.

    Args:
        clouds: of the objects, largest first.
        target: index of the one to grasp.
        header: frame and stamp of everything.
        evidence: how well each is known; empty if that is not known.
        obstacles: (M, 3) points of no object [m].
        viewpoints: positions (3,) of the cameras [m].
        numbers: that each object keeps between looks; its place in the list by default.
    """
    numbers = numbers or range(len(clouds))
    known: Sequence[ObjectEvidence | None] = evidence or [None] * len(clouds)
    loose = PointCloud(np.empty((0, 3)) if obstacles is None else obstacles, frame=header.frame_id)
    return write_fields(
        SegmentedObjectArray(), header=header, target=-1 if target is None else target, viewpoints=viewpoints,
        objects=[message_from_object(*item) for item in zip(clouds, numbers, repeat(header), known, strict=False)],
        obstacles=message_from_cloud(loose, header.frame_id, seconds_from_stamp(header.stamp)),
    )  # fmt: skip


def message_from_scene(scene: Scene, header: Header, numbers: Sequence[int] = ()) -> SegmentedObjectArray:
    """What perception found, with what belongs to no object and where the cameras stood; `numbers` of its objects."""
    return message_from_objects(
        scene.objects, scene.target, header, scene.evidence, scene.cloud.points[scene.labels == LOOSE],
        scene.viewpoints, numbers,
    )  # fmt: skip


class OtherThings(NamedTuple):
    """What was seen besides an object: number → cloud of each other object, and the points that belong to none."""

    objects: dict[int, PointCloud]
    loose: PointCloud

    @property
    def points(self) -> Array:
        """All points (M, 3) [m]."""
        return np.concatenate([self.loose.points, *(cloud.points for cloud in self.objects.values())])

    def transformed(self, T_target_scene: Array) -> OtherThings:
        """The same in another frame, (4, 4)."""
        objects = {number: cloud.transformed(T_target_scene) for number, cloud in self.objects.items()}
        return OtherThings(objects, self.loose.transformed(T_target_scene))


def other_things(message: SegmentedObjectArray, target: int, own: PointCloud | None = None) -> OtherThings:
    """What a scene has besides one of its objects; clouds without a finite point are left out.

    Points of no object that nearly touch the target are left out too: the lowest and the outermost points of an object
    are not always counted as its own, and fingers that close on it must not shy away from them.

    Args:
        message: the scene.
        target: id of the object.
        own: its finite points in the scene's frame, None if they are not known.

    Raises:
        InvalidInputError: a cloud cannot be read, or is in another frame than the scene.
    """
    objects = {item.id: cloud_of(item).finite() for item in message.objects if item.id != target}
    loose = PointCloud(np.empty((0, 3)))
    if message.obstacles.data:
        loose = cloud_from_message(message.obstacles).finite()
        if own is not None and len(own) and len(loose):
            from scipy.spatial import cKDTree

            distances, _ = cKDTree(own.points).query(loose.points, distance_upper_bound=_OWN_DISTANCE)
            loose = loose.select(np.flatnonzero(np.isinf(distances)))
    frame = message.header.frame_id
    for cloud in (*objects.values(), loose):
        if cloud.frame and cloud.frame != frame:
            raise InvalidInputError("scene", f"frame {cloud.frame}", f"the scene's frame {frame}")
    return OtherThings({number: cloud for number, cloud in objects.items() if len(cloud)}, loose)


_RULES = {
    Segment.Request.RULE_LARGEST: "largest",
    Segment.Request.RULE_NEAREST: "nearest",
    Segment.Request.RULE_INDEX: "index",
}


def perception_of_request(request: Segment.Request, config: PerceptionConfig) -> PerceptionConfig:
    """A node's configuration with the rule for the target that a request names.

    Raises:
        InvalidInputError: an unknown rule, or a point in another frame than the scene's that names no object either.
    """
    if request.rule == Segment.Request.RULE_DEFAULT:
        return config
    if request.rule not in _RULES:
        raise InvalidInputError("rule", request.rule, f"0 to {max(_RULES)}")
    frame = request.point.header.frame_id
    if frame not in ("", config.world_frame) and object_number(frame) is None:
        expected = f"the scene's frame {config.world_frame}, or the name of an object"
        raise InvalidInputError("point: frame", frame, expected)
    point = tuple(array_from_point(request.point.point))
    return replace(config, target=replace(config.target, rule=_RULES[request.rule], index=request.index, point=point))


def wanted_number(request: Segment.Request) -> int | None:
    """Number of the object that a request has by its name, None where it has none."""
    return object_number(request.point.header.frame_id) if request.rule == Segment.Request.RULE_NEAREST else None


def viewpoints_of(message: SegmentedObjectArray) -> Array | None:
    """Positions (V, 3) of the cameras [m], None if they are not known."""
    return point_rows(message.viewpoints) if message.viewpoints else None


def target_of(message: SegmentedObjectArray) -> SegmentedObject | None:
    """The object to grasp, None if there is none."""
    return message.objects[message.target] if 0 <= message.target < len(message.objects) else None


def cloud_of(message: SegmentedObject) -> PointCloud:
    """The cloud of an object.

    Raises:
        InvalidInputError: its frame is not the object's, or it cannot be read.
    """
    cloud = cloud_from_message(message.cloud)
    if cloud.frame and cloud.frame != message.header.frame_id:
        raise InvalidInputError("object cloud", f"frame {cloud.frame}", f"the object's frame {message.header.frame_id}")
    return cloud


def message_from_table(table: TablePatch | None, residual: float, header: Header) -> TablePlane:
    if table is None:
        return TablePlane(header=header, found=False)
    size = [*table.size, 0.0]
    return write_fields(TablePlane(), header=header, pose=table.T_world_table, size=size, residual=residual, found=True)


def table_from_message(message: TablePlane) -> TablePatch | None:
    """The table, None if none was found.

    Raises:
        InvalidInputError: its pose or size is not usable.
    """
    if not message.found:
        return None
    size = array_from_point(message.size)[:2]
    if not (np.isfinite(size).all() and (size > 0.0).all()):
        raise InvalidInputError("table size", size.tolist(), "two positive numbers [m]")
    return TablePatch(matrix_from_pose(message.pose), size)
