"""What stands around an arm, as arrays for the reachability check."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, invert_transform, transform_points
from morphit_ros.motion.reachability.contacts import ReachWorld
from morphit_ros.motion.reachability.parts import Parts, cloud_parts

# A table goes on where no camera sees it [m]; as of `obstacles.table_obstacle`.
_TABLE_MARGIN = 0.1


def empty_world() -> ReachWorld:
    """Nothing around."""
    nothing = cloud_parts(np.empty((0, 3)), 1.0)
    return ReachWorld(False, np.eye(4), np.zeros(2), nothing, nothing)


def make_world(
    T_root_world: Array,
    T_world_table: ArrayLike | None,
    size: ArrayLike | None,
    object_points: ArrayLike | None,
    obstacle_points: ArrayLike | None,
    object_spacing: float,
    obstacle_spacing: float,
    obstacle_clearance: float,
) -> ReachWorld:
    """Table and clouds in the root's frame; arguments and errors as of `Reachability.set_world`."""
    T_table_root, half = np.eye(4), np.zeros(2)
    if T_world_table is not None:
        T_table_root = invert_transform(T_root_world @ check_transform(T_world_table, "T_world_table"))
        half = np.full(2, np.inf)
        if size is not None:
            half = np.asarray(size, dtype=np.float64)[:2] / 2.0 + _TABLE_MARGIN
            if half.shape != (2,) or not np.isfinite(half).all() or (half <= _TABLE_MARGIN).any():
                raise InvalidInputError("table size", np.asarray(size).tolist(), "two positive numbers [m]")
    return ReachWorld(
        T_world_table is not None,
        np.ascontiguousarray(T_table_root),
        half,
        _cloud("object_points", object_points, T_root_world, object_spacing, 0.0),
        _cloud("obstacle_points", obstacle_points, T_root_world, obstacle_spacing, obstacle_clearance),
    )


def _cloud(name: str, points: ArrayLike | None, T_root_world: Array, spacing: float, clearance: float) -> Parts:
    array = np.empty((0, 3)) if points is None else np.asarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidInputError(name, f"shape {array.shape}", "(N, 3)")
    finite = array[np.isfinite(array).all(axis=1)]
    if len(finite) and float(np.abs(finite).max()) > 100.0:
        largest = float(np.abs(finite).max())
        raise InvalidInputError(name, f"coordinates up to {largest:.4g} m", "at most 100 m", "Coordinates are metres.")
    return cloud_parts(transform_points(T_root_world, finite), spacing, clearance)
