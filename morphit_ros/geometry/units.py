"""Units of mesh and cloud files: what is said of them, and the check of what is not."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.point_cloud import PointCloud

UNITS = {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "inch": 0.0254}
"""Metres a unit."""

# What robots hold, and single links of theirs, is smaller [m]. The same part in millimetres, read as metres, is not,
# down to 2 mm; in inches, down to 5 cm.
LARGEST_UNASKED = 2.0

Shape = TypeVar("Shape", TriangleMesh, PointCloud)


def unit_length(unit: str) -> float:
    """Length of a unit [m].

    Raises:
        InvalidInputError: an unknown unit.
    """
    if unit not in UNITS:
        raise InvalidInputError("unit", repr(unit), f"one of {', '.join(UNITS)}")
    return UNITS[unit]


def check_metres(name: str, size: float) -> None:
    """Doubt that numbers are metres where they make a thing of more than 2 m.

    Args:
        name: what it is, such as the name of its file.
        size: longest side of its box, its numbers taken for metres [m].

    Raises:
        InvalidInputError: names the size, and what to say if it is right or wrong.
    """
    if not size <= LARGEST_UNASKED:
        raise InvalidInputError(
            name, f"a size of {size:.4g} m, its numbers taken for metres", f"at most {LARGEST_UNASKED:g} m",
            f"CAD files are mostly in millimetres: --unit mm (in Python unit='mm') makes it {size:.4g} mm. "
            "If it is so large, say --unit m.",
        )  # fmt: skip


def in_metres(shape: Shape, unit: str | None, name: str = "shape") -> Shape:
    """A mesh or cloud scaled from its unit; where none is said, its numbers are metres, and doubted if it is huge.

    Args:
        shape: as it was read.
        unit: "m", "mm", "cm" or "inch"; None if nobody said.
        name: what it is, for the error.

    Raises:
        InvalidInputError: an unknown unit, or more than 2 m without a unit.
    """
    if unit is not None:
        length = unit_length(unit)
        return shape if length == 1.0 else shape.scaled(length)
    check_metres(name, _longest_side(shape))
    return shape


def _longest_side(shape: TriangleMesh | PointCloud) -> float:
    if isinstance(shape, TriangleMesh):
        return float(shape.extents.max())
    points = shape.finite().points
    return float(np.ptp(points, axis=0).max()) if len(points) else 0.0
