"""The distance function of the open gripper that planning and execution may use instead of points: superovoids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.point_cloud import PointCloud
from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping import Gripper
from morphit_ros.grasping.suction.cup import SuctionCup
from morphit_ros.robot.clearance import ClearanceFunction

# A superovoid has 13 numbers to find; clouds with fewer points are left to the checks against points.
_LEAST_POINTS = 30


@dataclass(frozen=True)
class ClearanceConfig(Config):
    """What the open gripper is kept clear of."""

    clearance: str = parameter(
        "points",
        "Distance function of the open gripper: points (those of the clouds alone), superovoids (in addition the exact "
        "distance to a superovoid, which is fitted to each object anew)",
        choices=("points", "superovoids"),
    )


@dataclass(frozen=True)
class ExecutedClearanceConfig(ClearanceConfig):
    """The same for grasps that come ready planned."""

    min_clearance: float = parameter(
        0.0,
        "Grasps that superovoids put nearer than this are not executed; negative for shapes that bulge beyond the "
        "object [m]",
        minimum=-0.05,
        maximum=0.1,
    )


def object_clearance(
    config: ClearanceConfig, gripper: Gripper | SuctionCup, objects: Sequence[PointCloud], T_frame_table: Array | None
) -> ClearanceFunction | None:
    """What the configuration asks for, in the frame of the clouds; None where points are enough.

    Args:
        config: which.
        gripper: its boxes are kept clear.
        objects: the object to grasp and its neighbours; a superovoid is fitted to each.
        T_frame_table: (4, 4), z = 0 is the table's upper face; None if there is none.

    Raises:
        InvalidInputError: no cloud that a superovoid can be fitted to.
    """
    if config.clearance == "points":
        return None
    from morphit_ros.superovoid import HalfSpace, ObjectClearance, fit_superovoid

    large = [cloud.points for cloud in objects if len(cloud) >= _LEAST_POINTS]
    if not large:
        most = max((len(cloud) for cloud in objects), default=0)
        raise InvalidInputError("object cloud", f"{most} points", f"{_LEAST_POINTS} or more for a superovoid")
    shapes = [fit_superovoid(points).placed for points in large]
    table = [] if T_frame_table is None else [(HalfSpace(), T_frame_table)]
    return ObjectClearance(gripper.collision_boxes, shapes, table)
