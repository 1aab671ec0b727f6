"""State, timings and counts of a node on /diagnostics, and log lines that do not flood."""

from __future__ import annotations

import re
from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from morphit_ros.ros.core.clocks import steady_timer
from morphit_ros.ros.core.interfaces import DIAGNOSTICS

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
# Monitors call a status stale after five seconds [s].
REPEAT_PERIOD = 1.0
# Value by which a lifecycle node says that it is active, and by which any node says what model it computes with.
STATE, ACTIVE = "state", "active"
_NUMBER = re.compile(r"\d+(\.\d+)?")


def diagnostic_status(
    name: str, level: bytes, message: str, values: Mapping[str, object] | None = None
) -> DiagnosticStatus:
    """A status with its values as text; floats to six digits."""
    pairs = [
        KeyValue(key=key, value=f"{value:.6g}" if isinstance(value, float) else str(value))
        for key, value in (values or {}).items()
    ]
    return DiagnosticStatus(level=level, name=name, message=message, values=pairs)


def model_key(topic: str) -> str:
    """Key of the value that names the model which a node computes with, by the topic that it comes on."""
    return f"hash of {topic}"


class Diagnostics:
    """Publishes the latest status of a node at once and then every second, and logs what changed.

    Whoever listens from now on, or lost a message, hears the state of a node that has nothing new to say; monitors take
    what is silent for some seconds for stale.

    Args:
        node: publishes, logs and names the status.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = DIAGNOSTICS.publish(node)
        self._last_message = ""
        self._last: DiagnosticArray | None = None
        self._new = False
        self._models: dict[str, str] = {}
        steady_timer(node, REPEAT_PERIOD, self._repeat)

    def report(
        self, level: bytes, message: str, values: Mapping[str, object] | None = None, periodic: bool = False
    ) -> None:
        """Publish a status; log it if its text differs from the last one.

        Args:
            level: how serious it is.
            message: what people read.
            values: timings and counts.
            periodic: said again every period: a text that differs from the last one in its numbers only is published,
                but not logged again.
        """
        told = {**(values or {}), **self._models}
        self._last = DiagnosticArray(
            status=[diagnostic_status(self._node.get_fully_qualified_name(), level, message, told)]
        )
        self._new = True
        self._publish(self._last)
        said, self._last_message = self._last_message, message
        if message == said or (periodic and _NUMBER.sub("", message) == _NUMBER.sub("", said)):
            return
        logger = self._node.get_logger()
        # One statement each: rclpy refuses one call site that logs at several severities.
        if level == OK:
            logger.info(message)
        elif level == WARN:
            logger.warning(message)
        else:
            logger.error(message)

    def computes_with(self, topic: str, content_hash: str) -> None:
        """Say from now on, with each status, which model of a topic this node computes with.

        Args:
            topic: its name.
            content_hash: of the model; empty: of none.
        """
        self._models[model_key(topic)] = content_hash
        if self._last is not None:
            [status] = self._last.status
            others = [pair for pair in status.values if pair.key != model_key(topic)]
            status.values = [*others, KeyValue(key=model_key(topic), value=content_hash)]

    def _publish(self, array: DiagnosticArray) -> None:
        array.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(array)

    def _repeat(self) -> None:
        # Nodes that report by themselves more often are not doubled.
        new, self._new = self._new, False
        if self._last is not None and not new:
            self._publish(self._last)
