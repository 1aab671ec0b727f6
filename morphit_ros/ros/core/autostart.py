"""A lifecycle node that configures and activates itself once its inputs are there."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.lifecycle import LifecycleNodeMixin, TransitionCallbackReturn
from rclpy.node import Node

from morphit_ros.ros.core.clocks import steady_timer

# Time between two attempts [s].
_PERIOD = 0.25


class Autostart:
    """Tries until the node is active, and leaves it alone afterwards; transitions that fail say why themselves.

    Args:
        node: a lifecycle node.
        ready: whether its inputs are there.
        group: of its transitions.
    """

    def __init__(self, node: Node, ready: Callable[[], bool], group: CallbackGroup | None = None) -> None:
        assert isinstance(node, LifecycleNodeMixin)
        self._node, self._ready = node, ready
        self._timer = steady_timer(node, _PERIOD, self._start, group)

    def _start(self) -> None:
        if not self._ready():
            return
        if self._node._state_machine.current_state[1] == "unconfigured":
            # Activated the next time: inputs that come meanwhile are taken first.
            self._node.trigger_configure()
        elif self._node.trigger_activate() == TransitionCallbackReturn.SUCCESS:
            self._timer.cancel()
