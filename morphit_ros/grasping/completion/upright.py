"""The frame that completion works in, so that its grids move with the object."""

from __future__ import annotations

import numpy as np

from morphit_ros.geometry.outward_normals import principal_frame
from morphit_ros.geometry.support_plane import SupportPlaneLike
from morphit_ros.geometry.transforms import Array, make_transform


def upright_frame(points: Array, table: SupportPlaneLike | None) -> Array:
    """``T_world_upright`` (4, 4): the table's frame, else the cloud's principal axes with the longest as z."""
    if table is not None:
        return np.asarray(table.T_world_table, dtype=np.float64)
    center, axes = principal_frame(points)
    return make_transform(axes, center)
