"""Joint states of the robot, fetched at a rate of one's own; broken ones are left out and said."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState as JointStateMsg

from morphit_ros.errors import MorphitError
from morphit_ros.robot.motion_types import JointState
from morphit_ros.ros.core.clocks import steady_timer, take_clock
from morphit_ros.ros.core.conversions import joint_state_from_message
from morphit_ros.ros.core.guarded import guarded
from morphit_ros.ros.core.interfaces import JOINT_STATES

# Time between two looks [s].
PERIOD = 0.01
# More messages a second than drivers publish [Hz].
_FASTEST = 2000.0


def follow_joint_states(
    node: Node,
    take: Callable[[JointState], None],
    group: CallbackGroup | None = None,
    refuse: Callable[[str], None] = lambda _: None,
    period: float = PERIOD,
    every: bool = False,
) -> Callable[[], None]:
    """Call `take` with the newest joint states, `refuse` with why one cannot be used, in callbacks of `group`.

    Drivers publish at 500 Hz and more, of which nobody here needs each. Of several messages between two looks the
    newest counts; where arm and gripper publish on their own, the newest of each.

    Args:
        period: wall time between two looks [s].
        every: call `take` with all messages, oldest first: for a history.

    Returns:
        A look between two looks, for whoever needs the newest now.
    """

    def receive(message: JointStateMsg) -> None:
        try:
            state = joint_state_from_message(message)
        except MorphitError as error:
            node.get_logger().warning(f"joint state ignored: {error}", throttle_duration_sec=5.0)
            refuse(str(error))
        else:
            take(state)

    # Of a gripper that is slower than the arm nothing is lost between two looks. The newest counts: after a lost
    # datagram reliable ones would wait until that has been sent again.
    inbox = JOINT_STATES.inbox(node, depth=max(50, round(_FASTEST * period)), best_effort=True)
    receive = guarded(node, JOINT_STATES.name, receive)
    lock = threading.Lock()

    def look() -> None:
        with lock:
            messages = inbox.take()
            # Not before: the time of a state must not seem to be yet to come.
            take_clock(node)
            newest = messages if every else {tuple(message.name): message for message in messages}.values()
            for message in newest:
                receive(message)

    steady_timer(node, period, look, group)
    return look
