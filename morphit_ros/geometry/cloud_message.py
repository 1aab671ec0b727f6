"""PointCloud2 messages, read by their fields: the same for rclpy's class and for any other with these names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array

# sensor_msgs/PointField: FLOAT32 and FLOAT64.
_FIELD_TYPES: dict[int, np.dtype[np.floating]] = {7: np.dtype(np.float32), 8: np.dtype(np.float64)}
_NAMES = ("fields", "width", "height", "point_step", "row_step", "is_bigendian", "data", "header")


def is_cloud_message(value: object) -> bool:
    """Whether something has the fields of a PointCloud2."""
    return all(hasattr(value, name) for name in _NAMES)


def cloud_from_message(message: Any) -> PointCloud:
    """A cloud message as a PointCloud; NaN points are kept, so an organised cloud stays row-major.

    Args:
        message: sensor_msgs/PointCloud2, or what has the same fields.

    Raises:
        InvalidInputError: x, y, z are missing or not floating point, or the data is too short.
    """
    fields = {field.name: field for field in message.fields}
    count = message.width * message.height
    missing = [name for name in "xyz" if name not in fields]
    if missing:
        raise InvalidInputError("cloud fields", sorted(fields), f"x, y and z; missing: {', '.join(missing)}")
    if message.row_step < message.width * message.point_step or len(message.data) < message.height * message.row_step:
        raise InvalidInputError(
            "cloud data", f"{len(message.data)} bytes, row_step {message.row_step}",
            f"{message.height} rows of {message.width} points of {message.point_step} bytes",
        )  # fmt: skip
    points = _columns(message, fields, ("x", "y", "z"), count)
    normals = None
    if all(f"normal_{axis}" in fields for axis in "xyz"):
        normals = _columns(message, fields, ("normal_x", "normal_y", "normal_z"), count)
    stamp = message.header.stamp
    return PointCloud(points, normals, frame=message.header.frame_id, stamp=stamp.sec + stamp.nanosec * 1e-9)


def _columns(message: Any, fields: dict[str, Any], names: Sequence[str], count: int) -> Array:
    columns = np.empty((count, len(names)))
    if count == 0:
        return columns
    raw = np.frombuffer(message.data, dtype=np.uint8)[: message.height * message.row_step]
    rows = raw.reshape(message.height, message.row_step)[:, : message.width * message.point_step]
    points = np.ascontiguousarray(rows).reshape(count, message.point_step)
    for column, name in enumerate(names):
        field = fields[name]
        if field.datatype not in _FIELD_TYPES:
            raise InvalidInputError(f"cloud field {name}", f"datatype {field.datatype}", "FLOAT32 or FLOAT64")
        dtype = _FIELD_TYPES[field.datatype].newbyteorder(">" if message.is_bigendian else "<")
        if field.offset + dtype.itemsize > message.point_step:
            raise InvalidInputError(
                f"cloud field {name}", f"offset {field.offset}", f"within {message.point_step} bytes"
            )
        columns[:, column] = np.ndarray((count,), dtype, points, field.offset, (message.point_step,))
    return columns
