"""How fast a straight line of the tip may be, from the limits of the joints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.kinematics import KinematicModel


@dataclass(frozen=True)
class CartesianLimits:
    """What MoveIt's Pilz planner scales its lines from.

    Attributes:
        max_trans_vel: [m/s].
        max_trans_acc: [m/s²]; a turn has this one divided by `max_trans_vel` / `max_rot_vel`.
        max_rot_vel: [rad/s].
    """

    max_trans_vel: float
    max_trans_acc: float
    max_rot_vel: float

    def as_parameters(self) -> dict[str, dict[str, float]]:
        """The content of a ``pilz_cartesian_limits.yaml``."""
        acceleration = {"max_trans_acc": self.max_trans_acc, "max_trans_dec": -self.max_trans_acc}
        rates = {"max_trans_vel": self.max_trans_vel, "max_rot_vel": self.max_rot_vel}
        return {"cartesian_limits": {**rates, **acceleration}}


def cartesian_limits(robot: RobotConfiguration, description: RobotDescription) -> CartesianLimits:
    """What the joints allow at home, in whatever direction the tip moves, or about whatever axis it turns.

    Pilz refuses a line on which a joint exceeds its limits, and slows none down. For a tip's velocity v the joints
    move at J⁺ v (the least such motion, if there are several): joint j allows a speed of its limit divided by
    ‖row j of J⁺‖, and as much acceleration where it begins and ends, at rest.

    Rounded down to hundredths: it is for a file.

    Raises:
        InvalidInputError: the tip cannot move or turn in some direction at home, or a joint has no limit of velocity.
    """
    model = KinematicModel(description)
    home = dict(zip(robot.arm_joints, robot.home.tolist(), strict=True)) | dict.fromkeys(robot.finger_joints, 0.0)
    jacobian = model.jacobian(home, robot.tip_link, robot.arm_joints)
    if np.linalg.matrix_rank(jacobian, tol=1e-3) < 6:
        bound = "positions where the tip can move and turn in every direction"
        raise InvalidInputError(f"home of {robot.name}", "a singular position", bound)
    velocities = model.limits(robot.arm_joints)[2]
    if not np.isfinite(velocities).all():
        raise InvalidInputError(f"velocity limits of {robot.name}", velocities.tolist(), "one of each joint of the arm")
    inverse = np.linalg.pinv(jacobian)
    moves, turns = np.linalg.norm(inverse[:, :3], axis=1), np.linalg.norm(inverse[:, 3:], axis=1)
    speed, rate = _hundredths(np.min(velocities / moves)), _hundredths(np.min(velocities / turns))
    # Pilz ties the two: a turn by one radian takes as long as this way.
    radius = speed / rate
    accelerations = robot.acceleration_limits
    return CartesianLimits(
        max_trans_vel=speed,
        max_trans_acc=_hundredths(min(np.min(accelerations / moves), radius * np.min(accelerations / turns))),
        max_rot_vel=rate,
    )


def _hundredths(value: float) -> float:
    return math.floor(100.0 * value) / 100.0
