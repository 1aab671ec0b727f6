"""What a force sensor at the wrist measures, for weighing."""

from __future__ import annotations

from time import monotonic

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node

from morphit_ros.errors import InvalidInputError
from morphit_ros.execution.supervision import StateWatch
from morphit_ros.execution.weighing import Scale, wrench_scale
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.core import interfaces

# A reading that is older in wall time is none [s].
_OLDEST = 0.25


class WrenchInput:
    """Keeps the newest reading.

    Args:
        node: subscribes.
        group: of the subscription.
    """

    def __init__(self, node: Node, group: CallbackGroup) -> None:
        self._frame, self._values, self._came = "", np.full(6, np.nan), -np.inf
        self._subscription = interfaces.WRENCH.subscribe(node, self._on_wrench, group)

    def scale(self, kinematics: KinematicModel, robot: RobotConfiguration) -> Scale:
        """A scale by this sensor.

        Raises:
            InvalidInputError: nothing has come, or as of `wrench_scale`.
        """
        if not self._frame:
            raise InvalidInputError(
                interfaces.WRENCH.name, "no message", "readings of a force sensor, stamped with the frame they are in",
                "Remap the topic, or set weigh.source.",
            )  # fmt: skip
        return wrench_scale(kinematics, robot, self._frame, self._read)

    def _read(self, _state: StateWatch) -> Array | None:
        fresh = monotonic() - self._came <= _OLDEST
        return self._values if fresh and bool(np.isfinite(self._values).all()) else None

    def _on_wrench(self, message: WrenchStamped) -> None:
        force, torque = message.wrench.force, message.wrench.torque
        self._values = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
        self._frame, self._came = message.header.frame_id, monotonic()
