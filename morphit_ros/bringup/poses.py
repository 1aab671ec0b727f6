"""Poses as people type them: seven numbers, and the forms that nodes take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from morphit_ros.errors import InvalidInputError

_BOUND = "seven numbers 'x y z qx qy qz qw' with a quaternion of length 1"
# Below this cosine of the pitch, roll and yaw turn about the same axis.
_GIMBAL_LOCK = 1e-9


def parse_pose(name: str, text: str) -> list[float]:
    """A pose x y z [m] qx qy qz qw, written with spaces or commas.

    Raises:
        InvalidInputError: not seven finite numbers, or no unit quaternion.
    """
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InvalidInputError(name, repr(text), _BOUND) from None
    finite = all(math.isfinite(number) for number in numbers)
    if len(numbers) != 7 or not finite or not abs(sum(q * q for q in numbers[3:]) - 1.0) < 1e-3:
        raise InvalidInputError(name, repr(text), _BOUND)
    return numbers


def rpy_from_quat_xyzw(quat_xyzw: Sequence[float]) -> list[float]:
    """Roll, pitch, yaw [rad] about fixed axes, as URDF has them; with a pitch of ±π/2 the roll is 0."""
    from morphit_ros.geometry.transforms import matrix_from_quat_xyzw

    rotation = matrix_from_quat_xyzw(quat_xyzw).tolist()
    cosine = math.hypot(rotation[0][0], rotation[1][0])
    pitch = math.atan2(-rotation[2][0], cosine)
    if cosine < _GIMBAL_LOCK:
        return [0.0, pitch, math.atan2(-rotation[0][1], rotation[1][1])]
    return [math.atan2(rotation[2][1], rotation[2][2]), pitch, math.atan2(rotation[1][0], rotation[0][0])]
