"""The grid of a pad as the compiled code sees it: cells about the canonical fingertip points."""

from __future__ import annotations

import math
from typing import NamedTuple

from morphit_ros.grasping.gripper import Gripper


class PadGrid(NamedTuple):
    """Cells of a pad, the same for both fingers.

    Attributes:
        half_width, half_height: of the pad along x and z of the gripper frame [m].
        columns, rows: cells along x and z; cell (i, k) is number i * rows + k, as in `Gripper.pad_points`.
        step_x, step_z: distance of the cells' centres [m]; the outermost centres lie on the pad's border.
    """

    half_width: float
    half_height: float
    columns: int
    rows: int
    step_x: float
    step_z: float


def pad_grid(gripper: Gripper, max_cells: int = 100_000) -> PadGrid:
    """The grid of `gripper.pad_points`, coarser where it has more than `max_cells` cells."""
    step = max(gripper.pad_step, math.sqrt(gripper.pad_width * gripper.pad_height / max_cells))
    columns = math.ceil(gripper.pad_width / step - 1e-9) + 1
    rows = math.ceil(gripper.pad_height / step - 1e-9) + 1
    return PadGrid(
        0.5 * gripper.pad_width,
        0.5 * gripper.pad_height,
        columns,
        rows,
        gripper.pad_width / (columns - 1),
        gripper.pad_height / (rows - 1),
    )
