"""A region to put something into, as clients say it: four numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from geometry_msgs.msg import PoseStamped

from morphit_ros.errors import InvalidInputError


def check_region(numbers: Sequence[float]) -> None:
    """Refuse what are no four numbers, or none at all.

    Raises:
        InvalidInputError: they are not.
    """
    if len(numbers) not in (0, 4) or not all(map(math.isfinite, numbers)):
        raise InvalidInputError("region", list(numbers), "x y z yaw [m, rad], or nothing")


def region_pose(numbers: Sequence[float], frame: str) -> PoseStamped:
    """The middle of a region (4,), x y z yaw [m, rad], as a message in a frame."""
    message = PoseStamped()
    message.header.frame_id = frame
    place, turn = message.pose.position, message.pose.orientation
    place.x, place.y, place.z = map(float, numbers[:3])
    turn.z, turn.w = math.sin(0.5 * numbers[3]), math.cos(0.5 * numbers[3])
    return message
