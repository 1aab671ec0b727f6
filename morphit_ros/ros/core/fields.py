"""Messages and data types whose fields correspond: one table says how a value of each declared type is converted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np

from morphit_ros.geometry.transforms import make_transform
from morphit_ros.ros.core.conversions import (
    array_from_point,
    matrix_from_pose,
    point_from_array,
    point_rows,
    pose_from_matrix,
    vector_from_array,
)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _text(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


# Declared type → how a value is written into a message, and how it is read. Others are taken as they are.
_CONVERTERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **dict.fromkeys(("float", "double"), (_number, float)),
    **dict.fromkeys(("uint8", "int32", "uint32", "int64", "uint64"), (int, int)),
    "boolean": (bool, bool),
    "string": (_text, str),
    "sequence<double>": (lambda values: np.asarray(values, dtype=np.float64).tolist(), np.array),
    "sequence<string>": (list, tuple),
    "geometry_msgs/Point": (point_from_array, array_from_point),
    "geometry_msgs/Vector3": (vector_from_array, array_from_point),
    "geometry_msgs/Pose": (pose_from_matrix, matrix_from_pose),
    "geometry_msgs/Quaternion": (
        lambda rotation: pose_from_matrix(make_transform(rotation)).orientation,
        lambda message: message,
    ),
    "sequence<geometry_msgs/Point>": (lambda rows: [point_from_array(row) for row in rows], point_rows),
    "sequence<geometry_msgs/Vector3>": (lambda rows: [vector_from_array(row) for row in rows], point_rows),
    "sequence<geometry_msgs/Pose>": (
        lambda matrices: [pose_from_matrix(matrix) for matrix in matrices],
        lambda messages: [matrix_from_pose(message) for message in messages],
    ),
}


def write_fields(message: Any, source: object = None, /, **values: Any) -> Any:
    """Fill in a message; the same message.

    Fields that `values` names are taken from there, others from attributes of `source` of the same name; what neither
    has stays as it is. A number that is not known (None) becomes NaN; rotations (3, 3) and poses (4, 4) are matrices.
    """
    for name, declared in message.get_fields_and_field_types().items():
        if name in values or hasattr(source, name):
            value = values[name] if name in values else getattr(source, name)
            write, _ = _CONVERTERS.get(declared, (None, None))
            setattr(message, name, value if write is None else write(value))
    return message


def read_fields(message: Any, kind: type) -> dict[str, Any]:
    """Those fields of a message that a dataclass has too: points as (3,) and (N, 3), poses as (4, 4) matrices.

    Raises:
        InvalidInputError: a pose that is none.
    """
    own = {field.name for field in fields(kind)}
    found = {}
    for name, declared in message.get_fields_and_field_types().items():
        if name in own:
            _, read = _CONVERTERS.get(declared, (None, None))
            found[name] = getattr(message, name) if read is None else read(getattr(message, name))
    return found
