"""PointCloud2 messages, read by their fields: the same for rclpy's class and for any other with these names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from morphit_ros.budgets import LARGEST_COORDINATE, MOST_POINTS, check_count
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
        InvalidInputError: x, y, z are missing or not floating point, the data is too short for the points it claims,
            there are too many, or a point is absurdly far. No memory is taken before that is known.
    """
    fields = {field.name: field for field in message.fields}
    count = message.width * message.height
    check_count("cloud points", count, MOST_POINTS)
    missing = [name for name in "xyz" if name not in fields]
    if missing:
        raise InvalidInputError("cloud fields", sorted(fields), f"x, y and z; missing: {', '.join(missing)}")
    if message.row_step < message.width * message.point_step or len(message.data) < message.height * message.row_step:
        raise InvalidInputError(
            "cloud data", f"{len(message.data)} bytes, row_step {message.row_step}",
            f"{message.height} rows of {message.width} points of {message.point_step} bytes",
        )  # fmt: skip
    positions = _views(message, fields, ("x", "y", "z"))
    for view in positions:
        _check_range(view)
    points = _rows(positions, count)
    normals = None
    if all(f"normal_{axis}" in fields for axis in "xyz"):
        normals = _rows(_views(message, fields, ("normal_x", "normal_y", "normal_z")), count)
    stamp = message.header.stamp
    return PointCloud(points, normals, frame=message.header.frame_id, stamp=stamp.sec + stamp.nanosec * 1e-9)


def _views(message: Any, fields: dict[str, Any], names: Sequence[str]) -> list[NDArray[np.floating]]:
    """The fields (height, width) as they lie in the message's data: nothing is copied."""
    views = []
    for name in names:
        field = fields[name]
        if field.datatype not in _FIELD_TYPES:
            raise InvalidInputError(f"cloud field {name}", f"datatype {field.datatype}", "FLOAT32 or FLOAT64")
        dtype = _FIELD_TYPES[field.datatype].newbyteorder(">" if message.is_bigendian else "<")
        shape = (message.height, message.width)
        if 0 in shape:
            views.append(np.empty((0, 0), dtype))
            continue
        if field.offset + dtype.itemsize > message.point_step:
            bound = f"within {message.point_step} bytes"
            raise InvalidInputError(f"cloud field {name}", f"offset {field.offset}", bound)
        data = np.frombuffer(message.data, dtype=np.uint8)
        views.append(np.ndarray(shape, dtype, data, field.offset, (message.row_step, message.point_step)))
    return views


def _check_range(view: NDArray[np.floating]) -> None:
    """Refuse absurd coordinates; NaN and infinity stand for what a camera did not see."""
    seen = np.isfinite(view)
    farthest = max(view.max(initial=0.0, where=seen), -view.min(initial=0.0, where=seen))
    if farthest > LARGEST_COORDINATE:
        raise InvalidInputError("cloud points", f"{farthest:.3g} m", f"at most {LARGEST_COORDINATE:g} m, or NaN")


def _rows(views: Sequence[NDArray[np.floating]], count: int) -> Array:
    columns = np.empty((count, len(views)))
    for column, view in enumerate(views):
        columns[:, column] = view.ravel()
    return columns
