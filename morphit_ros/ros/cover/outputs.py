"""What the control of a cover publishes: commands at its rate, and once what others must know of the cover."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg
from std_msgs.msg import String

from morphit_ros.cover.actuation.motors import motor_angles
from morphit_ros.cover.control.supervision import SupervisedController
from morphit_ros.geometry.transforms import Array
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.cover.display import CoverDisplay
from morphit_ros.ros.cover.messages import description_text, rates_message, trajectory_message
from morphit_ros.ros.cover.model import LoadedCover


class CoverOutputs:
    """Publishes for one cover.

    Args:
        node: owner of the publishers.
        supervised: whose commands they are.
        trajectory: whether commands are published as trajectories too.
    """

    def __init__(self, node: Node, supervised: SupervisedController, trajectory: bool) -> None:
        self._node, self._supervised = node, supervised
        self._commands, self._trajectory, self._motors, self._description = (
            topic.publish(node, depth=1)
            for topic in (
                interfaces.COVER_COMMANDS, interfaces.COVER_TRAJECTORY, interfaces.COVER_MOTORS,
                interfaces.COVER_DESCRIPTION,
            )
        )  # fmt: skip
        self._with_trajectory = trajectory

    def command(self, rates: Array) -> None:
        """Publish a command [rad/s]."""
        self._commands.publish(rates_message(rates))
        if self._with_trajectory:
            cover, period = self._supervised.cover, self._supervised.controller_config.period
            angles = motor_angles(cover, self._supervised.state.rotations)
            self._trajectory.publish(trajectory_message(cover.motor_labels, angles, rates, period))

    def describe(self, model: LoadedCover, display: CoverDisplay) -> None:
        """Publish the motors and the cover with its start configuration."""
        angles = motor_angles(model.cover, model.state.rotations)
        motors = JointStateMsg(name=model.cover.motor_labels, position=angles.tolist())
        motors.header.stamp = self._node.get_clock().now().to_msg()
        self._motors.publish(motors)
        self._description.publish(String(data=description_text(model.cover, model.state, display.description())))

    def settled(self) -> bool:
        """Whether the last command has reached all subscribers; waits half a second at most."""
        return bool(self._commands.wait_for_all_acked(Duration(seconds=0.5)))
