"""Joint states of the robot as they come; broken ones are left out and said."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg

from morphit_ros.errors import MorphitError
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.conversions import joint_state_from_message
from morphit_ros.ros.core.interfaces import JOINT_STATES


def follow_joint_states(node: Node, take: Callable[[JointState], None], group: CallbackGroup | None = None) -> None:
    """Call `take` with each joint state that can be used, in callbacks of `group`."""

    def receive(message: JointStateMsg) -> None:
        try:
            state = joint_state_from_message(message)
        except MorphitError as error:
            node.get_logger().warning(f"joint state ignored: {error}", throttle_duration_sec=5.0)
        else:
            take(state)

    JOINT_STATES.subscribe(node, receive, group)
