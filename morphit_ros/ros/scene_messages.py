"""Perceived scenes to messages and back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from std_msgs.msg import Header

from morphit_interfaces.msg import SegmentedObject, SegmentedObjectArray, TablePlane
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.conversions import (
    array_from_point,
    cloud_from_message,
    matrix_from_pose,
    message_from_cloud,
    point_from_array,
    pose_from_matrix,
    vector_from_array,
)


class TablePatch(NamedTuple):
    """A bounded support: ``T_world_table`` (4, 4) with z = 0 the upper face, and `size` (2,) [m]."""

    T_world_table: Array
    size: Array


def message_from_object(cloud: PointCloud, index: int, header: Header) -> SegmentedObject:
    extents = np.ptp(cloud.points, axis=0) if len(cloud) else np.zeros(3)
    return SegmentedObject(
        header=header,
        id=index,
        cloud=message_from_cloud(cloud, header.frame_id, header.stamp.sec + header.stamp.nanosec * 1e-9),
        centroid=point_from_array(cloud.points.mean(axis=0) if len(cloud) else np.zeros(3)),
        size=vector_from_array(extents),
    )


def message_from_objects(clouds: list[PointCloud], target: int | None, header: Header) -> SegmentedObjectArray:
    return SegmentedObjectArray(
        header=header,
        objects=[message_from_object(cloud, index, header) for index, cloud in enumerate(clouds)],
        target=-1 if target is None else target,
    )


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
    return TablePlane(
        header=header,
        pose=pose_from_matrix(table.T_world_table),
        size=vector_from_array([*table.size, 0.0]),
        residual=float(residual),
        found=True,
    )


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
